// Package visible writes out what a person who decides by a text would not see in it.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Text makes a text safe for a terminal and for a person who decides by it: control, direction and zero-width characters
// are written out, as JSON does. JSON stays the same value.
func Text(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != unicode.ReplacementChar && unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
