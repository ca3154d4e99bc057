package provider

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Refund is one refund as it is answered.
type Refund struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

// ServeHTTP answers one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// refusal is an answer that says that nothing has happened.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, text string) error { return &refusal{status, text} }

func (p *Provider) postRefund(w http.ResponseWriter, r *http.Request) {
	var in struct {
		OrderID string `json:"order_id"`
		Cents   int64  `json:"cents"`
	}
	if err := read(r, &in); err != nil {
		answer(w, nil, err)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if p.opts.Kind != Keyed {
		key = ""
	}
	// What has arrived is carried out, whether or not the client still waits.
	refund, again, err := p.refund(context.WithoutCancel(r.Context()), in.OrderID, in.Cents, key)
	switch {
	case err != nil:
		p.opts.Say(fmt.Sprintf("refuses a refund of order %s", in.OrderID))
	case again:
		p.opts.Say(fmt.Sprintf("knows this key: answers %s again and moves nothing", refund.ID))
	default:
		p.opts.Say(fmt.Sprintf("MOVES %s for order %s (%s)", Money(refund.Cents), in.OrderID, refund.ID))
		p.opts.Committed(r.Context(), in.OrderID)
	}
	answer(w, refund, err)
}

// refund moves the money, in one transaction. again: the key has been here before.
func (p *Provider) refund(ctx context.Context, order string, cents int64, key string) (_ Refund, again bool, err error) {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return Refund{}, false, err
	}
	defer func() {
		if err != nil || again {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if first, ok, err := keyed(ctx, tx, order, cents, key); ok || err != nil {
		return first, ok, err
	}
	var paid, refunded, count int64
	row := tx.QueryRowContext(ctx, `SELECT cents, (SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_id = ?1),
		(SELECT count(*) FROM refunds WHERE order_id = ?1) FROM orders WHERE id = ?1`, order)
	switch err := row.Scan(&paid, &refunded, &count); {
	case errors.Is(err, sql.ErrNoRows):
		return Refund{}, false, refuse(http.StatusNotFound, "there is no such order")
	case err != nil:
		return Refund{}, false, err
	case cents < 1 || refunded+cents > paid:
		return Refund{}, false, refuse(http.StatusUnprocessableEntity, "the refunds of an order cannot be more than what was paid")
	}
	made := Refund{ID: fmt.Sprintf("re_%s_%d", order, count+1), Cents: cents}
	if _, err := tx.ExecContext(ctx, "INSERT INTO refunds (id, order_id, cents, key) VALUES (?, ?, ?, nullif(?, ''))", made.ID, order, cents, key); err != nil {
		return Refund{}, false, err
	}
	return made, false, tx.Commit()
}

// keyed finds the refund that was made under a key.
func keyed(ctx context.Context, tx *sql.Tx, order string, cents int64, key string) (first Refund, ok bool, err error) {
	var firstOrder string
	err = tx.QueryRowContext(ctx, "SELECT id, order_id, cents FROM refunds WHERE key = nullif(?, '')", key).Scan(&first.ID, &firstOrder, &first.Cents)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Refund{}, false, nil
	case err != nil:
		return Refund{}, false, err
	case firstOrder != order || first.Cents != cents:
		return Refund{}, false, refuse(http.StatusUnprocessableEntity, "the key was used for another request")
	}
	return first, true, nil
}

func (p *Provider) getRefunds(w http.ResponseWriter, r *http.Request) {
	order, list, ids := r.URL.Query().Get("order_id"), []Refund{}, []string{}
	err := each(r.Context(), p.db, "SELECT id, cents FROM refunds WHERE order_id = ? ORDER BY rowid", func(scan func(...any) error) error {
		var f Refund
		err := scan(&f.ID, &f.Cents)
		list, ids = append(list, f), append(ids, f.ID)
		return err
	}, order)
	if err == nil && len(ids) == 0 {
		ids = []string{"nothing"}
	}
	p.opts.Say(fmt.Sprintf("is asked what it did for order %s: finds %s", order, strings.Join(ids, ", ")))
	answer(w, list, err)
}

func (p *Provider) getOrder(w http.ResponseWriter, r *http.Request) {
	out := struct {
		OrderID string `json:"order_id"`
		Cents   int64  `json:"cents"`
	}{OrderID: r.PathValue("id")}
	err := p.db.QueryRowContext(r.Context(), "SELECT cents FROM orders WHERE id = ?", out.OrderID).Scan(&out.Cents)
	if errors.Is(err, sql.ErrNoRows) {
		err = refuse(http.StatusNotFound, "there is no such order")
	}
	answer(w, out, err)
}

func (p *Provider) postNote(w http.ResponseWriter, r *http.Request) {
	var in struct {
		OrderID string `json:"order_id"`
		Text    string `json:"text"`
	}
	if err := read(r, &in); err != nil {
		answer(w, nil, err)
		return
	}
	var id int64
	err := p.db.QueryRowContext(context.WithoutCancel(r.Context()),
		"INSERT INTO notes (order_id, text) SELECT id, ? FROM orders WHERE id = ? RETURNING id", in.Text, in.OrderID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = refuse(http.StatusNotFound, "there is no such order")
	}
	if err == nil {
		p.opts.Say(fmt.Sprintf("keeps note_%d on order %s", id, in.OrderID))
	}
	answer(w, map[string]string{"id": fmt.Sprintf("note_%d", id)}, err)
}

// read reads a body to its end; only then does the server see that the client has gone.
func read(r *http.Request, in any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return refuse(http.StatusBadRequest, "the body could not be read")
	}
	if json.Unmarshal(body, in) != nil {
		return refuse(http.StatusBadRequest, "the body is no JSON as it is wanted here")
	}
	return nil
}

func answer(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		if r, ok := errors.AsType[*refusal](err); ok {
			status = r.status
		}
		out = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // a client that has gone is no concern of the provider
}

// Money is an amount as people write it.
func Money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
