package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type verdict struct {
	Order string `json:"order"`
	Cents int    `json:"cents" jsonschema:"minimum=1"`
	Note  string `json:"note,omitempty"`
}

// as asks for a verdict on either API, and gives the reply's report.
func as(t *testing.T, api string, l *agent.Loop) (verdict, *agent.Report, error) {
	t.Helper()
	if api == "chat" {
		v, r, err := agent.ChatAs[verdict](t.Context(), l, run, openai.ChatCompletionNewParams{
			Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)},
		})
		if r == nil {
			return v, nil, err
		}
		return v, &r.Report, err
	}
	p := responses.ResponseNewParams{Model: "gpt-4.1-mini"}
	p.Input.OfString = openai.String(request)
	v, r, err := agent.RespondAs[verdict](t.Context(), l, run, p)
	if r == nil {
		return v, nil, err
	}
	return v, &r.Report, err
}

func eachAPI(t *testing.T, test func(t *testing.T, api string)) {
	t.Helper()
	for _, api := range []string{"chat", "responses"} {
		t.Run(api, func(t *testing.T) { test(t, api) })
	}
}

func TestTheFinalAnswerIsAGoValue(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}},
			transcript.Step{Text: `{"order":"1001","cents":500,"note":null}`},
		), nil)
		v, _, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), nil))
		if want := (verdict{Order: "1001", Cents: 500}); err != nil || v != want {
			t.Fatalf("%+v, %v", v, err)
		}
		body := gjson.ParseBytes(s.Requests()[0].Body)
		format := body.Get("response_format.json_schema")
		if api == "responses" {
			format = body.Get("text.format")
		}
		if got := format.Get("name").String() + " " + format.Get("strict").Raw + " " + format.Get("schema.required").Raw; got != `verdict true ["order","cents","note"]` {
			t.Error(got)
		}
	})
}

func TestAnAnswerThatDoesNotFitIsAnErrorThatSaysWhere(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: `{"order":"1001","cents":0,"note":null}`}), nil)
		_, report, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), nil))
		wrong, ok := errors.AsType[*registry.ArgumentError](err)
		if !ok || wrong.Path != "/cents" || report == nil || len(s.Requests()) != 1 {
			t.Errorf("%v, %v, %d requests", err, report, len(s.Requests()))
		}
	})
}

func TestAnAnswerThatIsNoObjectIsNoValueThoughNothingIsRequired(t *testing.T) {
	type größe struct { // and a name that the API does not take
		Note string `json:"note,omitempty"`
	}
	for _, text := range []string{"", " ", "null", `"{}"`, "[]", "{} {}", "{}"} {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` +
			quote(text) + `}}]}`}), nil)
		_, _, err := agent.ChatAs[größe](t.Context(), agent.New(onceClient(s), b.tools(), memory(), nil), run, openai.ChatCompletionNewParams{
			Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)},
		})
		if _, wrong := errors.AsType[*registry.ArgumentError](err); wrong != (text != "{}") || !wrong && err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnAnswerThatDoesNotFitIsAskedForOnceMore(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			switch n := len(r.Messages); {
			case r.Turn == 1:
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}}
			case r.Messages[n-1].Role != "user":
				return transcript.Step{Text: `It is done.`}
			case !strings.Contains(r.Messages[n-2].Content, "schema of verdict: it: ") || strings.Contains(string(r.Body), `"tools"`):
				return transcript.Step{Text: "no"}
			}
			return transcript.Step{Text: `{"order":"1001","cents":500,"note":"in time"}`}
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Repair: true})
		for resumed := range 2 { // the second time all is saved
			v, report, err := as(t, api, l)
			if want := (verdict{"1001", 500, "in time"}); err != nil || v != want {
				t.Fatalf("%+v, %v", v, err)
			}
			if len(report.Usage) != 3 || report.Usage[2].Output == 0 || len(report.Calls) != 1 || report.Resumed != (resumed == 1) {
				t.Errorf("the report of both runs: %+v", report)
			}
		}
		if n := len(s.Requests()); n != 3 || b.total() != "1001 500" {
			t.Errorf("%d requests, moved %q", n, b.total())
		}
	})
}

func TestARepairIsFoundAgainByAProgramThatWordsItsFindingsOtherwise(t *testing.T) {
	type before struct {
		Cents int `json:"cents" jsonschema:"minimum=1"`
	}
	type after struct {
		Cents int `json:"cents" jsonschema:"minimum=2"`
	}
	s := transcript.NewServer(transcript.Steps(transcript.Step{Text: `{"cents":0}`}, transcript.Step{Text: `{"cents":6}`}), nil)
	var b bank
	l := agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Repair: true})
	p := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)}}
	if v, _, err := agent.ChatAs[before](t.Context(), l, run, p); err != nil || v.Cents != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, _, err := agent.ChatAs[after](t.Context(), l, run, p); err != nil || v.Cents != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestAnAnswerThatWasCutOffIsNotRepaired(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		raw, reason := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"length","message":{"role":"assistant","content":"{\"order\":\"10"}}]}`, "length"
		if api == "responses" {
			raw, reason = `{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"{\"order\":\"10"}]}]}`, "max_output_tokens"
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: raw}), nil)
		_, report, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Repair: true}))
		if cut, ok := errors.AsType[*agent.IncompleteError](err); !ok || cut.Reason != reason || report == nil || len(s.Requests()) != 1 {
			t.Errorf("%v, %v, %d requests", err, report, len(s.Requests()))
		}
	})
}

