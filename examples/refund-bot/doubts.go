package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// doubts are the operations that a person must settle after the guarded pass.
func (s *story) doubts() (list []doubt, err error) {
	path := filepath.Join(s.dir, onceFile)
	store, err := sqlitestore.Open(path, &sqlitestore.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	rows, err := inDoubt(context.Background(), store)
	for _, row := range rows {
		order := orderOf(row)
		for _, sc := range s.scenes {
			if sc.order == order {
				list = append(list, doubt{sc.name, row.Operation, order, settle(row.Operation, path, s.books.Refunds[order])})
			}
		}
	}
	return list, err
}

// inDoubt lists the operations in doubt, oldest first.
func inDoubt(ctx context.Context, store *sqlitestore.Store) ([]middleware.Row, error) {
	rows, err := store.List(ctx, []middleware.State{middleware.InDoubt}, 0)
	slices.Reverse(rows)
	return rows, err
}

// orderOf is the order of an operation, from the input that the claim has stored.
func orderOf(row middleware.Row) string {
	var in RefundInput
	_ = json.Unmarshal(row.Input, &in) // an input that has gone names none
	return in.OrderID
}

// settle is the command with which a person says what became of an operation, for somebody who has found these refunds
// at the provider.
func settle(operation, path string, refunds []string) string {
	verdict, why := "--happened", "the provider has "+strings.Join(refunds, ", ")
	if len(refunds) == 0 {
		verdict, why = "--did-not-happen", "the provider has no refund of this order"
	}
	return fmt.Sprintf("go run ./cmd/toolonce resolve %s %s --by %s --why %s -store %s",
		operation, verdict, shell(me()), shell(why), shell("sqlite:"+path))
}

// me is who sits here.
func me() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "me"
	}
	return u.Username
}

// shell quotes a word for a shell where it needs it.
func shell(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@", r)
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
