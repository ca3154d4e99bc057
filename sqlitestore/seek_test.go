//go:build cgo

package sqlitestore_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
)

// While a step waits for its turn, somebody else may take settling, and die.
func TestWhoDiesBetweenTheQuestionAndTheWriteIsGoneByThen(t *testing.T) {
	path := t.TempDir() + "/once.db"
	a, b := open(t, path, nil), open(t, path, nil)
	row := claimed(t, a, aClaim("run", 1))
	doubt := middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1}
	_, err := a.Change(t.Context(), doubt)
	check(t, err)
	take := func(mark string) middleware.Transition {
		return middleware.Transition{Step: middleware.Take, Operation: row.Operation, Token: row.Token, Attempt: 1, State: middleware.InDoubt, Mark: mark}
	}
	var got middleware.Row
	done := make(chan error, 1)
	check(t, a.KeepWriter(func() {
		go func() {
			var err error
			got, err = a.Change(t.Context(), take("of a"))
			done <- err
		}()
		for !waiting("(*changing).write") {
			runtime.Gosched()
		}
		_, err := b.Change(t.Context(), take("of b"))
		check(t, err)
		b.Die()
	}))
	if err := <-done; err != nil || got.Settle != "of a" || got.State != middleware.InDoubt {
		t.Errorf("%v, settled by %q", err, got.Settle)
	}
}

// waiting reports whether a goroutine is in a function.
func waiting(function string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), function)
}
