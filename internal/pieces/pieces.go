// Package pieces is what the stores share of how they forget: in what pieces.
package pieces

import (
	"context"
	"time"
)

// How much is done at a time.
const (
	Scan  = 10_000  // rows that are looked at by one query
	Batch = 500     // rows that are changed by one transaction
	Bytes = 8 << 20 // of content that goes by one transaction
	// Margin is for claims under way whose ids are of a while ago: what is younger is looked at again the next time.
	Margin = 24 * time.Hour
)

// Candidate is an operation that has something to forget.
type Candidate struct {
	ID     int64
	Whole  bool // it may go altogether
	Needed bool // an open call means it
	Bytes  int  // of its content
}

// Cut takes from the front what goes by one transaction, one at least.
func Cut(due []Candidate) (batch, rest []Candidate) {
	n, bytes := 0, 0
	for n < len(due) && n < Batch && (n == 0 || bytes+due[n].Bytes <= Bytes) {
		bytes += due[n].Bytes
		n++
	}
	return due[:n], due[n:]
}

// Over says why the work is not gone on with.
func Over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
