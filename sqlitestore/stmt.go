package sqlitestore

import (
	"context"
	"database/sql"
	"sync"
)

// statements prepares each query once.
type statements struct {
	prepare func(context.Context, string) (*sql.Stmt, error)

	mu     sync.Mutex
	known  map[string]*prepared
	closed bool
}

type prepared struct{ *sql.Stmt }

func (p *statements) get(ctx context.Context, query string) (*prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.known[query]; s != nil {
		return s, nil
	}
	if p.closed {
		return nil, ErrClosed
	}
	s, err := p.prepare(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	if p.known == nil {
		p.known = map[string]*prepared{}
	}
	p.known[query] = &prepared{s}
	return p.known[query], nil
}

func (p *statements) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.known {
		_ = s.Close() // it goes with its connections
	}
	p.known, p.closed = nil, true
}
