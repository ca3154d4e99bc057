package agent

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

const (
	maxNames   = 1000     // names that an option knows
	maxName    = 256      // bytes of a name
	maxRefusal = 64 << 10 // bytes of a 400 that is looked at
	maxEvents  = 64 << 10 // bytes at the head of a stream: response.created repeats the instructions and tools
	maxAnswer  = 1 << 20  // bytes of an answer without a stream
)

// askedModel is a name that requests use for a model. The same one may mean another model elsewhere.
type askedModel struct{ host, deployment, model string }

// nameOf is the name in a request. On Azure the model may be in the path alone; it is "" where a stored prompt has it.
func nameOf(req *http.Request, model string) askedModel {
	n := askedModel{host: strings.ToLower(req.URL.Host), deployment: deployment(req.URL.Path), model: model}
	if n.model == "" {
		n.model = n.deployment
	}
	return n
}

// learned is what answers told of a name.
type learned struct {
	model   string // that answered last; "" for none but the one asked
	refuses bool   // the field, even false
}

// knownModels is what an option has learned. The zero value knows nothing.
type knownModels struct {
	mu    sync.Mutex
	known map[askedModel]learned
}

func (n *knownModels) get(name askedModel) learned {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name]
}

func (n *knownModels) learn(name askedModel, change func(*learned)) {
	if name.model == "" || len(name.model) > maxName {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[askedModel]learned{}
	}
	l, found := n.known[name]
	change(&l)
	if l == (learned{}) {
		delete(n.known, name)
		return
	}
	if !found && len(n.known) >= maxNames {
		for old := range n.known {
			delete(n.known, old)
			break
		}
	}
	n.known[name] = l
}

func succeeded(res *http.Response) bool { return res.StatusCode/100 == 2 }

// refusesField tells whether the answer is a 400 about the field. The answer can be read as before.
func refusesField(res *http.Response) bool {
	if res.StatusCode != http.StatusBadRequest {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal+1))
	if err != nil || len(body) > maxRefusal {
		res.Body = readCloser{io.MultiReader(bytes.NewReader(body), res.Body), res.Body}
		return false
	}
	_ = res.Body.Close() // it has been read to its end
	res.Body = io.NopCloser(bytes.NewReader(body))
	return speaksOfField(body)
}

// speaksOfField tells an error that says the field is unknown, unsupported or out of place from one about its value or
// about another field. OpenAI gives code and param, Azure and gateways often a sentence alone.
func speaksOfField(body []byte) bool {
	e := gjson.GetBytes(body, "error")
	param, text := e.Get("param").String(), string(body)
	if message := e.Get("message"); message.Exists() {
		text = e.Get("code").String() + " " + message.String()
	}
	text = strings.ToLower(text)
	if param != parallelField && (param != "" || !strings.Contains(text, parallelField)) {
		return false
	}
	return slices.ContainsFunc([]string{
		"unsupported", "not support", "unrecogni", "not recogni", "unknown", "unexpected",
		"not permitted", "not allowed", "only allowed",
	}, func(s string) bool { return strings.Contains(text, s) })
}

// listen learns the model that answers while the answer is read.
func (n *knownModels) listen(name askedModel, res *http.Response) {
	l := &modelListener{ReadCloser: res.Body, left: maxAnswer}
	if strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream") {
		l.stream, l.left = true, maxEvents
	}
	l.tell = func(model string) {
		n.learn(name, func(known *learned) {
			known.model = model
			if model == name.model {
				known.model = ""
			}
		})
	}
	res.Body = l
}

// modelListener looks at what is read from an answer's body. It holds nothing back, and Close, which may come while a
// Read waits, does not pass through it.
type modelListener struct {
	io.ReadCloser
	stream bool
	left   int          // bytes that it still looks at
	seen   []byte       // and does not know enough of
	tell   func(string) // nil once there is nothing more to do
}

func (l *modelListener) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.tell == nil {
		return n, err
	}
	piece := p[:min(n, l.left)]
	l.left -= len(piece)
	l.seen = append(l.seen, piece...)
	switch {
	case l.stream:
		l.hearLines()
	case errors.Is(err, io.EOF):
		l.hear(l.seen)
	}
	if l.left == 0 {
		l.tell, l.seen = nil, nil
	}
	return n, err
}

// hearLines takes the events that are whole. Each may have the model.
func (l *modelListener) hearLines() {
	for l.tell != nil {
		line, rest, whole := bytes.Cut(l.seen, []byte("\n"))
		if !whole {
			return
		}
		l.seen = rest
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			l.hear(data)
		}
	}
}

// hear is done when the object names a model.
func (l *modelListener) hear(object []byte) {
	if !gjson.ValidBytes(object) {
		return
	}
	model := gjson.GetBytes(object, "model")
	if !model.Exists() {
		model = gjson.GetBytes(object, "response.model")
	}
	if name := model.String(); name != "" && len(name) <= maxName {
		l.tell(name)
		l.tell, l.seen = nil, nil
	}
}
