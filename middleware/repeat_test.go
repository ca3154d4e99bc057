package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func TestARepeatOnPurposeIsAnOperationOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		h := p.handler(l)
		first := ask(t, h, mail("1", 1))
		later()
		plain := ask(t, h, mail("2", 1))
		want(t, plain, registry.AlreadyDone, first.Operation) // what the model takes the id from
		second := ask(t, h, again("mail", "2", 2, first.Operation))
		if want(t, second, registry.Executed); second.Content != "sent 2" || second.Operation == first.Operation || p.sent[0] == p.sent[1] {
			t.Errorf("%+v after %+v, keys %q", second, first, p.sent)
		}
		if row := rowOf(t, l, second.Operation); row.RepeatOf != first.Operation {
			t.Errorf("it says that it repeats %q", row.RepeatOf)
		}
		want(t, ask(t, h, mail("2", 3)), registry.AlreadyDone, "sent 1") // without repeat_of the first is meant
		p.wantSent(t, 2)
	})
}

// Each condition of a repeat, changed alone.
func TestARepeatIsRefusedUnlessAllItsConditionsHold(t *testing.T) {
	const done, names, asked = "is not done", "names no operation of this tool with these arguments here", "has not asked again"
	for _, c := range []struct {
		name, because string
		// change changes the call, or the world after the first mail was sent. It may give another operation to repeat.
		change func(t *testing.T, p *post, l *middleware.MemoryLedger, c *registry.Call, first string)
	}{
		{"an unknown operation", names, func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, first string) {
			c.Arguments = strings.Replace(c.Arguments, first, "op_unknown", 1)
		}},
		{"another tool", names, func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, _ string) { c.Tool = "post" }},
		{"other arguments", names, func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, _ string) {
			c.Arguments = strings.Replace(c.Arguments, "late", "later", 1)
		}},
		{"another conversation", names, func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, _ string) {
			c.Run.Conversation = "d"
		}},
		{"no conversation", names, func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, _ string) {
			c.Run.Conversation = ""
		}},
		{"no newer user message", asked, func(t *testing.T, _ *post, l *middleware.MemoryLedger, c *registry.Call, first string) {
			c.Asked = rowOf(t, l, first).DoneAt.Add(-time.Second)
		}},
		{"a user message at the same time", asked, func(t *testing.T, _ *post, l *middleware.MemoryLedger, c *registry.Call, first string) {
			c.Asked = rowOf(t, l, first).DoneAt
		}},
		{"nobody knows when the user asked", "cannot be honoured here", func(_ *testing.T, _ *post, _ *middleware.MemoryLedger, c *registry.Call, _ string) {
			c.Asked = time.Time{}
		}},
		{"undone", done, func(t *testing.T, p *post, l *middleware.MemoryLedger, _ *registry.Call, _ string) {
			want(t, ask(t, p.handler(l), placedIn("c", in("1", at(2, 0, "unmail", `{"to":"ann"}`)))), registry.Executed)
		}},
		{"expired", done, func(*testing.T, *post, *middleware.MemoryLedger, *registry.Call, string) { time.Sleep(48 * time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := post{keep: 24 * time.Hour}
				l := middleware.Memory()
				first := ask(t, p.handler(l), mail("1", 1)).Operation
				later()
				call := again("mail", "2", 2, first)
				c.change(t, &p, l, call, first)
				rows, _ := l.List(t.Context(), nil, 0)
				want(t, ask(t, p.handler(l), call), registry.Refused, c.because)
				p.wantSent(t, 1)
				if after, _ := l.List(t.Context(), nil, 0); len(after) != len(rows) {
					t.Errorf("a refused repeat has left a row: %d and %d", len(rows), len(after))
				}
			})
		})
	}
	t.Run("another namespace", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var p post
			l := middleware.Memory()
			first := ask(t, p.handler(l.Namespace("a")), mail("1", 1)).Operation
			later()
			want(t, ask(t, p.handler(l.Namespace("b")), again("mail", "2", 2, first)), registry.Refused, names)
			want(t, ask(t, p.handler(l.Namespace("a")), again("mail", "2", 2, first)), registry.Executed)
		})
	})
}

