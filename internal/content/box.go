// Package content is how a store keeps what users wrote: sealed where it has a codec, as it is where it has none.
package content

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/seal"
)

// Box puts content into a store and takes it out. The zero value seals nothing.
type Box struct{ Codec seal.Codec }

// What is not stored as it is begins with the mark: text that begins with it itself, and what is sealed. So what is stored
// tells by itself which it is, whatever the store's codec was then.
const (
	mark   = "\x02"
	plain  = mark + "p"
	sealed = mark + "s"
)

// Put is what is to be stored for text. place says where it stands; [Box.Take] must be given the same.
func (b Box) Put(text string, place ...string) (string, error) {
	if b.Codec == nil {
		if strings.HasPrefix(text, mark) {
			text = plain + text
		}
		return text, nil
	}
	s, err := b.Codec.Seal([]byte(text), data(place))
	if err != nil {
		return "", fmt.Errorf("sealing content: %w", err)
	}
	return sealed + base64.RawStdEncoding.EncodeToString(s), nil
}

// Take is the text that was put. Where it cannot be had the error matches seal.ErrSealed, and is the codec's too.
func (b Box) Take(stored string, place ...string) (string, error) {
	switch {
	case !strings.HasPrefix(stored, mark):
		return stored, nil
	case strings.HasPrefix(stored, plain):
		return stored[len(plain):], nil
	case b.Codec == nil:
		return "", seal.ErrSealed
	}
	s, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(stored, sealed))
	if err != nil {
		return "", fmt.Errorf("%w: %w", seal.ErrSealed, err)
	}
	text, err := b.Codec.Open(s, data(place))
	if err != nil {
		return "", fmt.Errorf("%w: %w", seal.ErrSealed, err)
	}
	return string(text), nil
}

// data names a place, so that no two places are one.
func data(place []string) []byte {
	var d []byte
	for _, p := range place {
		d = binary.AppendUvarint(d, uint64(len(p)))
		d = append(d, p...)
	}
	return d
}
