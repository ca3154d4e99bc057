package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// created is the time in every answer, in seconds since 1970.
const created = 1767225600

// object is a JSON object to be written.
type object = map[string]any

// answer sends a step, or what its fault makes of it. It tells note the status
// and hands a stored response to keep.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request, f Fault, step Step, note func(int), keep func(string, []json.RawMessage)) {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
	if f.Drop && f.After == 0 {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(f.RetryAfter.Milliseconds(), 10))
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.Status != 0 {
		note(f.Status)
		failure(f).send(w)
		return
	}
	step.Model = or(or(step.Model, x.Model), x.deployment())
	step.FinishReason = or(step.FinishReason, "stop")
	if len(step.Calls) > 0 && step.FinishReason == "stop" {
		step.FinishReason = "tool_calls"
	}
	var parts [][]byte
	if x.API == "chat" {
		parts = x.chatAnswer(step)
	} else {
		parts = x.responsesAnswer(step, keep)
	}
	if step.Raw != "" {
		parts = [][]byte{[]byte(step.Raw)}
	}
	if !f.Drop {
		note(http.StatusOK)
	}
	x.write(w, f, parts)
}

// write sends the parts of a body, flushing each, up to where the fault strikes.
func (x *exchange) write(w http.ResponseWriter, f Fault, parts [][]byte) {
	body := bytes.Join(parts, nil)
	w.Header().Set("Content-Type", "application/json")
	if x.Stream {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("X-Request-Id", "req_"+x.digest())
	switch {
	case f.Truncate && x.Stream:
		parts = parts[:min(f.After, len(parts))]
	case f.Truncate:
		parts = [][]byte{body[:min(f.After, len(body))]}
	case f.Drop:
		parts = [][]byte{body[:min(f.After, len(body))]}
	case !x.Stream:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(http.StatusOK)
	flush := func() {}
	if fl, ok := w.(http.Flusher); ok {
		flush = fl.Flush
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return // the client has gone
		}
		flush()
	}
	if f.Drop {
		panic(http.ErrAbortHandler) // net/http's way to break the connection
	}
}

// digest names the request: what ids in its answer are made of.
func (x *exchange) digest() string {
	sum := sha256.Sum256(append([]byte(x.API+"\n"), x.Body...))
	return hex.EncodeToString(sum[:12])
}

// usage counts tokens by bytes, which is near enough and always the same.
func (x *exchange) usage(step Step) (in, out int) {
	out = len(step.Text) + len(step.Reasoning)
	for _, c := range step.Calls {
		out += len(c.Name) + len(c.Arguments)
	}
	return len(x.Body)/4 + 1, out/4 + 1
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, strings and numbers, and JSON that was parsed before
	}
	return b
}

// pieces cuts a text into three or four, as a stream delivers it.
func pieces(s string) []string {
	var out []string
	size := max(1, len(s)/3)
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}
