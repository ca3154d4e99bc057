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

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

var (
	errStopped = errors.New("the reader of the events has left; the same run can be gone on with")
	errNoEnd   = fmt.Errorf("%d answers in a row had neither a call nor a message: go on with RunError.Items in another run", maxSilent)
)

// RunError says why a run has no answer yet. What it did is stored: the same run again goes on behind its last turn, with
// no effect twice. errors.Is and errors.As find the cause: the API's *openai.Error, an [*IncompleteError], a [*LimitError], a
// *middleware.PausedError, journal.ErrLost, the context's error, an error of a handler such as *middleware.RepeatError or
// *middleware.NotSavedError.
type RunError struct {
	// Turn is the turn that could not be ended.
	Turn   int
	Err    error
	Report Report
	// Messages (Chat) and Items (Responses) are a history that the API accepts with a new user message behind it: calls
	// that are not answered are closed there with what is known. It is for another run: this one has it already, and its
	// open calls run when it is started again.
	Messages []openai.ChatCompletionMessageParamUnion
	Items    responses.ResponseInputParam
}

func (e *RunError) Error() string {
	return fmt.Sprintf("agent: run %q, turn %d: %v", e.Report.Run.ID, e.Turn, e.Err)
}

// Unwrap gives the cause.
func (e *RunError) Unwrap() error { return e.Err }

// apiError says what the SDK's error hides on purpose: the API's own words, without what secret knows.
type apiError struct {
	text string
	err  error
}

func (e *apiError) Error() string { return e.text }
func (e *apiError) Unwrap() error { return e.err }

// asked gives the error of a request the API's own words. Servers may quote what they were sent: private texts are taken
// out.
func asked(err error, private []string) error {
	if err == nil {
		return nil
	}
	var status, said, code string
	if api, ok := errors.AsType[*openai.Error](err); ok {
		status, said, code = fmt.Sprintf("%d %s", api.StatusCode, http.StatusText(api.StatusCode)), api.Message, api.Code
		private = slices.Concat(private, keysOf(api.Request))
	} else if s, ok := errors.AsType[*ssestream.StreamError](err); ok {
		e := gjson.GetBytes(s.Event.Data, "error")
		status, said, code = "an error in its stream", e.Get("message").String(), e.Get("code").String()
		if e.Type == gjson.String {
			said = e.String()
		}
	} else {
		return &apiError{"asking the model: " + withoutTexts(withoutQuery(err), private), err}
	}
	text := "asking the model: the API answered " + status
	if said != "" {
		text += ": " + withoutTexts(said, private)
	}
	if code != "" {
		text += " (" + withoutTexts(code, private) + ")"
	}
	return &apiError{text, err}
}

// withoutQuery is the text of an error without what stands behind the path of an address, which may be a key.
func withoutQuery(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok {
		if at, bad := url.Parse(e.URL); bad != nil {
			text = strings.ReplaceAll(text, e.URL, placeholder)
		} else {
			at.RawQuery, at.User, at.Fragment = "", nil, ""
			text = strings.ReplaceAll(text, e.URL, at.String())
		}
	}
	return text
}

// keysOf are the API's keys in a request.
func keysOf(r *http.Request) []string {
	if r == nil {
		return nil
	}
	return []string{strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("Api-Key")}
}

// maxErrorBody is how much of an error's body is looked at, in bytes.
const maxErrorBody = 1 << 20

// plainErrors gives the errors of other servers than OpenAI's the form that the SDK reads. Where the error is a string, it
// tells neither status nor text.
func plainErrors(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	if e := gjson.GetBytes(body, "error"); !e.IsObject() {
		said := text(e)
		for _, path := range []string{"message", "detail"} {
			if v := gjson.GetBytes(body, path); said == "" && v.Type == gjson.String {
				said = v.String()
			}
		}
		if body, err = sjson.SetBytes(nil, "error.message", said); err != nil {
			return nil, err
		}
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}
