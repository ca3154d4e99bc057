package main

import (
	"flag"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// person is who does something that stays on record, and why.
type person struct{ by, why string }

func personFlags(fs *flag.FlagSet) *person {
	var p person
	fs.StringVar(&p.by, "by", "", "with -yes: your `name`, which stays on record (required)")
	fs.StringVar(&p.why, "why", "", "with -yes: why, which stays on record like the name: `text` (required)")
	return &p
}

// act is what the person does with a verb.
func (p *person) act(verb string) (middleware.Act, error) {
	if strings.TrimSpace(p.by) == "" || strings.TrimSpace(p.why) == "" {
		return middleware.Act{}, usagef("%s -yes: say who does it and why: --by NAME --why TEXT", verb)
	}
	return middleware.Act{By: p.by, Why: p.why}, nil
}
