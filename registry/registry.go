package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// Registry holds tools in the order they were added. Adding is for start-up, by one goroutine; [Registry.Handler]
// freezes it, and what it returns is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	tools  []*Info
	byName map[string]*Info
	frozen bool
}

// New makes an empty registry.
func New() *Registry { return &Registry{byName: map[string]*Info{}} }

// Add registers a tool made from Go types. It panics on a wiring mistake (no effect, a bad or duplicate name, a type
// that cannot be a strict schema, a misspelt tag) with the field's path and the mend, so that the mistake is found
// before the first call.
func Add[In, Out any](r *Registry, t Tool[In, Out]) {
	if err := add(r, t); err != nil {
		panic(fmt.Sprintf("registry: adding tool %q: %v", t.Name, err))
	}
}

func add[In, Out any](r *Registry, t Tool[In, Out]) error {
	c, err := codec.New(reflect.TypeFor[In](), codec.Options{Loose: t.Loose, Repeat: t.Repeat != RepeatNever})
	if err != nil {
		return err
	}
	out, err := codec.OutputResource(reflect.TypeFor[Out]())
	if err == nil {
		err = unwritable[Out]()
	}
	if err != nil {
		return err
	}
	i := &Info{
		Name: t.Name, Description: t.Description, Effect: t.Effect, Identity: t.Identity, Recovery: t.Recovery, Repeat: t.Repeat,
		Timeout: t.Timeout, KeyWindow: t.KeyWindow, AbsentAfter: t.AbsentAfter, Keep: t.Keep, Retain: t.Retain,
		ShareResult: t.ShareResult, Local: t.Local, Undoes: t.Undoes, ResourceOut: out, codec: c,
	}
	if t.Check != nil {
		i.check = func(ctx context.Context, in any) error { return t.Check(ctx, in.(In)) }
	}
	if t.NeedsApproval != nil {
		i.approval = func(ctx context.Context, in any) (bool, error) { return t.NeedsApproval(ctx, in.(In)) }
	}
	if t.Run != nil {
		i.run = func(ctx context.Context, in any) (string, error) { return text(t.Run(ctx, in.(In))) }
	}
	if t.Lookup != nil {
		i.lookup = func(ctx context.Context, in any) (string, error) { return text(t.Lookup(ctx, in.(In))) }
	}
	return r.add(i)
}

// AddRaw registers a tool known at run time and returns a wiring mistake as an error.
func (r *Registry) AddRaw(t RawTool) error {
	wrap := func(err error) error { return fmt.Errorf("registry: adding tool %q: %w", t.Name, err) }
	c, err := codec.NewRaw(codec.RawSpec{
		Schema: t.Schema, Strict: t.Strict, Key: t.Key, Ignore: t.Ignore, Secret: t.Secret, Resource: t.ResourceIn, Repeat: t.Repeat != RepeatNever,
	})
	if err != nil {
		return wrap(err)
	}
	i := &Info{
		Name: t.Name, Description: t.Description, Effect: t.Effect, Identity: t.Identity, Recovery: t.Recovery, Repeat: t.Repeat,
		Timeout: t.Timeout, KeyWindow: t.KeyWindow, AbsentAfter: t.AbsentAfter, Keep: t.Keep, Retain: t.Retain,
		ShareResult: t.ShareResult, Local: t.Local, Undoes: t.Undoes, ResourceOut: t.ResourceOut, codec: c,
	}
	if t.Check != nil {
		i.check = func(ctx context.Context, in any) error { return t.Check(ctx, in.(json.RawMessage)) }
	}
	if t.NeedsApproval != nil {
		i.approval = func(ctx context.Context, in any) (bool, error) { return t.NeedsApproval(ctx, in.(json.RawMessage)) }
	}
	if t.Run != nil {
		i.run = func(ctx context.Context, in any) (string, error) { return text(t.Run(ctx, in.(json.RawMessage))) }
	}
	if t.Lookup != nil {
		i.lookup = func(ctx context.Context, in any) (string, error) { return text(t.Lookup(ctx, in.(json.RawMessage))) }
	}
	if err := r.add(i); err != nil {
		return wrap(err)
	}
	return nil
}

// Tools lists what is registered, in order.
func (r *Registry) Tools() []*Info {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.tools)
}

// Stored is a call as a record keeps it: the tool by its present name, the input as Call.Input gave it. It is for
// recovery.
func (r *Registry) Stored(c Call, input []byte) (*Call, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c.info = r.byName[c.Tool]
	if c.info == nil {
		return nil, unknownTool(r, c.Tool)
	}
	return c.With(input)
}

