package crossing

import (
	"context"
	"maps"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
)

// tries are how each method is called by another tenant.
func (c *crossing) tries() map[string]func(Store) {
	all := c.tryLedger()
	maps.Copy(all, c.tryRuns())
	maps.Copy(all, c.tryPeople())
	return all
}

func (c *crossing) rows() []middleware.Row {
	return []middleware.Row{c.running, c.doubt, c.done, c.free}
}

func (c *crossing) tryLedger() map[string]func(Store) {
	ctx := c.Context()
	return map[string]func(Store){
		"Calls": func(s Store) {
			for _, row := range c.rows() {
				calls, err := s.Calls(ctx, row.Operation)
				c.none("calls", calls, err)
			}
		},
		"Change": c.tryChange,
		"Claim":  c.tryClaim,
		"Counts": func(s Store) {
			counts, err := s.Counts(ctx)
			c.none("counts", counts, err)
		},
		"Find": func(s Store) {
			for _, row := range c.rows() {
				for _, q := range []middleware.Query{
					{Operation: row.Operation}, {Identity: row.Identity}, {Run: row.Claimer.Run, Turn: row.Claimer.Turn, Position: row.Claimer.Position},
					{Tool: row.Tool, Resource: row.Resource},
				} {
					row, _, err := s.Find(ctx, q)
					c.none("a row", row, err)
				}
			}
		},
		"List": func(s Store) {
			rows, err := s.List(ctx, nil, 0)
			c.none("rows", rows, err)
			rows, err = s.List(ctx, []middleware.State{middleware.Running, middleware.InDoubt}, 0)
			c.none("open rows", rows, err)
		},
		"Note": func(s Store) {
			for _, row := range c.rows() {
				n, err := s.Note(ctx, row.Operation, claim("repeat", 9).Call)
				c.lost("a repeat", n, err)
			}
		},
		"Page": func(s Store) {
			for _, after := range []string{"", c.running.Operation} {
				rows, err := s.Page(ctx, after, 0)
				c.none("rows", rows, err)
			}
		},
		"Prune": func(s Store) {
			report, err := s.Prune(ctx, middleware.PruneOptions{})
			c.none("what was pruned", report, err)
		},
		"Select": func(s Store) {
			for _, sel := range []middleware.Selection{{}, {Tool: "pay"}, {Run: "run"}, {States: []middleware.State{middleware.InDoubt}}} {
				rows, err := s.Select(ctx, sel)
				c.none("rows", rows, err)
			}
		},
		"Within": c.tryWithin,
	}
}

// tryChange makes every step on every row as the one who has it would.
func (c *crossing) tryChange(s Store) {
	for _, row := range c.rows() {
		for step := middleware.Complete; step <= middleware.NotHappened; step++ {
			got, err := s.Change(c.Context(), middleware.Transition{
				Step: step, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, State: row.State, Mark: "mark", Result: "theirs", HasResult: true,
				Deadline: time.Minute, By: "bob", Why: "because",
			})
			c.lost("a step", got, err)
		}
	}
}

func (c *crossing) tryWithin(s Store) {
	for _, row := range c.rows() {
		got, err := s.Within(c.Context(), func(context.Context) (middleware.Transition, error) {
			return middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Result: "theirs", HasResult: true}, nil
		})
		c.lost("a result", got, err)
	}
}

// tryClaim names rows of the first tenant in every way that a claim can. What it is about is not that: the same identity is
// another operation here.
func (c *crossing) tryClaim(s Store) {
	for name, change := range map[string]func(*middleware.Claim){
		"a free row":       func(n *middleware.Claim) { n.Identity, n.Seen = c.free.Identity, c.free },
		"a done row":       func(n *middleware.Claim) { n.Identity, n.Seen = c.done.Identity, c.done },
		"a place":          func(n *middleware.Claim) { n.Call, n.SeenAlias = c.done.Claimer, c.done.Operation },
		"what it undoes":   func(n *middleware.Claim) { n.Undoes = c.done.Operation },
		"what it repeats":  func(n *middleware.Claim) { n.RepeatOf = c.done.Operation },
		"what approves it": func(n *middleware.Claim) { *n = claim("approved", 6); n.Approval = c.approved.ID },
	} {
		n := claim("theirs", 9)
		change(&n)
		row, won, err := s.Claim(c.Context(), n)
		if c.none(name, row, err); won {
			c.Errorf("%s was taken for the claimer's", name)
		}
	}
	row, won, err := s.Claim(c.Context(), claim("running", 1))
	if c.ok(err); !won || row.Operation == c.running.Operation || row.Key == c.running.Key {
		c.Errorf("an equal call of another tenant: won %v, %+v", won, row)
	}
}

