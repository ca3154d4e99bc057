package agent

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Servers quote what they were sent, whole or in part, as it is or escaped, more than once where it was escaped before. What
// they say goes into error texts with all escapes undone, and without that: every run of window bytes that a private text
// has too, and every value of its JSON that is not too short to tell.
const (
	window      = 12
	shortest    = 4       // bytes of a value
	maxSaid     = 4000    // bytes of what a server says that are looked at
	maxPrivate  = 8 << 20 // bytes of private texts that are looked at, the latest first
	maxAPIText  = 1000    // bytes of what a server says that an error text carries
	maxLeaves   = 10_000
	placeholder = "…"
)

// textsOf are what a message or item says.
func textsOf(raw string) (texts []string) {
	m := gjson.Parse(raw)
	for _, path := range []string{
		"content", "content.#.text", "arguments", "output", "output.#.text", "input",
		"tool_calls.#.function.arguments", "tool_calls.#.custom.input", "function_call.arguments",
	} {
		for _, v := range m.Get(path).Array() {
			if v.Type == gjson.String {
				texts = append(texts, v.String())
			}
		}
	}
	return texts
}

// withoutTexts takes private texts out of s, and cuts it.
func withoutTexts(s string, texts []string) string {
	s = unescaped(s[:min(len(s), maxSaid)])
	r := redaction{s: s, marked: make([]bool, len(s)), at: map[string][]int{}}
	for i := 0; i+window <= len(s); i++ {
		r.at[s[i:i+window]] = append(r.at[s[i:i+window]], i)
	}
	for i, left := len(texts)-1, maxPrivate; i >= 0 && left > 0; i-- {
		t := texts[i][:min(len(texts[i]), left)]
		left -= len(t)
		r.windows(t)
		r.values(t)
		if plain := unescaped(t); plain != t {
			r.windows(plain)
			r.values(plain)
		}
	}
	return clipText(oneLine(r.text()))
}

// maxEscapes is how often a text may have been escaped.
const maxEscapes = 5

// unescaped undoes the escapes of JSON, and of what is JSON inside of JSON.
func unescaped(s string) string {
	for range maxEscapes {
		plain := escape.ReplaceAllStringFunc(s, func(e string) string {
			switch e[1] {
			case 'n', 'r', 't', 'b', 'f':
				return map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'f': "\f"}[e[1]]
			case 'u':
				return gjson.Parse(`"` + e + `"`).String()
			}
			return e[1:]
		})
		if plain == s {
			break
		}
		s = plain
	}
	return s
}

// escape is one; two halves of a character are one.
var escape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\["\\/nrtbf]`)

// oneLine has blanks in place of control characters.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// redaction is a text in which some bytes are marked as private.
type redaction struct {
	s      string
	marked []bool
	at     map[string][]int // where its windows are
	leaves int
}

func (r *redaction) windows(t string) {
	if len(r.at) == 0 {
		return
	}
	for j := 0; j+window <= len(t); j++ {
		for _, i := range r.at[t[j:j+window]] {
			r.mark(i, window)
		}
	}
}

// values marks the values of a document, or a text as it is.
func (r *redaction) values(t string) {
	v := gjson.Parse(t)
	switch {
	case !gjson.Valid(t):
		r.value(t)
	case v.IsObject() || v.IsArray():
		v.ForEach(func(_, v gjson.Result) bool {
			r.values(v.Raw)
			return r.leaves < maxLeaves
		})
	case v.Type == gjson.String || v.Type == gjson.Number:
		r.value(v.String())
		if inner := v.String(); v.Type == gjson.String && object(inner) {
			r.values(inner)
		}
	}
}

// value marks t where it stands by itself.
func (r *redaction) value(t string) {
	r.leaves++
	if t = strings.TrimSpace(t); len(t) < shortest {
		return
	}
	for from := 0; ; {
		i := strings.Index(r.s[from:], t)
		if i < 0 {
			return
		}
		i += from
		if end := i + len(t); !wordAt(r.s, i-1) && !wordAt(r.s, end) {
			r.mark(i, len(t))
		}
		from = i + 1
	}
}

func wordAt(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c >= utf8.RuneSelf || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (r *redaction) mark(from, n int) {
	for i := from; i < from+n; i++ {
		r.marked[i] = true
	}
}

// text is what is not marked.
func (r *redaction) text() string {
	var b strings.Builder
	for i := range len(r.s) {
		switch {
		case !r.marked[i]:
			b.WriteByte(r.s[i])
		case i == 0 || !r.marked[i-1]:
			b.WriteString(placeholder)
		}
	}
	return b.String()
}

func clipText(s string) string {
	if len(s) > maxAPIText {
		s = s[:maxAPIText] + placeholder
	}
	return strings.ToValidUTF8(s, "")
}