func (r *Registry) add(i *Info) error {
	i.Schema, i.Strict, i.Keyed, i.HasLookup = i.codec.Schema(), i.codec.Strict(), i.codec.HasKey(), i.lookup != nil
	i.HasCheck, i.HasApproval = i.check != nil, i.approval != nil
	if err := check(i); err != nil {
		return err
	}
	if i.Timeout == 0 {
		i.Timeout = defaultTimeout
	}
	if i.KeyWindow == 0 {
		i.KeyWindow = defaultKeyWindow
	}
	if i.Retain == 0 {
		i.Retain = max(DefaultRetain, i.KeyWindow)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.frozen:
		return errors.New("the registry is in use: add every tool before Handler is called")
	case r.byName[i.Name] != nil:
		return errors.New("the name is taken: a tool of this name was added before")
	}
	r.tools = append(r.tools, i)
	r.byName[i.Name] = i
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check finds the mistakes that one tool shows by itself, all of them at once.
func check(i *Info) error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(!toolName.MatchString(i.Name), "bad name: use 1 to 64 of a-z, A-Z, 0-9, _ and -")
	bad(i.Effect < Read || i.Effect > NonIdempotentWrite, "no Effect: say Read (safe to repeat), IdempotentWrite (same end state) or NonIdempotentWrite (must not repeat)")
	bad(i.Identity > ByCall, "Identity %d is unknown: use ByArguments or ByCall", i.Identity)
	bad(i.Recovery > Rerun, "Recovery %d is unknown: use Hold or Rerun", i.Recovery)
	bad(i.run == nil, "no Run: say what the tool does")
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"Timeout", i.Timeout}, {"KeyWindow", i.KeyWindow}, {"AbsentAfter", i.AbsentAfter}, {"Keep", i.Keep}, {"Retain", i.Retain}} {
		bad(d.d < 0, "%s is negative: leave it 0 for the default", d.name)
	}
	keep := max(minKeep, i.KeyWindow)
	bad(i.Keep > 0 && i.Keep < keep, "Keep %v is too short: a repeat may come within a day and the provider's key window; use at least %v", i.Keep, keep)
	bad(i.Retain > 0 && i.Retain < keep, "Retain %v is too short: a call that is made again within a day or the provider's key window is to be answered with the result; use at least %v", i.Retain, keep)
	bad(i.Retain > 0 && i.Effect == Read, "Retain is of no use with Read, of which nothing is kept: drop it")
	bad(i.AbsentAfter > 0 && i.lookup == nil, "AbsentAfter is of no use without a Lookup: drop it or add one")
	bad(i.Recovery == Rerun && i.KeyWindow > 0 && i.KeyWindow <= i.Timeout,
		"KeyWindow %v is not longer than the tool's Timeout: no attempt would be run again inside it", i.KeyWindow)
	if i.Effect != NonIdempotentWrite {
		bad(i.lookup != nil, "Lookup is of no use: an unclear %v is simply run again; drop it or make the tool a NonIdempotentWrite", i.Effect)
		bad(i.Recovery == Rerun, "Recovery is of no use: an unclear %v is simply run again; drop it or make the tool a NonIdempotentWrite", i.Effect)
		bad(i.Undoes != "", "Undoes needs a NonIdempotentWrite: its record is what releases the operation it undoes")
		bad(i.Keep > 0, "Keep is of no use: an %v is no obstacle to the next one", i.Effect)
	}
	bad(i.Keyed && i.Effect == Read, `once:"key" is of no use with Read, which runs each time it is called; drop the tag, or say what the tool changes`)
	bad(i.Keyed && i.Effect == IdempotentWrite, `once:"key" is of no use: an IdempotentWrite is identified by its call; drop the tag or make the tool a NonIdempotentWrite`)
	bad(i.Keyed && i.Identity == ByCall, `ByCall and once:"key" exclude each other: drop one`)
	bad(i.codec.HasResource() && i.ResourceOut != "", `once:"resource" is on the input and on the output: one of them names the thing that can be undone; drop the other`)
	bad(i.Undoes != "" && !i.codec.HasResource(), `Undoes needs a once:"resource" field in the input (RawTool: ResourceIn) that says which operation of %q is undone`, i.Undoes)
	bad(i.Undoes != "" && i.Undoes == i.Name, "Undoes names the tool itself")
	if i.Repeat != RepeatNever {
		checkRepeat(i, bad)
	}
	bad(i.Local && i.Effect != NonIdempotentWrite, "Local is of no use with %v: drop it or make the tool a NonIdempotentWrite", i.Effect)
	bad(i.Local && (i.lookup != nil || i.Recovery == Rerun), "Local and a Lookup or Recovery exclude each other: a Local tool has no unclear outcome; drop one")
	if i.codec.HasSecret() {
		bad(i.Effect == IdempotentWrite, `once:"secret" (RawTool: Secret) and an IdempotentWrite exclude each other: after a crash it is run again with what is stored, and a secret is not; make the tool a NonIdempotentWrite, or drop the tag`)
		bad(i.Local, `once:"secret" (RawTool: Secret) and Local exclude each other: after a crash a Local tool is run again with what is stored, and a secret is not; drop one`)
		bad(i.lookup != nil || i.Recovery == Rerun, `once:"secret" (RawTool: Secret) and a Lookup or Rerun exclude each other: both work with what is stored, and a secret is not; let a person settle what is unclear, or drop the tag`)
	}
	bad(i.HasApproval && i.Effect == Read, "NeedsApproval is of no use with Read, which changes nothing: drop it")
	return errors.Join(errs...)
}

