package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
	"github.com/toolonce/toolonce/transcript"
)

// orders are those that a provider of our own knows, with what was paid in cents.
var orders = map[string]int64{"1001": 12900, "1002": 4950, "1003": 8800, "1004": 1999, "1005": 24000}

// handleRequest answers one message, with the guard.
func handleRequest(o options, stdout io.Writer) (err error) {
	ctx, stop := interruptible()
	defer stop()
	j := job{
		Run: o.run, Message: o.request, Guarded: true, DB: o.db, API: o.api, Stream: o.stream,
		Model: o.model, BaseURL: o.baseURL, APIKey: o.apiKey, Pay: o.providerURL, Provider: o.kind,
	}
	store, err := sqlitestore.Open(o.db, nil)
	if err != nil {
		return fmt.Errorf("-db: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	tell := &teller{out: stdout}
	chain := []registry.Middleware{tell.calls}
	var bank *provider.Provider
	if j.Pay != "" {
		chain = append(chain, needs(j.Pay))
	} else {
		var hangUp func() error
		if bank, j.Pay, hangUp, err = ownProvider(ctx, o, tell); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hangUp()) }()
	}
	if j.BaseURL == "" {
		address, hangUp, err := serve(ctx, "scripted model", transcript.NewServer(script(nil), nil))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hangUp()) }()
		j.BaseURL = address + "/v1"
	}
	tell.print("run %s, model %s (%s), provider %s, file %s", j.Run, j.Model, o.wire(), j.Provider, o.db)
	asked, err := work(ctx, store, j, tell.piece, chain...)
	tell.end()
	if err == nil && asked == 0 {
		tell.print("(saved answer of run %s: the model was not asked, and no money moved)", j.Run)
	}
	return errors.Join(mended(err, j.Run), tellDoubts(ctx, store, bank, o.db, tell))
}

// mended says what to do about what has stopped a run.
func mended(err error, run string) error {
	_, unreachable := errors.AsType[*url.Error](err)
	_, stopped := errors.AsType[*agent.RunError](err)
	switch {
	case errors.Is(err, journal.ErrRunTaken):
		return fmt.Errorf("%w: wait for it, then give the same command again to see its answer", err)
	case errors.Is(err, journal.ErrOtherInput):
		return fmt.Errorf("run %s is another request, or one by another -api: give each request a -run of its own", run)
	case unreachable:
		return fmt.Errorf("%w: check -base-url and that the model server runs; the same command again goes on from here", err)
	case stopped:
		return fmt.Errorf("%w; the same command again goes on from here", err)
	}
	return err
}

// ownProvider starts a provider whose file is beside the ledger.
func ownProvider(ctx context.Context, o options, tell *teller) (_ *provider.Provider, address string, stop func() error, err error) {
	p, err := provider.Open(ctx, filepath.Join(filepath.Dir(o.db), providerFile), provider.Options{
		Kind: o.kind, Say: func(text string) { tell.line("provider", "%s", text) },
	})
	if err != nil {
		return nil, "", nil, err
	}
	for id, cents := range orders {
		if err == nil {
			err = p.AddOrder(ctx, id, cents)
		}
	}
	var hangUp func() error
	if err == nil {
		address, hangUp, err = serve(ctx, "payment provider", p)
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, p.Close())
	}
	return p, address, func() error { return errors.Join(hangUp(), p.Close()) }, nil
}

// tellDoubts says what a person must settle. bank is nil where the provider runs elsewhere.
func tellDoubts(ctx context.Context, store *sqlitestore.Store, bank *provider.Provider, path string, tell *teller) error {
	rows, err := inDoubt(context.WithoutCancel(ctx), store)
	if err != nil || len(rows) == 0 {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	var t provider.Tally
	if bank != nil {
		if t, err = bank.Count(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	tell.print("\n%d operations are in doubt. Look at the provider and settle each:", len(rows))
	for _, row := range rows {
		tell.print("  # %s of order %s, since %s", row.Tool, orderOf(row), row.Since.Format(time.RFC3339))
		tellSettle(row, t.Refunds[orderOf(row)], path, tell)
	}
	tell.print("A run that has its answer keeps it: ask again under another -run, and the model reads what you have said.")
	return nil
}

// tellSettle gives the command for what was found, or for both cases where nothing was.
func tellSettle(row middleware.Row, found []string, path string, tell *teller) {
	if len(found) > 0 {
		tell.print("  %s", settle(row.Operation, path, found))
		return
	}
	tell.print("  if the provider has it:  %s", settle(row.Operation, path, []string{"it"}))
	tell.print("  if it has not:           %s", settle(row.Operation, path, nil))
}

// needs stops the run where the payment provider does not answer at all: told so, the model would end it with an excuse
// that is kept for good.
func needs(address string) registry.Middleware {
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			if err := reachable(ctx, address); err != nil {
				return registry.Result{}, err
			}
			return next(ctx, c)
		}
	}
}

// reachable asks for any answer at all.
func reachable(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("the payment provider at %s cannot be reached: %w: start it, or drop -provider-url to use one of our own", address, err)
	}
	return resp.Body.Close()
}
