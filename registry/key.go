package registry

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// Attempt is one run of a handler under a guard, as the handler's context carries it.
type Attempt struct {
	// Key is the idempotency key to hand downstream: fixed before the handler starts, the same on every attempt.
	Key string
	// Number is 1 for the first attempt of a claim.
	Number int
	// SendBefore ends the time in which Transport sends unsafe requests.
	SendBefore time.Time
	// WindowEnd is when the provider forgets the key; zero where nothing depends on it.
	WindowEnd time.Time

	sent atomic.Bool // an unsafe request has gone out through Transport
}

type attemptKey struct{}

// Context is for middleware that runs handlers under a claim: it carries a.
func (a *Attempt) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

func attemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// IdempotencyKey is the key to hand to a provider such as Stripe, for use inside Run. It is the same on every attempt
// at one operation, holds no personal data and has 64 characters. part names one of several requests of a handler, so
// that each has its own key. Outside a guarded call the key is "".
func IdempotencyKey(ctx context.Context, part ...string) string {
	a := attemptOf(ctx)
	if a == nil || a.Key == "" || len(part) == 0 {
		if a == nil {
			return ""
		}
		return a.Key
	}
	return derive(a.Key, append([]string{"part"}, part...)...)
}

func derive(key string, parts ...string) string {
	return hexadecimal(codec.HashStrings(append([]string{"downstream", key}, parts...)...))
}

// DownstreamKey is the key of an operation: a hash of namespace, identity and generation, so that even a lost database
// meets a provider that remembers. It is for ledgers, which fix it in the row at the claim.
func DownstreamKey(namespace, identity string, generation int) string {
	return derive(namespace, identity, strconv.Itoa(generation))
}
