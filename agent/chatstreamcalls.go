package agent

import (
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

// streamedCalls are the calls of a streamed completion, in order of arrival. The zero value is ready.
type streamedCalls struct {
	list   []*streamedCall
	at     map[place]*streamedCall // by what a piece says of itself; the last one at such a place
	chunk  int                     // counts lists of pieces
	legacy bool                    // they come from function_call
}

// place is how a piece names its call. Both are "" where it names none: then it is of the last one.
type place struct{ index, id string }

type streamedCall struct {
	position  int
	id, kind  string
	custom    bool
	name      strings.Builder
	arguments joined
	object    string   // arguments that came as JSON, not as text in a string
	shape     brackets // of the arguments
	said      bool     // there are arguments
	announced bool
	chunk     int    // the last that had a piece of it
	extra     fields // members of the call that nobody knows
	inner     fields // and of its function
}

// piece is one entry of a delta's tool_calls.
type piece struct {
	index, id, name string // "" for none
	body            string // where name and arguments are: function or custom
	arguments       gjson.Result
	raw             gjson.Result
}

func pieceOf(raw gjson.Result) piece {
	p := piece{raw: raw, index: text(raw.Get("index")), id: text(raw.Get("id")), body: "function"}
	if blank(p.id) {
		p.id = ""
	}
	arguments := "arguments"
	if raw.Get("custom").IsObject() {
		p.body, arguments = "custom", "input"
	}
	body := raw.Get(p.body)
	p.name, p.arguments = text(body.Get("name")), body.Get(arguments)
	return p
}

// anonymous tells that a piece names neither a call nor a tool.
func (p piece) anonymous() bool { return p.index == "" && p.id == "" && p.name == "" }

// empty tells that a piece has nothing to make a call of.
func (p piece) empty() bool { return p.id == "" && p.name == "" && blank(text(p.arguments)) }

// add takes the pieces of one delta.
func (l *streamedCalls) add(list gjson.Result) (out []delta, err error) {
	if !list.IsArray() {
		return nil, nil
	}
	l.chunk++
	anonymous := 0
	list.ForEach(func(_, raw gjson.Result) bool {
		if !raw.IsObject() {
			return true
		}
		p := pieceOf(raw)
		if p.anonymous() && !p.empty() {
			anonymous++
		}
		if anonymous > 1 {
			err = errors.New("the stream has pieces of several calls that cannot be told apart; nothing was run; ask the model again")
			return false
		}
		if c := l.find(p); c != nil {
			c.add(p)
			c.chunk = l.chunk
			if !c.announced && c.name.Len() > 0 {
				c.announced = true
				out = append(out, delta{kind: callAnnounced, position: c.position, id: c.id, tool: c.name.String()})
			}
		}
		return true
	})
	return out, err
}

// find is the call that a piece belongs to, a new one if need be. Indexes are only names here: they may start anywhere,
// have holes, be missing, or be the same for all calls.
func (l *streamedCalls) find(p piece) *streamedCall {
	c := l.at[place{p.index, p.id}]
	if c == nil {
		c = l.at[place{p.index, ""}]
	}
	if c == nil || !c.continuedBy(p, l.chunk) {
		if p.empty() {
			return nil
		}
		c = &streamedCall{position: len(l.list)}
		l.list = append(l.list, c)
	}
	if c.id == "" {
		c.id = p.id
	}
	if l.at == nil {
		l.at = map[place]*streamedCall{}
	}
	l.at[place{p.index, c.id}], l.at[place{p.index, ""}], l.at[place{"", c.id}], l.at[place{}] = c, c, c, c
	return c
}

// continuedBy tells whether p, found at the call's place, is of this call and not of the next one.
func (c *streamedCall) continuedBy(p piece, chunk int) bool {
	name := c.name.String()
	object := p.arguments.Type != gjson.Null && p.arguments.Type != gjson.String
	switch {
	case p.id != "" && c.id != "" && p.id != c.id:
		return false
	case p.id != "" && c.id == "" && p.name != "" && c.said: // an id may come late, but not with the name again
		return false
	case object && c.said && p.arguments.Raw != c.object: // these are whole
		return false
	case p.name == "" || name == "":
		return true
	case p.name != name: // the rest of a name, which some servers send in pieces
		return !c.said && c.chunk != chunk
	case p.index == "" && c.chunk == chunk:
		return false
	}
	// Some servers repeat the name in every piece, some give all calls the same index and no id.
	again := strings.HasPrefix(strings.TrimSpace(p.arguments.Str), "{")
	return !again || !c.shape.whole()
}

func (c *streamedCall) add(p piece) {
	if p.name != "" && p.name != c.name.String() {
		c.name.WriteString(p.name)
	}
	c.custom = c.custom || p.body == "custom"
	switch s := text(p.arguments); {
	case p.arguments.Type == gjson.String:
		c.arguments.add(p.arguments)
		c.shape.read(s)
		c.said = c.said || !blank(s)
	case s != "" && !c.said:
		c.object, c.said = s, true
		c.arguments = joined{}
		c.arguments.add(gjson.ParseBytes(gjson.AppendJSONString(nil, s)))
		c.shape.read(s)
	}
	p.raw.ForEach(func(k, v gjson.Result) bool {
		switch key := k.String(); key {
		case "index", "id":
		case "function", "custom":
			if key == p.body && v.IsObject() {
				v.ForEach(c.addInner)
			}
		case "type":
			if v.Type == gjson.String && v.Str != "" {
				c.kind = v.Str
			}
		default:
			c.extra.latest(key, v)
		}
		return true
	})
}

func (c *streamedCall) addInner(k, v gjson.Result) bool {
	switch key := k.String(); key {
	case "name", "arguments", "input":
	default:
		c.inner.latest(key, v)
	}
	return true
}

// stray tells that there are arguments without any sign of a call: they may be missing elsewhere.
func (l *streamedCalls) stray() bool {
	for _, c := range l.list {
		if c.id == "" && c.name.Len() == 0 {
			return true
		}
	}
	return false
}

// append writes the member tool_calls with a comma before it; nothing where there are none.
func (l *streamedCalls) append(b []byte) []byte {
	before := `,"tool_calls":[`
	for _, c := range l.list {
		b = c.append(append(b, before...))
		before = ","
	}
	if len(l.list) > 0 {
		b = append(b, ']')
	}
	return b
}

func (c *streamedCall) append(b []byte) []byte {
	kind, body, arguments := c.kind, `,"function":{"name":`, `,"arguments":`
	if kind == "" {
		kind = "function"
	}
	if c.custom {
		kind, body, arguments = "custom", `,"custom":{"name":`, `,"input":`
	}
	b = append(b, `{"id":`...)
	b = gjson.AppendJSONString(b, c.id)
	b = append(b, `,"type":`...)
	b = gjson.AppendJSONString(b, kind)
	b = append(b, body...)
	b = gjson.AppendJSONString(b, c.name.String())
	b = append(b, arguments...)
	if c.arguments.kind == 0 {
		b = append(b, `""`...)
	} else {
		b = c.arguments.append(b)
	}
	b = c.inner.append(b)
	b = append(b, '}')
	b = c.extra.append(b)
	return append(b, '}')
}