func TestWhatIsNotDoneIsNotRepeated(t *testing.T) {
	for name, fail := range map[string]error{"in doubt": errTimeout, "free": registry.NoEffect(errors.New("no such address"))} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := post{send: func(context.Context, int) error { return fail }}
				h := p.handler(middleware.Memory())
				first := ask(t, h, mail("1", 1)).Operation
				later()
				want(t, ask(t, h, again("mail", "2", 2, first)), registry.Refused, "is not done")
				p.wantSent(t, 1)
			})
		})
	}
	t.Run("running", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			p := post{send: func(context.Context, int) error {
				time.Sleep(5 * time.Second)
				return nil
			}}
			l := middleware.Memory()
			h := p.handler(l)
			call := mail("1", 1)
			go func() { _, _ = h(t.Context(), call) }()
			time.Sleep(time.Second)
			want(t, ask(t, h, again("mail", "2", 2, only(t, l, middleware.Running).Operation)), registry.Refused, "is not done")
			p.wantSent(t, 1)
			later() // until the first has ended
		})
	})
}

// Between the look at the named operation and the claim it is undone.
func TestThatTheNamedOperationIsDoneIsCheckedWithTheClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		first := ask(t, p.handler(l), mail("1", 1)).Operation
		later()
		h := p.handler(beforeTheClaim(l, func() {
			want(t, ask(t, p.handler(l), placedIn("c", in("1", at(2, 0, "unmail", `{"to":"ann"}`)))), registry.Executed)
		}))
		want(t, ask(t, h, again("mail", "2", 2, first)), registry.Refused, "is not done")
		p.wantSent(t, 1)
	})
}

func TestAnOperationIsRepeatedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		h := p.handler(middleware.Memory())
		first := ask(t, h, mail("1", 1)).Operation
		later()
		second := ask(t, h, again("mail", "2", 2, first))
		want(t, second, registry.Executed)
		want(t, ask(t, h, again("mail", "2", 2, first)), registry.Replayed, "sent 2") // the same call
		want(t, ask(t, h, again("mail", "2", 3, first)), registry.AlreadyDone, second.Operation, "sent 2")
		later()
		want(t, ask(t, h, again("mail", "3", 1, first)), registry.AlreadyDone, second.Operation, "sent 2") // in another message too
		p.wantSent(t, 2)
	})
}

func TestOfManyRepeatsAtOnceOneIsMade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		first := ask(t, p.handler(l), mail("1", 1)).Operation
		later()
		var wg sync.WaitGroup
		made := make(chan string, 20)
		for i := range 20 {
			h, call := p.handler(l.Peer()), again("mail", fmt.Sprint("other ", i), 1, first)
			wg.Go(func() {
				if res, err := h(t.Context(), call); err == nil && res.Verdict == registry.Executed {
					made <- res.Operation
				}
			})
		}
		wg.Wait()
		if len(made) != 1 {
			t.Errorf("%d made it", len(made))
		}
		p.wantSent(t, 2)
	})
}

func TestARepeatWhoseProcessDiesIsNotMadeAgain(t *testing.T) {
	for name, afterResult := range map[string]bool{"before its result was saved": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var p post
				dead := middleware.Memory()
				first := ask(t, p.handler(dead), mail("1", 1)).Operation
				later()
				call := again("mail", "2", 2, first)
				verdict, other := registry.OutcomeUnknown, registry.OutcomeUnknown
				if afterResult {
					verdict, other = registry.Replayed, registry.AlreadyDone
					want(t, ask(t, p.handler(dead), call), registry.Executed)
				} else {
					p.send = func(ctx context.Context, _ int) error { <-ctx.Done(); return errTimeout }
					go func() { _, _ = p.handler(dead)(t.Context(), call) }()
					time.Sleep(time.Second)
				}
				dead.Die()
				h := p.handler(dead.Peer())
				want(t, ask(t, h, call), verdict)
				want(t, ask(t, h, again("mail", "2", 3, first)), other)
				later()
				want(t, ask(t, h, again("mail", "3", 1, first)), other)
				want(t, ask(t, h, mail("3", 2)), registry.AlreadyDone, "sent 1")
				p.wantSent(t, 2)
			})
		})
	}
}

