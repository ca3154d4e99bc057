package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// recorded is one request and its answer out of a cassette.
type recorded struct {
	url      string
	request  json.RawMessage
	response string
}

func (r recorded) stream() bool { return !strings.HasPrefix(strings.TrimSpace(r.response), "{") }

func (r recorded) chat() bool { return strings.HasSuffix(r.url, "/chat/completions") }

// cassettes are the recordings in the folder of field data by file, or the test is skipped.
func cassettes(t *testing.T) map[string][]recorded {
	t.Helper()
	dir := os.Getenv("TOOLONCE_FIELD_DATA")
	if dir == "" {
		t.Skip("TOOLONCE_FIELD_DATA is not set: it names a folder with cassettes, recorded exchanges with models (make field)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "cassettes", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]recorded{}
	for _, file := range files {
		read := map[string]func([]byte) ([]recorded, error){".yaml": readYAML, ".httprr": readHTTPRR}[filepath.Ext(file)]
		if read == nil {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := read(b)
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %d exchanges, %v", file, len(list), err)
		}
		all[filepath.Base(file)] = list
	}
	if len(all) == 0 {
		t.Fatalf("no recordings in %s/cassettes", dir)
	}
	return all
}

// readYAML reads the cassettes of go-vcr, which has bodies as text, and of vcrpy, which may have them parsed.
func readYAML(b []byte) ([]recorded, error) {
	type message struct {
		URL, URI string
		Body     any
		Parsed   any `yaml:"parsed_body"`
	}
	var file struct {
		Interactions []struct{ Request, Response message }
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	body := func(m message) (string, error) {
		if m.Parsed != nil {
			b, err := json.Marshal(m.Parsed)
			return string(b), err
		}
		if wrapped, ok := m.Body.(map[string]any); ok {
			m.Body = wrapped["string"]
		}
		s, ok := m.Body.(string)
		if !ok {
			return "", fmt.Errorf("a body is %T", m.Body)
		}
		return s, nil
	}
	var list []recorded
	for _, i := range file.Interactions {
		request, err := body(i.Request)
		if err != nil {
			return nil, err
		}
		response, err := body(i.Response)
		if err != nil {
			return nil, err
		}
		list = append(list, recorded{url: i.Request.URL + i.Request.URI, request: json.RawMessage(request), response: response})
	}
	return list, nil
}

// readHTTPRR reads a line of two lengths, then a request and a response of that length, and so on.
func readHTTPRR(b []byte) ([]recorded, error) {
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	if string(head) != "httprr trace v1" {
		return nil, fmt.Errorf("it begins with %q", head)
	}
	var list []recorded
	for len(bytes.TrimSpace(rest)) > 0 {
		var sizes []byte
		sizes, rest, _ = bytes.Cut(rest, []byte("\n"))
		var n, m int
		if _, err := fmt.Sscan(string(sizes), &n, &m); err != nil {
			return nil, err
		}
		if n+m > len(rest) {
			return nil, fmt.Errorf("%d + %d bytes are announced, %d are left", n, m, len(rest))
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(rest[:n])))
		if err != nil {
			return nil, err
		}
		request, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(rest[n:n+m])), req)
		if err != nil {
			return nil, err
		}
		response, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return nil, err
		}
		list = append(list, recorded{url: req.URL.String(), request: request, response: string(response)})
		rest = rest[n+m:]
	}
	return list, nil
}
