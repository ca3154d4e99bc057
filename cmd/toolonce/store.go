package main

import (
	"context"
	"strings"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// store is what the verbs need of one tenant's.
type store interface {
	middleware.Ledger
	middleware.Lister
	middleware.Approver
	keeper
}

// keeper is what a store knows beside its rows.
type keeper interface {
	Namespaces(context.Context) ([]string, error)
	DeclareGone(ctx context.Context, owner string) error
	Close() error
}

const storeForms = "sqlite:PATH or postgres:DSN"

// open opens the store, which must exist: a misspelt path must not look like an empty store.
func (e *env) open() error {
	if e.storeFlag == "" {
		return usagef("no store: say -store %s, or set TOOLONCE_STORE", storeForms)
	}
	kind, where, _ := strings.Cut(e.storeFlag, ":")
	switch kind {
	case "sqlite":
		s, err := sqlitestore.Open(where, &sqlitestore.Options{MustExist: true})
		if err != nil {
			return err
		}
		e.tenant = func(name string) store { return s.Namespace(name) }
	case "postgres", "postgresql":
		if strings.HasPrefix(where, "//") {
			where = e.storeFlag
		}
		s, err := pgstore.Open(e.ctx, where, &pgstore.Options{MustExist: true, Schema: e.schema})
		if err != nil {
			return err
		}
		e.tenant = func(name string) store { return s.Namespace(name) }
	default:
		return usagef("store %q is of no known kind: say %s", kind, storeForms)
	}
	e.store = e.tenant(e.namespace)
	return nil
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
