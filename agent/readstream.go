package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// post makes the request that New of the SDK's services makes, and keeps the answer as it came: only the last one of a
// run is decoded.
func (l *Loop) post(ctx context.Context, path string, params any, opts []option.RequestOption) (json.RawMessage, error) {
	var raw []byte
	if err := l.client.Post(ctx, path, params, &raw, opts...); err != nil {
		return nil, err
	}
	var b brackets
	b.read(string(raw))
	switch {
	case !json.Valid(raw):
		return nil, errors.New("the API's answer is no JSON: is the base URL right?")
	case len(raw) > maxStream || b.deepest > maxStreamDepth:
		return nil, fmt.Errorf("the API's answer is over %d MiB or %d levels; nothing was run; ask for a shorter one", maxStream>>20, maxStreamDepth)
	}
	return raw, nil
}

// accumulator puts the events of a stream together.
type accumulator interface {
	add(event string) ([]delta, error)
	// ended tells that nothing that comes can change the answer.
	ended() bool
	answer() (json.RawMessage, error)
}

// readStream reads a stream to its end, and gives the answer that it amounts to.
func readStream[T any](stream *ssestream.Stream[T], res *http.Response, a accumulator, raw func(T) string, watch func(delta) bool) (_ json.RawMessage, err error) {
	defer func() { _ = stream.Close() }()
	if res != nil && stream.Err() == nil {
		if kind := res.Header.Get("Content-Type"); strings.Contains(kind, "json") || strings.Contains(kind, "html") {
			return nil, fmt.Errorf("the API answered a request for a stream with %s: is the base URL right, and does it stream?", clipText(kind))
		}
	}
	for !a.ended() && stream.Next() {
		deltas, err := a.add(raw(stream.Current()))
		if err != nil {
			return nil, err
		}
		for _, d := range deltas {
			if !watch(d) {
				return nil, errStopped
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return a.answer()
}
