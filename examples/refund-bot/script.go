package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

const (
	scriptedModel = "scripted"
	maxTries      = 3 // of a refund that is said to have failed
)

var orderNumber = regexp.MustCompile(`(?i)\border\s+(?:no\.?\s*|number\s+)?#?(\d+)`)

// orderIn is the order that a text speaks of, "" for none.
func orderIn(text string) string {
	if m := orderNumber.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// script is the model. What it says depends on the history alone: the scene is that of the order in the first message,
// and the rest is what the tools have answered. An order of no scene is looked up and refunded.
func script(scenes []scene) transcript.Script {
	return func(r transcript.Request) transcript.Step {
		order := orderIn(r.FirstUser())
		if order == "" {
			return say("Which order? Please name it as in: refund order 1001, it arrived broken.")
		}
		m := scripted{r, scene{order: order, reason: r.FirstUser(), again: r.FirstUser()}}
		for _, s := range scenes {
			if s.order == order {
				m.scene = s
			}
		}
		return m.next()
	}
}

// scripted is the model in one turn of one conversation.
type scripted struct {
	transcript.Request
	scene scene
}

func (m scripted) next() transcript.Step {
	s := m.scene
	switch {
	case s.name == notes && m.Turn <= 2:
		return m.call("add_note", object{"order_id": s.order, "text": "The customer has called."})
	case s.name == notes:
		return say("I have noted both calls on order %s.", s.order)
	case s.name == twice && m.Turn == 1: // equal to a program, though not byte for byte
		return m.callRaw("issue_refund",
			fmt.Sprintf(`{"order_id":%q,"cents":%d,"reason":%q}`, s.order, s.cents, s.reason),
			fmt.Sprintf(`{ "reason": %q, "cents": %d.0, "order_id": %q }`, s.again, s.cents, s.order))
	case s.name == "" && m.Turn == 1, s.name == askedAgain && m.Turn == 2:
		return m.call("get_order", object{"order_id": s.order})
	case s.name == "" && m.Turn == 2:
		return m.refundWhole()
	case s.name == askedAgain && m.Turn == 3:
		return m.refund(s.again)
	case m.Turn == 1:
		return m.refund(s.reason)
	}
	return m.react()
}

// react goes by what the refund has come to.
func (m scripted) react() transcript.Step {
	s, text := m.scene, m.last()
	var out struct {
		Version int              `json:"toolonce"`
		Status  registry.Verdict `json:"status"`
		Reason  string           `json:"reason"`
		Error   string           `json:"error"`
		ID      string           `json:"id"`
		Cents   int64            `json:"cents"`
		First   Refund           `json:"result"`
	}
	if json.Unmarshal([]byte(text), &out) != nil {
		return say("The refund tool gave an answer that I do not understand.")
	}
	switch {
	case out.Version == 0:
		return say("Order %s: %s refunded (%s).", s.order, provider.Money(out.Cents), out.ID)
	case out.Status == registry.Failed && m.tries() < maxTries:
		return m.refund(s.again)
	case out.Status == registry.Failed:
		return say("Order %s was not refunded: %s.", s.order, out.Error)
	case out.Status == registry.AlreadyDone && out.First.ID == "":
		return say("Order %s was refunded before. I have not refunded it again.", s.order)
	case out.Status == registry.AlreadyDone:
		return say("Order %s: %s refunded (%s), once.", s.order, provider.Money(out.First.Cents), out.First.ID)
	case out.Status == registry.OutcomeUnknown:
		return say("I cannot tell whether order %s was refunded. A person must check; I will not try again.", s.order)
	case out.Status == registry.Conflict:
		return say("Order %s was refunded before, by another amount. I have not refunded it again.", s.order)
	case out.Status == registry.InProgress:
		return say("Order %s is being refunded. Please ask again in a while.", s.order)
	}
	return say("Order %s was not refunded: %s.", s.order, out.Reason)
}

// refundWhole refunds what get_order has said was paid.
func (m scripted) refundWhole() transcript.Step {
	var order struct {
		Order
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(m.last()), &order) != nil || order.Cents == 0 {
		return say("I cannot look up order %s, so I have refunded nothing (%s).", m.scene.order, order.Error)
	}
	m.scene.cents = order.Cents
	return m.refund(m.scene.reason)
}

func (m scripted) refund(reason string) transcript.Step {
	cents := m.scene.cents
	if cents == 0 { // it was said in an earlier turn
		cents = m.earlierCents()
	}
	return m.call("issue_refund", object{"order_id": m.scene.order, "cents": cents, "reason": reason})
}

// earlierCents is the amount of the first refund asked for.
func (m scripted) earlierCents() int64 {
	var in RefundInput
	for _, msg := range m.Messages {
		for _, c := range msg.ToolCalls {
			if c.Name == "issue_refund" && in.Cents == 0 && json.Unmarshal([]byte(c.Arguments), &in) != nil {
				return 0
			}
		}
	}
	return in.Cents
}

func (m scripted) tries() (n int) {
	for _, msg := range m.Messages {
		for _, c := range msg.ToolCalls {
			if c.Name == "issue_refund" {
				n++
			}
		}
	}
	return n
}

// last is the last output of a tool, "" for none.
func (m scripted) last() string {
	outs := m.Outputs()
	if len(outs) == 0 {
		return ""
	}
	return outs[len(outs)-1].Content
}

type object map[string]any

func (m scripted) call(tool string, args object) transcript.Step {
	text, err := json.Marshal(args)
	if err != nil {
		return say("I cannot write this call: %v.", err)
	}
	return m.callRaw(tool, string(text))
}

// callRaw calls a tool once for each text of arguments, under ids of their own.
func (m scripted) callRaw(tool string, args ...string) (step transcript.Step) {
	for i, a := range args {
		id := fmt.Sprintf("call_%s_%d%c", m.scene.order, m.Turn, 'a'+i)
		step.Calls = append(step.Calls, transcript.ToolCall{ID: id, Name: tool, Arguments: a})
	}
	return step
}

func say(format string, args ...any) transcript.Step {
	return transcript.Step{Text: strings.TrimSpace(fmt.Sprintf(format, args...))}
}
