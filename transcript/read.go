package transcript

import (
	"bufio"
	"bytes"
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

// maxRatio bounds how many times its size a gzipped file may become. Runs
// shrink to a tenth or so; a file made to fill a disk has a thousand.
const maxRatio = 250

var errTooDense = fmt.Errorf("it unpacks to more than %d times its size: unpack it first if it is meant so", maxRatio)

// Read goes through the runs of a saved transcript of either API. The name
// stands for r in errors and in the ids of runs that were saved without one.
//
// It takes, plain or gzipped:
//   - JSON Lines: a run a line, {"id", "model", "messages": […]}, or a bare array
//     of messages a line; blank lines are skipped;
//   - a JSON array of such runs;
//   - a JSON array of messages, which is one run.
//
// A run of the Responses API has "input", and where it is saved beside it
// "instructions" and "output", in place of "messages"; items may stand wherever
// messages do. As for a message, "error": true on an output says that the tool
// refused. Items of one answer are one message; those of hosted tools are
// skipped, and so are other members.
//
// One run is in memory at a time; a line, or an element of an array, may be up
// to 64 MiB long, and gzip may unpack to 250 times its size, or to 64 MiB. A
// line or element that cannot be read yields a zero Run and an error with the
// name and the line (or element and byte offset), and reading goes on behind it.
// What cannot be skipped ends the sequence with an error: a syntax error inside
// an array, damaged or too dense gzip, an error of r. The sequence can be used
// once, by one goroutine at a time.
func Read(r io.Reader, name string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		s := &source{name: name, yield: yield}
		s.read(r)
	}
}

// source is one transcript being read.
type source struct {
	name  string
	yield func(Run, error) bool
	// exchange is handed the lines that Record has written. nil: they are no runs.
	exchange func(x Exchange, where string)

	in   *bufio.Reader
	runs int // runs and broken runs so far
	line int // blank lines skipped before the first byte
}

// read goes through r.
func (s *source) read(r io.Reader) {
	if err := s.open(r); err != nil {
		s.yield(Run{}, fmt.Errorf("transcript: reading %q: %w", s.name, err))
		return
	}
	switch first, err := s.firstByte(); {
	case errors.Is(err, io.EOF): // an empty file has no runs
	case err == nil && first == '[' && !s.bareLines():
		s.arrays()
	default:
		s.lines()
	}
}

// open looks through gzip and a byte order mark.
func (s *source) open(r io.Reader) error {
	s.in = bufio.NewReaderSize(r, 64<<10)
	if magic, _ := s.in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		packed := &counter{in: s.in}
		z, err := gzip.NewReader(packed)
		if err != nil {
			return err
		}
		s.in = bufio.NewReaderSize(&unpacker{in: z, packed: packed}, 64<<10)
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

// bareLines tells whether the file is JSON Lines whose first run is a bare
// array, so that a line that is broken does not hide the others. What it has
// read is put back.
func (s *source) bareLines() bool {
	var line []byte
	for more := true; more && len(line) <= maxRun; {
		part, err := s.in.ReadSlice('\n')
		line = append(line, part...)
		more = errors.Is(err, bufio.ErrBufferFull) // another error comes again, from what is put back
	}
	s.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), s.in), 64<<10)
	var ms []json.RawMessage
	return len(line) <= maxRun && json.Unmarshal(line, &ms) == nil && len(ms) > 0 && isMessage(ms[0])
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
			if !s.oneLine(raw, where) {
				return
			}
		}
		if last {
			return
		}
	}
}

// oneLine takes a line that is not blank. It reports whether to go on.
func (s *source) oneLine(raw []byte, where string) bool {
	run, err := decodeRun(raw)
	if errors.Is(err, errNoMessages) {
		switch x, ok := exchangeOf(raw); {
		case ok && s.exchange != nil:
			s.exchange(x, where)
			return true
		case ok:
			err = errors.New("it is a recorded exchange and no run: Serve answers from it")
		}
	}
	return s.emit(run, err, where)
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
	var bare []json.RawMessage // the messages, if this array is a run itself
	for i := 0; dec.More(); i++ {
		where := fmt.Sprintf("element %d at byte %d", i, dec.InputOffset())
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			s.emit(Run{}, unexpected(err), where)
			return false
		}
		if len(bare) > 0 || i == 0 && isMessage(raw) {
			bare = append(bare, raw)
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
	if len(bare) == 0 {
		return true
	}
	ms, err := messages(bare)
	return s.emit(Run{Messages: ms}, err, "array that ends "+at)
}

// isMessage tells whether an element is a message or an item, and no run.
func isMessage(raw json.RawMessage) bool {
	var m struct {
		Role, Type string
		Messages   json.RawMessage
		Input      json.RawMessage // of a call of a custom tool too
	}
	if json.Unmarshal(raw, &m) != nil || m.Messages != nil {
		return false
	}
	return isItem(m.Type) || m.Role != "" && m.Input == nil
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

// counter counts what is read through it.
type counter struct {
	in *bufio.Reader
	n  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte keeps gzip from reading ahead, so that the count is exact.
func (c *counter) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// unpacker ends a file that unpacks to too much.
type unpacker struct {
	in     io.Reader
	packed *counter
	n      int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.n > maxRun && u.n > maxRatio*u.packed.n {
		return 0, errTooDense
	}
	n, err := u.in.Read(p)
	u.n += int64(n)
	return n, err
}
