package ledgertest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// BrokenLedger breaks one promise of a sound ledger, as a careless store would.
type BrokenLedger struct {
	Name string
	// Fails names the case that is there to tell.
	Fails string
	// Also are the names of the other cases that fail, as patterns of [path.Match].
	Also []string
	// Wrap puts the fault on top of a sound system.
	Wrap func(System) System
}

// Broken gives ledgers that break a promise each. They show that the cases tell, and what a guard does on top of such
// a ledger.
func Broken() []BrokenLedger {
	return slices.Concat(brokenClaims(), brokenChanges(), brokenApprovals(), brokenPruning(), brokenActs(), brokenForgetting())
}

func brokenClaims() []BrokenLedger {
	return []BrokenLedger{
		{
			Name: "no UNIQUE", Wrap: faulty(noUnique),
			Fails: "claim/two claimers of one identity: one wins",
			Also: []string{
				"claim/a row that is * is not won unseen", "claim/a * whose deadline is over is not won",
				"claim/a done row that has expired is not won unseen", "claim/another fingerprint of one identity is not won and sees the first",
				"content/the input of a row is a copy of the ledger's", "namespaces/one identity in two namespaces is two operations",
				"race/of 50 claimers of one identity one wins", "undo/book, cancel, book, cancel are four operations",
				"prune/what was forgotten is still done", "forget/what was forgotten is still done",
				"forget/again changes nothing, but for what has come since",
				"claim as new/a *", "claim as new/of what was done and undone *",
			},
		},
		{
			Name: "freed by time", Wrap: faulty(freedByTime),
			Fails: "claim/a running row whose deadline is over is not won",
			Also: []string{
				"claim/a row in doubt whose deadline is over is not won",
				"claim/a row that is running is not won unseen", "claim/a row that is in doubt is not won unseen",
				"claim again/is not won where the row is not free any more",
				"claim again/is not won over a row that was seen as it is, but is not free",
			},
		},
		{
			Name: "new is not looked for", Wrap: faulty(anyIsNew),
			Fails: "claim as new/of what was done and undone is not won, and a claim that was looked for is",
			Also:  []string{"claim as new/a *", "claim as new/is not won *"},
		},
		{
			Name: "fingerprint ignored", Wrap: faulty(noFingerprint),
			Fails: "claim/another fingerprint of one identity is not won and sees the first",
			Also:  []string{"claim/the row is as claimed", "claim again/takes the free row that was seen", "content/hashes are kept exactly, whatever their form"},
		},
		{
			Name: "namespace ignored", Wrap: oneNamespace,
			Fails: "namespaces/one identity in two namespaces is two operations",
			Also:  []string{"namespaces/*"},
		},
	}
}

func brokenChanges() []BrokenLedger {
	return []BrokenLedger{
		{
			Name: "no token check", Wrap: faulty(noTokenCheck),
			Fails: "complete/loses on a row that is running with another token",
			Also: []string{
				"*/loses * with another token", "claim */is not won with another token",
				"claim again/takes a row that a person freed", "claim again/the token of the claim before is worth nothing",
				"complete/the same result of another claim is late", "undo/a complete that loses releases nothing",
				"trace/did not happen while a request is in flight, and then its result",
			},
		},
		{
			Name: "a second result overwrites the first", Wrap: faulty(overwrites),
			Fails: "complete/the first result stays: a second one loses and is marked late",
			Also: []string{
				"complete/loses on a row that is done", "complete/the same result again loses, but is not late",
				"race/of two results the first stays, and the second is late", "prune/a late row stays",
			},
		},
		{
			Name: "a lost change reported as success", Wrap: faulty(lostIsSuccess),
			Fails: "complete/the first result stays: a second one loses and is marked late",
			Also: []string{
				"acts/a verdict is one, and who loses has done nothing",
				"*/loses *", "complete/the same result *", "complete/a late result is taken from in doubt, and ends settling",
				"*happened/ends settling, whoever settles", "give back/frees the row and changes nothing else",
				"take in doubt/succeeds where who settles is gone, and its mark is worth nothing",
				"claim again/takes a row that a person freed", "claim again/the token of the claim before is worth nothing",
				"claim expired/takes the place of the row that was seen", "undo/a complete that loses releases nothing",
				"prune/a late row stays", "namespaces/change does not cross", "race/of two processes *", "race/of two results *", "race/of a result and a person one wins",
				"trace/a verdict on an earlier attempt is worth nothing",
				"trace/did not happen while a request is in flight, and then its result",
			},
		},
		{
			Name: "free forgets the generation", Wrap: faulty(forgetful),
			Fails: "key/grows where a row is given back with a new key",
			Also: []string{
				"key/grows with each new key, by whatever way", "key/grows on not happened with a new key",
				"key/goes on from the generation of an expired row", "key/a new key begins a new window", "key/unclear goes with the key",
				"prune/a free row at its second key stays",
			},
		},
	}
}

// fault is what is wrong with a ledger. Its functions are nil where nothing is.
type fault struct {
	claim  claimer
	change func(ctx context.Context, l middleware.Ledger, t middleware.Transition) (middleware.Row, error)
	read   func(*middleware.Row) // bends each row that is read

	approval func(*middleware.Approval)     // bends each approval that is read
	prune    func(*middleware.PruneOptions) // bends what is to be forgotten
	acts     func([]middleware.Act) []middleware.Act
	forget   func(error) error // bends why a run cannot be forgotten
}

// claimer claims from a sound ledger.
type claimer func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error)

