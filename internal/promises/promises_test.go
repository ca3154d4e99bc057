package promises_test

import (
	"slices"
	"strings"
)

// group are the promises about one subject.
type group struct {
	title string
	// how are the commands that test them, besides make test.
	how      string
	promises []promise
}

// promise is one sentence, and why it may be believed.
type promise struct {
	says  string
	rests string
	// chosen is what somebody might expect otherwise, and why it is not so.
	chosen string
	// shown are the tests, the most telling one first: a package's last name and the test's, "agent.TestX" or
	// "agent.TestX/subtest", or a case of a suite, "ledgertest: complete/…" or "journaltest: take/…".
	shown []string
}

// all are the promises.
func all() []group {
	return slices.Concat(effects, outages, arguments, wires, stores)
}

// title is the first test, and how many there are besides.
func (p promise) title() (first string, more int) {
	return p.shown[0], len(p.shown) - 1
}

// split parts a test's name: its package, the test, and the subtest, "" for none; or a suite and its case.
func split(shown string) (where, test, sub string, isCase bool) {
	if suite, name, ok := strings.Cut(shown, ": "); ok {
		return suite, name, "", true
	}
	where, test, _ = strings.Cut(shown, ".")
	test, sub, _ = strings.Cut(test, "/")
	return where, test, sub, false
}
