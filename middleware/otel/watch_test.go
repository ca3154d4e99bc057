package otel_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/middleware/otel"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// counting is a ledger that tells its commits.
type counting struct{ ledger }

func (counting) Commits() int64 { return 17 }

func at(position int, tool, arguments string) *registry.Call {
	return &registry.Call{Run: run, Turn: 1, Position: position, ID: "call", Tool: tool, Arguments: arguments}
}

func TestWhatIsInDoubtAndWhoWaitsIsToldAtEachLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		store := middleware.Memory()
		stop, err := otel.Watch(counting{store}, w.opts)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"toolonce.approvals.age s: 0", "toolonce.approvals.pending {approval}: 0", "toolonce.commits {commit}: 17",
			"toolonce.in_doubt {operation}: 0", "toolonce.in_doubt.age s: 0", "toolonce.orphans {operation}: 0",
		}
		if d := cmp.Diff(want, w.metrics(t.Context())); d != "" {
			t.Error(d)
		}
		w.run = func(context.Context) error { return errDeclined }
		dead := store.Peer()
		for position, order := range []string{"1", "2"} {
			h := w.tools().Handler(middleware.Once(store, nil))
			if _, err := h(t.Context(), at(position, "issue_refund", `{"order":"`+order+`","cents":1}`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		w.needs = true
		if _, err := w.tools().Handler(middleware.Once(store, nil))(t.Context(), at(2, "issue_refund", `{"order":"3","cents":1}`)); err == nil {
			t.Fatal("nobody is asked")
		}
		w.needs = false
		time.Sleep(30 * time.Minute)
		over := make(chan struct{})
		w.run = func(context.Context) error {
			<-over
			return nil
		}
		for position, l := range map[int]middleware.Ledger{3: dead, 4: store} { // both run, and one is about to die
			go func() {
				_, _ = w.tools().Handler(middleware.Once(l, nil))(t.Context(), at(position, "issue_refund", fmt.Sprintf(`{"order":"%d","cents":1}`, position+1)))
			}()
		}
		synctest.Wait()
		dead.Die()
		want = []string{
			"toolonce.approvals.age s: 1800", "toolonce.approvals.pending {approval}: 1", "toolonce.commits {commit}: 17",
			"toolonce.in_doubt {operation}: 2", "toolonce.in_doubt.age s: 9000", "toolonce.orphans {operation}: 1",
		}
		if d := cmp.Diff(want, w.metrics(t.Context())); d != "" {
			t.Error(d)
		}
		time.Sleep(24 * time.Hour) // the question has expired
		if d := cmp.Diff([]string{"toolonce.approvals.age s: 0", "toolonce.approvals.pending {approval}: 0"}, some(w.metrics(t.Context()), "toolonce.approvals")); d != "" {
			t.Error(d)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := w.metrics(t.Context()); len(got) != 0 {
			t.Errorf("told after the stop: %q", got)
		}
		close(over)
		synctest.Wait()
	})
}

func TestALookThatFailsTellsNothing(t *testing.T) {
	w := newWorld(t, false)
	down := errors.New("the disk is gone")
	if _, err := otel.Watch(&ledgertest.Faulty{Ledger: middleware.Memory(), Before: ledgertest.Fail(-1, ledgertest.Op{Method: "List"}, down)}, w.opts); err != nil {
		t.Fatal(err)
	}
	var rm metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &rm); !errors.Is(err, down) {
		t.Errorf("%v, want the ledger's error", err)
	}
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			if strings.HasPrefix(m.Name, "toolonce.in_doubt") {
				t.Errorf("%s is told", m.Name)
			}
		}
	}
}

// plain is a ledger and nothing else.
type plain struct{ middleware.Ledger }

func TestALedgerThatTellsNothingIsRefused(t *testing.T) {
	_, err := otel.Watch(plain{middleware.Memory()}, nil)
	if err == nil || !strings.Contains(err.Error(), "otel_test.plain") {
		t.Error(err)
	}
}

