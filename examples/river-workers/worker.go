package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// ticket is a job: one message to answer.
type ticket struct {
	Ticket  string `json:"ticket"` // the run's id, the same in each attempt and in each job for this message
	Message string `json:"message"`
}

func (ticket) Kind() string { return "ticket" }

// answerer answers tickets.
type answerer struct {
	river.WorkerDefaults[ticket]
	name string
	loop *agent.Loop
}

// Work is one attempt. Whatever it ends with, the next one goes on with the run.
func (a *answerer) Work(ctx context.Context, job *river.Job[ticket]) error {
	tell := func(text string) { say(a.name, fmt.Sprintf("job %d, attempt %d: %s", job.ID, job.Attempt, text)) }
	tell("takes run " + job.Args.Ticket)
	reply, err := a.loop.Chat(ctx, agent.Run{ID: job.Args.Ticket}, openai.ChatCompletionNewParams{
		Model: "gpt-4.1-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(job.Args.Message)},
	})
	_, paused := errors.AsType[*middleware.PausedError](err)
	_, repeats := errors.AsType[*middleware.RepeatError](err)
	switch {
	case err == nil:
		tell("answers: " + reply.Choices[0].Message.Content)
		return nil
	case errors.Is(err, journal.ErrRunTaken): // its worker lives, or its heartbeat is not overdue yet
		tell("another worker has the run")
		return river.JobSnooze(time.Second)
	case paused: // a person must approve a call first
		return river.JobSnooze(time.Minute)
	case repeats, errors.Is(err, journal.ErrOtherInput): // a retry would come to the same
		return river.JobCancel(err)
	}
	tell("has no answer yet: " + err.Error())
	return err
}

const (
	workerEnv   = "RIVER_WORKERS_JOB" // marks a process as a worker, and tells it what follows
	storeSuffix = "_once"
	// runTime is longer than a run takes, and River takes a job for stuck that has run for longer. Both are short for the
	// story. In production let JobTimeout be longer than any run, and RescueStuckJobsAfter, which is 1 h otherwise, longer than
	// that. A job that is rescued while its worker lives does no harm: the run is taken.
	runTime = 5 * time.Second
)

// place is where a worker works.
type place struct{ Name, DSN, Schema, Payments string }

// logger is for what River reports.
var logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// work works until the standard input ends.
func work(ctx context.Context, text string) (err error) {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	// A worker that dies is found out by its heartbeat. Leave it at the defaults, 5 s and 20 s, in production.
	store, err := pgstore.Open(ctx, p.DSN, &pgstore.Options{Schema: p.Schema + storeSuffix, Heartbeat: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }() // after River: it waits for the tools that still run
	pool, err := pgxpool.New(ctx, p.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, &answerer{name: p.Name, loop: agent.New(p.model(), tools(payments{p.Payments}), store, nil)})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: p.Name, Schema: p.Schema, Logger: logger, Workers: workers,
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		JobTimeout: runTime, RescueStuckJobsAfter: runTime,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	say(p.Name, "waits for jobs")
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the story does, or is killed
	return client.Stop(context.WithoutCancel(ctx))
}

// model is a client whose model is scripted: it asks for the refund, and says what came of it.
func (p place) model() openai.Client {
	script := func(r transcript.Request) transcript.Step {
		say(p.Name, fmt.Sprintf("asks the model for turn %d", r.Turn))
		if r.Turn == 1 {
			return transcript.Step{Calls: []transcript.ToolCall{{ID: "call_1", Name: "issue_refund", Arguments: `{"order_id":"1001","cents":500}`}}}
		}
		return transcript.Step{Text: "It is refunded, " + r.Outputs()[0].Content}
	}
	return openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(transcript.NewServer(script, nil).Client()))
}

type refund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int64  `json:"cents" jsonschema:"minimum=1"`
}

type receipt struct {
	ID string `json:"id"`
}

func tools(p payments) *registry.Registry {
	r := registry.New()
	registry.Add(r, registry.Tool[refund, receipt]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite, Run: p.refund, Lookup: p.find,
	})
	return r
}

// payments is the provider, at its address.
type payments struct{ url string }

func (p payments) refund(ctx context.Context, in refund) (out receipt, err error) {
	return out, p.send(ctx, http.MethodPost, "/refunds", in, &out)
}

// find asks what became of a refund whose outcome is unclear.
func (p payments) find(ctx context.Context, in refund) (receipt, error) {
	var made []receipt
	if err := p.send(ctx, http.MethodGet, "/refunds?order_id="+in.OrderID, nil, &made); err != nil {
		return receipt{}, err
	}
	if len(made) == 0 {
		return receipt{}, registry.NoEffect(errors.New("there is no such refund"))
	}
	return made[0], nil
}

func (p payments) send(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &registry.Transport{}}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the payment provider answered %d", res.StatusCode)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
