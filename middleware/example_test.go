package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// A model asks for the same refund twice, and then for another amount.
func ExampleOnce() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refundInput) (string, error) {
			fmt.Println("money moved:", in.OrderID, in.Cents)
			return "re_1", nil
		},
	})
	handle := tools.Handler(middleware.Once(middleware.Memory(), nil)) // sqlitestore.Open for production
	for i, arguments := range []string{
		`{"order_id":"1001","cents":500}`, `{"cents":500,"order_id":"1001","reason":"it is broken"}`, `{"order_id":"1001","cents":900}`,
	} {
		res, err := handle(context.Background(), &registry.Call{Run: registry.Run{ID: "ticket-42"}, Turn: i + 1, Tool: "issue_refund", Arguments: arguments})
		fmt.Println(res.Verdict, err)
	}
	// Output:
	// money moved: 1001 500
	// executed <nil>
	// already_done <nil>
	// conflict <nil>
}

// A worker has died in a refund, after the provider had made it. The next one asks the provider when it starts.
func ExampleRecover() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		Run:    func(context.Context, refundInput) (string, error) { return "", errors.New("not run again") },
		Lookup: func(context.Context, refundInput) (string, error) { return "re_1", nil }, // it is there
	})
	ctx, dead := context.Background(), middleware.Memory()
	_, _, err := dead.Claim(ctx, middleware.Claim{
		Identity: "order 1001", Token: "t", Deadline: time.Minute, KeyWindow: time.Hour, Input: []byte(`{"cents":500,"order_id":"1001"}`),
		Call: middleware.Alias{Run: "ticket-42", Turn: 1, Tool: "issue_refund"},
	})
	fmt.Println(err)
	dead.Die()

	settled, err := middleware.Recover(ctx, tools, dead.Peer(), nil)
	for _, s := range settled {
		fmt.Println(s.Tool, s.Verdict)
	}
	fmt.Println(err)
	// Output:
	// <nil>
	// issue_refund replayed
	// <nil>
}
