package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// example is one for each verb, and what is to be known besides.
func example(verb string) string {
	return map[string]string{
		"ops": `toolonce ops -store sqlite:once.db -in-doubt
toolonce ops -store sqlite:once.db -tool issue_refund -state done,free -older 24h -limit 20`,
		"show":    `toolonce show -store sqlite:once.db op_sm5j45zrxmd7`,
		"resolve": `toolonce resolve -store sqlite:once.db op_sm5j45zrxmd7 --happened --result '{"id":"re_1"}' --by ann --why "re_1 is in the dashboard"`,
		"recover": `toolonce recover -store sqlite:once.db -tool issue_refund -yes --by ann --why "the worker is gone for good"

Operations that were running when their process died are settled by the program's own tools: start it again, and have it call
middleware.Recover, which asks Lookup and runs again what may be. This command has no tools. It can do the one thing that is
safe without: say that the outcome is unknown, so that toolonce resolve can be used. Tools with Rerun, Lookup or Local are better
recovered by the program: one with Lookup may still be asked about it afterwards, but one that may be run again, or that is Local,
is not run again any more.`,
		"pending": `toolonce pending -store sqlite:once.db --show-data`,
		"approve": `toolonce approve -store sqlite:once.db ticket-42 1.1 --by ann --why "the photos show it"`,
		"deny":    `toolonce deny -store sqlite:once.db ticket-42 1.1 --by ann --why "no receipt"`,
		"runs":    `toolonce runs -store sqlite:once.db -unfinished`,
		"run":     `toolonce run -store sqlite:once.db ticket-42 --show-data`,
		"stats":   `toolonce stats -store sqlite:once.db -all-namespaces`,
		"verify": `toolonce verify -store sqlite:once.db

It works on a file that is damaged, and on one that others are writing to. It exits with 1 where something is wrong. Who keeps
what it prints of the last act, elsewhere, can say it with --head later: then it also finds out where acts were taken away from
the end, or all were written anew.`,
		"export": `toolonce export -store sqlite:once.db -all-namespaces > store.jsonl

Each line has a "kind": operation, approval or run.`,
		"bench": `toolonce bench -store sqlite:once.db -callers 1,64 -for 10s`,
		"prune": `toolonce prune -store sqlite:once.db -older-than 8760h -yes --by cron --why "every night"`,
		"forget": `toolonce forget -store sqlite:once.db --run ticket-42
toolonce forget -store sqlite:once.db --run ticket-42 --by ann --why "the customer asked for it" -yes

What the model answered and was told goes, and the input and result of what the run did. Ids, hashes, and what people gave as
reasons stay, so that nothing is done again. On PostgreSQL, and in backups, more has to be done: see docs/operating.md.`,
		"acts": `toolonce acts -store sqlite:once.db -all-namespaces`,
		"serve": `toolonce serve -store sqlite:once.db --by ann

It prints an address that works once, for the browser on this machine that opens it. From another machine keep the port:
toolonce serve -addr 127.0.0.1:8080 there, ssh -L 8080:127.0.0.1:8080 here.`,
		"version": `toolonce version -json`,
	}[verb]
}

const exitCodes = "Exit codes: 0 done, 1 refused, failed or found wrong, 2 called wrongly.\n"

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "toolonce looks after a store: it shows operations and runs, settles those whose outcome nobody knows, and answers calls that wait for a person.\n\nCommands:\n")
	for _, v := range verbs {
		_, _ = fmt.Fprintf(w, "  toolonce %-8s %-29s %s\n", v.name, v.args, v.short)
	}
	_, _ = fmt.Fprint(w, "\nEach but audit and version takes -store sqlite:PATH or postgres:DSN (or TOOLONCE_STORE); toolonce help COMMAND tells the flags, with an example.\n"+
		"TOOLONCE_KEYS has the keys of what is sealed: id=base64,id2=base64, the current one first.\n"+exitCodes)
}

func (v verb) help(w io.Writer, fs *flag.FlagSet) {
	_, _ = fmt.Fprintf(w, "usage: toolonce %s\n%s\n\n%s\n\n", strings.TrimSpace(v.name+" [flags] "+v.args), v.short, example(v.name))
	fs.SetOutput(w)
	fs.PrintDefaults()
	if slices.Contains([]string{"run", "show", "resolve", "serve", "export", "pending"}, v.name) {
		_, _ = fmt.Fprint(w, "\nWhat is sealed opens with its keys alone: "+keysEnv+"=id=base64,id2=base64, the current one first, which seals --result too.\n")
	}
	_, _ = fmt.Fprint(w, "\n"+exitCodes)
}
