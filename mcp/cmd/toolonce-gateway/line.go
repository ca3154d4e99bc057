package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLine is how many bytes a message may have, as in the SDK. More would fill the memory.
const maxLine = 16 << 20

var errTooLong = fmt.Errorf("a message has more than %d MiB", maxLine>>20)

// eachLine gives every message of a stream to f, without the end of its line, until the stream ends.
func eachLine(r io.Reader, f func(line []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return errTooLong
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			f(line)
		}
		line = nil // f may keep it
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// peer is where messages are sent to, each whole.
type peer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *peer) line(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(append(slices.Clip(b), '\n'))
	return err
}

func (p *peer) send(m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.line(b)
}
