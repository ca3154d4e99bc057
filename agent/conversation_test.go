package agent_test

import (
	"cmp"
	"context"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type mailInput struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// post is a mail server that counts, without a business key.
type post struct{ sent []string }

func (p *post) tools() *registry.Registry {
	tools := registry.New()
	registry.Add(tools, registry.Tool[mailInput, string]{
		Name: "send_mail", Description: "Send a mail.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in mailInput) (string, error) {
			p.sent = append(p.sent, in.To+": "+in.Text)
			return "sent", nil
		},
	})
	return tools
}

// spelt is how the model writes the same arguments in answer to what a user may say.
var spelt = map[string]string{
	"Did it go through?":           `{"text":"Your order is late.","to":"ann"}`,
	"Are you sure? I see nothing.": `{ "to": "ann", "text": "Your order is late." }`,
	"Send it, please.":             `{"to":"\u0061nn","text":"Your order is \u006cate."}`,
	"??":                           `"{\"to\":\"ann\",\"text\":\"Your order is late.\"}"`,
}

// mailer sends the same mail once in answer to each user message.
func mailer(r transcript.Request) transcript.Step {
	if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
		arguments := cmp.Or(spelt[last.Content], `{"to":"ann","text":"Your order is late."}`)
		return transcript.Step{Calls: []transcript.ToolCall{{ID: "call_1", Name: "send_mail", Arguments: arguments}}}
	}
	return transcript.Step{Text: "Ann has it."}
}

// chat is a conversation, a run for each message.
type chat struct {
	api     string
	loop    *agent.Loop
	id      string
	trimmed bool // the history is not sent along
	chatLog messages
	items   responses.ResponseInputParam
}

func (c *chat) say(t *testing.T, run, text string) []string {
	t.Helper()
	r := agent.Run{ID: run, Conversation: c.id}
	var o outcome
	if c.api == "chat" {
		reply, err := c.loop.Chat(t.Context(), r, openai.ChatCompletionNewParams{
			Model: "gpt-4.1-mini", Messages: append(c.chatLog, openai.UserMessage(text)),
		})
		if err != nil {
			t.Fatal(err)
		}
		o.report = reply.Report
		if !c.trimmed {
			c.chatLog = reply.Messages
		}
		return o.verdicts()
	}
	p := responses.ResponseNewParams{Model: "gpt-4.1-mini"}
	p.Input.OfInputItemList = append(c.items, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
	reply, err := c.loop.Respond(t.Context(), r, p)
	if err != nil {
		t.Fatal(err)
	}
	o.report = reply.Report
	if !c.trimmed {
		c.items = reply.Items
	}
	return o.verdicts()
}

func TestAMessageThatAsksWhetherItWasDoneDoesNotDoItAgain(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		for second := range spelt {
			for _, trimmed := range []bool{false, true} {
				var p post
				l := agent.New(onceClient(transcript.NewServer(mailer, &transcript.Options{RepeatedIDs: true})), p.tools(), memory(), nil)
				c := &chat{api: api, loop: l, id: "chat-7", trimmed: trimmed}
				got := append(c.say(t, "msg-1", "Tell Ann that her order is late."), c.say(t, "msg-2", second)...)
				if diff := gocmp.Diff([]string{"1.0 send_mail executed", "1.0 send_mail already_done"}, got); diff != "" || len(p.sent) != 1 {
					t.Errorf("%q, trimmed %v: sent %q\n%s", second, trimmed, p.sent, diff)
				}
			}
		}
	})
}

func TestAnotherConversationIsAnotherScope(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var p post
		l := agent.New(onceClient(transcript.NewServer(mailer, nil)), p.tools(), memory(), nil)
		for i, id := range []string{"chat-7", "chat-8", "", ""} { // without a conversation each run is one
			c := &chat{api: api, loop: l, id: id}
			got := c.say(t, "msg-"+string(rune('a'+i)), "Tell Ann that her order is late.")
			if diff := gocmp.Diff([]string{"1.0 send_mail executed"}, got); diff != "" || len(p.sent) != i+1 {
				t.Errorf("%d sent\n%s", len(p.sent), diff)
			}
		}
	})
}