func (c *crossing) tryRuns() map[string]func(Store) {
	ctx := c.Context()
	return map[string]func(Store){
		"Append": func(s Store) {
			got, err := s.Append(ctx, journal.Entry{Run: "run", Token: c.run.Token, Turn: journal.Turn{Number: 2, Answer: []byte("{}")}})
			c.refused("a turn", got, err, journal.ErrLost)
		},
		"Begin": func(s Store) {
			for _, start := range []journal.Start{c.left, c.run.Start} {
				r, err := s.Begin(ctx, start)
				c.ok(err)
				if len(r.Turns) > 0 || r.Token == c.run.Token {
					c.Errorf("another tenant's run was begun: %+v", r)
				}
				if start.Run.ID == "left" {
					c.none("when it was asked before", r.AskedBefore, nil)
				}
			}
		},
		"Leave": func(s Store) {
			err := s.Leave(ctx, journal.Leaving{Run: "run", Token: c.run.Token, Turn: 1, Outputs: []journal.Output{{Position: 1, Content: "theirs"}}})
			c.refused("leaving", nil, err, journal.ErrLost)
		},
		"Read": func(s Store) {
			for _, run := range []string{"run", "left"} {
				r, ok, err := s.Read(ctx, run)
				if c.none("a run", r.Turns, err); ok {
					c.Errorf("run %s was read", run)
				}
			}
		},
		"Runs": func(s Store) {
			for _, q := range []journal.RunsQuery{{}, {Conversation: "chat"}, {Unfinished: true}} {
				runs, err := s.Runs(ctx, q)
				c.none("runs", runs, err)
			}
		},
		"Verdicts": func(s Store) {
			counts, err := s.Verdicts(ctx)
			c.none("verdicts", counts, err)
		},
	}
}

func (c *crossing) tryPeople() map[string]func(Store) {
	ctx := c.Context()
	asked := []middleware.Approval{c.pending, c.approved, c.denied}
	return map[string]func(Store){
		"Acts": func(s Store) {
			acts, err := s.Acts(ctx)
			c.none("acts", acts, err)
		},
		"Approvals": func(s Store) {
			for _, states := range [][]middleware.ApprovalState{nil, {middleware.Pending}, {middleware.Approved, middleware.Denied}} {
				approvals, err := s.Approvals(ctx, states...)
				c.none("approvals", approvals, err)
			}
		},
		"Ask": func(s Store) {
			for _, a := range asked {
				got, err := s.Ask(ctx, a, -1)
				c.none("an answer", got, err)
			}
		},
		"Decide": func(s Store) {
			for _, a := range asked {
				for _, id := range []string{"", a.ID} {
					got, err := s.Decide(ctx, middleware.Decision{Run: "run", Turn: a.Call.Turn, Position: 1, ID: id, Approve: true, By: "bob"})
					c.lost("a question", got, err)
				}
			}
		},
		"Forget": func(s Store) {
			for _, run := range []string{"run", "left"} {
				report, err := s.Forget(ctx, run, middleware.Act{By: "bob"})
				c.refused("forgetting", report, err, middleware.ErrUnknownRun)
			}
		},
		"Forgettable": func(s Store) {
			for _, run := range []string{"run", "left"} {
				report, err := s.Forgettable(ctx, run)
				c.refused("what would be forgotten", report, err, middleware.ErrUnknownRun)
			}
		},
		"Record": func(s Store) {
			a, err := s.Record(ctx, middleware.Act{Namespace: "acme", Kind: "note", Target: c.done.Operation, By: "bob"})
			if c.ok(err); a.Namespace == "acme" {
				c.Errorf("an act was recorded as another tenant's: %+v", a)
			}
		},
	}
}
