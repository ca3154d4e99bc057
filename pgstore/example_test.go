package pgstore_test

import (
	"context"
	"log"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

type order struct {
	ID string `json:"order_id" once:"key"`
}

// Workers on several hosts, each with this, make one refund between them. It is not run here, where there is no server.
func ExampleOpen() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, "postgres://app@db.example.com/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	tools := registry.New()
	registry.Add(tools, registry.Tool[order, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, o order) (string, error) { return "refunded " + o.ID, nil },
	})
	handle := tools.Handler(middleware.Once(store.Namespace("acme"), nil))
	_, _ = handle(ctx, &registry.Call{Run: registry.Run{ID: "ticket-42"}, Turn: 1, Tool: "issue_refund", Arguments: `{"order_id":"1001"}`})
}
