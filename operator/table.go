package operator

import (
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// table is a list of things, all of one kind. Empty is what stands there where there are none.
type table struct {
	Caption string
	Head    []string
	Rows    [][]cell
	Empty   string
	More    string // says that there are more, and how to see them
}

// cell is one value: a text, perhaps a link or a moment.
type cell struct {
	Text, Href string
	Class      string    // "id", "name", "number", or the name of a state or verdict, which gives it a colour
	Badge      bool      // it is such a name
	At         time.Time // zero for none: Text says how long ago
	Label      string    // of its column, set by add
}

// fact is one thing to know of something.
type fact struct {
	Name string
	cell
}

// Stamp is the moment, for programs.
func (c cell) Stamp() string { return c.At.UTC().Format(time.RFC3339) }

// Full is the moment, for people.
func (c cell) Full() string { return stamp(c.At) }

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].Label = t.Head[i]
	}
	t.Rows = append(t.Rows, cells)
}

func text(s string) cell { return cell{Text: s} }

// name is that of a tool.
func name(s string) cell { return cell{Text: s, Class: "name"} }

// id is a name that somebody gave or that is random, with a link where page is not "".
func id(name, page string) cell {
	c := cell{Text: name, Class: "id"}
	if page != "" && name != "" {
		c.Href = to(page, "id", name)
	}
	return c
}

// ago is a moment as it looks from now.
func ago(at, now time.Time) cell {
	switch {
	case at.IsZero():
		return cell{}
	case at.After(now):
		return cell{Text: "in " + age(at.Sub(now)), At: at}
	}
	return cell{Text: age(now.Sub(at)) + " ago", At: at}
}

// moment is a moment that is written out.
func moment(at, now time.Time) cell {
	c := ago(at, now)
	if !at.IsZero() {
		c.Text = stamp(at) + ", " + c.Text
	}
	return c
}

// badge is the name of a state or verdict in words.
func badge[T ~string](name T) cell {
	return cell{Text: words(string(name)), Class: string(name), Badge: true}
}

// words are the names of states, verdicts and acts as people say them.
func words(name string) string {
	if name == middleware.ActNotHappened {
		return "did not happen"
	}
	return strings.ReplaceAll(name, "_", " ")
}
