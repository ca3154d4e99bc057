package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolonce/toolonce/internal/visible"
)

// lines writes out what cannot be seen in a text, but for the ends of its lines and tabs. Whole pages go through it, so that
// no value can be forgotten.
func lines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		text, end := strings.CutSuffix(line, "\n")
		for i, part := range strings.Split(text, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(visible.Text(part))
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// age is a duration in its two largest units at most.
func age(d time.Duration) string {
	switch d = d.Truncate(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// plural is a number with its word.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// to is a link to a page about something, or to a list of what is so: name and value in turn.
func to(page string, query ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			q.Set(query[i], query[i+1])
		}
	}
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}

// place is where a call stands: its turn, and its position in that.
func place(turn, position int) string { return fmt.Sprintf("%d.%d", turn, position) }

// data is what a user, a model or a tool wrote.
type data struct {
	Name  string
	Bytes int
	Text  string // "" where it is not shown
	Cut   bool   // it goes on
}

// maxData is how much of a text a page shows.
const maxData = 64 << 10

// dataOf is a text as a page shows it, or only its size.
func (s *site) dataOf(name, text string) data {
	d := data{Name: name, Bytes: len(text)}
	if !s.ShowData {
		return d
	}
	d.Text = text
	var b bytes.Buffer
	if len(text) <= maxData && strings.HasPrefix(strings.TrimSpace(text), "{") && json.Indent(&b, []byte(text), "", "  ") == nil {
		d.Text = b.String()
	}
	if d.Cut = len(d.Text) > maxData; d.Cut {
		d.Text = strings.ToValidUTF8(d.Text[:maxData], "")
	}
	return d
}

// number is a count, with blanks between thousands.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// sentence begins with a capital and ends with a full stop, or what it ends with already.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(r)) + s[n:]
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// locked says why content could not be opened, and how to mend it.
func locked(err error) string {
	return err.Error() + ". A service gives its store the Codec with that key; toolonce serve takes keys in TOOLONCE_KEYS."
}
