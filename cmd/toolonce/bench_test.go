package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestBenchTakesARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, out, errs := benched(t, "sqlite:once.db"); code != 0 || !strings.Contains(out, "guarded, 4 callers") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestBenchTakesADSNWithWhatIsForAPool(t *testing.T) {
	if code, out, errs := benched(t, pgtest.Start(t)+"&pool_max_conns=3"); code != 0 || !strings.Contains(out, "guarded, 4 callers") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestBenchThatIsInterruptedLeavesNothing(t *testing.T) {
	dsn, dir := pgtest.Start(t), t.TempDir()
	for _, store := range []string{dsn, "sqlite:" + filepath.Join(dir, "once.db")} {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		var o, e bytes.Buffer
		args := []string{"bench", "-store", store, "-callers", "4", "-for", "1h"}
		if code := run(&env{ctx: ctx, out: &o, getenv: func(string) string { return "" }}, args, &e); code != 1 || !strings.Contains(e.String(), "interrupted") {
			t.Errorf("exit %d: %s%s", code, o.String(), e.String())
		}
	}
	if n := schemas(t, dsn); n != 0 {
		t.Errorf("%d schemas are left behind", n)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchOfAUserWithFewConnectionsMeasuresOverThose(t *testing.T) {
	dsn := pgtest.Start(t)
	few := user(t, dsn, "CONNECTION LIMIT 6")
	code, out, errs := benched(t, few+"&pool_max_conns=2", "-json", "-callers", "16")
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Calls) != 1 || r.Calls[0].Connections < 1 || r.Calls[0].Connections > 4 {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
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
		{2, "it takes no arguments", "sqlite:x.db", []string{"more"}},
		{2, "names no file", "sqlite:", nil},
		{1, "make /nowhere", "sqlite:/nowhere/x.db", nil},
		{1, "the server cannot be reached", "postgres://u:hidden@127.0.0.1:1/x", nil},
		{1, "the connection string is wrong", "postgres://u:hidden@[/x", nil},
		{1, "is a folder", "sqlite:" + os.TempDir(), nil},
	} {
		if code, out, errs := benched(t, c.store, c.args...); code != c.code || !strings.Contains(errs, c.says) || strings.Contains(errs, "hidden") {
			t.Errorf("%s %v: exit %d: %s%s", c.store, c.args, code, out, errs)
		}
	}
}
