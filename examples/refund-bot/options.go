package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

const usage = `refund-bot: an agent that refunds orders once, whatever goes wrong.

  refund-bot [flags]             tell the story: the same failures without and with the guard
  refund-bot [flags] "REQUEST"   handle one request

Examples:
  go run ./examples/refund-bot
  go run ./examples/refund-bot -provider plain -only killed -keep /tmp/story
  go run ./examples/refund-bot -json -api responses -stream
  go run ./examples/refund-bot "refund order 1001, it arrived broken"
  OPENAI_API_KEY=... go run ./examples/refund-bot -run ticket-42 "refund order 1002, wrong size"
  go run ./examples/refund-bot -base-url http://localhost:11434/v1 -model qwen3 "refund order 1003"

Both:
  -provider KIND     what the payment provider offers: keyed (honours an idempotency key), lookup (can be asked),
                     plain (neither); default lookup
  -api NAME          how the model is asked: chat (Chat Completions) or responses; default chat
  -stream            ask for streams; the text of a request is printed as it arrives

The story:
  -seed N            order numbers, amounts and wording; default 1
  -only NAME         one failure alone: late-answer, twice-in-a-turn, asked-again, killed, second-order or notes
  -json              one JSON object on one line instead of the story
  -keep DIR          leave provider.db and once.db of the guarded pass in DIR
  Exit code 1 unless the guarded pass did what was wanted, in every line.

One request:
  -db FILE           ledger and journal; default ./once.db
  -run ID            names the request, for good: the same command again goes on where it was killed, or prints the
                     saved answer; another request wants another ID; default: made of the text and -api
  -model NAME        default gpt-4.1-mini with a real model, "scripted" without
  -base-url URL      of an OpenAI-compatible server; default $OPENAI_BASE_URL
  -provider-url URL  of a provider that runs elsewhere; default: one of its own on loopback, whose money is in
                     provider.db beside -db, and which knows the orders 1001 to 1005
  With $OPENAI_API_KEY or a base URL a real model is asked, else the scripted one, which refunds the whole order.
`

// options are what the command line says.
type options struct {
	help    bool
	kind    provider.Kind
	api     string
	stream  bool
	request string // "" for the story

	seed uint64
	only string
	json bool
	keep string

	db, run, model, baseURL, apiKey, providerURL string
}

// real tells whether a real model is asked.
func (o options) real() bool { return o.baseURL != "" || o.apiKey != "" }

// wire is how the model is asked.
func (o options) wire() string {
	if o.stream {
		return o.api + ", streamed"
	}
	return o.api
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Flags that mean nothing in the other mode.
var (
	storyFlags   = []string{"seed", "only", "json", "keep"}
	requestFlags = []string{"db", "run", "model", "base-url", "provider-url"}
)

func parse(args []string, getenv func(string) string) (options, error) {
	var o options
	fs := flag.NewFlagSet("refund-bot", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	kind := fs.String("provider", string(provider.Lookup), "")
	fs.StringVar(&o.api, "api", chatAPI, "")
	fs.BoolVar(&o.stream, "stream", false, "")
	fs.Uint64Var(&o.seed, "seed", 1, "")
	fs.StringVar(&o.only, "only", "", "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.StringVar(&o.keep, "keep", "", "")
	fs.StringVar(&o.db, "db", onceFile, "")
	fs.StringVar(&o.run, "run", "", "")
	fs.StringVar(&o.model, "model", "", "")
	fs.StringVar(&o.baseURL, "base-url", "", "")
	fs.StringVar(&o.providerURL, "provider-url", "", "")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		o.help = true
		return o, nil
	case err != nil:
		return o, misuse("%w: -h shows what there is", err)
	case fs.NArg() > 1:
		return o, misuse("one request at a time, in quotes, behind the flags: got %d words", fs.NArg())
	}
	if o.kind, err = provider.ParseKind(*kind); err != nil {
		return o, usageError{fmt.Errorf("-provider: %w", err)}
	}
	if o.api != chatAPI && o.api != responsesAPI {
		return o, misuse("-api: no such API %q: use %s or %s", o.api, chatAPI, responsesAPI)
	}
	foreign, mode := requestFlags, "goes with a request only: add one in quotes, or drop the flag"
	if fs.NArg() == 1 {
		foreign, mode = storyFlags, "goes without a request only: drop one of the two"
	}
	fs.Visit(func(f *flag.Flag) {
		if err == nil && slices.Contains(foreign, f.Name) {
			err = misuse("-%s %s", f.Name, mode)
		}
	})
	switch {
	case err != nil:
		return o, err
	case fs.NArg() == 0:
		return o, o.checkStory()
	}
	o.request = strings.TrimSpace(fs.Arg(0))
	return o.withRequest(getenv)
}

func (o options) checkStory() error {
	if o.only != "" && !slices.Contains(sceneNames(), o.only) {
		return misuse("-only: no such failure %q: use one of %s", o.only, strings.Join(sceneNames(), ", "))
	}
	return nil
}

// withRequest fills in the defaults of a request.
func (o options) withRequest(getenv func(string) string) (options, error) {
	if o.request == "" {
		return o, misuse(`the request is empty: say what to do, as in "refund order 1001, it arrived broken"`)
	}
	o.apiKey = getenv("OPENAI_API_KEY")
	o.baseURL = cmp.Or(o.baseURL, getenv("OPENAI_BASE_URL"))
	switch {
	case !address(o.baseURL):
		return o, misuse("-base-url: %q is no address: give one such as http://localhost:8080/v1", o.baseURL)
	case !address(o.providerURL):
		return o, misuse("-provider-url: %q is no address: give one such as http://localhost:8081", o.providerURL)
	case o.providerURL == "" && filepath.Base(o.db) == providerFile:
		return o, misuse("-db %s: that is the name of the provider's own file: choose another", o.db)
	case o.real():
		o.model = cmp.Or(o.model, "gpt-4.1-mini")
		o.baseURL = cmp.Or(o.baseURL, "https://api.openai.com/v1")
		o.apiKey = cmp.Or(o.apiKey, "none") // servers of one's own need none
	case o.model != "" && o.model != scriptedModel:
		return o, misuse("-model %s is a real model, and there is no way to reach it: set OPENAI_API_KEY, or give -base-url, or drop -model for the scripted one", o.model)
	default:
		o.model, o.apiKey = scriptedModel, "none"
	}
	if o.run == "" {
		sum := sha256.Sum256([]byte(o.api + "\x00" + o.request))
		o.run = "request-" + hex.EncodeToString(sum[:6])
	}
	return o, nil
}

// address tells whether s is "" or the address of a server.
func address(s string) bool {
	u, err := url.Parse(s)
	return s == "" || err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
