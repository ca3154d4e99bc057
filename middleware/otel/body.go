package otel

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/tidwall/gjson"
)

// listened is an answer's body that is read along. Its reader gets what it would get without.
type listened struct {
	io.ReadCloser
	x      *exchange
	stream bool

	mu    sync.Mutex // Close may be called while Read waits
	rest  []byte     // of a stream: the line that is not complete; else all
	full  bool       // there is more of it than is looked at
	ended bool
}

func (b *listened) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return n, err
	}
	if b.take(p[:n]); err != nil {
		b.end(err)
	}
	return n, err
}

// Close ends the span where the reader has left before the end, too.
func (b *listened) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.end(nil)
	}
	return err
}

func (b *listened) take(p []byte) {
	for b.stream {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			break
		}
		b.keep(line)
		b.line()
		b.rest, b.full, p = b.rest[:0], false, rest
	}
	b.keep(p)
}

func (b *listened) keep(p []byte) {
	if b.full = b.full || len(b.rest)+len(p) > maxBody; b.full {
		b.rest = b.rest[:0]
		return
	}
	b.rest = append(b.rest, p...)
}

// line looks at a line of a stream.
func (b *listened) line() {
	data, ok := bytes.CutPrefix(b.rest, []byte("data:"))
	if data = bytes.TrimSpace(data); ok && gjson.ValidBytes(data) {
		b.x.event(gjson.ParseBytes(data))
	}
}

// end ends the span. err is what the reader got, nil where it has left.
func (b *listened) end(err error) {
	b.ended = true
	if b.stream {
		b.line() // a last one without its end
	} else if gjson.ValidBytes(b.rest) {
		b.x.whole(gjson.ParseBytes(b.rest))
	}
	b.rest = nil
	wrong := b.x.failed
	switch {
	case wrong != "" || b.x.complete:
	case err != nil && !errors.Is(err, io.EOF):
		wrong = errorType(err)
	case b.stream:
		wrong = "incomplete_stream"
	}
	b.x.end(wrong)
}
