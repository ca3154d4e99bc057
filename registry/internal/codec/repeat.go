package codec

import "strings"

// repeatOf is the argument by which the model makes a call again on purpose.
// It is taken off the arguments and is no field of the input.
const repeatOf = "repeat_of"

const repeatNote = "Only if the user asked to do it again: the operation id from already_done. Otherwise null."

// maxRepeatOf is how many bytes an operation id may have.
const maxRepeatOf = 64

// addRepeat adds repeat_of to what the model is told.
func addRepeat(root *object, strict bool) {
	properties := root.object("properties")
	if properties == nil {
		properties = &object{}
		root.set("properties", properties)
	}
	properties.set(repeatOf, newObject("type", []any{"string", "null"}, "description", repeatNote))
	if strict {
		root.set("required", append(root.list("required"), repeatOf))
	}
}

func isRepeat(name string) bool { return strings.EqualFold(name, repeatOf) }

const ownRepeat = "the name %q is that of the argument which the tool's Repeat adds: rename it or drop Repeat"

// freeRepeat refuses a field that would be taken for repeat_of.
func (b *planner) freeRepeat(root *plan) {
	for _, f := range root.fields {
		if isRepeat(f.name) {
			b.fail(f.path, ownRepeat, f.name)
		}
	}
}

// takesOff reports whether the name just read is no member of the document.
func (r *reader) takesOff(name string) bool { return r.repeats && r.depth == 1 && isRepeat(name) }

// takeOff reads the value of repeat_of: a string, or null for none.
func (r *reader) takeOff(name string) *Error {
	k := r.dec.PeekKind()
	raw, err := r.dec.ReadValue()
	switch {
	case err != nil:
		return r.syntax(err)
	case name != repeatOf:
		return r.fail("case", "differs only in case from the field %q: use that name", repeatOf)
	case k == 'n':
		return nil
	case k != '"':
		return r.fail("type", "must be a string or null, is %s", kindName(k))
	}
	r.repeatOf = unquote(raw)
	if n := len(r.repeatOf); n > maxRepeatOf {
		return r.fail("maxLength", "must have at most %d bytes, has %d: send the operation id from already_done, or null", maxRepeatOf, n)
	}
	return nil
}
