package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/registry"
)

// toolTimeout bounds a tool. It is short, so that nobody waits for minutes in an example.
const toolTimeout = 5 * time.Second

// RefundInput is what the model fills in to refund an order.
type RefundInput struct {
	OrderID string `json:"order_id" jsonschema_description:"Order to refund" once:"key"`           // at most one refund an order
	Cents   int64  `json:"cents" jsonschema:"minimum=1" jsonschema_description:"Amount in cents"`  // another amount: conflict
	Reason  string `json:"reason,omitempty" jsonschema_description:"Why, in a few words" once:"-"` // worded anew each time
}

// Refund is money that has moved.
type Refund struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

// OrderInput names an order.
type OrderInput struct {
	OrderID string `json:"order_id" jsonschema_description:"Number of the order"`
}

// Order is what was paid.
type Order struct {
	OrderID string `json:"order_id"`
	Cents   int64  `json:"cents"`
}

// NoteInput is a note on an order.
type NoteInput struct {
	OrderID string `json:"order_id" jsonschema_description:"Number of the order"`
	Text    string `json:"text" jsonschema_description:"The note"`
}

// Note is a note that was kept.
type Note struct {
	ID string `json:"id"`
}

// newTools are the agent's tools, declared for what the provider offers.
func newTools(pay *payments, kind provider.Kind) *registry.Registry {
	refund := registry.Tool[RefundInput, Refund]{
		Name: "issue_refund", Description: "Refund an order, or a part of it, to its card.",
		Effect: registry.NonIdempotentWrite, Timeout: toolTimeout,
		Check: pay.mayRefund, Run: pay.refund,
	}
	switch kind {
	case provider.Keyed: // unclear: send it again with the same key
		refund.Recovery = registry.Rerun
	case provider.Lookup: // unclear: ask the provider
		refund.Lookup = pay.findRefund
	case provider.Plain: // unclear: a person must look
		refund.Recovery = registry.Hold
	}
	tools := registry.New()
	registry.Add(tools, refund)
	registry.Add(tools, registry.Tool[OrderInput, Order]{
		Name: "get_order", Description: "What was paid for an order.",
		Effect: registry.Read, Timeout: toolTimeout, Run: pay.order,
	})
	registry.Add(tools, registry.Tool[NoteInput, Note]{
		Name: "add_note", Description: "Add a note to an order. Equal notes are kept side by side.",
		Effect: registry.NonIdempotentWrite, Identity: registry.ByCall, Timeout: toolTimeout, Run: pay.note,
	})
	return tools
}

// mayRefund is asked on every call, repeats too. It does not look at what was refunded before: that is Run's business.
func (p *payments) mayRefund(ctx context.Context, in RefundInput) error {
	order, err := p.order(ctx, OrderInput{OrderID: in.OrderID})
	if err != nil {
		return err
	}
	if in.Cents > order.Cents {
		return errors.New("the refund is more than what was paid")
	}
	return nil
}

// refund moves money.
func (p *payments) refund(ctx context.Context, in RefundInput) (Refund, error) {
	var out Refund
	err := p.post(ctx, "/refunds", map[string]any{"order_id": in.OrderID, "cents": in.Cents}, &out)
	return out, err
}

// findRefund says whether the refund happened: the result if it did, NoEffect if it surely did not, else unsure.
func (p *payments) findRefund(ctx context.Context, in RefundInput) (Refund, error) {
	var found []Refund
	if err := p.get(ctx, "/refunds?order_id="+url.QueryEscape(in.OrderID), &found); err != nil {
		return Refund{}, err
	}
	switch {
	case len(found) == 0:
		return Refund{}, registry.NoEffect(errors.New("the provider has no refund of this order"))
	case len(found) > 1 || found[0].Cents != in.Cents:
		return Refund{}, fmt.Errorf("the provider has %d refunds of this order, none of them surely ours", len(found))
	}
	return found[0], nil
}

func (p *payments) order(ctx context.Context, in OrderInput) (Order, error) {
	var out Order
	err := p.get(ctx, "/orders/"+url.PathEscape(in.OrderID), &out)
	return out, err
}

func (p *payments) note(ctx context.Context, in NoteInput) (Note, error) {
	var out Note
	err := p.post(ctx, "/notes", in, &out)
	return out, err
}
