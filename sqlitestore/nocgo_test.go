//go:build !cgo

package sqlitestore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/sqlitestore"
)

func TestWithoutCgoOpenSaysWhatIsMissing(t *testing.T) {
	_, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
	want := `without cgo, which SQLite's driver needs: build it with CGO_ENABLED=1 and a C compiler`
	if !errors.Is(err, sqlitestore.ErrUnsupported) || !strings.Contains(err.Error(), want) {
		t.Errorf("Open says %v, want ErrUnsupported and %q", err, want)
	}
}
