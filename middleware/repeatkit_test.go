package middleware_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

type mailInput struct {
	To   string `json:"to" once:"resource"`
	Text string `json:"text"`
}

type unmailInput struct {
	To string `json:"to" once:"resource"`
}

// post sends mails, which may be sent again on purpose.
type post struct {
	mu   sync.Mutex
	sent []string // tool and downstream key
	// send, if set, is asked in the middle of each.
	send func(ctx context.Context, n int) error
	keep time.Duration
}

// registry has two tools that may be repeated freely, mail and post, one that needs an approval for it, letter, and one
// that undoes a mail.
func (p *post) registry() *registry.Registry {
	r := registry.New()
	for name, rule := range map[string]registry.RepeatRule{"mail": registry.RepeatFreely, "post": registry.RepeatFreely, "letter": registry.RepeatApproved} {
		registry.Add(r, registry.Tool[mailInput, string]{
			Name: name, Effect: registry.NonIdempotentWrite, Repeat: rule, Timeout: timeout, Keep: p.keep,
			Run: func(ctx context.Context, _ mailInput) (string, error) {
				p.mu.Lock()
				p.sent = append(p.sent, name+" "+registry.IdempotencyKey(ctx))
				n := len(p.sent)
				p.mu.Unlock()
				if p.send != nil {
					if err := p.send(ctx, n); err != nil {
						return "", err
					}
				}
				return fmt.Sprint("sent ", n), nil
			},
		})
	}
	registry.Add(r, registry.Tool[unmailInput, string]{
		Name: "unmail", Effect: registry.NonIdempotentWrite, Undoes: "mail", Timeout: timeout,
		Run: func(context.Context, unmailInput) (string, error) { return "unsent", nil },
	})
	return r
}

func (p *post) handler(l middleware.Ledger) registry.Handler {
	return p.registry().Handler(middleware.Once(l, options()))
}

func (p *post) wantSent(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sent) != n {
		t.Errorf("sent %d times, want %d", len(p.sent), n)
	}
}

const toAnn = `"to":"ann","text":"late"`

// mail is a call in the chat "c", in a run that began with a user message just now.
func mail(run string, turn int) *registry.Call { return again("mail", run, turn, "") }

// again is a call that repeats an operation on purpose, "" for none.
func again(tool, run string, turn int, operation string) *registry.Call {
	arguments := `{` + toAnn + `}`
	if operation != "" {
		arguments = fmt.Sprintf(`{%s,"repeat_of":%q}`, toAnn, operation)
	}
	c := placedIn("c", in(run, at(turn, 0, tool, arguments)))
	c.Asked = time.Now()
	return c
}

// beforeTheClaim is a ledger at which something happens between a decision and its claim, once.
func beforeTheClaim(l middleware.Ledger, happens func()) middleware.Ledger {
	happens = sync.OnceFunc(happens)
	return &ledgertest.Faulty{Ledger: l, Before: func(_ context.Context, op ledgertest.Op) error {
		if op.Method == "Claim" {
			happens()
		}
		return nil
	}}
}

// later lets time pass, and somebody say something.
func later() { time.Sleep(time.Minute) }
