package registry_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/registry"
)

type refundInput struct {
	OrderID string `json:"order_id" jsonschema_description:"Order to refund" once:"key"`
	Cents   int64  `json:"cents" jsonschema:"minimum=1"`
}

func ExampleAdd() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refundInput) (string, error) {
			return fmt.Sprintf("refunded %d cents", in.Cents), nil
		},
	})
	for _, t := range tools.Tools() {
		fmt.Println(t.Name, t.Strict)
		fmt.Println(string(t.Schema))
	}
	// Output:
	// issue_refund true
	// {"type":"object","properties":{"order_id":{"description":"Order to refund","type":"string"},"cents":{"type":"integer","minimum":1}},"additionalProperties":false,"required":["order_id","cents"]}
}

func ExampleRegistry_Handler() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refundInput) (string, error) { return "refunded " + in.OrderID, nil },
	})
	handle := tools.Handler() // without a guard: add middleware.Once
	for _, arguments := range []string{`{"order_id":"1001","cents":500}`, `{"order_id":"1001","cents":0}`} {
		res, err := handle(context.Background(), &registry.Call{Run: registry.Run{ID: "ticket-42"}, Turn: 1, Tool: "issue_refund", Arguments: arguments})
		fmt.Println(res.Verdict, res.Content, err)
	}
	// Output:
	// executed refunded 1001 <nil>
	// refused {"toolonce":1,"status":"refused","tool":"issue_refund","reason":"must be at least 1","path":"/cents","rule":"minimum"} <nil>
}

func ExampleNoEffect() {
	err := registry.NoEffect(errors.New("the card was declined"))
	fmt.Println(err, registry.HasNoEffect(fmt.Errorf("paying: %w", err)))
	// Output: the card was declined true
}
