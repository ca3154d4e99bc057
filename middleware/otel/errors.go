package otel

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/toolonce/toolonce/middleware"
)

// known are the words for errors that an alert asks for.
var known = []struct {
	word string
	is   func(error) bool
}{
	{"not_saved", as[*middleware.NotSavedError]},
	{"repeat_budget", as[*middleware.RepeatError]},
	{"panic", as[*middleware.PanicError]},
	{"canceled", func(err error) bool { return errors.Is(err, context.Canceled) }},
	{"timeout", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	{"unexpected_eof", func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) }},
	{"lost", func(err error) bool { return errors.Is(err, middleware.ErrLost) }},
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// errorType is a word for an error: one of the known ones, or the type of the innermost error in it that has a type of
// its own. Its text may be a tool's, and hold data of users.
func errorType(err error) string {
	for _, k := range known {
		if k.is(err) {
			return k.word
		}
	}
	word := other
	for err != nil {
		switch t := fmt.Sprintf("%T", err); t {
		case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors", "registry.noEffect":
		default:
			word = t
		}
		switch e := any(err).(type) { // each error on the way is looked at
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			if err = nil; len(e.Unwrap()) > 0 {
				err = e.Unwrap()[0]
			}
		default:
			err = nil
		}
	}
	return word
}

// paused reports whether an error says that a run waits for a person, which is none.
func paused(err error) bool { return as[*middleware.PausedError](err) }
