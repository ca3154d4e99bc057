package middleware_test

import (
	"context"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// A clock of the client's, a cursor or a session id is another one at each try.
func TestAFieldThatIsLeftOutMakesNoOtherOperationOfATry(t *testing.T) {
	type stamped struct {
		Order    string `json:"order"`
		ClientTS string `json:"client_ts" once:"-"`
	}
	ran := 0
	r := registry.New()
	registry.Add(r, registry.Tool[stamped, string]{
		Name: "charge", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in stamped) (string, error) {
			ran++
			return in.ClientTS, nil
		},
	})
	h := r.Handler(middleware.Once(middleware.Memory(), options()))
	want(t, ask(t, h, at(1, 0, "charge", `{"order":"A-1","client_ts":"t1"}`)), registry.Executed, "t1")
	want(t, ask(t, h, at(2, 0, "charge", `{"order":"A-1","client_ts":"t2"}`)), registry.AlreadyDone, `"result":"t1"`)
	want(t, ask(t, h, at(3, 0, "charge", `{"order":"A-2","client_ts":"t2"}`)), registry.Executed, "t2")
	if ran != 2 {
		t.Errorf("ran %d times, want 2", ran)
	}
}