// checkRepeat finds the tools that would never, or must never, be repeated on purpose.
func checkRepeat(i *Info, bad func(is bool, format string, args ...any)) {
	bad(i.Repeat > RepeatFreely, "Repeat %d is unknown: use RepeatNever, RepeatApproved or RepeatFreely", i.Repeat)
	bad(i.Effect != NonIdempotentWrite, "Repeat needs a NonIdempotentWrite: any other tool runs again whenever it is called; drop Repeat")
	bad(i.Keyed, `Repeat and once:"key" exclude each other: the key says that there is one operation and no second; drop one`)
	bad(i.Identity == ByCall, "Repeat is of no use with ByCall: every call is meant and repeats nothing; drop one")
	bad(i.Undoes != "", "Repeat is of no use with Undoes: an operation is undone once, and to undo another one is no repeat; drop Repeat")
}

// checkUndoes finds the mistakes that only the whole registry shows.
func (r *Registry) checkUndoes() error {
	var errs []error
	for _, i := range r.tools {
		if i.Undoes == "" {
			continue
		}
		u := r.byName[i.Undoes]
		switch {
		case u == nil:
			errs = append(errs, fmt.Errorf("tool %q: Undoes names %q, which is not registered: add it or mend the name", i.Name, i.Undoes))
		case u.Effect != NonIdempotentWrite:
			errs = append(errs, fmt.Errorf("tool %q: Undoes names %q, which is a %v and never blocks a repeat: drop Undoes", i.Name, i.Undoes, u.Effect))
		case !u.codec.HasResource() && u.ResourceOut == "":
			errs = append(errs, fmt.Errorf(`tool %q: Undoes names %q, which has no once:"resource" field in its input or output (RawTool: ResourceIn, ResourceOut): tag the field that says which one is undone`, i.Name, i.Undoes))
		}
	}
	return errors.Join(errs...)
}

// unwritable finds results that no JSON can be made of before one is lost.
func unwritable[Out any]() (err error) {
	defer func() { _ = recover() }() // of a method of the type, which does not expect a zero value
	var zero Out
	if _, bad := errors.AsType[*json.UnsupportedTypeError](marshal(zero)); bad {
		return fmt.Errorf("its result, a %v, cannot be written as JSON: return a type without channels, functions and complex numbers", reflect.TypeFor[Out]())
	}
	return nil
}

func marshal(v any) error {
	_, err := json.Marshal(v)
	return err
}

// text is what the model reads of a value: a Go string as it is, "" as success, all else as JSON.
func text(out any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	switch s := out.(type) {
	case string:
		if s == "" {
			return "success", nil
		}
		return s, nil
	case json.RawMessage:
		if len(s) == 0 {
			return "success", nil
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "", &ResultError{Err: err}
	}
	return string(b), nil
}

// ResultError says that a tool returned a value that is no JSON: it has run, its result is lost.
type ResultError struct{ Err error }

func (e *ResultError) Error() string {
	return "registry: encoding the result as JSON: " + e.Err.Error() + ": return a type that encoding/json can encode"
}

// Unwrap gives the encoder's error.
func (e *ResultError) Unwrap() error { return e.Err }
