package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// finding is one thing that is wrong, as it is printed.
type finding struct {
	Check string `json:"check"`
	Where string `json:"where,omitempty"`
	What  string `json:"what"`
}

// verified is what was looked at: the last line.
type verified struct {
	Checks   []string `json:"checks"`
	Schema   int      `json:"schema"`
	Findings int      `json:"findings"`
	Head     string   `json:"head,omitempty"` // NUMBER:HASH of the last act

	acts []middleware.Act
}

func verifyVerb(fs *flag.FlagSet) action {
	quick := fs.Bool("quick", false, "on SQLite, leave out whether indexes have what their tables have")
	var number int
	var hash string
	fs.Func("head", "what verify printed of the last act some time ago: `NUMBER:HASH`, to see that all is still there", func(noted string) (err error) {
		number, hash, err = parseHead(noted)
		return err
	})
	return func(ctx context.Context, e *env, _ []string) error {
		found, v, err := e.verify(ctx, *quick)
		if err != nil {
			return err
		}
		if what := notedHead(v.acts, number, hash); what != "" {
			found = append(found, finding{Check: "acts", What: what})
		}
		v.Findings = len(found)
		if e.json {
			for _, f := range found {
				if err := e.printJSON(f); err != nil {
					return err
				}
			}
			if err := e.printJSON(v); err != nil {
				return err
			}
		} else {
			e.verified(found, v)
		}
		if len(found) > 0 {
			return fmt.Errorf("%d findings: stop the programs that use the store, keep a copy of it, and restore a backup or mend what was changed by hand", len(found))
		}
		return nil
	}
}

func (e *env) verify(ctx context.Context, quick bool) (found []finding, v verified, err error) {
	if e.storeFlag == "" {
		return nil, v, errNoStore()
	}
	switch kind, where := e.where(); kind {
	case "sqlite":
		r, err := sqlitestore.Verify(ctx, where, &sqlitestore.VerifyOptions{Quick: quick})
		if err != nil {
			return nil, v, err
		}
		for _, f := range r.Findings {
			found = append(found, finding(f))
		}
		v = verified{Checks: r.Checks, Schema: r.Schema, acts: r.Acts}
	case "postgres":
		r, err := pgstore.Verify(ctx, where, &pgstore.Options{Schema: e.schema})
		if err != nil {
			return nil, v, err
		}
		for _, f := range r.Findings {
			found = append(found, finding(f))
		}
		v = verified{Checks: r.Checks, Schema: r.Schema, acts: r.Acts}
	default:
		return nil, v, errNoKind()
	}
	v.Head = headOf(v.acts)
	return found, v, nil
}

func (e *env) verified(found []finding, v verified) {
	var rows [][]string
	for _, check := range v.Checks {
		n := 0
		for _, f := range found {
			if f.Check == check {
				rows = append(rows, []string{check, f.Where, f.What})
				n++
			}
		}
		if n == 0 {
			rows = append(rows, []string{check, "", "ok"})
		}
	}
	e.table([]string{"CHECK", "WHERE", "FOUND"}, rows)
	if v.Head != "" {
		e.printf("last act: %s, to be noted elsewhere: --head compares\n", v.Head)
	}
}
