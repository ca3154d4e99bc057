package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// act is what a person did, as it is printed.
type act struct {
	Number    int    `json:"number"`
	Namespace string `json:"namespace,omitempty"`
	At        string `json:"at"`
	Kind      string `json:"kind"`
	Target    string `json:"target,omitempty"`
	By        string `json:"by"`
	Why       string `json:"why,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Hash      string `json:"hash"`
}

func actsVerb(fs *flag.FlagSet) action {
	all := fs.Bool("all-namespaces", false, "of every tenant")
	return func(ctx context.Context, e *env, _ []string) error {
		list := e.store.Acts
		if *all {
			list = e.store.AllActs
		}
		acts, err := list(ctx)
		if err != nil {
			return err
		}
		if e.json {
			for _, a := range acts {
				if err := e.printJSON(act{a.Number, a.Namespace, stamp(a.At), a.Kind, a.Target, a.By, a.Why, a.Detail, a.Hash}); err != nil {
					return err
				}
			}
			return nil
		}
		e.acts(acts, *all)
		return nil
	}
}

func (e *env) acts(acts []middleware.Act, all bool) {
	if len(acts) == 0 {
		e.printf("nobody has done anything here yet\n")
		return
	}
	row := func(namespace string, rest ...string) []string {
		if all {
			return append([]string{namespace}, rest...)
		}
		return rest
	}
	var rows [][]string
	for _, a := range acts {
		rows = append(rows, row(a.Namespace, fmt.Sprint(a.Number), stamp(a.At), a.Kind, a.Target, a.By, a.Why, a.Detail))
	}
	e.table(row("NAMESPACE", "NUMBER", "AT", "ACT", "TARGET", "BY", "WHY", "DETAIL"), rows)
}

// headOf names the last act so that it can be noted.
func headOf(acts []middleware.Act) string {
	if len(acts) == 0 {
		return ""
	}
	last := acts[len(acts)-1]
	return fmt.Sprintf("%d:%s", last.Number, last.Hash)
}

// parseHead reads what headOf gave.
func parseHead(noted string) (number int, hash string, err error) {
	n, hash, _ := strings.Cut(noted, ":")
	if _, err := fmt.Sscanf(n, "%d", &number); err != nil || number < 1 || fmt.Sprint(number) != n || len(hash) != 64 {
		return 0, "", errors.New("say what verify has printed then, NUMBER:HASH")
	}
	return number, strings.ToLower(hash), nil
}

// notedHead says what is wrong with acts whose head was this once, "" for nothing. Number 0 is that none was noted.
func notedHead(acts []middleware.Act, number int, hash string) string {
	if number == 0 {
		return ""
	}
	for _, a := range acts {
		if a.Number != number {
			continue
		}
		if a.Hash != hash {
			return fmt.Sprintf("act %d, or what was before it, is not the one whose hash was noted: the acts were written anew", number)
		}
		return ""
	}
	return fmt.Sprintf("act %d, whose hash was noted, is missing: the last of %d acts is %s", number, len(acts), headOf(acts))
}
