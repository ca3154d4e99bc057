//go:build unix && cgo

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// job is what a process is started with.
type job struct {
	DB    string // the store's place
	Name  string // of the process
	URL   string // of the server that its parent keeps for it: commands, and the provider
	Model string // its address there
	setting
}

// setting is how a run is done.
type setting struct {
	Store  string
	Kind   string // of the provider: keyed, lookup or plain; or local, where the effect is in the store's own transaction
	API    string // chat or responses
	Stream bool
}

// command is what a process is to do next. Without a run it closes its store and ends.
type command struct {
	Run string
	At  string // where to stop until the end comes, "" for nowhere
}

// report is what became of a command.
type report struct {
	Text     string
	Verdicts []registry.Verdict // of the refund and of its repeat
	Writes   []string           // to the store, in order
	Taken    bool               // another process has the run
	Err      string
}

const (
	jobEnv  = "TOOLONCE_CRASH_JOB"
	order   = "1001"
	timeout = 4 * time.Second // of a handler, and
	margin  = time.Second     // behind it: nothing counts as not happened before both are over
)

// TestMain is the process that is killed, too.
func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var w worker
	err := json.Unmarshal([]byte(text), &w.job)
	if err == nil {
		err = w.work()
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// worker is a process that runs what it is told to.
type worker struct {
	job
	place
	stop   string   // where it does
	writes []string // of the run, the writes of one are never at the same time
}

func (w *worker) work() error {
	c, err := w.next(report{}) // from here on it may be killed
	if err != nil {
		return err
	}
	w.place = placeOf(w.job)
	if w.stop = c.At; w.stop == inMaking {
		return w.making(context.Background(), w)
	}
	store, err := w.open(context.Background())
	if err != nil {
		return err
	}
	client := openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(w.Model), option.WithMaxRetries(0), w.wire())
	loop := agent.New(client, w.tools(), &mortal{store, w}, &agent.Options{
		Once: &middleware.OnceOptions{Margin: margin, Logger: slog.New(slog.DiscardHandler)},
	})
	var said report
	for {
		c, err := w.next(said)
		if err != nil || c.Run == "" {
			return errors.Join(err, store.Close())
		}
		w.stop, w.writes = c.At, nil
		said = w.run(loop, c.Run)
	}
}

// run does a run, and then once more: that must give the saved answer.
func (w *worker) run(l *agent.Loop, run string) report {
	text, calls, err := w.ask(l, run)
	r := report{Text: text, Writes: w.writes, Taken: errors.Is(err, journal.ErrRunTaken)}
	for _, c := range calls {
		if c.Tool == "issue_refund" {
			r.Verdicts = append(r.Verdicts, c.Verdict)
		}
	}
	if err == nil {
		var again string
		if again, _, err = w.ask(l, run); err == nil && again != text {
			err = fmt.Errorf("the finished run gives another answer: %q", again)
		}
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

func (w *worker) ask(l *agent.Loop, run string) (text string, calls []agent.CallReport, err error) {
	id, user := agent.Run{ID: run}, "Refund order "+order+", please. "+run
	chat := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(user)}}
	resp := responses.ResponseNewParams{Model: "gpt-4.1-mini"}
	resp.Input.OfString = openai.String(user)
	var c *agent.ChatReply
	var r *agent.ResponseReply
	switch {
	case w.API == "chat" && !w.Stream:
		c, err = l.Chat(context.Background(), id, chat)
	case w.API == "chat":
		for e, failed := range l.StreamChat(context.Background(), id, chat) {
			c, err = e.Chat, failed
		}
	case !w.Stream:
		r, err = l.Respond(context.Background(), id, resp)
	default:
		for e, failed := range l.StreamRespond(context.Background(), id, resp) {
			r, err = e.Response, failed
		}
	}
	switch {
	case err != nil:
		return "", nil, err
	case c != nil:
		return c.Choices[0].Message.Content, c.Report.Calls, nil
	default:
		return r.OutputText(), r.Report.Calls, nil
	}
}

// refundInput is a refund: one for each order, whatever the words.
type refundInput struct {
	Order  string `json:"order_id" once:"key"`
	Cents  int    `json:"cents"`
	Reason string `json:"reason,omitempty" once:"-"`
}

type refunded struct {
	ID string `json:"id"`
}

type lookInput struct {
	Order string `json:"order_id"`
}

func (w *worker) tools() *registry.Registry {
	tools := registry.New()
	refund := registry.Tool[refundInput, refunded]{
		Name: "issue_refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite, Timeout: timeout, Run: w.issue,
	}
	switch w.Kind {
	case "keyed":
		refund.Recovery = registry.Rerun
	case "lookup":
		refund.Lookup = w.lookup
	case local:
		refund.Local = true
	}
	registry.Add(tools, refund)
	registry.Add(tools, registry.Tool[lookInput, string]{
		Name: "get_order", Description: "Look at an order.", Effect: registry.Read,
		Run: func(_ context.Context, in lookInput) (string, error) {
			w.at("in the read")
			return "order " + in.Order + " has arrived", nil
		},
	})
	return tools
}

// payments is the provider as a process reaches it: by one name from all processes, since the key depends on that.
func (w *worker) payments(ctx context.Context, method, query string, body any, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://payments.test/refunds"+query, bytes.NewReader(text))
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		host, _, _ := strings.Cut(strings.TrimPrefix(w.URL, "http://"), "/")
		return new(net.Dialer).DialContext(ctx, network, host)
	}
	client := http.Client{Transport: &registry.Transport{Base: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return json.NewDecoder(res.Body).Decode(to)
}

func (w *worker) issue(ctx context.Context, in refundInput) (out refunded, err error) {
	w.at(inTheTool)
	if w.Kind == local {
		err := w.refund(ctx, in.Order)
		w.at(refundMade)
		return refunded{"re_1"}, err
	}
	return out, w.payments(ctx, http.MethodPost, "", in, &out)
}

func (w *worker) lookup(ctx context.Context, in refundInput) (refunded, error) {
	var list []refunded
	if err := w.payments(ctx, http.MethodGet, "?order_id="+in.Order, nil, &list); err != nil {
		return refunded{}, err
	}
	if len(list) == 0 {
		return refunded{}, registry.NoEffect(errors.New("no such refund"))
	}
	return list[0], nil
}

// wire is the connection to the model.
func (w *worker) wire() option.RequestOption {
	asked := 0
	return option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		asked++
		w.at(fmt.Sprintf("before request %d", asked))
		res, err := next(r)
		if err == nil {
			res.Body = &arriving{res.Body, func() { w.at(fmt.Sprintf("answer %d arrives", asked)) }}
		}
		return res, err
	})
}

// arriving is a body that says when its first bytes are there.
type arriving struct {
	io.ReadCloser
	arrived func()
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p[:min(len(p), 64)])
	if n > 0 {
		a.arrived()
	}
	return n, err
}

// at waits for the end if it is to come here.
func (w *worker) at(point string) {
	if w.stop == point {
		w.here()
	}
}

// here tells the parent that the point is reached, and waits to be killed.
func (w *worker) here() {
	err := w.post("here", nil, nil)
	fail(fmt.Errorf("not killed at %q: %w", w.stop, err))
}

// next asks the parent what to do.
func (w *worker) next(said report) (c command, err error) {
	return c, w.post("next", said, &c)
}

func (w *worker) post(what string, body, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	res, err := http.Post(w.URL+"/control/"+what, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if to == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(to)
}
