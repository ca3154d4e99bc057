package middleware_test

import (
	"context"
	"sync"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// provider does what the tools ask for, and outlives the processes.
type provider struct {
	mu    sync.Mutex
	count map[string]int  // effects, by tool
	facts map[string]bool // what was done, by tool and name, or by downstream key
	key   string          // of the last handler
}

// process is one process of the program, which may die at a point.
type process struct {
	*middleware.MemoryLedger
	*provider
	handle registry.Handler
	tools  *registry.Registry
	gate   chan struct{}
	next   request // how its next handler ends, and where it dies
	token  string  // of its last claim
	dead   chan struct{}
	end    chan struct{} // of the scenario: the dead go on, so that nothing is left over
}

// at is where the process dies, if it is to. The dead do nothing any more.
func (p *process) at(here point) {
	p.mu.Lock()
	if p.next.dies == here && here != alive {
		p.next.dies = alive
		p.die()
	}
	p.mu.Unlock()
	select {
	case <-p.dead:
		<-p.end
	default:
	}
}

// expect says how the next handler ends, and where the process dies. A handler waits for gate, if that is not nil.
func (p *process) expect(r request, gate chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.gate, p.key = r, gate, ""
}

func (p *process) die() {
	p.Die()
	close(p.dead)
}

func (p *process) Claim(ctx context.Context, c middleware.Claim) (middleware.Row, bool, error) {
	p.at(beforeClaim)
	row, won, err := p.MemoryLedger.Claim(ctx, c)
	if c.New && !won { // it is looked at, and then perhaps claimed
		return row, won, err
	}
	p.mu.Lock()
	p.token = c.Token
	p.mu.Unlock()
	p.at(afterClaim)
	return row, won, err
}

func (p *process) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	before, after := beforeStoring, afterStoring
	if p.mu.Lock(); t.Token != p.token { // what an earlier call stores late
		before, after = alive, alive
	}
	p.mu.Unlock()
	p.at(before)
	defer p.at(after)
	return p.MemoryLedger.Change(ctx, t)
}

func (p *process) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	p.at(alive)
	return p.MemoryLedger.Find(ctx, q)
}

func (p *process) act(ctx context.Context, tool, name string) (string, error) {
	p.at(beforeEffect)
	p.mu.Lock()
	key, ends, gate := registry.IdempotencyKey(ctx), p.next.ends, p.gate
	p.key, p.next.ends, p.gate = key, succeeds, nil
	p.mu.Unlock()
	if gate != nil {
		<-gate
	}
	p.mu.Lock()
	if ends.acts() && (tool != "rerun" || !p.facts[key]) {
		p.count[tool]++
		p.facts[tool+" "+name], p.facts[key] = true, true
	}
	p.mu.Unlock()
	p.at(afterEffect)
	switch ends {
	case refuses:
		return "", registry.NoEffect(errTimeout)
	case failsBefore, failsAfter:
		return "", errTimeout
	case panicsBefore, panicsAfter:
		panic("broken")
	case comesLate:
		time.Sleep(2*timeout + time.Second)
	case succeeds:
	}
	return "did " + name, nil
}

func (p *process) lookup(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.next.unsure:
		return "", errTimeout
	case p.facts["look "+name]:
		return "did " + name, nil
	}
	return "", registry.NoEffect(errTimeout)
}

type modelInput struct {
	Name  string `json:"name" once:"key"`
	Cents int    `json:"cents"`
}

type modelPlain struct {
	Name  string `json:"name"`
	Cents int    `json:"cents"`
}

func start(l *middleware.MemoryLedger, world *provider, end chan struct{}) *process {
	p := &process{MemoryLedger: l, provider: world, tools: registry.New(), dead: make(chan struct{}), end: end}
	keyed := func(t registry.Tool[modelInput, string]) {
		t.Effect, t.Timeout = registry.NonIdempotentWrite, timeout
		t.Run = func(ctx context.Context, in modelInput) (string, error) { return p.act(ctx, t.Name, in.Name) }
		registry.Add(p.tools, t)
	}
	keyed(registry.Tool[modelInput, string]{Name: "refund"})
	keyed(registry.Tool[modelInput, string]{Name: "rerun", Recovery: registry.Rerun})
	keyed(registry.Tool[modelInput, string]{Name: "look", Lookup: func(_ context.Context, in modelInput) (string, error) { return p.lookup(in.Name) }})
	plain := func(t registry.Tool[modelPlain, string]) {
		t.Timeout = timeout
		t.Run = func(ctx context.Context, in modelPlain) (string, error) { return p.act(ctx, t.Name, in.Name) }
		registry.Add(p.tools, t)
	}
	plain(registry.Tool[modelPlain, string]{Name: "pay", Effect: registry.NonIdempotentWrite})
	plain(registry.Tool[modelPlain, string]{Name: "note", Effect: registry.NonIdempotentWrite, Identity: registry.ByCall})
	plain(registry.Tool[modelPlain, string]{Name: "set", Effect: registry.IdempotentWrite})
	for name, undoes := range map[string]string{"reserve": "", "give_up": "reserve"} {
		registry.Add(p.tools, registry.Tool[seatInput, string]{
			Name: name, Effect: registry.NonIdempotentWrite, Undoes: undoes, Timeout: timeout,
			Run: func(ctx context.Context, in seatInput) (string, error) { return p.act(ctx, name, in.Seat) },
		})
	}
	o := options()
	o.Repeats = -1
	p.handle = p.tools.Handler(middleware.Once(p, o))
	return p
}