func TestARefusalIsATypedError(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		raw := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,"refusal":"I will not."}}]}`
		if api == "responses" {
			raw = `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I will not."}]}]}`
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: raw}), nil)
		_, _, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Repair: true}))
		if no, ok := errors.AsType[*agent.RefusalError](err); !ok || no.Text != "I will not." || len(s.Requests()) != 1 {
			t.Errorf("%v, %d requests", err, len(s.Requests()))
		}
	})
}

// tunable has bounds, a format and a pattern, which fine-tuned models refuse in strict mode.
type tunable struct {
	At    time.Time `json:"at"`
	Cents int       `json:"cents" jsonschema:"minimum=1"`
	Code  string    `json:"code" jsonschema:"pattern=^[A-Z]+$"`
	Tags  []string  `json:"tags" jsonschema:"minItems=1"`
}

func TestAFineTunedModelIsToldInWordsWhatItsSchemaMustNotSay(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		for model, tuned := range map[string]bool{"gpt-4.1-mini": false, "ft:gpt-4.1-mini:acme::a1": true, "openai/ft:gpt-4.1-mini:acme::a1": true} {
			ran := 0
			tools := registry.New()
			registry.Add(tools, registry.Tool[tunable, string]{Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, tunable) (string, error) {
				ran++
				return "paid", nil
			}})
			call := func(id, cents string) transcript.ToolCall {
				return transcript.ToolCall{ID: id, Name: "pay", Arguments: `{"at":"2026-01-02T03:04:05Z","cents":` + cents + `,"code":"A","tags":["x"]}`}
			}
			s := transcript.NewServer(transcript.Steps(
				transcript.Step{Calls: []transcript.ToolCall{call("a", "0")}}, transcript.Step{Calls: []transcript.ToolCall{call("b", "1")}},
				transcript.Step{Text: `{"at":"2026-01-02T03:04:05Z","cents":0,"code":"A","tags":["x"]}`},
			), nil)
			l := agent.New(onceClient(s), tools, memory(), nil)
			var err error
			if api == "chat" {
				_, _, err = agent.ChatAs[tunable](t.Context(), l, run, openai.ChatCompletionNewParams{Model: model, Messages: messages{openai.UserMessage(request)}})
			} else {
				p := responses.ResponseNewParams{Model: model}
				p.Input.OfString = openai.String(request)
				_, _, err = agent.RespondAs[tunable](t.Context(), l, run, p)
			}
			if wrong, ok := errors.AsType[*registry.ArgumentError](err); !ok || wrong.Path != "/cents" || ran != 1 { // checked here all the same
				t.Errorf("%s: %v, ran %d times", model, err, ran)
			}
			body := string(s.Requests()[0].Body)
			for _, keyword := range []string{`"format":"date-time"`, `"minimum":1`, `"pattern":`, `"minItems":1`} {
				if n := strings.Count(body, keyword); (n == 0) != tuned || !tuned && n != 2 { // in the tool and in the answer
					t.Errorf("%s: %s is there %d times in %s", model, keyword, n, body)
				}
			}
			if tuned && (!strings.Contains(body, "Format: date-time.") || !strings.Contains(body, "At least 1.") || !strings.Contains(body, "At least 1 items.")) {
				t.Errorf("%s is not told: %s", model, body)
			}
		}
	})
}
