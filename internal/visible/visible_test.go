package visible_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/internal/visible"
)

func TestWhatCannotBeSeenIsWrittenOut(t *testing.T) {
	for in, want := range map[string]string{
		`Zoë 東京 naïve 🎉`:                "Zoë 東京 naïve 🎉",
		"a\u202eb\u2066c":               `a\u202eb\u2066c`,                   // direction
		"a\u200bb\u00adc\u3164d\ufe0fe": `a\u200bb\u00adc\u3164d\ufe0fe`,     // no width
		"\x1b[2J\u009b\x7f\n\t":         `\u001b[2J\u009b\u007f\u000a\u0009`, // control
		"\U000e0061":                    `\udb40\udc61`,                      // a tag
		"\xff":                          `\ufffd`,
	} {
		if diff := cmp.Diff(want, visible.Text(in)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestJSONStaysTheSameValue(t *testing.T) {
	const text = "Ann\u202e\u200b\u2066\u00ad\U000e0061 Lee"
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(visible.Text(string(b))), &got); err != nil || got != text {
		t.Errorf("%q, %v", got, err)
	}
}
