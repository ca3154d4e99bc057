package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/toolonce/toolonce/agent/journal"
)

// latest remembers who has begun each run last.
type latest struct {
	mu   sync.Mutex
	runs map[[2]string]holder
}

type holder struct {
	start   journal.Start
	token   string
	process *int
}

func newLatest() *latest { return &latest{runs: map[[2]string]holder{}} }

func (l *latest) of(b *brokenJournal, run string) holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[[2]string{b.view, run}]
}

func (l *latest) begin(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
	r, err := b.Journal.Begin(ctx, s)
	if err == nil && r.Token != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs[[2]string{b.view, s.Run.ID}] = holder{r.Start, r.Token, b.process}
	}
	return r, err
}

// noTokenCheck takes whatever token comes for the run's.
func noTokenCheck() *fault {
	l := newLatest()
	return &fault{
		begin: l.begin,
		store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
			token := e.Token
			e.Token = l.of(b, e.Run).token
			e, err := b.Journal.Append(ctx, e)
			if err == nil {
				e.Token = token
			}
			return e, err
		},
		leave: func(ctx context.Context, b *brokenJournal, v journal.Leaving) error {
			v.Token = l.of(b, v.Run).token
			return b.Journal.Leave(ctx, v)
		},
	}
}

// fromTheLiving takes a run whoever has it.
func fromTheLiving() *fault {
	l := newLatest()
	return &fault{begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
		r, err := l.begin(ctx, b, s)
		for errors.Is(err, journal.ErrRunTaken) {
			_ = b.Journal.Leave(ctx, journal.Leaving{Run: s.Run.ID, Token: l.of(b, s.Run.ID).token}) // or another was faster
			r, err = l.begin(ctx, b, s)
		}
		return r, err
	}}
}

// noEvidence has an owner keep its runs for ever.
func noEvidence() *fault {
	l := newLatest()
	return &fault{begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
		had := l.of(b, s.Run.ID)
		if had.token == "" || had.process == b.process {
			return l.begin(ctx, b, s)
		}
		// Only what was left or finished is given: the token says so, for it stores nothing any more.
		_, err := b.Journal.Append(ctx, journal.Entry{Run: s.Run.ID, Token: had.token, Turn: journal.Turn{Number: -1}})
		if !errors.Is(err, journal.ErrLost) {
			return journal.Record{}, journal.ErrRunTaken
		}
		return l.begin(ctx, b, s)
	}}
}

// keepsTheRun forgets to note that a call has ended with an error.
func keepsTheRun() *fault {
	l := newLatest()
	var kept sync.Map // tokens of the runs that such calls had
	return &fault{
		begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
			if _, ok := kept.Load(l.of(b, s.Run.ID).token); ok {
				return journal.Record{}, journal.ErrRunTaken
			}
			return l.begin(ctx, b, s)
		},
		store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
			stored, err := b.Journal.Append(ctx, e)
			if err != nil && !errors.Is(err, journal.ErrLost) {
				kept.Store(e.Token, nil)
			}
			return stored, err
		},
		leave: func(ctx context.Context, b *brokenJournal, v journal.Leaving) error {
			err := b.Journal.Leave(ctx, v)
			if err != nil && !errors.Is(err, journal.ErrLost) {
				kept.Store(v.Token, nil)
			}
			return err
		},
	}
}

// noInput goes by the id alone.
func noInput() *fault {
	l := newLatest()
	return &fault{begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
		r, err := l.begin(ctx, b, s)
		if errors.Is(err, journal.ErrOtherInput) {
			return l.begin(ctx, b, l.of(b, s.Run.ID).start)
		}
		return r, err
	}}
}

// lostIsSuccess does not look at how many rows an UPDATE has changed.
func lostIsSuccess() *fault {
	return &fault{
		store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
			stored, err := b.Journal.Append(ctx, e)
			if errors.Is(err, journal.ErrLost) {
				return e, nil
			}
			return stored, err
		},
		leave: func(ctx context.Context, b *brokenJournal, v journal.Leaving) error {
			err := b.Journal.Leave(ctx, v)
			if errors.Is(err, journal.ErrLost) {
				return nil
			}
			return err
		},
	}
}

// adoptsNothing does not read back what was in the way of an INSERT.
func adoptsNothing() *fault {
	return &fault{store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
		_, err := b.Journal.Append(ctx, e)
		if err != nil {
			return journal.Entry{}, err
		}
		e.Turn.Outputs = nil
		return e, nil
	}}
}

// overwrites keeps the latest output of each call.
func overwrites() *fault {
	type call struct {
		view, run      string
		turn, position int
	}
	var mu sync.Mutex
	outputs := map[call]journal.Output{}
	note := func(b *brokenJournal, run string, turn int, all []journal.Output) {
		mu.Lock()
		defer mu.Unlock()
		for _, o := range all {
			outputs[call{b.view, run, turn, o.Position}] = o
		}
	}
	bend := func(b *brokenJournal, run string, turn int, all []journal.Output) {
		mu.Lock()
		defer mu.Unlock()
		for i, o := range all {
			all[i] = outputs[call{b.view, run, turn, o.Position}]
		}
	}
	return &fault{
		begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
			r, err := b.Journal.Begin(ctx, s)
			for _, t := range r.Turns {
				bend(b, s.Run.ID, t.Number, t.Outputs)
			}
			return r, err
		},
		store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
			stored, err := b.Journal.Append(ctx, e)
			if err == nil {
				note(b, e.Run, e.Turn.Number-1, e.Outputs)
				bend(b, e.Run, e.Turn.Number-1, stored.Outputs)
			}
			return stored, err
		},
		leave: func(ctx context.Context, b *brokenJournal, v journal.Leaving) error {
			err := b.Journal.Leave(ctx, v)
			if err == nil {
				note(b, v.Run, v.Turn, v.Outputs)
			}
			return err
		},
	}
}

// renumbers counts the turns itself.
func renumbers() *fault {
	return &fault{store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
		n := e.Turn.Number
		stored, err := b.Journal.Append(ctx, e)
		for err != nil && !errors.Is(err, journal.ErrLost) && e.Turn.Number > 1 {
			e.Turn.Number--
			stored, err = b.Journal.Append(ctx, e)
		}
		if err == nil {
			stored.Turn.Number = n
		}
		return stored, err
	}}
}

// noFinal does not keep that a turn is the last one.
func noFinal() *fault {
	return &fault{store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
		final := e.Final
		e.Final = false
		stored, err := b.Journal.Append(ctx, e)
		if err == nil && final && stored.Turn.Number == e.Turn.Number {
			stored.Final = final
			err = b.Journal.Leave(ctx, journal.Leaving{Run: e.Run, Token: e.Token})
		}
		return stored, err
	}}
}

// forgetful drops what the calls of the last turn were answered with.
func forgetful() *fault {
	return &fault{leave: func(ctx context.Context, b *brokenJournal, v journal.Leaving) error {
		v.Outputs = nil
		return b.Journal.Leave(ctx, v)
	}}
}

// asValues keeps what an answer says, and not its bytes.
func asValues() *fault {
	return &fault{store: func(ctx context.Context, b *brokenJournal, e journal.Entry) (journal.Entry, error) {
		var v any
		if err := json.Unmarshal(e.Turn.Answer, &v); err == nil {
			if e.Turn.Answer, err = json.Marshal(v); err != nil {
				return journal.Entry{}, err
			}
		}
		return b.Journal.Append(ctx, e)
	}}
}
