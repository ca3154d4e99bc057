package main

import (
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

// counts is how often something was wanted, and how often it happened.
type counts struct {
	Wanted    int `json:"wanted"`
	Unguarded int `json:"unguarded"`
	Guarded   int `json:"guarded"`
}

// failure is one scene's refunds.
type failure struct {
	Name string `json:"name"`
	counts
}

// doubt is an operation that a person must settle.
type doubt struct {
	Name      string `json:"name"` // of the scene
	Operation string `json:"operation"`
	Order     string `json:"order"`
	Settle    string `json:"settle"` // the command; for -keep, else its file is gone
}

// report is what the provider's files say at the end.
type report struct {
	Failures  []failure     `json:"failures"`
	Unguarded int           `json:"unguarded_refunds"` // the sums over the failures
	Guarded   int           `json:"guarded_refunds"`
	Wanted    int           `json:"wanted_refunds"`
	Kills     int           `json:"kills"`
	Notes     *counts       `json:"notes,omitempty"`
	InDoubt   []doubt       `json:"in_doubt,omitempty"` // of the guarded pass
	Provider  provider.Kind `json:"provider"`
	API       string        `json:"api"`
	Stream    bool          `json:"stream"`
	Seed      uint64        `json:"seed"`

	moved [2]int64 // cents, without and with the guard
}

// newReport compares what the scenes wanted with what the two passes did.
func newReport(scenes []scene, unguarded, guarded provider.Tally) report {
	r := report{Failures: []failure{}, moved: [2]int64{unguarded.Cents, guarded.Cents}}
	for _, s := range scenes {
		if s.name == notes {
			r.Notes = &counts{s.wanted(), unguarded.Notes[s.order], guarded.Notes[s.order]}
			continue
		}
		f := failure{s.name, counts{s.wanted(), len(unguarded.Refunds[s.order]), len(guarded.Refunds[s.order])}}
		r.Failures = append(r.Failures, f)
		r.Wanted += f.Wanted
		r.Unguarded += f.Unguarded
		r.Guarded += f.Guarded
	}
	return r
}

// wrong names the lines where the guarded pass did not do what was wanted.
func (r report) wrong() []string {
	var names []string
	for _, f := range r.Failures {
		if f.Guarded != f.Wanted {
			names = append(names, f.Name)
		}
	}
	if r.Notes != nil && r.Notes.Guarded != r.Notes.Wanted {
		names = append(names, notes)
	}
	return names
}

// String is the report as a table.
func (r report) String() string {
	var b strings.Builder
	row := func(name string, c counts) {
		mark := ""
		if c.Unguarded != c.Wanted {
			mark = fmt.Sprintf("   <- without: %+d", c.Unguarded-c.Wanted)
		}
		if c.Guarded != c.Wanted {
			mark += "   <- WRONG"
		}
		_, _ = fmt.Fprintf(&b, "%-16s %7d %9d %10d%s\n", name, c.Wanted, c.Unguarded, c.Guarded, mark)
	}
	_, _ = fmt.Fprintf(&b, "%-16s %7s %9s %10s\n", "", "wanted", "without", "with Once")
	for _, f := range r.Failures {
		row(f.Name, f.counts)
	}
	if len(r.Failures) > 0 {
		row("refunds in all", counts{r.Wanted, r.Unguarded, r.Guarded})
		_, _ = fmt.Fprintf(&b, "%-16s %7s %9s %10s\n", "money moved", "", provider.Money(r.moved[0]), provider.Money(r.moved[1]))
	}
	if r.Notes != nil {
		row("notes", *r.Notes)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