func TestNoOptionsAreTheGlobalProviders(t *testing.T) {
	w := newWorld(t, false)
	before := otelapi.GetTracerProvider()
	otelapi.SetTracerProvider(w.opts.TracerProvider)
	defer otelapi.SetTracerProvider(before)
	h := w.tools().Handler(otel.Tools(nil), middleware.Once(middleware.Memory(), &middleware.OnceOptions{Timed: otel.Timed(nil)}))
	if _, err := h(t.Context(), at(0, "look_up", `{"order":"1"}`)); err != nil {
		t.Fatal(err)
	}
	if n := len(w.spans.GetSpans()); n != 1 {
		t.Errorf("%d spans", n)
	}
}

func TestAWaitIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		w.run = func(context.Context) error {
			time.Sleep(40 * time.Second)
			return nil
		}
		h := w.tools().Handler(otel.Tools(w.opts), middleware.Once(middleware.Memory(), &middleware.OnceOptions{Timed: otel.Timed(w.opts)}))
		go func() { _, _ = h(t.Context(), at(0, "issue_refund", `{"order":"1","cents":1}`)) }()
		synctest.Wait()
		for position := 1; position < 3; position++ { // the one waits in vain, the other does not
			if _, err := h(t.Context(), at(position, "issue_refund", `{"order":"1","cents":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		want := []string{
			"gen_ai.execute_tool.duration s operation.name=execute_tool tool.name=issue_refund toolonce.effect=NonIdempotentWrite: 1",
			"toolonce.calls {call} tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=already_done: 1",
			"toolonce.calls {call} tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=executed: 1",
			"toolonce.calls {call} tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=in_progress: 1",
			"toolonce.claim.duration s: 1",
			"toolonce.save.duration s: 1",
			"toolonce.wait.duration s tool.name=issue_refund toolonce.effect=NonIdempotentWrite: 2",
		}
		if d := cmp.Diff(want, w.metrics(t.Context())); d != "" {
			t.Error(d)
		}
	})
}

func TestALocalToolAndItsStoreAreMeasured(t *testing.T) {
	w := newWorld(t, false)
	store, err := sqlitestore.Open(filepath.Join(t.TempDir(), "once.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // its errors are those of its own tests
	stop, err := otel.Watch(store, w.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	before := store.Commits()
	r := registry.New()
	registry.Add(r, registry.Tool[lookInput, string]{
		Name: "book", Effect: registry.NonIdempotentWrite, Local: true,
		Run: func(ctx context.Context, in lookInput) (string, error) {
			if in.Order == "bad" {
				return "", registry.NoEffect(errDeclined)
			}
			_, err := sqlitestore.Tx(ctx)
			return "booked", err
		},
	})
	h := r.Handler(middleware.Once(store, &middleware.OnceOptions{Timed: otel.Timed(w.opts)}))
	for position, order := range []string{"good", "bad"} {
		if _, err := h(t.Context(), at(position, "book", `{"order":"`+order+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"gen_ai.execute_tool.duration s error.type=_OTHER operation.name=execute_tool tool.name=book toolonce.effect=NonIdempotentWrite: 1",
		"gen_ai.execute_tool.duration s operation.name=execute_tool tool.name=book toolonce.effect=NonIdempotentWrite: 1",
		"toolonce.claim.duration s: 2",
		fmt.Sprintf("toolonce.commits {commit}: %d", store.Commits()),
		"toolonce.in_doubt {operation}: 0",
		"toolonce.save.duration s: 2",
	}
	if d := cmp.Diff(want, some(w.metrics(t.Context()), "gen_ai", "toolonce.claim", "toolonce.commits", "toolonce.in_doubt {", "toolonce.save")); d != "" {
		t.Error(d)
	}
	if store.Commits() == before {
		t.Error("nothing was committed")
	}
}
