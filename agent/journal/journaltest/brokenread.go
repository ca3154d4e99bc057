package journaltest

import (
	"context"
	"slices"
	"sync"

	"github.com/toolonce/toolonce/agent/journal"
)

func brokenReads() []BrokenJournal {
	return []BrokenJournal{
		{
			Name: "runs of every tenant are listed", Wrap: faulty(listsEveryTenant),
			Fails: "runs/of another namespace are not listed",
		},
		{
			Name: "a run of any tenant is read", Wrap: faulty(readsAnyTenant),
			Fails: "read/a run of another namespace is none",
		},
		{
			Name: "a run is read with its token", Wrap: faulty(readsToken),
			Fails: "read/a run is given whole, whoever has it, without its token",
			Also:  []string{"read/a run of another namespace is none", "read/takes nothing", "read/what is returned is the caller's alone", "forget/what was forgotten is not read", "forget/a token is worth nothing afterwards"},
		},
		{
			Name: "who reads a run has it", Wrap: faulty(readsByTaking),
			Fails: "read/takes nothing",
		},
		{
			Name: "the query is not looked at", Wrap: faulty(listsAll),
			Fails: "runs/of a conversation, and those without an answer, are told apart",
			Also:  []string{"runs/are listed from the last one made, so many as are wanted", "forget/what was forgotten is not read"},
		},
		{
			Name: "the first run made is listed first", Wrap: faulty(listsBackwards),
			Fails: "runs/are listed from the last one made, so many as are wanted",
			Also:  []string{"runs/of a conversation, and those without an answer, are told apart", "runs/tell who has them"},
		},
		{
			Name: "who has a run is taken to live", Wrap: faulty(listsAsTaken),
			Fails: "runs/tell who has them",
		},
	}
}

// Runs implements journal.Reader.
func (b *brokenJournal) Runs(ctx context.Context, q journal.RunsQuery) ([]journal.Summary, error) {
	if b.list != nil {
		return b.list(ctx, b, q)
	}
	r, err := reader(b.Journal)
	if err != nil {
		return nil, err
	}
	return r.Runs(ctx, q)
}

// Read implements journal.Reader.
func (b *brokenJournal) Read(ctx context.Context, run string) (journal.Record, bool, error) {
	if b.read != nil {
		return b.read(ctx, b, run)
	}
	r, err := reader(b.Journal)
	if err != nil {
		return journal.Record{}, false, err
	}
	return r.Read(ctx, run)
}

// sound is the journal without the fault.
func (b *brokenJournal) sound() *brokenJournal {
	return &brokenJournal{Journal: b.Journal, fault: &fault{}}
}

// tenants remembers who has begun runs.
type tenants struct {
	mu    sync.Mutex
	names []string
	views []*brokenJournal
}

func (t *tenants) begin(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
	t.mu.Lock()
	if !slices.Contains(t.names, b.view) {
		t.names, t.views = append(t.names, b.view), append(t.views, b.sound())
	}
	t.mu.Unlock()
	return b.Journal.Begin(ctx, s)
}

// others are the views of the tenants but for b's.
func (t *tenants) others(b *brokenJournal) (all []*brokenJournal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, name := range t.names {
		if name != b.view {
			all = append(all, t.views[i])
		}
	}
	return all
}

// listsEveryTenant has no namespace in its query.
func listsEveryTenant() *fault {
	t := &tenants{}
	return &fault{begin: t.begin, list: func(ctx context.Context, b *brokenJournal, q journal.RunsQuery) ([]journal.Summary, error) {
		all, err := b.sound().Runs(ctx, q)
		for _, other := range t.others(b) {
			more, _ := other.Runs(ctx, q)
			all = append(all, more...)
		}
		return all, err
	}}
}

// readsAnyTenant has no namespace in its query.
func readsAnyTenant() *fault {
	t := &tenants{}
	return &fault{begin: t.begin, read: func(ctx context.Context, b *brokenJournal, run string) (journal.Record, bool, error) {
		r, ok, err := b.sound().Read(ctx, run)
		for _, other := range t.others(b) {
			if !ok && err == nil {
				r, ok, err = other.Read(ctx, run)
			}
		}
		return r, ok, err
	}}
}

// readsToken gives the token away.
func readsToken() *fault {
	l := newLatest()
	return &fault{begin: l.begin, read: func(ctx context.Context, b *brokenJournal, run string) (journal.Record, bool, error) {
		r, ok, err := b.sound().Read(ctx, run)
		r.Token = l.of(b, run).token
		return r, ok, err
	}}
}

// readsByTaking reads as those do who go on with a run.
func readsByTaking() *fault {
	l := newLatest()
	return &fault{begin: l.begin, read: func(ctx context.Context, b *brokenJournal, run string) (journal.Record, bool, error) {
		if start := l.of(b, run).start; start.Run.ID != "" {
			_, _ = b.Journal.Begin(ctx, start) // where it cannot be had it is only read
		}
		return b.sound().Read(ctx, run)
	}}
}

func listsAll() *fault {
	return &fault{list: func(ctx context.Context, b *brokenJournal, _ journal.RunsQuery) ([]journal.Summary, error) {
		return b.sound().Runs(ctx, journal.RunsQuery{})
	}}
}

func listsBackwards() *fault {
	return &fault{list: func(ctx context.Context, b *brokenJournal, q journal.RunsQuery) ([]journal.Summary, error) {
		n := q.Limit
		q.Limit = 0
		all, err := b.sound().Runs(ctx, q)
		slices.Reverse(all)
		if n > 0 && n < len(all) {
			all = all[:n]
		}
		return all, err
	}}
}

// listsAsTaken does not look for who has gone.
func listsAsTaken() *fault {
	return &fault{list: func(ctx context.Context, b *brokenJournal, q journal.RunsQuery) ([]journal.Summary, error) {
		all, err := b.sound().Runs(ctx, q)
		for i := range all {
			all[i].Taken = !all[i].Finished
		}
		return all, err
	}}
}
