package middleware

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// janitor goes on trying what is to be cleared away while a store does not answer: one goroutine, however much it is.
type janitor struct {
	mu   sync.Mutex
	jobs []func() (done bool)
}

// do tries a job at once, in the background, and then every now and then until it is done.
func (l *janitor) do(job func() (done bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs = append(l.jobs, job); len(l.jobs) == 1 {
		go l.run()
	}
}

func (l *janitor) run() {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		l.mu.Lock()
		jobs := slices.Clone(l.jobs)
		l.mu.Unlock()
		done := make([]bool, len(jobs))
		for i, job := range jobs {
			done[i] = job()
		}
		l.mu.Lock()
		rest := l.jobs[len(jobs):] // came meanwhile
		for i, job := range jobs {
			if !done[i] {
				rest = append(rest, job)
			}
		}
		l.jobs = rest
		empty := len(rest) == 0
		l.mu.Unlock()
		if empty {
			return
		}
		time.Sleep(pause)
	}
}

// dropClaim frees a claim whose commit is in doubt, since nobody will run it.
func (g *guard) dropClaim(ctx context.Context, c Claim, held *Held) {
	g.janitor.do(func() bool {
		row, ok, err := g.ledger.Find(ctx, Query{Identity: c.Identity})
		if err != nil {
			return false
		}
		if ok && row.Token == c.Token {
			t := Transition{Step: GiveBack, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, NewKey: !row.Unclear}
			if _, err := g.ledger.Change(ctx, t); err != nil && !errors.Is(err, ErrLost) {
				return false
			}
		}
		held.End()
		return true
	})
}
