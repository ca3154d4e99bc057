// Command pure-go keeps its operations with a SQLite driver that needs no C compiler:
//
//	CGO_ENABLED=0 go run .
//
// It calls one tool twice, and prints what the second call is told.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

type refund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int64  `json:"cents" jsonschema:"minimum=1"`
}

func main() {
	dir, err := os.MkdirTemp("", "pure-go-")
	if err == nil {
		err = errors.Join(run(filepath.Join(dir, "once.db")), os.RemoveAll(dir))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open is the store and what closes it: the store first, then the database that it was given.
func open(path string) (*sqlitestore.Store, func() error, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlitestore.OpenDB(db, nil)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, func() error { return errors.Join(store.Close(), db.Close()) }, nil
}

func run(path string) (err error) {
	store, closeAll, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refund) (string, error) {
			fmt.Println("refunding order", in.OrderID)
			return "re_1", nil
		},
	})
	handle := tools.Handler(middleware.Once(store, nil))
	for turn := 1; turn <= 2; turn++ {
		res, err := handle(context.Background(), &registry.Call{
			Run: registry.Run{ID: "ticket-42"}, Turn: turn, ID: "call_1", Tool: "issue_refund", Arguments: `{"order_id":"1001","cents":4200}`,
		})
		if err != nil {
			return err
		}
		fmt.Println("call", turn, "was", res.Verdict)
	}
	return nil
}
