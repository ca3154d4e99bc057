package seal_test

import (
	"crypto/rand"
	"fmt"

	"github.com/toolonce/toolonce/seal"
)

func ExampleAESGCM() {
	key := make([]byte, 32) // from your secret store; in a program that is started again, the same one
	_, _ = rand.Read(key)
	codec, err := seal.AESGCM(seal.Keys{Current: "2026-11", ByID: map[string][]byte{"2026-11": key}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// store, err := sqlitestore.Open("once.db", &sqlitestore.Options{Codec: codec})
	sealed, _ := codec.Seal([]byte("card ends in 4242"), []byte("row 1"))
	plain, err := codec.Open(sealed, []byte("row 1"))
	fmt.Println(string(plain), err)
	_, err = codec.Open(sealed, []byte("row 2"))
	fmt.Println(err)
	// Output:
	// card ends in 4242 <nil>
	// seal: what was sealed is damaged, stands in another place than it was sealed for, or its key has changed
}
