// HTTP-service shows runs over HTTP: POST /runs with a message, and with the client's Idempotency-Key, which is the run's
// id. So a client that got no answer asks again with the same key, and gets the answer of the same run. SIGTERM drains: no
// run is begun any more, and those that go on are answered. Without arguments it tells a story; with an address, such as
// localhost:8080, it serves on once.db in the folder it is run in.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
	"github.com/toolonce/toolonce/transcript"
)

type refund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int    `json:"cents" jsonschema:"minimum=1"`
}

func main() {
	err := errors.New("say an address, such as localhost:8080, or nothing")
	switch len(os.Args) {
	case 1:
		err = story()
	case 2:
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", os.Args[1]); err == nil {
			err = serve(context.Background(), l, "once.db", func(context.Context, refund) {})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "http-service:", err)
		os.Exit(1)
	}
}

// serve answers until a SIGTERM, and then what it has begun.
func serve(ctx context.Context, l net.Listener, path string, before func(context.Context, refund)) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	store, err := sqlitestore.Open(path, nil)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }() // after the runs: it waits for the tools that still run
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite,
		Run: func(ctx context.Context, in refund) (string, error) {
			before(ctx, in)
			fmt.Printf("  MONEY MOVES: %d cents for order %s\n", in.Cents, in.OrderID)
			return "refunded", nil
		},
	})
	if _, err := middleware.Recover(ctx, tools, store, nil); err != nil { // what a process that died has left
		return errors.Join(err, l.Close())
	}
	client := openai.NewClient() // by OPENAI_API_KEY
	if os.Getenv("OPENAI_API_KEY") == "" {
		client = openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(transcript.NewServer(script, nil).Client()))
	}
	mux := http.NewServeMux()
	mux.Handle("POST /runs", runs{agent.New(client, tools, store, nil)})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	fmt.Println("  draining")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return server.Shutdown(drain)
}

// runs answers a message by a run.
type runs struct{ loop *agent.Loop }

func (s runs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Message string }
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil || in.Message == "" || key == "" {
		answer(w, http.StatusBadRequest, `send an Idempotency-Key, and {"message": …}`)
		return
	}
	// Who goes away ends the run between two steps. With the same key it goes on from there.
	reply, err := s.loop.Chat(r.Context(), agent.Run{ID: key}, openai.ChatCompletionNewParams{
		Model: "gpt-4.1-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(in.Message)},
	})
	_, paused := errors.AsType[*middleware.PausedError](err)
	switch {
	case err == nil:
		answer(w, http.StatusOK, reply.Choices[0].Message.Content)
	case paused:
		answer(w, http.StatusAccepted, "a person must approve it first: ask again later")
	case errors.Is(err, journal.ErrOtherInput):
		answer(w, http.StatusUnprocessableEntity, "this key was used for another message")
	case errors.Is(err, journal.ErrRunTaken):
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusConflict, "this is being answered: ask again")
	default:
		fmt.Fprintln(os.Stderr, "http-service:", err)
		answer(w, http.StatusBadGateway, "it is not finished: ask again")
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"answer": text}) // a client that has gone asks again
}

// script is the model: it refunds the order that it is asked for, and says what came of it.
func script(r transcript.Request) transcript.Step {
	if r.Turn == 1 {
		arguments := fmt.Sprintf(`{"order_id":%q,"cents":500}`, r.FirstUser()[len("Refund order "):])
		return transcript.Step{Calls: []transcript.ToolCall{{ID: "call_1", Name: "issue_refund", Arguments: arguments}}}
	}
	return transcript.Step{Text: "Your order is " + r.Outputs()[0].Content + "."}
}