// Whatever the model names, it gets one more for each user message.
func TestASteeredModelCannotChainRepeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		h := p.handler(middleware.Memory())
		known := []string{ask(t, h, mail("0", 1)).Operation}
		for message := 1; message <= 3; message++ {
			later()
			run, began := fmt.Sprint(message), time.Now()
			verdicts := map[registry.Verdict]int{}
			for turn := 1; turn <= 12; turn++ {
				time.Sleep(time.Second)
				call := again("mail", run, turn, known[(turn+message)%len(known)])
				call.Asked = began
				res, err := h(t.Context(), call)
				if verdicts[res.Verdict]++; err != nil {
					if _, ok := errors.AsType[*middleware.RepeatError](err); !ok {
						t.Fatal(err)
					}
				}
				if res.Verdict == registry.Executed {
					known = append(known, res.Operation)
				}
			}
			p.wantSent(t, message+1)
			if verdicts[registry.Executed] != 1 || verdicts[registry.Refused] == 0 {
				t.Errorf("message %d: %v", message, verdicts)
			}
		}
		later()
		want(t, ask(t, h, again("mail", "last", 1, known[3])), registry.Executed) // a repeat of a repeat of a repeat, as wished
	})
}

func TestTheBudgetOfRepeatsCountsTheOneOnPurpose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		h := p.handler(middleware.Memory())
		first := ask(t, h, mail("1", 1)).Operation
		later()
		want(t, ask(t, h, again("mail", "2", 1, first)), registry.Executed)
		want(t, ask(t, h, again("mail", "2", 2, first)), registry.AlreadyDone, `"repeats":2`)
		want(t, ask(t, h, again("mail", "2", 3, first)), registry.AlreadyDone, `"repeats":3`)
		res, err := h(t.Context(), again("mail", "2", 4, first))
		over, ok := errors.AsType[*middleware.RepeatError](err)
		if want(t, res, registry.AlreadyDone); !ok || over.Repeats != 4 {
			t.Errorf("%v", err)
		}
		if want(t, ask(t, h, again("mail", "3", 1, first)), registry.AlreadyDone, `"repeats":1`); len(p.sent) != 2 {
			t.Errorf("sent %q", p.sent)
		}
	})
}

func TestARepeatNeedsAnApprovalUnlessItIsFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		h := p.handler(l)
		first := ask(t, h, again("letter", "1", 1, "")).Operation // the first one needs none
		later()
		call := again("letter", "2", 2, first)
		a := paused(t, h, call)
		if a.RepeatOf != first || string(a.Input) != `{"text":"late","to":"ann"}` {
			t.Errorf("asked about %s of %q", a.Input, a.RepeatOf)
		}
		p.wantSent(t, 1)
		decide(t, l, a, true)
		second := ask(t, h, call)
		want(t, second, registry.Executed, "sent 2")
		want(t, ask(t, h, call), registry.Replayed)
		want(t, ask(t, h, again("letter", "2", 3, first)), registry.AlreadyDone, second.Operation)
		p.wantSent(t, 2)

		later() // what is refused is not asked about
		want(t, ask(t, h, again("letter", "2", 4, "op_unknown")), registry.Refused)
		other := again("letter", "3", 1, second.Operation)
		decide(t, l, paused(t, h, other), false)
		want(t, ask(t, h, other), registry.Refused, "denied")
		want(t, ask(t, h, again("letter", "3", 2, "")), registry.AlreadyDone)
		if all := approvals(t, l); len(all) != 2 {
			t.Errorf("%d questions", len(all))
		}
		p.wantSent(t, 2)
	})
}

// A hole in a history where a repeat stood is closed with what came of the repeat.
func TestARepeatIsKnownAsWhatItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		h := p.handler(l)
		first := ask(t, h, mail("1", 1)).Operation
		later()
		recall := p.registry().Handler(middleware.Known(readOnly{l, t}, nil))
		call := again("mail", "2", 0, first)
		if res := ask(t, recall, call); res.Verdict != "" {
			t.Errorf("a repeat that was not made is known: %s", res.Content)
		}
		second := ask(t, h, again("mail", "2", 2, first))
		want(t, ask(t, recall, call), registry.Replayed, "sent 2")
		call.ID = "another"
		want(t, ask(t, recall, call), registry.AlreadyDone, second.Operation, "sent 2")
	})
}
