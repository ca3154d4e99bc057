package pgstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/seal"
)

// sealing is a place whose stores seal with a key made of one byte.
func sealing(tb testing.TB, p place, b byte) place {
	tb.Helper()
	var err error
	p.codec, err = seal.AESGCM(seal.Keys{Current: "k", ByID: map[string][]byte{"k": bytes.Repeat([]byte{b}, 32)}})
	check(tb, err)
	return p
}

// TestSealedContentIsInNoTableAndOpensForItsKeyAlone has what a store gives without the key: what is sealed is said to be
// unreadable, never to be nothing.
func TestSealedContentIsInNoTableAndOpensForItsKeyAlone(t *testing.T) {
	p := sealing(t, fresh(t), 1)
	s := p.open(t)
	c := aClaim("r1", 1)
	c.Input = []byte("input-4242")
	row := claimed(t, s, c)
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "result-4242", HasResult: true})
	check(t, err)
	r := begun(t, s, "run")
	_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: json.RawMessage(`"answer-4242"`)}})
	check(t, err)
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "output-4242"}}}))
	_, err = s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, 1e9)
	check(t, err)
	conn, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	for _, table := range []string{"operations", "aliases", "approvals", "runs", "turns", "outputs"} {
		var n int
		check(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM `+quoted(p.schema, table)+` AS t WHERE t::text LIKE '%-4242%' OR t::text LIKE '%2d34323432%'`).Scan(&n))
		if n != 0 {
			t.Errorf("%s has content", table)
		}
	}

	for name, other := range map[string]place{"no key": {dsn: p.dsn, schema: p.schema}, "another key": sealing(t, p, 2)} {
		s := other.open(t)
		row, ok, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation})
		check(t, err)
		if !ok || !errors.Is(row.Unreadable, seal.ErrSealed) || row.Input != nil || row.Result != "" || !row.HasResult {
			t.Errorf("%s: found %+v", name, row)
		}
		if _, err := s.Begin(t.Context(), aStart("run")); err == nil {
			t.Errorf("%s: a sealed run was resumed", name)
		}
		if _, _, err := s.Read(t.Context(), "run"); err == nil {
			t.Errorf("%s: a sealed run was read", name)
		}
		asked, err := s.Approvals(t.Context())
		check(t, err)
		if len(asked) != 1 || asked[0].Unreadable == nil || asked[0].Input != nil {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}

	s = p.open(t)
	row, _, err = s.Find(t.Context(), middleware.Query{Operation: row.Operation})
	check(t, err)
	if string(row.Input) != "input-4242" || row.Result != "result-4242" || row.Unreadable != nil {
		t.Errorf("with the key again: %+v", row)
	}
	again, err := s.Begin(t.Context(), aStart("run"))
	check(t, err)
	if len(again.Turns) != 1 || string(again.Turns[0].Answer) != `"answer-4242"` || again.Turns[0].Outputs[0].Content != "output-4242" {
		t.Errorf("with the key again: %+v", again)
	}
}
