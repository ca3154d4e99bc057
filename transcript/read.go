package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// maxRun bounds one line, one element of an array and one bare array of
// messages, after decompression, in bytes.
const maxRun = 64 << 20

var errTooLong = fmt.Errorf("longer than %d MiB", maxRun>>20)

// ReadFile is [Read] on a file. A file that cannot be opened is one error.
func ReadFile(path string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Run{}, fmt.Errorf("transcript: reading %q: %w", path, err))
			return
		}
		defer func() { _ = f.Close() }() // only read from
		for run, err := range Read(f, path) {
			if !yield(run, err) {
				return
			}
		}
	}
}

// Read goes through the runs of a saved Chat Completions transcript. The name
// stands for r in errors and in the ids of runs that were saved without one.
//
// It takes, plain or gzipped:
//   - JSON Lines: a run a line, {"id", "model", "messages": […]}, or a bare array
//     of messages a line; blank lines are skipped;
//   - a JSON array of such runs;
//   - a JSON array of messages, which is one run.
//
// Other members are skipped. One run is in memory at a time; a line, or an
// element of an array, may be up to 64 MiB long. A line or element that cannot
// be read yields a zero Run and an error with the name and the line (or element
// and byte offset), and reading goes on behind it. What cannot be skipped ends
// the sequence with an error: a syntax error inside an array, damaged gzip, an
// error of r. The sequence can be used once, by one goroutine at a time.
func Read(r io.Reader, name string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		s := &source{name: name, yield: yield}
		if err := s.open(r); err != nil {
			yield(Run{}, fmt.Errorf("transcript: reading %q: %w", name, err))
			return
		}
		switch first, err := s.firstByte(); {
		case errors.Is(err, io.EOF): // an empty file has no runs
		case err == nil && first == '[':
			s.arrays()
		default:
			s.lines()
		}
	}
}

// source is one transcript being read.
type source struct {
	name  string
	yield func(Run, error) bool
	in    *bufio.Reader
	runs  int // runs and broken runs so far
	line  int // blank lines skipped before the first byte
}

// open looks through gzip and a byte order mark.
func (s *source) open(r io.Reader) error {
	s.in = bufio.NewReaderSize(r, 64<<10)
	if magic, _ := s.in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(s.in)
		if err != nil {
			return err
		}
		s.in = bufio.NewReaderSize(z, 64<<10)
	}
	if bom, _ := s.in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, err := s.in.Discard(3)
		return err
	}
	return nil
}

// firstByte skips blanks and tells what comes next, without taking it.
func (s *source) firstByte() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		default:
			return c, s.in.UnreadByte()
		}
	}
}

// emit hands on one run, named if it has no id. It reports whether to go on.
func (s *source) emit(run Run, err error, where string) bool {
	s.runs++
	if err != nil {
		return s.yield(Run{}, fmt.Errorf("transcript: reading %q %s: %w", s.name, where, err))
	}
	if run.ID == "" {
		run.ID = fmt.Sprintf("%s#%d", s.name, s.runs)
	}
	return s.yield(run, nil)
}

// lines reads JSON Lines.
func (s *source) lines() {
	n := s.line
	for {
		n++
		raw, err := s.readLine()
		last := errors.Is(err, io.EOF)
		where := fmt.Sprintf("line %d", n)
		switch {
		case err != nil && !last && !errors.Is(err, errTooLong):
			s.emit(Run{}, err, where)
			return
		case errors.Is(err, errTooLong):
			if !s.emit(Run{}, err, where) {
				return
			}
			continue
		case len(bytes.TrimSpace(raw)) > 0:
			run, err := decodeRun(raw)
			if !s.emit(run, err, where) {
				return
			}
		}
		if last {
			return
		}
	}
}

// readLine returns the next line. A line that is too long is passed over whole.
func (s *source) readLine() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := s.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxRun; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, errTooLong // at the end of the file the next read says so
		}
		return line, err
	}
}

// arrays reads an array of runs or of messages. Further arrays may follow: a
// file with a bare array of messages a line begins like one array.
func (s *source) arrays() {
	budget := &budgetReader{in: s.in, left: maxRun}
	dec := json.NewDecoder(budget)
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && tok != json.Delim('[') {
			err = errors.New("expected an array")
		}
		if err != nil {
			s.emit(Run{}, err, fmt.Sprintf("at byte %d", dec.InputOffset()))
			return
		}
		if !s.array(dec, budget) {
			return
		}
	}
}

// array reads what follows a '['. It reports whether reading can go on.
func (s *source) array(dec *json.Decoder, budget *budgetReader) bool {
	var bare *[]*savedMessage // the messages, if this array is a run itself
	var broken error          // and the first that is none
	for i := 0; dec.More(); i++ {
		where := fmt.Sprintf("element %d at byte %d", i, dec.InputOffset())
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			s.emit(Run{}, unexpected(err), where)
			return false
		}
		if i == 0 && isMessage(raw) {
			bare = new([]*savedMessage)
		}
		if bare != nil {
			var m *savedMessage
			if err := json.Unmarshal(raw, &m); err != nil && broken == nil {
				broken = fmt.Errorf("message %d: %w", i, err)
			}
			*bare = append(*bare, m)
			continue
		}
		budget.left = maxRun
		run, err := decodeRun(raw)
		if !s.emit(run, err, where) {
			return false
		}
	}
	at := fmt.Sprintf("at byte %d", dec.InputOffset())
	if _, err := dec.Token(); err != nil {
		s.emit(Run{}, unexpected(err), at)
		return false
	}
	budget.left = maxRun
	if bare == nil {
		return true
	}
	ms, err := messages(*bare)
	return s.emit(Run{Messages: ms}, cmp.Or(broken, err), "array that ends "+at)
}

// isMessage tells whether an element is a message: it has a role and no messages.
func isMessage(raw json.RawMessage) bool {
	var m struct {
		Role     string          `json:"role"`
		Messages json.RawMessage `json:"messages"`
	}
	return json.Unmarshal(raw, &m) == nil && m.Role != "" && m.Messages == nil
}

// unexpected says that a file ended too early, where EOF alone says nothing.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// budgetReader keeps the decoder from buffering an element without end.
type budgetReader struct {
	in   io.Reader
	left int
}

func (b *budgetReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
