package main

import (
	"slices"
	"strings"
)

// What an approval is bound to, each left out alone. The names are those of the suite's cases.

func memoryApprovals() []mutant {
	const file = "middleware/memory_approval.go"
	all := []mutant{
		{
			name: "memory: approval: not spent", breaks: "One approval serves any number of payments.",
			file: memory, old: "approval.State, approval.Operation = Spent, r.Operation", new: "approval.Operation = r.Operation",
			caught: memoryLedger + "approval/serves one claim",
		},
		{
			name: "memory: approval: not looked at by the claim", breaks: "What was never approved, or for another call, runs.",
			file: memory, old: " || c.Approval != \"\" && approval == nil {", new: " {",
			caught: memoryLedger + "approval/is not spent where there is none",
		},
		{
			name: "memory: approval: state not compared", breaks: "A payment that a person has denied runs.",
			file: file, old: "a.namespace == l.namespace && a.State == Approved && now", new: "a.namespace == l.namespace && now",
			caught: memoryLedger + "approval/is not spent where it is denied",
		},
		{
			name: "memory: approval: date not compared", breaks: "An approval of last week is spent today.",
			file: file, old: "a.State == Approved && now.Before(a.Expires) && a.bound", new: "a.State == Approved && a.bound",
			caught: memoryLedger + "approval/is not spent where it has expired",
		},
		{
			name: "memory: approval: not bound to its namespace", breaks: "One tenant approves another tenant's payment.",
			file: file, old: "a.ID == c.Approval && a.namespace == l.namespace &&", new: "a.ID == c.Approval &&",
			caught: memoryLedger + "namespaces/an approval does not cross",
		},
		{
			name: "memory: approval: answered twice", breaks: "What one person has denied another one approves, and it runs.",
			file: file, old: "if a.State == Pending && now.Before(a.Expires) &&", new: "if now.Before(a.Expires) &&",
			caught: memoryLedger + "decide/is lost where it has been answered",
		},
		{
			name: "memory: approval: a denial counts at its place alone", breaks: "The model asks once more in the next turn, and another person approves.",
			file: file, old: "\tif a.State == Denied {\n\t\treturn", new: "\tif a.State == Denied && a.bound(asked) {\n\t\treturn",
			caught: memoryLedger + "ask/a denied one counts at every place of the run",
		},
	}
	for binding, old := range map[string]string{
		"run": "x.Run == y.Run", "turn": "x.Turn == y.Turn", "position": "x.Position == y.Position", "tool": "x.Tool == y.Tool",
		"fingerprint": "x.Fingerprint == y.Fingerprint", "identity": "a.Identity == b.Identity", "generation": "a.Generation == b.Generation",
		"input": "bytes.Equal(a.Input, b.Input)",
	} {
		replaced := "true"
		if binding == "input" {
			replaced = "len(bytes.TrimSpace(a.Input)) >= 0"
		}
		all = append(all, unbound("memory", memoryLedger, binding, file, old, replaced))
	}
	return sorted(all)
}

func storeApprovals() []mutant {
	const file = "sqlitestore/approval.go"
	all := []mutant{
		{
			name: "sqlite: approval: not spent", breaks: "One approval serves any number of payments.",
			file: file, old: "UPDATE approvals SET state = 'spent', operation = +?12", new: "UPDATE approvals SET operation = +?12",
			caught: storeLedger + "approval/serves one claim",
		},
		{
			name: "sqlite: approval: spent by whoever asks, and not looked at", breaks: "What was never approved, or for another call, runs.",
			file: "sqlitestore/claiming.go", old: "c.Approval, operationOf(n.r.id))\n\treturn changed == 1, err", new: "c.Approval, operationOf(n.r.id))\n\treturn changed <= 1, err",
			caught: storeLedger + "approval/is not spent where there is none",
		},
		{
			name: "sqlite: approval: spent before the claim is won", breaks: "An approval is used up by a claim that ran nothing.",
			file: "sqlitestore/claiming.go", old: "\tif !won {\n\t\treturn errUndo\n\t}", new: "\tif !won {\n\t\t_, err = n.spend()\n\t\treturn err\n\t}",
			caught: storeLedger + "approval/stays approved where the claim is not won",
		},
		{
			name: "sqlite: approval: state not compared", breaks: "A payment that a person has denied runs.",
			file: file, old: "WHERE id = +?11 AND state = 'approved' AND ", new: "WHERE id = +?11 AND ",
			caught: storeLedger + "approval/is not spent where it is denied",
		},
		{
			name: "sqlite: approval: date not compared", breaks: "An approval of last week is spent today.",
			file: file, old: "AND state = 'approved' AND ` + equalCall + ` AND ` + bound", new: "AND state = 'approved' AND ` + equalCall + ` AND turn = +?5 AND position = +?6 AND identity = +?7\n" +
				"\t\tAND generation = +?8 AND (1 OR expires > +?9) AND digest IS +?10`",
			caught: storeLedger + "approval/is not spent where it has expired",
		},
		{
			name: "sqlite: approval: not bound to its namespace", breaks: "One tenant approves another tenant's payment.",
			file: file, old: "equalCall = `namespace = +?1 AND", new: "equalCall = `(1 OR namespace = +?1) AND",
			caught: storeLedger + "namespaces/an approval does not cross",
		},
		{
			name: "sqlite: approval: answered twice", breaks: "What one person has denied another one approves, and it runs.",
			file: file, old: "openQuestion = atQuestion + ` AND state = 'pending' AND", new: "openQuestion = atQuestion + ` AND",
			caught: storeLedger + "decide/is lost where it has been answered",
		},
		{
			name: "sqlite: approval: a denial counts at its place alone", breaks: "The model asks once more in the next turn, and another person approves.",
			file: file, old: "AND (state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `)", new: "AND state IN ('denied', 'pending', 'approved') AND ` + bound + `",
			caught: storeLedger + "ask/a denied one counts at every place of the run",
		},
	}
	for binding, old := range map[string]string{
		"run": "`namespace = +?1 AND run = +?2 AND tool", "turn": "`turn = +?5", "position": "position = +?6", "tool": "tool = +?3",
		"fingerprint": "fingerprint = +?4", "identity": "identity = +?7", "generation": "generation = +?8", "input": "digest IS +?10",
	} {
		replaced := "(1 OR " + old + ")"
		switch binding {
		case "run":
			replaced = "`namespace = +?1 AND (1 OR run = +?2) AND tool"
		case "turn":
			replaced = "`(1 OR turn = +?5)"
		}
		all = append(all, unbound("sqlite", storeLedger, binding, file, old, replaced))
	}
	return sorted(all)
}

// unbound is a ledger whose approvals serve other calls too.
func unbound(ledger, suite, binding, file, old, replaced string) mutant {
	return mutant{
		name: ledger + ": approval: not bound to its " + binding, breaks: "A person's yes to one call lets another one run that differs in its " + binding + ".",
		file: file, old: old, new: replaced, caught: suite + "approval/is not spent on another " + binding,
	}
}

// sorted puts mutants that come from a map in an order.
func sorted(all []mutant) []mutant {
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	return all
}
