package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

type answering200 struct{ body []byte }

func (a answering200) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

func TestAWholeAnswerIsJSONOfABoundedSizeAndDepth(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
	}
	large := append([]byte("{}"), bytes.Repeat([]byte(" "), maxStream-1)...)
	for name, c := range map[string]struct {
		body []byte
		says string // "" for an answer
	}{
		"no JSON":          {[]byte(`{"id":`), "is no JSON"},
		"two documents":    {[]byte(`{}{}`), "is no JSON"},
		"nothing":          {nil, "is no JSON"},
		"as large as may":  {large[:maxStream], ""},
		"too large":        {large, "over 64 MiB"},
		"as deep as may":   {nested(maxStreamDepth), ""},
		"too deep":         {nested(maxStreamDepth + 1), "1000 levels"},
		"brackets in text": {[]byte(`"` + strings.Repeat("[", 2*maxStreamDepth) + `"`), ""},
	} {
		l := &Loop{client: openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(&http.Client{Transport: answering200{c.body}}))}
		raw, err := l.post(t.Context(), "chat/completions", map[string]any{}, nil)
		if c.says == "" && (err != nil || !bytes.Equal(raw, c.body)) || c.says != "" && (err == nil || raw != nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}

func TestTheInputOfARunIsWhatTheUserSaysInWhicheverForm(t *testing.T) {
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	picture := func(url, detail string) string {
		return `{"type":"image_url","image_url":{"url":"` + url + `","detail":"` + detail + `"}}`
	}
	hi := []string{user(`"Hi"`)}
	equal := [][]string{
		{user(`[{"type":"text","text":"Hi"}]`)},
		{user(`[{"text":"Hi","type":"input_text"}]`)},
		{`{"content":"Hi","role":"user","name":""}`},
		{`{"type":"message","role":"user","content":"Hi","status":"completed","id":"msg_1"}`},
		{`{"role":"system","content":"Be kind."}`, hi[0], `{"role":"assistant","content":"Hi"}`, `{"role":"developer","content":"Hi"}`, toolSaid},
		{hi[0], `{"type":"function_call_output","call_id":"a","output":"Hi"}`},
	}
	different := [][]string{
		hi,
		nil,
		{user(`"Hi "`)},
		{user(`"hi"`)},
		{user(`""`)},
		{user(`[]`)},
		{user(`"Hi"`), user(`""`)},
		{user(`[{"type":"text","text":"H"},{"type":"text","text":"i"}]`)},
		{user(`"H"`), user(`"i"`)},
		{user(`"i"`), user(`"H"`)},
		{user(`"HusertextI"`)}, // what is written in a row has its length in front
		{user(`"H"`), user(`"I"`)},
		{`{"role":"user","name":"Ada","content":"Hi"}`},
		{`{"role":"user","name":"Bob","content":"Hi"}`},
		{`{"role":"user","name":"x","content":"textA"}`},
		{`{"role":"user","name":"xtext","content":"A"}`},
		{user(`[{"type":"text","text":"Hi"},` + picture("a.png", "low") + `]`)},
		{user(`[{"type":"text","text":"Hi"},` + picture("b.png", "low") + `]`)},
		{user(`[{"type":"text","text":"Hi"},` + picture("a.png", "high") + `]`)},
		{user(`[` + picture("a.png", "low") + `,{"type":"text","text":"Hi"}]`)},
		{user(`[{"type":"text","text":"Hi"},{"type":"input_image","image_url":"a.png"}]`)},
		{user(`[{"type":"text","text":"Hi"},{"type":"input_file","file_id":"file_1"}]`)},
	}
	ordered := []string{user(`[{"type":"text","text":"Hi"},{"image_url":{"detail":"low","url":"a.png"},"type":"image_url"}]`)}
	for api, input := range map[string]func(...string) []byte{
		"chat": func(raws ...string) []byte { return chatInput(pastChat(raws...)) },
		"responses": func(raws ...string) []byte {
			return responseInput(responses.ResponseNewParamsInputUnion{OfInputItemList: pastItems(raws...)})
		},
	} {
		for _, m := range equal {
			if !bytes.Equal(input(m...), input(hi...)) {
				t.Errorf("%s: %s is another input than %s", api, m, hi)
			}
		}
		seen := map[string][]string{}
		for _, m := range different {
			if other, ok := seen[string(input(m...))]; ok {
				t.Errorf("%s: %s is the same input as %s", api, m, other)
			}
			seen[string(input(m...))] = m
		}
		if with := seen[string(input(ordered...))]; with == nil || !strings.Contains(with[0], "a.png") {
			t.Errorf("%s: the order of keys counts", api)
		}
	}
	var text responses.ResponseNewParamsInputUnion
	if text.OfString = openai.String("Hi"); !bytes.Equal(responseInput(text), chatInput(pastChat(hi...))) {
		t.Error("a string is another input than a message")
	}
	if text.OfString = openai.String(""); bytes.Equal(responseInput(text), chatInput(nil)) {
		t.Error("an empty string is no input at all")
	}
}

