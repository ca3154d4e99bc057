package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Version is the version of the canonical form. Whoever stores a hash stores
// it too: hashes of different versions cannot be compared.
const Version = 1

// Hash returns the SHA-256 of the parts, each with its length before it, so
// that ("ab", "c") and ("a", "bc") differ.
func Hash(parts ...[]byte) [32]byte { return hash(parts) }

// HashStrings is Hash of strings.
func HashStrings(parts ...string) [32]byte { return hash(parts) }

func hash[T []byte | string](parts []T) [32]byte {
	var stack [256]byte
	b := stack[:0]
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// canonicalize brings JSON into the order and the escapes of RFC 8785, with
// the digits of integers left alone.
func canonicalize(b []byte) ([]byte, error) {
	v := jsontext.Value(b)
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false))
	return v, err
}

// The functions below scan canonical JSON: no blanks, valid by construction.
// On other bytes they stop early and never read out of bounds.

// skip returns where the value at b[i] ends.
func skip(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(b))
		}
	}
	return len(b)
}

// members yields the names, in quotes, and values of an object.
func members(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(b) == 0 || b[0] != '{' {
			return
		}
		for i := 1; i < len(b) && b[i] != '}'; i++ {
			colon := skip(b, i)
			if colon >= len(b) || b[colon] != ':' {
				return
			}
			end := skip(b, colon+1)
			if !yield(b[i:colon], b[colon+1:end]) || end >= len(b) || b[end] != ',' {
				return
			}
			i = end
		}
	}
}

// items yields the values of a list.
func items(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(b) == 0 || b[0] != '[' {
			return
		}
		for i := 1; i < len(b) && b[i] != ']'; i++ {
			end := skip(b, i)
			if !yield(b[i:end]) || end >= len(b) || b[end] != ',' {
				return
			}
			i = end
		}
	}
}

// lookup returns the value at a path of quoted names, nil if there is none.
func lookup(b []byte, path []string) []byte {
	for _, name := range path {
		var found []byte
		for n, v := range members(b) {
			if string(n) == name {
				found = v
				break
			}
		}
		if b = found; b == nil {
			return nil
		}
	}
	return b
}

// cut says which fields prune leaves out.
type cut uint8

const (
	cutNulls   cut = iota // of optional fields
	cutIgnored            // these and once:"-" fields
	cutSecret             // these and once:"secret" fields
)

// touches reports whether anything of a value is left out.
func (c cut) touches(p *plan) bool {
	return p.nulls || c == cutIgnored && p.drops || c == cutSecret && p.hides
}

// prune appends canonical JSON without the null of optional fields, so that
// null and absent are one, and without what else is cut.
func prune(dst, b []byte, p *plan, c cut) []byte {
	if p == nil || !c.touches(p) || len(b) == 0 || b[0] != '{' && b[0] != '[' {
		return append(dst, b...)
	}
	if p.kind == kList {
		dst = append(dst, '[')
		start := len(dst)
		for v := range items(b) {
			if len(dst) > start {
				dst = append(dst, ',')
			}
			dst = prune(dst, v, p.elem, c)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	start := len(dst)
	for name, v := range members(b) {
		elem := p.elem
		if p.kind == kStruct {
			f := p.byName[string(name[1:len(name)-1])]
			if f != nil && (c == cutIgnored && f.once.ignored || c == cutSecret && f.once.secret || f.optional && string(v) == "null") {
				continue
			}
			if f != nil {
				elem = f.plan
			}
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(append(dst, name...), ':')
		dst = prune(dst, v, elem, c)
	}
	return append(dst, '}')
}

// without appends a canonical object without some top-level names (quoted).
func without(dst, b []byte, names []string) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for name, v := range members(b) {
		if slices.Contains(names, string(name)) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, name...), ':'), v...)
	}
	return append(dst, '}')
}

// Diff returns the sorted names of the fields whose values differ between two
// canonical inputs, with dots into nested objects. It never returns values.
func Diff(a, b []byte) []string {
	var names []string
	diff(a, b, "", &names)
	slices.Sort(names)
	return slices.Compact(names)
}

func diff(a, b []byte, at string, names *[]string) {
	if bytes.Equal(a, b) {
		return
	}
	if at != "" && (len(a) == 0 || len(b) == 0 || a[0] != '{' || b[0] != '{') {
		*names = append(*names, at)
		return
	}
	other := map[string][]byte{}
	for n, v := range members(b) {
		other[string(n)] = v
	}
	join := func(n []byte) string {
		name := showName(unquote(n))
		if at != "" {
			name = at + "." + name
		}
		return name
	}
	for n, v := range members(a) {
		w, ok := other[string(n)]
		delete(other, string(n))
		if ok {
			diff(v, w, join(n), names)
		} else {
			*names = append(*names, join(n))
		}
	}
	for n := range other {
		*names = append(*names, join([]byte(n)))
	}
}
