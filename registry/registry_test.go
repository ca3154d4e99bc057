package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry"
)

type in struct {
	ID string `json:"id"`
}

type keyed struct {
	ID string `json:"id" once:"key"`
}

type thing struct {
	ID string `json:"id" once:"resource"`
}

type repeater struct {
	Of string `json:"repeat_of"`
}

func run[In any](context.Context, In) (string, error) { return "ok", nil }

// tool is one that is right; change makes it wrong.
func tool[In any](change func(*registry.Tool[In, string])) func(*registry.Registry) {
	t := registry.Tool[In, string]{Name: "t", Effect: registry.NonIdempotentWrite, Run: run[In]}
	if change != nil {
		change(&t)
	}
	return func(r *registry.Registry) { registry.Add(r, t) }
}

func panicText(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

func TestWiringMistakesAreFoundBeforeTheFirstCallAndSayTheMend(t *testing.T) {
	type misspelt struct {
		ID string `json:"id" once:"keys"`
	}
	type labels struct {
		Labels map[string]string `json:"labels"`
	}
	type ones struct {
		ID string `json:"id" oncee:"key"`
	}
	for name, c := range map[string]struct {
		add  func(*registry.Registry)
		want string
	}{
		"misspelt tag key": {tool[ones](nil), `struct tag key "oncee": write "once"`},
		"a key on a read": {func(r *registry.Registry) {
			registry.Add(r, registry.Tool[keyed, string]{Name: "t", Effect: registry.Read, Run: func(context.Context, keyed) (string, error) { return "", nil }})
		}, "of no use with Read"},
		"a result without JSON": {func(r *registry.Registry) {
			registry.Add(r, registry.Tool[in, chan int]{Name: "t", Effect: registry.Read, Run: func(context.Context, in) (chan int, error) { return nil, nil }})
		}, "a chan int, cannot be written as JSON"},
		"no effect":             {tool(func(t *registry.Tool[in, string]) { t.Effect = 0 }), "no Effect: say Read (safe to repeat)"},
		"unknown effect":        {tool(func(t *registry.Tool[in, string]) { t.Effect = 9 }), "no Effect"},
		"bad name":              {tool(func(t *registry.Tool[in, string]) { t.Name = "a b" }), `adding tool "a b": bad name: use 1 to 64 of`},
		"no name":               {tool(func(t *registry.Tool[in, string]) { t.Name = "" }), "bad name"},
		"no run":                {tool(func(t *registry.Tool[in, string]) { t.Run = nil }), "no Run"},
		"negative timeout":      {tool(func(t *registry.Tool[in, string]) { t.Timeout = -1 }), "Timeout is negative"},
		"short keep":            {tool(func(t *registry.Tool[in, string]) { t.Keep = time.Hour }), "Keep 1h0m0s is too short"},
		"keep under window":     {tool(func(t *registry.Tool[in, string]) { t.Keep, t.KeyWindow = 25*time.Hour, 26*time.Hour }), "use at least 26h0m0s"},
		"unknown identity":      {tool(func(t *registry.Tool[in, string]) { t.Identity = 7 }), "Identity 7 is unknown"},
		"unknown recovery":      {tool(func(t *registry.Tool[in, string]) { t.Recovery = 7 }), "Recovery 7 is unknown"},
		"lookup of a read":      {tool(func(t *registry.Tool[in, string]) { t.Effect, t.Lookup = registry.Read, run[in] }), "Lookup is of no use"},
		"rerun of a read":       {tool(func(t *registry.Tool[in, string]) { t.Effect, t.Recovery = registry.Read, registry.Rerun }), "Recovery is of no use"},
		"keyed and by call":     {tool(func(t *registry.Tool[keyed, string]) { t.Identity = registry.ByCall }), "exclude each other"},
		"keyed and idempotent":  {tool(func(t *registry.Tool[keyed, string]) { t.Effect = registry.IdempotentWrite }), `once:"key" is of no use`},
		"undo without resource": {tool(func(t *registry.Tool[in, string]) { t.Undoes = "book" }), `Undoes needs a once:"resource" field`},
		"undo of itself":        {tool(func(t *registry.Tool[thing, string]) { t.Undoes = "t" }), "Undoes names the tool itself"},
		"undo by a read":        {tool(func(t *registry.Tool[thing, string]) { t.Undoes, t.Effect = "book", registry.Read }), "Undoes needs a NonIdempotentWrite"},
		"local idempotent":      {tool(func(t *registry.Tool[in, string]) { t.Local, t.Effect = true, registry.IdempotentWrite }), "Local is of no use with IdempotentWrite"},
		"local with a lookup":   {tool(func(t *registry.Tool[in, string]) { t.Local, t.Lookup = true, run[in] }), "exclude each other"},
		"local that reruns":     {tool(func(t *registry.Tool[in, string]) { t.Local, t.Recovery = true, registry.Rerun }), "exclude each other"},
		"unknown repeat":        {tool(func(t *registry.Tool[in, string]) { t.Repeat = 7 }), "Repeat 7 is unknown: use RepeatNever"},
		"repeat of a read":      {tool(func(t *registry.Tool[in, string]) { t.Repeat, t.Effect = registry.RepeatFreely, registry.Read }), "drop Repeat"},
		"repeat of a key":       {tool(func(t *registry.Tool[keyed, string]) { t.Repeat = registry.RepeatApproved }), `Repeat and once:"key" exclude each other`},
		"repeat by call": {tool(func(t *registry.Tool[in, string]) {
			t.Repeat, t.Identity = registry.RepeatFreely, registry.ByCall
		}), "Repeat is of no use with ByCall"},
		"repeat of an undo": {tool(func(t *registry.Tool[thing, string]) {
			t.Repeat, t.Undoes = registry.RepeatFreely, "book"
		}), "Repeat is of no use with Undoes"},
		"repeat with a field of that name": {tool(func(t *registry.Tool[repeater, string]) { t.Repeat = registry.RepeatFreely }), `the name "repeat_of" is that of the argument`},
		"misspelt tag":                     {tool[misspelt](nil), `ID`},
		"a map":                            {tool[labels](nil), `Labels`},
		"resource twice": {func(r *registry.Registry) {
			registry.Add(r, registry.Tool[thing, thing]{Name: "t", Effect: registry.NonIdempotentWrite, Run: func(context.Context, thing) (thing, error) { return thing{}, nil }})
		}, "is on the input and on the output"},
		"added twice": {func(r *registry.Registry) { tool[in](nil)(r); tool[in](nil)(r) }, "the name is taken"},
		"added late":  {func(r *registry.Registry) { r.Handler(); tool[in](nil)(r) }, "the registry is in use"},
		"unknown undo": {func(r *registry.Registry) {
			tool(func(t *registry.Tool[thing, string]) { t.Undoes = "bok" })(r)
			r.Handler()
		}, `tool "t": Undoes names "bok", which is not registered`},
		"undo of a tool without resource": {func(r *registry.Registry) {
			tool(func(t *registry.Tool[in, string]) { t.Name = "book" })(r)
			tool(func(t *registry.Tool[thing, string]) { t.Undoes = "book" })(r)
			r.Handler()
		}, `which has no once:"resource" field`},
		"undo of an idempotent write": {func(r *registry.Registry) {
			tool(func(t *registry.Tool[thing, string]) { t.Name, t.Effect = "book", registry.IdempotentWrite })(r)
			tool(func(t *registry.Tool[thing, string]) { t.Undoes = "book" })(r)
			r.Handler()
		}, "never blocks a repeat"},
	} {
		t.Run(name, func(t *testing.T) {
			got := panicText(func() { c.add(registry.New()) })
			if !strings.Contains(got, c.want) || !strings.HasPrefix(got, "registry: ") {
				t.Errorf("panic %q, want one with %q", got, c.want)
			}
		})
	}
	if got := panicText(func() { r := registry.New(); tool[in](nil)(r); r.Handler() }); got != "" {
		t.Errorf("a right tool panics: %s", got)
	}
}

func TestAddRawReturnsItsMistakes(t *testing.T) {
	r := registry.New()
	raw := func(context.Context, json.RawMessage) (any, error) { return "ok", nil }
	for want, tool := range map[string]registry.RawTool{
		"no Effect":            {Name: "x", Run: raw},
		"no Run":               {Name: "x", Effect: registry.Read},
		`adding tool "x y"`:    {Name: "x y", Effect: registry.Read, Run: raw},
		"Undoes needs a once:": {Name: "x", Effect: registry.NonIdempotentWrite, Run: raw, Undoes: "y"},
	} {
		if err := r.AddRaw(tool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if err := r.AddRaw(registry.RawTool{Name: "x", Effect: registry.Read, Run: raw, Schema: json.RawMessage(`{"type":"object"`)}); err == nil {
		t.Error("a broken schema is taken")
	}
	if len(r.Tools()) != 0 {
		t.Errorf("%d tools after mistakes only", len(r.Tools()))
	}
}

func TestHandlerAnswersWithoutAnyMiddleware(t *testing.T) {
	r := registry.New()
	var ran []string
	registry.Add(r, registry.Tool[in, string]{
		Name: "t", Effect: registry.Read,
		Check: func(_ context.Context, v in) error {
			if v.ID == "secret" {
				return errors.New("not yours")
			}
			return nil
		},
		Run: func(_ context.Context, v in) (string, error) {
			ran = append(ran, v.ID)
			switch v.ID {
			case "bad":
				return "", errors.New("broke")
			case "empty":
				return "", nil
			}
			return "got " + v.ID, nil
		},
	})
	h := r.Handler()
	for _, c := range []struct {
		tool, arguments string
		want            registry.Result
	}{
		{"t", `{"id":"a"}`, registry.Result{Content: "got a", Verdict: registry.Executed}},
		{"t", `{"id":"empty"}`, registry.Result{Content: "success", Verdict: registry.Executed}},
		{"t", `{"id":"bad"}`, registry.Result{Content: `{"toolonce":1,"status":"failed","tool":"t","error":"broke","retryable":true}`, Verdict: registry.Failed}},
		{"t", `{"id":"secret"}`, registry.Result{Content: `{"toolonce":1,"status":"refused","tool":"t","reason":"not yours"}`, Verdict: registry.Refused}},
		{"T", `{}`, registry.Result{Content: `{"toolonce":1,"status":"refused","tool":"T","reason":"there is no tool \"T\"; did you mean t?"}`, Verdict: registry.Refused}},
	} {
		got, err := h(t.Context(), &registry.Call{Tool: c.tool, Arguments: c.arguments})
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s %s: %v\n%s", c.tool, c.arguments, err, diff)
		}
	}
	got, err := h(t.Context(), &registry.Call{Tool: "t", Arguments: `{"id":7}`})
	if err != nil || got.Verdict != registry.Refused || !strings.Contains(got.Content, `"path":"/id","rule":"type"`) {
		t.Errorf("%v %v", got, err)
	}
	if diff := cmp.Diff([]string{"a", "empty", "bad"}, ran); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownToolNamesTheNearestAndNoOther(t *testing.T) {
	r := registry.New()
	for _, n := range []string{"issue_refund", "issue_refunds", "get_order", "get_orders", "delete_everything"} {
		tool(func(t *registry.Tool[in, string]) { t.Name = n })(r)
	}
	h := r.Handler()
	for name, want := range map[string]string{
		"isue_refund":                           "did you mean issue_refund, issue_refunds?",
		"functions.get_order\n":                 `there is no tool \"functions.get_order\\n\""`,
		strings.Repeat("x", 300) + "\x00secret": "…",
	} {
		got, err := h(t.Context(), &registry.Call{Tool: name, Arguments: "{}"})
		if err != nil || !strings.Contains(got.Content, want) || strings.Contains(got.Content, "secret") {
			t.Errorf("%q: %s %v", name, got.Content, err)
		}
	}
}

func TestMiddlewareRunsInOrderAndItsErrorStopsTheRun(t *testing.T) {
	r := registry.New()
	tool[in](nil)(r)
	var order []string
	mw := func(name string) registry.Middleware {
		return func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
				order = append(order, name+" "+c.Info().Name)
				return next(ctx, c)
			}
		}
	}
	if _, err := r.Handler(mw("a"), mw("b"))(t.Context(), &registry.Call{Tool: "t", Arguments: `{"id":"1"}`}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a t", "b t"}, order); diff != "" {
		t.Error(diff)
	}
	stop := errors.New("stop")
	h := r.Handler(func(registry.Handler) registry.Handler {
		return func(context.Context, *registry.Call) (registry.Result, error) { return registry.Result{}, stop }
	})
	if _, err := h(t.Context(), &registry.Call{Tool: "t", Arguments: `{"id":"1"}`}); !errors.Is(err, stop) {
		t.Errorf("error %v, want stop", err)
	}
}

func TestOnlyProofFreesAndOfJoinedErrorsEach(t *testing.T) {
	plain, proof := errors.New("reset"), registry.NoEffect(errors.New("declined"))
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"plain", plain, false},
		{"marked", proof, true},
		{"wrapped", fmt.Errorf("refund: %w", proof), true},
		{"by method", fmt.Errorf("send: %w", method(true)), true},
		{"method says no", method(false), false},
		{"joined with a plain one", errors.Join(proof, plain), false},
		{"two wrapped", fmt.Errorf("%w and %w", plain, proof), false},
		{"two marked", errors.Join(proof, proof), true},
		{"deadline", context.DeadlineExceeded, false},
	} {
		if got := registry.HasNoEffect(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if registry.NoEffect(nil) != nil {
		t.Error("NoEffect(nil) is not nil")
	}
	if !errors.Is(proof, errors.Unwrap(proof)) || proof.Error() != "declined" {
		t.Errorf("marked error reads %q", proof)
	}
}

type method bool

func (m method) Error() string  { return "m" }
func (m method) NoEffect() bool { return bool(m) }

func TestStoredInputIsWhatTheHandlerGets(t *testing.T) {
	r := registry.New()
	var got string
	registry.Add(r, registry.Tool[in, string]{Name: "t", Effect: registry.NonIdempotentWrite, Run: func(_ context.Context, v in) (string, error) {
		got = v.ID
		return "", nil
	}})
	c, err := r.Stored(registry.Call{Tool: "t"}, []byte(`{"id":"stored"}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := registry.Invoke(t.Context(), c); err != nil || res.Content != "success" || got != "stored" {
		t.Errorf("%v %v, handler got %q", res, err, got)
	}
	if _, err := r.Stored(registry.Call{Tool: "gone"}, nil); err == nil || !strings.Contains(err.Error(), `no tool "gone"`) {
		t.Errorf("a tool that is gone: %v", err)
	}
	if _, err := r.Stored(registry.Call{Tool: "t"}, []byte(`{"other":1}`)); err == nil {
		t.Error("an input that no longer fits is taken")
	}
}

func TestEnvelopesReadAsTheyAlwaysDid(t *testing.T) {
	at := time.Date(2026, 11, 29, 13, 4, 5, 678_900_000, time.FixedZone("", 3600))
	for _, c := range []struct {
		e    registry.Envelope
		want string
	}{
		{registry.Envelope{Status: registry.AlreadyDone, Operation: "op_1", Tool: "t", DoneAt: at, Repeats: 2, Output: json.RawMessage(`{"a":"<&>"}`), Note: "n"},
			`{"toolonce":1,"status":"already_done","operation":"op_1","tool":"t","first_done_at":"2026-11-29T12:04:05.678Z","repeats":2,"result":{"a":"<&>"},"note":"n"}`},
		{registry.Envelope{Status: registry.InProgress, Operation: "op_1", RetryMS: 1000},
			`{"toolonce":1,"status":"in_progress","operation":"op_1","retry_after_ms":1000}`},
		{registry.Envelope{Status: registry.OutcomeUnknown, Operation: "op_1", Since: at},
			`{"toolonce":1,"status":"outcome_unknown","operation":"op_1","since":"2026-11-29T12:04:05.678Z"}`},
		{registry.Envelope{Status: registry.Conflict, Operation: "op_1", Fields: []string{"cents"}},
			`{"toolonce":1,"status":"conflict","operation":"op_1","fields":["cents"]}`},
		{registry.Envelope{Status: registry.Failed, Error: "declined", Retryable: new(true)},
			`{"toolonce":1,"status":"failed","error":"declined","retryable":true}`},
		{registry.Envelope{Status: registry.Refused, Reason: "r", Path: "/a", Rule: "required"},
			`{"toolonce":1,"status":"refused","reason":"r","path":"/a","rule":"required"}`},
	} {
		got := c.e.Result()
		if got.Content != c.want || got.Verdict != c.e.Status || got.Operation != c.e.Operation {
			t.Errorf("got  %s\nwant %s", got.Content, c.want)
		}
	}
}
