package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/transcript"
)

// story plays the scenes twice, without and with the guard.
type story struct {
	options
	scenes []scene
	dir    string // of the files
	tell   *teller
	kills  int
	books  provider.Tally // of the guarded pass
}

// The files of a story.
const (
	onceFile     = "once.db"
	providerFile = "provider.db"
	unguardedPay = "provider-unguarded.db"
)

// openStory makes the directory of the files; done removes it, unless it is to be kept.
func openStory(opts options, tell *teller) (s *story, done func() error, err error) {
	s = &story{options: opts, scenes: newScenes(opts.seed, opts.only), tell: tell, dir: opts.keep}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "refund-bot-"); err != nil {
			return nil, nil, err
		}
		return s, func() error { return os.RemoveAll(s.dir) }, nil
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the directory of -keep: %w", err)
	}
	for _, name := range []string{onceFile, providerFile, unguardedPay} {
		if _, err := os.Lstat(filepath.Join(s.dir, name)); !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("-keep %s: it has a %s already: name another directory", opts.keep, name)
		}
	}
	return s, func() error { return nil }, nil
}

func (s *story) run(ctx context.Context) (report, error) {
	s.opening()
	s.tell.print("\n=== Pass 1 of 2: a bare loop (bare.go), without middleware.Once ===")
	unguarded, err := s.pass(ctx, false)
	if err != nil {
		return report{}, err
	}
	s.tell.print("\n=== Pass 2 of 2: the same failures and agent.New (worker.go): a loop that remembers, with middleware.Once ===")
	guarded, err := s.pass(ctx, true)
	if err != nil {
		return report{}, err
	}
	s.books = guarded
	r := newReport(s.scenes, unguarded, guarded)
	r.Kills, r.Provider, r.API, r.Stream, r.Seed = s.kills, s.kind, s.api, s.stream, s.seed
	return r, nil
}

func (s *story) opening() {
	offers := map[provider.Kind]string{
		provider.Keyed:  "honours an Idempotency-Key header",
		provider.Lookup: "can be asked which refunds an order has had",
		provider.Plain:  "neither honours a key nor can be asked",
	}
	s.tell.print("A bot refunds orders. The model (%s) is scripted; the SDK, HTTP, processes, kills and SQLite files are real.", s.wire())
	s.tell.print("The payment provider (-provider %s) %s.", s.kind, offers[s.kind])
}

func (s *story) ending(r report) {
	s.tell.print("\n=== The provider's own file, counted ===\n%s", r)
	if len(r.InDoubt) > 0 {
		s.tell.print("\nThis provider cannot say what became of a request whose answer was lost, so the guard holds such a refund for a")
		s.tell.print("person, who looks at the provider's books and settles it with one command:")
		for _, d := range r.InDoubt {
			s.tell.print("  # %s, order %s\n  %s", d.Name, d.Order, d.Settle)
		}
		if s.keep == "" {
			s.tell.print("(The files of this run are removed now: add -keep DIR to have some to try it on.)")
		}
	}
	if s.keep != "" {
		s.tell.print("\nKept in %s: %s and %s of pass 2, %s of pass 1.", s.dir, providerFile, onceFile, unguardedPay)
	}
}

// pass plays the scenes once.
type pass struct {
	*story
	guarded bool
	bank    *provider.Provider
	job     job // what all its workers have in common

	mu     sync.Mutex
	worker *child          // at work
	struck map[string]bool // scenes whose failure has happened
	err    error           // of a failure that did not succeed
}

func (s *story) pass(ctx context.Context, guarded bool) (t provider.Tally, err error) {
	p := &pass{story: s, guarded: guarded, struck: map[string]bool{}}
	pay := unguardedPay
	if guarded {
		pay = providerFile
	}
	p.bank, err = provider.Open(ctx, filepath.Join(s.dir, pay), provider.Options{
		Kind: s.kind, Committed: p.committed, Say: func(text string) { s.tell.line("provider", "%s", text) },
	})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.bank.Close()) }()
	for _, sc := range s.scenes {
		if err := p.bank.AddOrder(ctx, sc.order, sc.paid()); err != nil {
			return t, err
		}
	}
	bankURL, stopBank, err := serve(ctx, "payment provider", p.bank)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, stopBank()) }()
	modelURL, stopModel, err := serve(ctx, "scripted model", transcript.NewServer(s.tell.model(script(s.scenes)), nil))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, stopModel()) }()
	p.job = job{
		Guarded: guarded, DB: filepath.Join(s.dir, onceFile), API: s.api, Stream: s.stream,
		Model: scriptedModel, BaseURL: modelURL + "/v1", APIKey: "none", Pay: bankURL, Provider: s.kind,
	}
	for _, sc := range s.scenes {
		if err := p.play(ctx, sc); err != nil {
			return t, fmt.Errorf("%s: %w", sc.name, err)
		}
	}
	return p.bank.Count(ctx)
}

// play has a worker answer the scene's message, and another one where the first was killed.
func (p *pass) play(ctx context.Context, sc scene) error {
	p.tell.print("\n%s: %s", sc.name, sc.about)
	p.tell.line("user", "%q", sc.message())
	j := p.job
	j.Run, j.Message = "ticket-"+sc.order, sc.message()
	for again := true; again; {
		w, err := p.start(ctx, j)
		if err != nil {
			return err
		}
		err = w.wait()
		if again = p.struckDead(w); !again && err != nil {
			return err
		}
		if again {
			p.tell.line("worker", "is started again, with the same run id")
		}
	}
	t, err := p.bank.Count(ctx)
	if err != nil {
		return err
	}
	p.outcome(sc, t)
	return p.err
}

func (p *pass) outcome(sc scene, t provider.Tally) {
	n, what := len(t.Refunds[sc.order]), "refunds"
	if sc.name == notes {
		n, what = t.Notes[sc.order], "notes"
	}
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	p.tell.print("  => %d %s, wanted %d", n, what, sc.wanted())
}

func (p *pass) start(ctx context.Context, j job) (w *child, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worker, err = startChild(ctx, j)
	return p.worker, err
}

func (p *pass) struckDead(w *child) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.killed
}

// committed is the failures' moment: money has moved, and nobody but the provider knows.
func (p *pass) committed(ctx context.Context, order string) {
	for _, sc := range p.scenes {
		if sc.order == order && p.first(sc) {
			switch sc.name {
			case lateAnswer:
				p.tell.line("provider", "... and is slow to answer: the tool stops waiting after %v", clientTimeout)
				<-ctx.Done() // the client has gone
			case killed:
				p.kill()
			}
		}
	}
}

// first tells whether the scene's failure is still to come.
func (p *pass) first(sc scene) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.struck[sc.name]
	p.struck[sc.name] = true
	return !was
}

func (p *pass) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell.line("worker", "is killed (SIGKILL, process %d) before the answer arrives: no result is saved", p.worker.cmd.Process.Pid)
	if p.err = p.worker.kill(); p.err == nil {
		p.kills++
	}
}
