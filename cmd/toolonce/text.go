package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolonce/toolonce/internal/visible"
)

// escape makes a text from a store safe to print.
func escape(s string) string { return visible.Text(s) }

// age is a duration in its two largest units at most.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// output remembers why it could not write.
type output struct {
	w   io.Writer
	err error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	o.err = cmp.Or(o.err, err)
	return n, err
}

func (o *output) failed() error {
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("the output could not be written: %w", o.err)
}

// unwritten says why something could not be printed. A verb that goes on for long asks.
func (e *env) unwritten() error {
	if o, ok := e.out.(*output); ok {
		return o.failed()
	}
	return nil
}

// complain says something beside the output, in a line.
func (e *env) complain(what string) {
	_, _ = fmt.Fprintf(e.errw, "toolonce: %s\n", escape(strings.ReplaceAll(what, "\n", "; ")))
}

func (e *env) printf(format string, args ...any) { _, _ = fmt.Fprintf(e.out, format, args...) }

func (e *env) printJSON(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	e.printf("%s\n", escape(strings.TrimSuffix(b.String(), "\n"))) // JSON leaves direction and zero-width characters as they are
	return cmp.Or(err, e.unwritten())
}

// quote writes a word so that a shell reads it as one.
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
