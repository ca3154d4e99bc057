package main

import (
	"encoding/base64"
	"strings"

	"github.com/toolonce/toolonce/seal"
)

// keysEnv has the keys of content that is sealed: id=base64,id2=base64. The first seals what is written.
const keysEnv = "TOOLONCE_KEYS"

// codec opens sealed content, if there are keys. What is wrong with them is told by their places: neither a key nor what
// stands in the place of an id is ever printed.
func (e *env) codec() (seal.Codec, error) {
	value := e.getenv(keysEnv)
	if value == "" {
		return nil, nil
	}
	k := seal.Keys{ByID: map[string][]byte{}}
	n := 0
	for entry := range strings.SplitSeq(value, ",") {
		n++
		id, text, ok := strings.Cut(strings.TrimSpace(entry), "=")
		key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		switch _, twice := k.ByID[id]; {
		case !ok || id == "" || len(id) > 255:
			return nil, usagef("%s: entry %d is not id=key: say id=base64,id2=base64, the current key first", keysEnv, n)
		case err != nil:
			return nil, usagef("%s: the key of entry %d is not base64: openssl rand -base64 32 makes one", keysEnv, n)
		case len(key) != 32 && len(key) != 24 && len(key) != 16:
			return nil, usagef("%s: the key of entry %d has %d bytes, want 32: openssl rand -base64 32 makes one", keysEnv, n, len(key))
		case twice:
			return nil, usagef("%s: entry %d has the id of another: give each key an id of its own", keysEnv, n)
		}
		if k.ByID[id] = key; n == 1 {
			k.Current = id
		}
	}
	return seal.AESGCM(k)
}

// closed says why content cannot be read.
func closed(err error) string {
	_, why, sealed := strings.Cut(err.Error(), seal.ErrSealed.Error())
	switch {
	case sealed && why == "":
		return "it is sealed: set " + keysEnv + "=id=base64 to the key that sealed it"
	case sealed:
		return operators(strings.TrimPrefix(why, ": "))
	default:
		return operators(err.Error())
	}
}

// operators is a text of the packages in the words of who uses the command.
func operators(text string) string { return strings.ReplaceAll(text, "Keys.ByID", keysEnv) }
