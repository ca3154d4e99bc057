package codec

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNumber bounds the text of one number: what is longer is no number that a
// tool can mean, and exact arithmetic on it would cost seconds.
const maxNumber = 1000

const (
	whyFraction = "must be a whole number: send it without a fraction"
	whyRange    = "does not fit: the number is out of range"
	whyLong     = "does not fit: the number has too many digits"
)

// appendInteger writes the JSON number lit as plain digits, exactly: 100,
// 100.0 and 1e2 are one number. why is "" if it is whole and fits.
func appendInteger(dst, lit []byte, bits int, signed bool) (out []byte, why string) {
	if len(lit) > maxNumber {
		return dst, whyLong
	}
	digits := lit
	if bytes.ContainsAny(lit, ".eE") {
		if digits, why = expand(lit); why != "" {
			return dst, why
		}
	}
	if signed {
		n, err := strconv.ParseInt(string(digits), 10, bits)
		if err != nil {
			return dst, whyRange
		}
		return strconv.AppendInt(dst, n, 10), ""
	}
	if len(digits) == 2 && digits[0] == '-' && digits[1] == '0' {
		digits = digits[1:]
	}
	n, err := strconv.ParseUint(string(digits), 10, bits)
	if err != nil {
		return dst, whyRange
	}
	return strconv.AppendUint(dst, n, 10), ""
}

// expand turns a number with a fraction or an exponent into plain digits. It
// never writes more than the 20 digits that the widest integer has.
func expand(lit []byte) (digits []byte, why string) {
	mantissa, exponent := lit, 0
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		mantissa = lit[:i]
		// Out of range, Atoi gives the nearest int: right after clamping.
		exponent, _ = strconv.Atoi(string(lit[i+1:]))
		exponent = max(-2*maxNumber, min(exponent, 2*maxNumber))
	}
	var out []byte
	if mantissa[0] == '-' {
		out, mantissa = append(out, '-'), mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	all := append(append([]byte{}, whole...), fraction...)
	exponent -= len(fraction)
	all = bytes.TrimLeft(all, "0")
	if len(all) == 0 {
		return []byte{'0'}, ""
	}
	trimmed := bytes.TrimRight(all, "0")
	exponent += len(all) - len(trimmed)
	switch {
	case exponent < 0:
		return nil, whyFraction
	case len(trimmed)+exponent > 20:
		return nil, whyRange
	}
	out = append(out, trimmed...)
	return append(out, bytes.Repeat([]byte{'0'}, exponent)...), ""
}

// appendFloat writes lit in the form of RFC 8785 for a float of that size.
func appendFloat(dst, lit []byte, bits int) (out []byte, why string) {
	if len(lit) > maxNumber {
		return dst, whyLong
	}
	f, err := strconv.ParseFloat(string(lit), bits)
	if err != nil || math.IsInf(f, 0) {
		return dst, whyRange
	}
	if f == 0 {
		return append(dst, '0'), "" // -0 and 0 are one number
	}
	return jsontext.AppendFloat(dst, f, bits), ""
}

// appendExact writes lit for a place without a Go type: integers keep all
// their digits, other numbers take the form of RFC 8785.
func appendExact(dst, lit []byte) (out []byte, why string) {
	switch {
	case len(lit) > maxNumber:
		return dst, whyLong
	case bytes.ContainsAny(lit, ".eE"):
		return appendFloat(dst, lit, 64)
	case string(lit) == "-0":
		return append(dst, '0'), ""
	}
	return append(dst, lit...), ""
}
