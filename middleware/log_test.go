package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

func TestLogTellsTheVerdictAndNoDataOfUsers(t *testing.T) {
	w := newWorld(t)
	w.run = func(context.Context, refundInput) (refund, error) {
		if w.did("try") == 1 {
			return refund{ID: "re_secret"}, nil
		}
		return refund{}, errors.New("re_secret is unclear")
	}
	var buf bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&buf, nil))
	o := options()
	o.Logger = logger
	stop := errors.New("re_secret stops the run")
	o.Admit = func(_ context.Context, c *registry.Call) (*registry.Result, error) {
		if c.Turn == 5 {
			return nil, stop
		}
		return nil, nil
	}
	h := w.registry().Handler(middleware.Log(logger), middleware.Once(middleware.Memory(), o))
	for turn, arguments := range []string{r7, r7, `{"order_id":"R-8","cents":987654321987}`, `{"order_id":"R-7","cents":987654321988}`, `{"order_id":"R-9","cents":1}`} {
		if _, err := h(t.Context(), at(turn+1, 0, "issue_refund", arguments)); err != nil && !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"R-7", "R-8", "98765432198", "broken", "re_secret", w.keys[0]} {
		if strings.Contains(buf.String(), secret) {
			t.Errorf("the log tells %q:\n%s", secret, buf.String())
		}
	}
	var got []string
	for line := range strings.Lines(buf.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["event"] != "tool_call" {
			if m["event"] != "outcome_unclear" || !strings.Contains(line, "registry.NoEffect") {
				t.Errorf("the mend is not explained: %s", line)
			}
			continue
		}
		verdict, _ := m["verdict"].(string)
		got = append(got, m["level"].(string)+" "+verdict)
	}
	if want := "INFO executed, INFO already_done, WARN outcome_unknown, WARN conflict, ERROR "; strings.Join(got, ", ") != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestLogTellsAPauseAndNotWhatIsOnlyAsked(t *testing.T) {
	r := registry.New()
	registry.Add(r, registry.Tool[seatInput, string]{
		Name: "reserve", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(context.Context, seatInput) (bool, error) { return true, nil },
		Run:           func(context.Context, seatInput) (string, error) { return "reserved", nil },
	})
	var buf bytes.Buffer
	h := r.Handler(middleware.Log(slog.New(slog.NewTextHandler(&buf, nil))), middleware.Once(middleware.Memory(), nil))
	for position, onlyAsk := range []bool{false, true} {
		c := at(1, position, "reserve", `{"seat":"12A"}`)
		c.OnlyAsk = onlyAsk
		if _, err := h(t.Context(), c); err == nil {
			t.Errorf("position %d does not wait", position)
		}
	}
	if got := buf.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO") || !strings.Contains(got, "position=0") || !strings.Contains(got, "paused=true") {
		t.Error(got)
	}
}

func TestThePlainErrorOfAToolIsExplainedOnce(t *testing.T) {
	w := newWorld(t)
	w.run = func(context.Context, refundInput) (refund, error) { return refund{}, errTimeout }
	var buf bytes.Buffer
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&buf, nil))
	h := w.handler(middleware.Memory(), o)
	for _, order := range []string{"A", "B", "C"} {
		ask(t, h, at(1, int(order[0]), "issue_refund", `{"order_id":"`+order+`","cents":1}`))
	}
	if n := strings.Count(buf.String(), "registry.NoEffect"); n != 1 {
		t.Errorf("explained %d times:\n%s", n, buf.String())
	}
}

func TestEachLineOfTheGuardHasAnEvent(t *testing.T) {
	down := errors.New("the disk is full")
	for _, c := range []struct {
		event  string
		fails  ledgertest.Op
		times  int
		result string
		calls  int
	}{
		{"not_saved", ledgertest.Op{Method: "Change"}, 2, "done", 1},
		{"repeat_not_noted", ledgertest.Op{Method: "Note"}, 1, "done", 2},
		{"result_too_long", ledgertest.Op{Method: "nothing"}, 0, strings.Repeat("x", 10<<20+1), 1},
	} {
		t.Run(c.event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := registry.New()
				registry.Add(r, registry.Tool[seatInput, string]{
					Name: "reserve", Effect: registry.NonIdempotentWrite, Run: func(context.Context, seatInput) (string, error) { return c.result, nil },
				})
				var buf bytes.Buffer
				l := &ledgertest.Faulty{Ledger: middleware.Memory(), Before: ledgertest.Fail(c.times, c.fails, down)}
				h := r.Handler(middleware.Once(l, &middleware.OnceOptions{Logger: slog.New(slog.NewTextHandler(&buf, nil))}))
				for position := range c.calls {
					_, _ = h(t.Context(), at(1, position, "reserve", `{"seat":"12A"}`)) // an outcome that is not stored is an error
				}
				time.Sleep(time.Minute)
				if got := buf.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "event="+c.event+" tool=reserve") || strings.Contains(got, "12A") {
					t.Error(got)
				}
			})
		})
	}
}
