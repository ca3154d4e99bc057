package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/said"
)

// storedRun is a run as a conversation. What the model and the tools have said is data of users, and is left out unless asked for.
type storedRun struct {
	Run          string       `json:"run"`
	Namespace    string       `json:"namespace,omitempty"`
	Conversation string       `json:"conversation,omitempty"`
	API          string       `json:"api"`
	Created      string       `json:"created"`
	Finished     bool         `json:"finished"`
	Forgotten    bool         `json:"forgotten,omitempty"`  // what it said and did was erased
	Unreadable   string       `json:"unreadable,omitempty"` // why content could not be opened
	Turns        []storedTurn `json:"turns"`
}

type storedTurn struct {
	Turn  int          `json:"turn"`
	Bytes *int         `json:"answer_bytes,omitempty"` // of all that the model has sent; nil, like the others, where it is sealed
	Size  *int         `json:"text_bytes,omitempty"`
	Text  string       `json:"text,omitempty"`
	Calls []storedCall `json:"calls,omitempty"`
}

type storedCall struct {
	Position  int    `json:"position"`
	ID        string `json:"call_id,omitempty"`
	Tool      string `json:"tool,omitempty"` // "" where the answer could not be read or opened
	Asked     *int   `json:"arguments_bytes,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Verdict   string `json:"verdict,omitempty"` // "" where no output is stored
	Operation string `json:"operation,omitempty"`
	Told      *int   `json:"output_bytes,omitempty"`
	Output    string `json:"output,omitempty"`
}

func runVerb(fs *flag.FlagSet) action {
	data := fs.Bool("show-data", false, "print what the model and the tools have said too: it may hold personal data")
	return func(ctx context.Context, e *env, args []string) error {
		rec, ok, err := e.store.Read(ctx, args[0])
		switch {
		case !ok && err != nil:
			return err
		case !ok:
			return fmt.Errorf("there is no run %q in namespace %q: toolonce runs lists them", args[0], e.namespace)
		}
		r := storedRunOf(e.namespace, &rec, err, *data)
		if e.json {
			return e.printJSON(r)
		}
		e.storedRun(r)
		return nil
	}
}

// storedRunOf is a run as it is printed. unreadable says why some of its content could not be opened, nil where all was.
func storedRunOf(namespace string, rec *journal.Record, unreadable error, data bool) storedRun {
	r := storedRun{
		Run: rec.Run.ID, Namespace: namespace, Conversation: rec.Run.Conversation, API: rec.API, Created: stamp(rec.Created),
		Finished: rec.Finished, Forgotten: rec.Forgotten, Turns: []storedTurn{},
	}
	if unreadable != nil {
		r.Unreadable = closed(unreadable)
	}
	size := func(n int, stored bool) *int { // what could not be opened is there as nothing
		if unreadable != nil && !stored {
			return nil
		}
		return &n
	}
	for _, t := range rec.Turns {
		text, asked := said.In(rec.API, t.Answer)
		var calls []storedCall
		for i, c := range asked {
			calls = append(calls, storedCall{Position: i, ID: c.ID, Tool: c.Tool, Asked: size(len(c.Arguments), true), Arguments: c.Arguments, Told: size(0, true)})
		}
		turn := storedTurn{Turn: t.Number, Bytes: size(len(t.Answer), len(t.Answer) > 0), Size: size(len(text), len(t.Answer) > 0), Text: text}
		for _, o := range t.Outputs { // of calls that could not be read, too
			for len(calls) <= o.Position {
				calls = append(calls, storedCall{Position: len(calls), Asked: size(0, len(t.Answer) > 0), Told: size(0, true)})
			}
			c := &calls[o.Position]
			c.Verdict, c.Operation, c.Told, c.Output = string(o.Verdict), o.Operation, size(len(o.Content), o.Content != ""), o.Content
		}
		if turn.Calls = calls; !data {
			turn.Text = ""
			for i := range calls {
				calls[i].Arguments, calls[i].Output = "", ""
			}
		}
		r.Turns = append(r.Turns, turn)
	}
	return r
}

func (e *env) storedRun(r storedRun) {
	state := "not finished"
	switch {
	case r.Forgotten:
		state = "forgotten"
	case r.Finished:
		state = "finished"
	}
	e.printf("run %s, %s, %s, begun %s\n", escape(r.Run), r.API, state, r.Created)
	if r.Conversation != "" {
		e.printf("conversation %s\n", escape(r.Conversation))
	}
	if r.Unreadable != "" {
		e.printf("its content cannot be read: %s\n", escape(r.Unreadable))
	}
	for _, t := range r.Turns {
		e.printf("\nturn %d\n", t.Turn)
		switch {
		case t.Text != "":
			e.printf("  says: %s\n", escape(t.Text))
		case t.Size == nil:
			e.printf("  says: sealed\n")
		case *t.Size > 0:
			e.printf("  says %d bytes\n", *t.Size)
		}
		for _, c := range t.Calls {
			e.storedCall(t.Turn, c)
		}
	}
}

func (e *env) storedCall(turn int, c storedCall) {
	verdict := c.Verdict
	if verdict == "" {
		verdict = "not answered"
	}
	tool := c.Tool
	if tool == "" && c.Asked == nil {
		tool = "sealed"
	}
	e.printf("  %s %s: %s", place(turn, c.Position), escape(tool), e.tint(escape(verdict)))
	if c.Operation != "" {
		e.printf(" %s", escape(c.Operation))
	}
	if c.Arguments == "" && c.Output == "" {
		asked := bytesOf(c.Asked) + " of arguments"
		if c.Asked == nil {
			asked = "arguments sealed"
		}
		e.printf(" (%s, told %s)\n", asked, bytesOf(c.Told))
		return
	}
	e.printf("\n    arguments: %s\n", orSealed(c.Arguments, c.Asked))
	if c.Verdict != "" {
		e.printf("    told: %s\n", orSealed(c.Output, c.Told))
	}
}

// bytesOf is a size, nil for that of what is sealed.
func bytesOf(size *int) string {
	if size == nil {
		return "sealed"
	}
	return fmt.Sprintf("%d bytes", *size)
}

func orSealed(text string, size *int) string {
	if size == nil {
		return "sealed"
	}
	return escape(text)
}
