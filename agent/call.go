package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// toolCall is one call of a model answer: as the model sent it, and what stands for it on the wire.
type toolCall struct {
	raw                 string // its JSON
	id, name, arguments string // as sent
	custom              bool   // free text in place of arguments
	cut                 bool   // the model was stopped while it wrote the call

	wireID string // unique, not empty, not too long
}

// maxMerged bounds the cost of comparing calls. A model does not make so many at once.
const maxMerged = 128

// delivered is what remains of calls when those that came twice are taken out, in order. at says where each stood.
func delivered(calls []toolCall) (kept []toolCall, at []int) {
	for i, c := range calls {
		first := -1
		for k := range kept {
			if len(calls) > maxMerged {
				break
			}
			if sameDelivery(kept[k], c) {
				first = k
				break
			}
		}
		switch {
		case first < 0:
			kept, at = append(kept, c), append(at, i)
		case blank(kept[first].arguments): // it was announced, and is confirmed here
			kept[first], at[first] = c, i
		}
	}
	return kept, at
}

// sameDelivery tells a call that came twice from two calls under one id. One without arguments announces the other.
func sameDelivery(a, b toolCall) bool {
	return a.id != "" && a.id == b.id && a.name == b.name && a.custom == b.custom &&
		(blank(a.arguments) || blank(b.arguments) || equalJSON(a.arguments, b.arguments))
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// equalJSON compares two documents, or bytes where one is no JSON. Numbers are compared as they are written.
func equalJSON(a, b string) bool {
	if a == b {
		return true
	}
	va, oka := decode(a)
	vb, okb := decode(b)
	return oka && okb && reflect.DeepEqual(va, vb)
}

func decode(s string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

// naming makes the ids and names of one answer fit for the wire.
type naming struct {
	run     Run
	turn    int
	answer  string // the answer's own id; it counts where there is no turn
	maxID   int
	maxName int
}

// ids gives each call an id that is on no other call and not in used. An id that can stay as it is stays.
func (n naming) ids(calls []toolCall, used map[string]bool) {
	for i := range calls {
		c := &calls[i]
		if !blank(c.id) && len(c.id) <= n.maxID && utf8.ValidString(c.id) && !used[c.id] { // broken text would be sent in two forms
			c.wireID = c.id
			used[c.id] = true
		}
	}
	for i := range calls {
		c := &calls[i]
		if c.wireID != "" {
			continue
		}
		if len(c.id) > n.maxID {
			c.wireID = madeID("long", c.id)
		}
		for try := 0; c.wireID == "" || used[c.wireID]; try++ {
			c.wireID = n.own(i, try)
		}
		used[c.wireID] = true
	}
}

// own is an id of ours. It depends on the place of the call alone, so that a run that is resumed gets the same.
func (n naming) own(position, try int) string {
	parts := []string{"place", n.run.ID, strconv.Itoa(n.turn), strconv.Itoa(position), strconv.Itoa(try)}
	if n.turn == 0 {
		parts = append(parts, n.answer)
	}
	return madeID(parts...)
}

// madeID has 37 characters of [a-z0-9_].
func madeID(parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return "call_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// name is what the API takes in a history: a model may call a tool by a name that no tool can have.
func (n naming) name(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "unknown"
	}
	return s[:min(len(s), n.maxName)]
}

// wireArguments is the object that stands for the arguments on the wire: a history with any other text in it is refused
// for ever. One layer of double encoding is taken off.
func wireArguments(s string) string {
	if object(s) {
		return s
	}
	if json.Valid([]byte(s)) {
		if v := gjson.Parse(s); v.Type == gjson.String && object(v.String()) {
			return v.String()
		}
	}
	return "{}"
}

func object(s string) bool {
	b := []byte(s)
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && json.Valid(b)
}

// text is the string that v holds. Some servers send arguments as an object; then it is that object.
func text(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.String()
	}
	if v.Type == gjson.Null {
		return ""
	}
	return v.Raw
}

// rawObject is a JSON object that is edited in place, so that what nobody knows of survives.
type rawObject struct {
	raw string
	err error
}

// edited takes over the text at path where the caller has changed it after the answer was decoded.
func (o *rawObject) edited(path, value string) {
	if v := gjson.Get(o.raw, path); (v.Type == gjson.String || v.Type == gjson.Null) && v.String() != value {
		o.set(path, value)
	}
}

// set makes the string at path be value.
func (o *rawObject) set(path, value string) {
	if v := gjson.Get(o.raw, path); o.err != nil || v.Type == gjson.String && v.String() == value {
		return
	}
	o.raw, o.err = sjson.Set(o.raw, path, value)
}

// setRaw makes the value at path be the JSON value.
func (o *rawObject) setRaw(path, value string) {
	if v := gjson.Get(o.raw, path); o.err != nil || v.Exists() && v.Raw == value {
		return
	}
	o.raw, o.err = sjson.SetRaw(o.raw, path, value)
}
