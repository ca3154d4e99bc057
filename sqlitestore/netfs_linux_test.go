//go:build cgo

package sqlitestore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetworkFileSystemIsRefusedUnlessAllowed(t *testing.T) {
	dir := t.TempDir()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	kind := int64(s.Type) & 0xffffffff
	before, was := networks[kind]
	networks[kind] = "NFS" // as though this directory were on one
	t.Cleanup(func() {
		if networks[kind] = before; !was {
			delete(networks, kind)
		}
	})
	path := dir + "/once.db"
	_, err := Open(path, nil)
	if !errors.Is(err, ErrNetwork) || !strings.Contains(err.Error(), "(NFS)") || !strings.Contains(err.Error(), "AllowNetwork") {
		t.Errorf("Open says %v, want ErrNetwork", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("Open has made %v: %v", entries, err)
	}
	l, err := Open(path, &Options{AllowNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
