package main

import (
	"context"
	"strings"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// store is what the verbs need of one tenant's.
type store interface {
	ledger
	journal.Reader
	people
	keeper
	counter
}

// ledger is what is to be known of operations.
type ledger interface {
	middleware.Ledger
	middleware.Lister
	middleware.Inspector
	middleware.Approver
}

// people is what people do to a store.
type people interface {
	middleware.Recorder
	middleware.Forgetter
	middleware.Pruner
}

// keeper is what a store knows beside its rows.
type keeper interface {
	Namespaces(context.Context) ([]string, error)
	DeclareGone(ctx context.Context, owner string) error
	Close() error
}

// counter is what a store counts and measures.
type counter interface {
	Verdicts(context.Context) (map[registry.Verdict]int, error)
	Sizes(context.Context) (map[string]int64, error)
}

const storeForms = "sqlite:PATH or postgres:DSN"

func errNoStore() error { return usagef("no store: say -store %s, or set TOOLONCE_STORE", storeForms) }

// errNoKind does not say which: what was given may be a DSN, and its password before the first colon.
func errNoKind() error { return usagef("the store is of no known kind: say %s", storeForms) }

// open opens the store, which must exist: a misspelt path must not look like an empty store.
func (e *env) open() error {
	if e.storeFlag == "" {
		return errNoStore()
	}
	codec, err := e.codec()
	if err != nil {
		return err
	}
	switch kind, where := e.where(); kind {
	case "sqlite":
		s, err := sqlitestore.Open(where, &sqlitestore.Options{MustExist: true, WriteTimeout: e.wait, Codec: codec})
		if err != nil {
			return err
		}
		e.tenant = func(name string) store { return s.Namespace(name) }
	case "postgres":
		s, err := pgstore.Open(e.ctx, where, &pgstore.Options{MustExist: true, Schema: e.schema, WriteTimeout: e.wait, Codec: codec})
		if err != nil {
			return err
		}
		e.tenant = func(name string) store { return s.Namespace(name) }
	default:
		return errNoKind()
	}
	e.store = e.tenant(e.namespace)
	return nil
}

// where takes the name of a store apart.
func (e *env) where() (kind, where string) {
	kind, where, _ = strings.Cut(e.storeFlag, ":")
	if kind == "postgres" || kind == "postgresql" {
		if kind = "postgres"; strings.HasPrefix(where, "//") {
			where = e.storeFlag
		}
	}
	return kind, where
}

// tenants are the namespaces that a verb is about.
func (e *env) tenants(ctx context.Context, all bool) ([]string, error) {
	if all {
		return e.store.Namespaces(ctx)
	}
	return []string{e.namespace}, nil
}

// storeArgs are the flags that name the store again. A DSN may hold a password.
func (e *env) storeArgs() string {
	if kind, _, _ := strings.Cut(e.storeFlag, ":"); kind != "sqlite" {
		return `-store "$TOOLONCE_STORE"` + schemaArg(e.schema)
	}
	return "-store " + quote(e.storeFlag)
}

func schemaArg(name string) string {
	if name == "" {
		return ""
	}
	return " -schema " + quote(name)
}
