package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
)

// actRecovered is the kind of act that says of an operation that its outcome is unknown.
const actRecovered = "recovered"

// recovered is what became of an orphan, or would.
type recovered struct {
	Operation string `json:"operation"`
	Namespace string `json:"namespace,omitempty"`
	Tool      string `json:"tool"`
	Run       string `json:"run"`
	Turn      int    `json:"turn"`
	Position  int    `json:"position"`
	Since     string `json:"since"`
	Outcome   string `json:"outcome"` // orphan, in_doubt, changed, owner unknown
}

func recoverVerb(fs *flag.FlagSet) action {
	yes := fs.Bool("yes", false, "do it: without, nothing is changed and they are only listed")
	tool := fs.String("tool", "", "only those of the tool of this `name`")
	who := personFlags(fs)
	return func(ctx context.Context, e *env, _ []string) error {
		var act middleware.Act
		if *yes {
			var err error
			if act, err = who.act("recover"); err != nil {
				return err
			}
		}
		rows, err := e.store.Select(ctx, middleware.Selection{States: []middleware.State{middleware.Running}, Tool: *tool})
		if err != nil {
			return err
		}
		var found []recovered
		for i := range rows {
			r := &rows[i]
			if !r.OwnerGone && !r.OwnerUnknown {
				continue
			}
			f := recovered{
				Operation: r.Operation, Namespace: r.Namespace, Tool: r.Tool, Run: r.Claimer.Run, Turn: r.Claimer.Turn, Position: r.Claimer.Position,
				Since: stamp(r.Since), Outcome: "orphan",
			}
			if r.OwnerUnknown {
				f.Outcome = "owner unknown"
			} else if *yes {
				if f.Outcome, err = e.doubt(ctx, r, act); err != nil {
					return errors.Join(err, e.recovered(found, true))
				}
			}
			found = append(found, f)
		}
		return e.recovered(found, *yes)
	}
}

// doubt says of an orphan that its outcome is unknown, unless somebody was faster, and records that.
func (e *env) doubt(ctx context.Context, r *middleware.Row, act middleware.Act) (outcome string, err error) {
	row, err := e.store.Change(ctx, middleware.Transition{
		Step: middleware.Doubt, Operation: r.Operation, Token: r.Token, Attempt: r.Attempt, Owner: r.Owner,
	})
	if errors.Is(err, middleware.ErrLost) {
		return "changed", nil
	}
	if err != nil {
		return "", err
	}
	act.Kind, act.Target = actRecovered, r.Operation
	if _, err = e.store.Record(ctx, act); err != nil {
		err = fmt.Errorf("operation %s is in doubt now, which could not be recorded as an act: %w", r.Operation, err)
	}
	return string(row.State), err
}

func (e *env) recovered(found []recovered, yes bool) error {
	if e.json {
		for _, f := range found {
			if err := e.printJSON(f); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		e.printf("no operation is left by a process that died\n")
		return nil
	}
	var rows [][]string
	unknown := false
	for _, f := range found {
		rows = append(rows, []string{f.Operation, f.Outcome, f.Tool, f.Run, place(f.Turn, f.Position), f.Since})
		unknown = unknown || f.Outcome == "owner unknown"
	}
	e.table([]string{"OPERATION", "OUTCOME", "TOOL", "RUN", "TURN", "SINCE"}, rows)
	if unknown {
		e.printf("owner unknown: nothing shows whether that process lives; toolonce show OPERATION says how to settle it\n")
	}
	if !yes {
		e.printf("nothing was changed. Start the program again if it calls middleware.Recover: it can ask Lookup, and run again what may be.\n" +
			"This command only can put them in doubt, so that a person settles them: say -yes to do it\n")
	}
	return nil
}