const toolSaid = `{"role":"tool","tool_call_id":"a","content":"Hi"}`

// More calls than a model makes at once are taken as they are, at a cost that grows with their number alone.
func TestCallsWithoutEndAreNotCompared(t *testing.T) {
	calls := func(n int, arguments func(int) string) (list []toolCall) {
		for i := range n {
			list = append(list, toolCall{id: "a", name: "pay", arguments: arguments(i)})
		}
		return list
	}
	same := func(int) string { return "{}" }
	for n, want := range map[int]int{1: 1, maxMerged: 1, maxMerged + 1: maxMerged + 1} {
		kept, at := delivered(calls(n, same))
		if len(kept) != want || len(at) != want || at[want-1] != want-1 {
			t.Errorf("of %d calls %d remain, at %v", n, len(kept), at)
		}
	}
	many := calls(1000, func(i int) string { return fmt.Sprint(i) })
	if allocs := testing.AllocsPerRun(1, func() { delivered(many) }); allocs > 1000 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestPrivateTextsAreTakenOutOfWhatAServerSays(t *testing.T) {
	const address = "Ada Lovelace, 12 Elm Street, Springfield"
	many := strings.Repeat("x", maxPrivate)
	for name, c := range map[string]struct {
		said  string
		texts []string
		want  string
	}{
		"nothing is private":         {"no such model", nil, "no such model"},
		"a text as it is":            {"cannot read " + address + "!", []string{address}, "cannot read …!"},
		"a part of a text":           {"bad: e, 12 Elm Stre!", []string{address}, "bad: …!"},
		"a part that is too short":   {"bad:12 Elm Stre!", []string{address}, "bad:12 Elm Stre!"},
		"two parts":                  {"12 Elm Street and Ada Lovelace", []string{address}, "… and …"},
		"texts that overlap":         {"<abcdefghijklmnopqrstuvwxyz>", []string{"abcdefghijklmnop", "klmnopqrstuvwxyz"}, "<…>"},
		"side by side":               {"<abcdefghijklmnopqrstuvwxyz>", []string{"abcdefghijklm", "nopqrstuvwxyz"}, "<…>"},
		"a shorter one in a longer":  {"<order 4711 of Ada>", []string{"4711", "order 4711 of Ada"}, "<…>"},
		"the longer one first":       {"<order 4711 of Ada> 4711", []string{"order 4711 of Ada", "4711"}, "<…> …"},
		"arguments, escaped":         {`got {"note":"say \"hi\" to Ada"}.`, []string{`{"note":"say \"hi\" to Ada"}`}, "got …."},
		"a value of them, unescaped": {`got say "hi" to Ada.`, []string{`{"note":"say \"hi\" to Ada"}`}, "got …."},
		"a value in JSON in JSON":    {"Grace is 4711", []string{`[{"a":[["Grace"],{"n":4711}]}]`}, "… is …"},
		"a value that is too short":  {"Ada has 500", []string{`["Ada",500]`}, "Ada has 500"},
		"a value of four bytes":      {"Adam has 5000", []string{`["Adam",5000]`}, "… has …"},
		"a value in blanks":          {"to Adam!", []string{`["  Adam "]`}, "to …!"},
		"escaped once":               {`got {\"note\":\"PIN 99 31\"}!`, []string{`{"note":"PIN 99 31"}`}, "got …!"},
		"escaped twice":              {`got {\\\"note\\\":\\\"a\\\\nb \\\\\\\"c\\\\\\\" d\\\"}!`, []string{"{\"note\":\"a\\nb \\\"c\\\" d\"}"}, "got …!"},
		"letters escaped":            {`for J\u00fcrgen and \ud83d\ude00\u5c71\u7530!`, []string{`["Jürgen"]`, `{"a":"😀山田"}`}, "for … and …!"},
		"letters escaped in private": {`for Jürgen!`, []string{`["J\u00fcrgen"]`}, "for …!"},
		"JSON in a value":            {`iban DE89 37, pin 9931`, []string{`{"a":"{\"iban\":\"DE89 37\",\"pin\":\"9931\"}"}`}, "iban …, pin …"},
		"lines":                      {"a\nb\tc", nil, "a b c"},
		"no words are cut":           {"Adams, xAdam, Adam_1, 4Adam, Adamé", []string{`["Adam"]`}, "Adams, xAdam, Adam_1, 4Adam, Adamé"},
		"a second time by itself":    {"Adams Adam", []string{`["Adam"]`}, "Adams …"},
		"values that overlap":        {"x Ada x Ada x!", []string{`["x Ada x"]`}, "…!"},
		"not so many values":         {"Adam, Eva.", []string{`["Adam",` + strings.Repeat(`1,`, maxLeaves) + `"Eva."]`}, "…, Eva."},
		"no more than so much":       {many[:maxSaid] + " and more", []string{many[:maxSaid]}, "…"},
		"true, null and keys":        {"true null order_id", []string{`{"order_id":true,"b":null}`}, "true null order_id"},
		"a short text, no JSON":      {"what Adam said", []string{"Adam"}, "what … said"},
		"an empty text":              {"what Adam said", []string{"", " "}, "what Adam said"},
		"the latest texts come first": {"the first secret, the last secret", []string{"the first secret", many, "the last secret"},
			"the first secret, …"},
		"no more than that":   {"a secret of old", []string{"a secret of old", many}, "a secret of old"},
		"what is long is cut": {strings.Repeat("é", maxAPIText), nil, strings.Repeat("é", maxAPIText/2) + placeholder},
		"not in a letter":     {"x" + strings.Repeat("é", maxAPIText), nil, "x" + strings.Repeat("é", maxAPIText/2-1) + placeholder},
	} {
		if got := withoutTexts(c.said, c.texts); got != c.want {
			t.Errorf("%s: %.200q, want %.200q", name, got, c.want)
		}
	}
}

func TestAllThatAMessageOrItemSaysIsPrivate(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"role":"user","content":"a"}`: {"a"},
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                 {"a", "b"},
		`{"type":"function_call","arguments":"a"}`:                                                          {"a"},
		`{"type":"function_call_output","output":"a"}`:                                                      {"a"},
		`{"type":"function_call_output","output":[{"type":"input_text","text":"a"}]}`:                       {"a"},
		`{"type":"custom_tool_call","input":"a"}`:                                                           {"a"},
		`{"role":"assistant","tool_calls":[{"function":{"arguments":"a"}},{"function":{"arguments":"b"}}]}`: {"a", "b"},
		`{"role":"assistant","tool_calls":[{"custom":{"input":"a"}}],"function_call":{"arguments":"b"}}`:    {"a", "b"},
		`{"role":"assistant","content":null,"output":7}`:                                                    nil,
	} {
		if diff := cmp.Diff(want, textsOf(raw)); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

func TestAnAddressIsToldWithoutWhatMayBeAKey(t *testing.T) {
	for at, want := range map[string]string{
		"https://ada:pass4711@api.example.com/v1/x?key=secret#frag": `Post "https://api.example.com/v1/x": down`,
		"https://api.example.com/%zz?key=secret":                    `Post "…": down`,
	} {
		err := asked(fmt.Errorf("twice: %w", &url.Error{Op: "Post", URL: at, Err: errors.New("down")}), nil)
		if got := err.Error(); got != "asking the model: twice: "+want {
			t.Error(got)
		}
	}
}

func TestAKeyIsPrivateInEachHeaderAndSoIsWhatACodeSays(t *testing.T) {
	for _, header := range []string{"Api-Key", "Authorization"} {
		r := &http.Request{Header: http.Header{}}
		r.Header.Set(header, map[string]string{"Api-Key": "k-4711", "Authorization": "Bearer k-4711"}[header])
		err := asked(&openai.Error{StatusCode: 401, Message: "bad key: k-4711", Code: "key k-4711", Request: r}, []string{"a text"})
		if got, want := err.Error(), "asking the model: the API answered 401 Unauthorized: bad key: … (key …)"; got != want {
			t.Errorf("%s: %s", header, got)
		}
	}
	private := slices.Grow([]string{"a text"}, 4)
	_ = asked(&openai.Error{Request: &http.Request{Header: http.Header{"Api-Key": {"k-4711"}}}}, private)
	if private[:3][2] != "" {
		t.Error("the key is kept")
	}
}
