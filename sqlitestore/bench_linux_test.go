package sqlitestore_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkRawFsync is one block overwritten and synced.
func BenchmarkRawFsync(b *testing.B) {
	f, err := os.Create(b.TempDir() + "/raw")
	check(b, err)
	b.Cleanup(func() { check(b, f.Close()) })
	block := make([]byte, 4096)
	_, err = f.Write(block)
	check(b, err)
	check(b, f.Sync())
	for b.Loop() {
		_, err := f.WriteAt(block, 0)
		check(b, err)
		check(b, unix.Fdatasync(int(f.Fd())))
	}
}
