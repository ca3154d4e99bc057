package codec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says why the arguments of a call were refused. Its text is meant for
// the model: it names the place, the rule and the mend, and never a value.
type Error struct {
	// Path is a JSON pointer to the offending value, "" for the whole document.
	Path string
	// Rule is a short stable word: json, size, depth, utf8, duplicate, case,
	// unknown, null, required, type, number, value, or the name of the schema
	// keyword that failed (minimum, enum, pattern, format, ...).
	Rule string
	// Message says what is wrong and how to mend it.
	Message string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return "arguments: " + e.Message
	}
	return "arguments: " + e.Path + ": " + e.Message
}

func refuse(path, rule, format string, args ...any) *Error {
	return &Error{Path: showPath(path), Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// maxName is how much of a name that the model made up is shown.
const maxName = 64

// showName makes a name safe to print: control characters are escaped and a
// long name is cut.
func showName(s string) string {
	var b strings.Builder
	for _, r := range s {
		q := strconv.QuoteRune(r)
		q = q[1 : len(q)-1]
		switch r {
		case '\'':
			q = "'"
		case '"':
			q = `\"`
		}
		if b.Len()+len(q) > maxName-utf8.RuneLen('…') {
			b.WriteRune('…')
			break
		}
		b.WriteString(q)
	}
	return b.String()
}

// showPath applies showName to each segment of a JSON pointer.
func showPath(ptr string) string {
	if ptr == "" {
		return ""
	}
	segments := strings.Split(ptr, "/")
	for i, s := range segments {
		segments[i] = showName(s)
	}
	return strings.Join(segments, "/")
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// child appends a name to a JSON pointer.
func child(ptr, name string) string { return ptr + "/" + pointerEscaper.Replace(name) }
