//go:build cgo

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

type order struct {
	ID string `json:"id" once:"key"`
}

// once calls a tool in a process of its own, as it were: the store is opened, used and closed.
func once(path, run string) (err error) {
	store, err := sqlitestore.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tools := registry.New()
	registry.Add(tools, registry.Tool[order, string]{
		Name: "ship", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, o order) (string, error) {
			fmt.Println("shipped:", o.ID)
			return "on its way", nil
		},
	})
	handle := tools.Handler(middleware.Once(store.Namespace("acme"), nil))
	res, err := handle(context.Background(), &registry.Call{Run: registry.Run{ID: run}, Turn: 1, Tool: "ship", Arguments: `{"id":"1001"}`})
	fmt.Println(run, res.Verdict)
	return err
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, run := range []string{"monday", "monday", "tuesday"} {
		if err := once(filepath.Join(dir, "once.db"), run); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// shipped: 1001
	// monday executed
	// monday replayed
	// tuesday already_done
}
