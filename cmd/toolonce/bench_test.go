package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/internal/pgtest"
)

// benched runs the command on a store, and gives what it printed.
func benched(t *testing.T, store string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	args = append([]string{"bench", "-store", store, "-callers", "1,4", "-for", "50ms", "-rows", "50"}, args...)
	code = run(&env{ctx: t.Context(), out: &o, getenv: func(string) string { return "" }}, args, &e)
	return code, o.String(), e.String()
}

func wantBench(t *testing.T, store, kind string) {
	t.Helper()
	code, out, errs := benched(t, store, "-json")
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	if r.Store != kind || r.Rows != 50 || r.Fsync <= 0 || r.Floor <= 0 || r.Hit50 <= 0 || r.Hit99 < r.Hit50 || r.PerRow <= 0 || len(r.Calls) != 2 {
		t.Errorf("%+v", r)
	}
	for i, c := range r.Calls {
		if c.Callers != []int{1, 4}[i] || c.PerS <= 0 || c.P50 <= 0 || c.P99 < c.P50 || c.Commit <= 0 {
			t.Errorf("%+v", c)
		}
		if many := kind == "postgres"; (c.Floor > 0) != many || many && c.Connections != c.Callers || !many && c.Connections != 0 {
			t.Errorf("on %s the floor of %d callers is %v, over %d connections", kind, c.Callers, c.Floor, c.Connections)
		}
	}
	if code, out, errs = benched(t, store); code != 0 || !strings.Contains(out, "guarded, 4 callers") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if says := strings.Contains(out, "floor, 4 callers"); says != (kind == "postgres") {
		t.Error(out)
	}
}

func TestBenchMeasuresBesideAFileAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	wantBench(t, "sqlite:"+filepath.Join(dir, "once.db"), "sqlite")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchMeasuresADatabaseAndLeavesNothing(t *testing.T) {
	dsn := pgtest.Start(t)
	wantBench(t, dsn, "postgres")
	if n := schemas(t, dsn); n != 0 {
		t.Errorf("%d schemas are left behind", n)
	}
}

func TestBenchSaysWhatItCannotMeasure(t *testing.T) {
	for _, c := range []struct {
		code  int
		says  string
		store string
		args  []string
	}{
		{2, "no store", "", nil},
		{2, "no known kind", "mysql:x", nil},
		{2, "-callers", "sqlite:x.db", []string{"-callers", "1,none"}},
		{2, "above 0", "sqlite:x.db", []string{"-rows", "0"}},
		{2, "takes no arguments", "sqlite:x.db", []string{"more"}},
		{1, "no such file", "sqlite:/nowhere/x.db", nil},
	} {
		if code, out, errs := benched(t, c.store, c.args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s %v: exit %d: %s%s", c.store, c.args, code, out, errs)
		}
	}
}
