package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/middleware"
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
		Run: o.run, Message: o.request, Guarded: true, DB: o.db, Model: o.model, BaseURL: o.baseURL, APIKey: o.apiKey,
		Pay: o.providerURL, Provider: o.kind,
	}
	// What runs elsewhere is looked for first, so that nothing is made here in vain.
	if j.BaseURL != "" {
		err = reachable(ctx, "model server", "check -base-url and that it runs", j.BaseURL)
	}
	if err == nil && j.Pay != "" {
		err = reachable(ctx, "payment provider", "start it, or drop -provider-url to use one of our own", j.Pay)
	}
	if err != nil {
		return err
	}
	store, err := sqlitestore.Open(o.db, nil)
	if err != nil {
		return fmt.Errorf("-db: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	tell := &teller{out: stdout}
	var bank *provider.Provider
	if j.Pay == "" {
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
	tell.print("run %s, model %s, provider %s, ledger %s", j.Run, j.Model, j.Provider, o.db)
	answer, err := work(ctx, store, j, tell.calls)
	if err == nil {
		tell.print("%s", answer)
	}
	return errors.Join(err, tellDoubts(ctx, store, bank, o.db, tell))
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

// reachable asks for any answer at all.
func reachable(ctx context.Context, what, mend, address string) error {
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
		return fmt.Errorf("the %s at %s cannot be reached: %w: %s", what, address, err, mend)
	}
	return resp.Body.Close()
}

// modelError says what the model server answered: the SDK's own text hides it.
func modelError(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return fmt.Errorf("the model server answered %d: %s", e.StatusCode, cmp.Or(e.Message, http.StatusText(e.StatusCode)+" (is the base URL right?)"))
	}
	return fmt.Errorf("asking the model: %w", err)
}
