package ledgertest

import (
	"context"

	"github.com/toolonce/toolonce/middleware"
)

func brokenActs() []BrokenLedger {
	return []BrokenLedger{{
		Name: "the first act is lost", Wrap: faulty(losesAct),
		Fails: "acts/what is recorded is listed, in one chain",
		Also: []string{"acts/a verdict is one, and who loses has done nothing", "acts/an answer to an approval is one, and who loses has done nothing", "forget/again changes nothing, but for what has come since",
			"forget/it is an act of the run, and nobody's is refused"},
	}}
}

func losesAct() *fault {
	return &fault{acts: func(all []middleware.Act) []middleware.Act { return all[min(1, len(all)):] }}
}

// Record implements middleware.Recorder.
func (b *brokenLedger) Record(ctx context.Context, a middleware.Act) (middleware.Act, error) {
	r, err := recorder(b.Ledger)
	if err != nil {
		return middleware.Act{}, err
	}
	return r.Record(ctx, a)
}

// Acts implements middleware.Recorder.
func (b *brokenLedger) Acts(ctx context.Context) ([]middleware.Act, error) {
	r, err := recorder(b.Ledger)
	if err != nil {
		return nil, err
	}
	return r.Acts(ctx)
}

// AllActs implements middleware.Recorder.
func (b *brokenLedger) AllActs(ctx context.Context) ([]middleware.Act, error) {
	r, err := recorder(b.Ledger)
	if err != nil {
		return nil, err
	}
	all, err := r.AllActs(ctx)
	if b.acts != nil {
		all = b.acts(all)
	}
	return all, err
}