// faulty makes a Wrap that gives all processes of a system one fault.
func faulty(f func() *fault) func(System) System {
	return func(sys System) System {
		broken := f()
		wrap := func(l middleware.Ledger) middleware.Ledger { return &brokenLedger{l, broken} }
		sound := func(l middleware.Ledger) middleware.Ledger { return l.(*brokenLedger).Ledger }
		return System{
			Open: func() middleware.Ledger { return wrap(sys.Open()) },
			Kill: func(l middleware.Ledger) { sys.Kill(sound(l)) },
			Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
				return wrap(sys.Namespace(sound(l), name))
			},
		}
	}
}

type brokenLedger struct {
	middleware.Ledger
	*fault
}

func (b *brokenLedger) bend(r middleware.Row) middleware.Row {
	if b.read != nil && r.Operation != "" {
		b.read(&r)
	}
	return r
}

func (b *brokenLedger) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	if b.claim != nil {
		row, won, err = b.claim(ctx, b.Ledger, c)
	} else {
		row, won, err = b.Ledger.Claim(ctx, c)
	}
	return b.bend(row), won, err
}

func (b *brokenLedger) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	row, ok, err := b.Ledger.Find(ctx, q)
	return b.bend(row), ok, err
}

func (b *brokenLedger) Change(ctx context.Context, t middleware.Transition) (row middleware.Row, err error) {
	if b.change != nil {
		row, err = b.change(ctx, b.Ledger, t)
	} else {
		row, err = b.Ledger.Change(ctx, t)
	}
	return b.bend(row), err
}

// noUnique makes a row for every claim that has seen none.
func noUnique() *fault {
	return &fault{claim: func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
		row, won, err := l.Claim(ctx, c)
		if won || err != nil || c.Seen.Operation != "" {
			return row, won, err
		}
		identity := c.Identity
		c.Identity += " " + c.Token
		if second, won, err := l.Claim(ctx, c); won || err != nil {
			second.Identity, second.Key = identity, registry.DownstreamKey(second.Namespace, identity, second.Generation)
			return second, won, err
		}
		return row, false, nil
	}}
}

// anyIsNew claims what was not looked for as though it had been.
func anyIsNew() *fault {
	return &fault{claim: func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
		c.New = false
		return l.Claim(ctx, c)
	}}
}

// noTokenCheck takes whatever token comes for the row's.
func noTokenCheck() *fault {
	token := func(ctx context.Context, l middleware.Ledger, operation, token string) string {
		if row, ok, err := l.Find(ctx, middleware.Query{Operation: operation}); ok && err == nil {
			return row.Token
		}
		return token
	}
	return &fault{
		claim: func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
			if c.Seen.Operation != "" {
				c.Seen.Token = token(ctx, l, c.Seen.Operation, c.Seen.Token)
			}
			return l.Claim(ctx, c)
		},
		change: func(ctx context.Context, l middleware.Ledger, t middleware.Transition) (middleware.Row, error) {
			t.Token = token(ctx, l, t.Operation, t.Token)
			return l.Change(ctx, t)
		},
	}
}

// overwrites stores a claim's result over the one that it has stored before.
func overwrites() *fault {
	var mu sync.Mutex
	results := map[string]middleware.Transition{}
	return &fault{
		change: func(ctx context.Context, l middleware.Ledger, t middleware.Transition) (middleware.Row, error) {
			row, err := l.Change(ctx, t)
			if t.Step == middleware.Complete && errors.Is(err, middleware.ErrLost) && row.State == middleware.Done && row.Token == t.Token {
				mu.Lock()
				defer mu.Unlock()
				results[t.Operation] = t
				err = nil
			}
			return row, err
		},
		read: func(r *middleware.Row) {
			mu.Lock()
			defer mu.Unlock()
			if t, ok := results[r.Operation]; ok {
				r.Result, r.HasResult = t.Result, t.HasResult
			}
		},
	}
}

// freedByTime takes a claim for a lease that ends with its deadline.
func freedByTime() *fault {
	return &fault{claim: func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
		row, won, err := l.Claim(ctx, c)
		live := row.State == middleware.Running || row.State == middleware.InDoubt
		if won || err != nil || !live || row.Identity != c.Identity || row.Now.Before(row.Deadline) {
			return row, won, err
		}
		c.Seen, err = l.Change(ctx, middleware.Transition{Step: middleware.GiveBack, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt})
		if err != nil {
			return row, false, err
		}
		return l.Claim(ctx, c)
	}}
}

// noFingerprint keeps an operation without what else its call said.
func noFingerprint() *fault {
	return &fault{read: func(r *middleware.Row) { r.Fingerprint = "" }}
}

// oneNamespace gives all tenants the same view.
func oneNamespace(sys System) System {
	sys.Namespace = func(l middleware.Ledger, _ string) middleware.Ledger { return l }
	return sys
}

// lostIsSuccess does not look at how many rows an UPDATE has changed.
func lostIsSuccess() *fault {
	return &fault{change: func(ctx context.Context, l middleware.Ledger, t middleware.Transition) (middleware.Row, error) {
		row, err := l.Change(ctx, t)
		if errors.Is(err, middleware.ErrLost) {
			err = nil
		}
		return row, err
	}}
}

// forgetful deletes a row that is freed, and with it its generation.
func forgetful() *fault {
	var mu sync.Mutex
	forgotten := map[string]int{} // generations, by operation
	return &fault{
		change: func(ctx context.Context, l middleware.Ledger, t middleware.Transition) (middleware.Row, error) {
			row, err := l.Change(ctx, t)
			if err == nil && row.State == middleware.Free {
				mu.Lock()
				defer mu.Unlock()
				forgotten[t.Operation] = row.Generation
			}
			return row, err
		},
		read: func(r *middleware.Row) {
			mu.Lock()
			defer mu.Unlock()
			if n, ok := forgotten[r.Operation]; ok {
				r.Generation -= n
				r.Key = registry.DownstreamKey(r.Namespace, r.Identity, r.Generation)
			}
		},
	}
}
