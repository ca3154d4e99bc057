package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// NoEffect marks err as proof that nothing happened, so that the call may be made again. nil stays nil. An error of
// another package says the same by a method NoEffect() bool.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return noEffect{err}
}

type noEffect struct{ error }

func (noEffect) NoEffect() bool  { return true }
func (e noEffect) Unwrap() error { return e.error }

// HasNoEffect reports whether err, or an error it wraps, proves that nothing happened. Of several errors joined, each
// must prove it.
func HasNoEffect(err error) bool {
	for err != nil {
		switch e := any(err).(type) { // not errors.As, which stops at the first of several joined errors
		case interface{ NoEffect() bool }:
			return e.NoEffect()
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return all(e.Unwrap())
		default:
			return false
		}
	}
	return false
}

func all(errs []error) bool {
	for _, err := range errs {
		if !HasNoEffect(err) {
			return false
		}
	}
	return len(errs) > 0
}

// ToolError carries a tool's own error from the innermost handler outward. It never leaves Registry.Handler.
type ToolError struct{ Err error }

func (e *ToolError) Error() string { return e.Err.Error() }

// Unwrap gives the tool's error.
func (e *ToolError) Unwrap() error { return e.Err }

// ArgumentError says what is wrong with a call's arguments, never their values.
type ArgumentError struct {
	Tool string
	// Path leads to the value, as in /items/0/price; "" is the whole document.
	Path string
	// Rule is one stable word, such as required, unknown or type.
	Rule string
	// Message says what is wrong and how to mend it.
	Message string
}

func (e *ArgumentError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("arguments of %s: %s", e.Tool, e.Message)
	}
	return fmt.Sprintf("arguments of %s: %s: %s", e.Tool, e.Path, e.Message)
}

func argumentError(tool string, err error) error {
	if e, ok := errors.AsType[*codec.Error](err); ok {
		return &ArgumentError{Tool: tool, Path: e.Path, Rule: e.Rule, Message: e.Message}
	}
	return &ArgumentError{Tool: tool, Rule: "json", Message: err.Error()}
}

// unknownToolError says that a call names a tool that is not registered.
type unknownToolError struct {
	name    string
	nearest []string // registered names that are spelt alike, best first
}

func (e *unknownToolError) Error() string {
	s := fmt.Sprintf("there is no tool %q", clip(e.name, 64))
	if len(e.nearest) > 0 {
		s += "; did you mean " + strings.Join(e.nearest, ", ") + "?"
	}
	return s
}
