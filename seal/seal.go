// Package seal keeps content of users unreadable in a store: a [Codec] seals what is written and opens what is read. The
// stores take one as Options.Codec. [AESGCM] is one of the standard library's parts.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Codec seals content for a store. It is used by several goroutines at once.
type Codec interface {
	// Seal makes plain unreadable. What it gives can be opened with the same data only: the name of the place that it is
	// for, so that nobody can put the content of one row into another.
	Seal(plain, data []byte) ([]byte, error)
	// Open is what Seal was given. Where the bytes, the data or the keys are not those, it is an error.
	Open(sealed, data []byte) ([]byte, error)
}

// ErrSealed says that content of a store is sealed and cannot be opened: without a Codec, by another key, or because it is
// damaged. It is never taken for "there is nothing".
var ErrSealed = errors.New("seal: the content is sealed and cannot be opened: give the store the Codec with the key that sealed it")

// Keys are the keys of [AESGCM]. To rotate, add a key, name it as Current in every process that reads, then in those that
// write; a key goes when nothing is left that it has sealed.
type Keys struct {
	// Current is the id of the key that seals.
	Current string
	// ByID are all keys that open, of 32 bytes (16 and 24 work too). An id is stored beside what its key has sealed: 1 to
	// 255 bytes, nothing secret.
	ByID map[string][]byte
}

const format = 1 // the first byte of what AESGCM seals

// AESGCM is a Codec that encrypts with AES in Galois/Counter mode (NIST SP 800-38D), under a random nonce of 12 bytes: no
// more than 2^32 values should be sealed with one key. Its errors never tell content or keys.
func AESGCM(k Keys) (Codec, error) {
	g := &gcm{current: k.Current, byID: map[string]cipher.AEAD{}}
	for _, id := range slices.Sorted(maps.Keys(k.ByID)) {
		if id == "" || len(id) > 255 {
			return nil, fmt.Errorf("seal: the key id %.20q has %d bytes: give it 1 to 255", id, len(id))
		}
		block, err := aes.NewCipher(k.ByID[id])
		if err != nil {
			return nil, fmt.Errorf("seal: key %q: %w: give it 32 random bytes", id, err)
		}
		if g.byID[id], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("seal: key %q: %w", id, err)
		}
	}
	if g.byID[k.Current] == nil {
		return nil, fmt.Errorf("seal: there is no key %q, which Keys.Current names: add it to Keys.ByID", k.Current)
	}
	return g, nil
}

type gcm struct {
	current string
	byID    map[string]cipher.AEAD
}

// head is what stands before the nonce, and is authenticated too.
func head(id string) []byte { return append([]byte{format, byte(len(id))}, id...) }

func bind(head, data []byte) []byte { return append(slices.Clip(head), data...) }

func (g *gcm) Seal(plain, data []byte) ([]byte, error) {
	a, h := g.byID[g.current], head(g.current)
	nonce := make([]byte, a.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	sealed := make([]byte, 0, len(h)+len(nonce)+len(plain)+a.Overhead())
	sealed = append(append(sealed, h...), nonce...)
	return a.Seal(sealed, nonce, plain, bind(h, data)), nil
}

func (g *gcm) Open(sealed, data []byte) ([]byte, error) {
	if len(sealed) < 2 || sealed[0] != format || len(sealed) < 2+int(sealed[1]) {
		return nil, errors.New("seal: this was not sealed by AESGCM, or is damaged")
	}
	n := 2 + int(sealed[1])
	h, rest := sealed[:n], sealed[n:]
	a := g.byID[string(h[2:])]
	if a == nil {
		return nil, fmt.Errorf("seal: it was sealed with key %.255q, which is not among the keys: add it to Keys.ByID", h[2:])
	}
	if len(rest) < a.NonceSize() {
		return nil, errors.New("seal: what was sealed is damaged: it is too short")
	}
	plain, err := a.Open(nil, rest[:a.NonceSize()], rest[a.NonceSize():], bind(h, data))
	if err != nil {
		return nil, errors.New("seal: what was sealed is damaged, stands in another place than it was sealed for, or its key has changed")
	}
	return plain, nil
}
