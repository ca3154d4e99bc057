package transcript

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// refusal is an error answer in the API's form.
type refusal struct {
	status  int
	noRetry bool // tells the SDK that asking again is no use

	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// bad is a 400. An empty param or code is null on the wire.
func bad(param, code, format string, args ...any) *refusal {
	r := &refusal{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		r.Param = &param
	}
	if code != "" {
		r.Code = &code
	}
	return r
}

// The forms that the API uses for any parameter.

func missing(param string) *refusal {
	return bad(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func emptyString(param string) *refusal {
	return bad(param, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
}

func emptyArray(param string) *refusal {
	return bad(param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func tooLong(param string, limit, got int) *refusal {
	return bad(param, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, got)
}

// unscripted says that the script has no answer. It is no error of the API, so
// it has a status that the API does not use.
func unscripted(r Request) *refusal {
	e := bad("", "unscripted", "transcript: no step for turn %d of the conversation that begins %q", r.Turn, shorten(r.FirstUser(), 80))
	e.status, e.Type, e.noRetry = http.StatusNotImplemented, "script_error", true
	return e
}

func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit]) + "…"
}

// send writes the answer.
func (r *refusal) send(w http.ResponseWriter) {
	if r.noRetry {
		w.Header().Set("X-Should-Retry", "false")
	}
	body, err := json.MarshalIndent(map[string]*refusal{"error": r}, "", "  ")
	if err != nil {
		panic(err) // strings and nothing else
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// failure is the error answer of a Fault with a status.
func failure(f Fault) *refusal {
	r := &refusal{status: f.Status, Message: f.Message, Type: "invalid_request_error"}
	code := f.Code
	switch {
	case f.Status == http.StatusTooManyRequests:
		r.Type = "requests"
		r.Message = or(r.Message, "Rate limit reached. Please try again later.")
		code = or(code, "rate_limit_exceeded")
	case f.Status == http.StatusServiceUnavailable:
		r.Type = "server_error"
		r.Message = or(r.Message, "The engine is currently overloaded, please try again later.")
	case f.Status >= http.StatusInternalServerError:
		r.Type = "server_error"
		r.Message = or(r.Message, "The server had an error while processing your request. Sorry about that!")
	}
	if code != "" {
		r.Code = &code
	}
	r.Message = or(r.Message, http.StatusText(f.Status))
	return r
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
