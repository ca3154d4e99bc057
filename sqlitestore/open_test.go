//go:build cgo

package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// files gives every file below dir with its content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return found
	}
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			found[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		found[path] = string(b)
		return err
	}))
	return found
}

// refused opens what cannot be opened: the error is of the kind, names the path, is one line, and nothing has changed.
func refused(t *testing.T, path string, opts *sqlitestore.Options, kind error, words ...string) {
	t.Helper()
	before := files(t, filepath.Dir(path))
	s, err := sqlitestore.Open(path, opts)
	if err == nil {
		_ = s.Close()
		t.Fatalf("Open(%q) succeeds, want %v", path, kind)
	}
	if !errors.Is(err, kind) {
		t.Errorf("Open(%q) says %v, want %v", path, err, kind)
	}
	for _, w := range append(words, "sqlitestore: opening ", path) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	if diff := cmp.Diff(before, files(t, filepath.Dir(path))); diff != "" {
		t.Errorf("Open has changed files: %s", diff)
	}
}

func sqlite(t *testing.T, path string, script string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	check(t, err)
	_, err = db.ExecContext(t.Context(), script)
	check(t, err)
	check(t, db.Close())
}

func TestForeignDatabaseIsRefusedUnchanged(t *testing.T) {
	for name, script := range map[string]string{
		"tables":             "CREATE TABLE users (id INTEGER)",
		"write-ahead log":    "PRAGMA journal_mode = WAL; CREATE TABLE users (id INTEGER)",
		"application's mark": "PRAGMA application_id = 7; CREATE TABLE operations (id INTEGER)",
		"version":            "PRAGMA user_version = 1",
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/other.db"
			sqlite(t, path, script)
			refused(t, path, nil, sqlitestore.ErrForeign, "another program")
		})
	}
}

func TestNewerSchemaIsRefusedUnchanged(t *testing.T) {
	path := t.TempDir() + "/once.db"
	check(t, open(t, path, nil).Close())
	sqlite(t, path, "PRAGMA user_version = 99")
	refused(t, path, nil, sqlitestore.ErrNewer, "schema 99, this program knows 1", "update")
}

func TestDamagedFileIsRefusedUnchanged(t *testing.T) {
	path := t.TempDir() + "/once.db"
	check(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600))
	refused(t, path, nil, sqlitestore.ErrDamaged, "restore")

	check(t, os.WriteFile(path, []byte("x"), 0o600))
	refused(t, path, nil, sqlitestore.ErrDamaged)
}

func TestDamagedPagesAreToldWhenTheyAreMet(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	for range 50 {
		claimed(t, s, aClaim("run", 0))
	}
	check(t, s.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	info, err := f.Stat()
	check(t, err)
	garbage := []byte(strings.Repeat("\xa5", 4096))
	for at := int64(4096 * 2); at < info.Size(); at += 4096 {
		_, err := f.WriteAt(garbage, at)
		check(t, err)
	}
	check(t, f.Close())
	s, err = sqlitestore.Open(path, nil)
	if err == nil {
		_, err = s.List(t.Context(), nil, 0)
	}
	if !errors.Is(err, sqlitestore.ErrDamaged) {
		t.Errorf("using a damaged file says %v, want ErrDamaged", err)
	}
}

func TestPathsThatAreNoFileAreRefused(t *testing.T) {
	dir := t.TempDir()
	refused(t, dir, nil, sqlitestore.ErrPath, "directory")
	refused(t, dir+"/none/once.db", nil, sqlitestore.ErrMissing, "make the directory")
	refused(t, dir+"/once.db", &sqlitestore.Options{MustExist: true}, sqlitestore.ErrMissing)
	check(t, os.WriteFile(dir+"/file", nil, 0o600))
	refused(t, dir+"/file/once.db", nil, sqlitestore.ErrMissing)
	check(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	for path, word := range map[string]string{":memory:": "middleware.Memory", "file::memory:?cache=shared": "middleware.Memory", "file:once.db": "path alone", "": "empty", dir + "/pipe": "pipe"} {
		_, err := sqlitestore.Open(path, nil)
		if !errors.Is(err, sqlitestore.ErrPath) || !strings.Contains(err.Error(), word) {
			t.Errorf("Open(%q) says %v, want ErrPath and %q", path, err, word)
		}
	}
}

// TestReadOnlyIsToldBeforeAnythingIsMade runs as a user whom file modes bind.
func TestReadOnlyIsToldBeforeAnythingIsMade(t *testing.T) {
	if os.Getenv("SQLITESTORE_CHILD") == "" && os.Geteuid() == 0 {
		dir, err := os.MkdirTemp("", "readonly")
		check(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		check(t, os.Chmod(dir, 0o777))
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "SQLITESTORE_CHILD=readonly", "TMPDIR="+dir)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("as nobody: %v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	path := dir + "/once.db"
	check(t, open(t, path, nil).Close())
	check(t, os.Chmod(path, 0o400))
	refused(t, path, nil, sqlitestore.ErrReadOnly, "writable")
	check(t, os.Chmod(path, 0o600))
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	refused(t, path, nil, sqlitestore.ErrReadOnly)
	refused(t, dir+"/new.db", nil, sqlitestore.ErrReadOnly)
}

func TestReadOnlyThatComesLaterIsToldByTheWrite(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	check(t, s.Write("PRAGMA query_only = on"))
	_, _, err := s.Claim(t.Context(), aClaim("run", 1))
	if !errors.Is(err, sqlitestore.ErrReadOnly) {
		t.Errorf("claiming says %v, want ErrReadOnly", err)
	}
	check(t, s.Write("PRAGMA query_only = off"))
	claimed(t, s, aClaim("run", 1))
}

func TestFullDiskIsToldWithItsFirstCauseAndTheStoreWorksAfterwards(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	held := claimed(t, s, aClaim("run", 0))
	check(t, s.Write("PRAGMA max_page_count = 1"))
	big := aClaim("run", 1)
	big.Input = make([]byte, 1<<20)
	wantFull := func(doing string, err error) {
		t.Helper()
		if !errors.Is(err, sqlitestore.ErrFull) || !strings.Contains(err.Error(), "full") {
			t.Errorf("%s says %v, want ErrFull", doing, err)
		}
	}
	_, won, err := s.Claim(t.Context(), big)
	wantFull("claiming", err)
	if won {
		t.Error("a claim that was not committed is won")
	}
	again := big
	again.Repeat = true // takes a transaction of several statements
	_, _, err = s.Claim(t.Context(), again)
	wantFull("claiming a repeat", err)
	done := middleware.Transition{Step: middleware.Complete, Operation: held.Operation, Token: held.Token, Result: strings.Repeat("r", 1<<20), HasResult: true}
	_, err = s.Change(t.Context(), done)
	wantFull("completing", err)
	if row := found(t, s, held.Operation); row.State != middleware.Running || row.HasResult {
		t.Errorf("a result that could not be stored has left %s", row.State)
	}
	if _, ok, err := s.Find(t.Context(), middleware.Query{Identity: big.Identity}); err != nil || ok {
		t.Errorf("a claim that could not be stored is there: %v %v", ok, err)
	}
	check(t, s.Write("PRAGMA max_page_count = 1000000"))
	claimed(t, s, big)
	_, err = s.Change(t.Context(), done)
	check(t, err)
}

func TestBusyFileIsToldAfterTheTimeout(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, &sqlitestore.Options{WriteTimeout: 20 * time.Millisecond})
	other := open(t, path, nil)
	check(t, other.Write("BEGIN IMMEDIATE"))
	c := aClaim("run", 1)
	_, _, err := s.Claim(t.Context(), c)
	if !errors.Is(err, sqlitestore.ErrBusy) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("claiming says %v, want ErrBusy", err)
	}
	check(t, other.Write("ROLLBACK"))
	claimed(t, s, c)
}

func TestNewFileAndItsCompanionsAreReadableByTheUserAlone(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	claimed(t, s, aClaim("run", 1))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		check(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(name), info.Mode())
		}
	}
	entries, err := os.ReadDir(path + "-owners")
	check(t, err)
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a lock file has mode %v, want 0600: %v", info.Mode(), err)
		}
	}
	check(t, s.Close())
	check(t, os.Chmod(path, 0o640))
	open(t, path, nil)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("opening has changed the mode of a file to %v: %v", info.Mode(), err)
	}
}

func TestOddPathsAndLinksWork(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/o?n%41#ce &x.db"
	s := open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	check(t, os.Symlink(path, dir+"/link.db"))
	l := open(t, dir+"/link.db", nil)
	if found(t, l, row.Operation).OwnerGone {
		t.Error("a living owner is gone, seen through a link")
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return "/"+e.Name() == path[len(dir):] }) {
		t.Errorf("the file has another name: %v", entries)
	}
}

func TestReopeningKeepsRows(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	want, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "a\x00b\xff", HasResult: true})
	check(t, err)
	check(t, s.Close())
	got := found(t, open(t, path, nil), row.Operation)
	got.Now, want.Now = time.Time{}, time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	check(t, s.Namespace("acme").Close())
	check(t, s.Close())
	_, _, err := s.Claim(t.Context(), aClaim("run", 1))
	_, _, ferr := s.Find(t.Context(), middleware.Query{Identity: "i"})
	_, cerr := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: "op_1", Token: "t"})
	_, nerr := s.Note(t.Context(), "op_1", middleware.Alias{})
	_, lerr := s.List(t.Context(), nil, 0)
	for _, err := range []error{err, ferr, cerr, nerr, lerr} {
		if !errors.Is(err, sqlitestore.ErrClosed) {
			t.Errorf("a closed store says %v, want ErrClosed", err)
		}
	}
}

func TestCancelledCallerLeavesWritesWholeOrAbsent(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	row := claimed(t, s, aClaim("run", 1))
	why := errors.New("the user has left")
	cancel(why)
	c := aClaim("run", 2)
	if _, won, err := s.Claim(ctx, c); won || !errors.Is(err, why) {
		t.Errorf("claiming for nobody: %v %v", won, err)
	}
	if _, ok, err := s.Find(t.Context(), middleware.Query{Identity: c.Identity}); ok || err != nil {
		t.Errorf("a claim for nobody is there: %v", err)
	}
	row, err := s.Change(ctx, middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "r", HasResult: true})
	check(t, err)
	if row.State != middleware.Done {
		t.Errorf("the result of a cancelled call leaves %s, want done", row.State)
	}
	if _, err := s.Note(ctx, row.Operation, middleware.Alias{Run: "run", Turn: 3}); err != nil {
		t.Error(err)
	}
}

func TestAFileThatAnotherProcessMakesMeanwhileHasAPath(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 {
		path := filepath.Join(dir, strconv.Itoa(i))
		var made sync.WaitGroup
		made.Go(func() {
			for range i % 100 {
				runtime.Gosched()
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Error(err)
			}
		})
		for range 3 {
			if got, err := sqlitestore.RealPath(path); err != nil || filepath.Base(got) != filepath.Base(path) {
				t.Errorf("%s, %v", got, err)
			}
		}
		made.Wait()
	}
}

func TestAFileWhoseMakerHasDiedIsThereForWhoLooks(t *testing.T) {
	path := t.TempDir() + "/once.db"
	check(t, sqlitestore.Unmoved(t.Context(), path))
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "operations") {
		t.Fatalf("the file has its tables, %v", err)
	}
	s, err := sqlitestore.Open(path, &sqlitestore.Options{MustExist: true})
	check(t, err)
	claimed(t, s, aClaim("run", 1))
	check(t, s.Close())
}

func TestAnEmptyFileWithAnEmptyLogIsNoStoreForWhoLooks(t *testing.T) {
	path := t.TempDir() + "/once.db"
	check(t, os.WriteFile(path, nil, 0o600))
	check(t, os.WriteFile(path+"-wal", []byte("no log at all"), 0o600))
	if _, err := sqlitestore.Open(path, &sqlitestore.Options{MustExist: true}); !errors.Is(err, sqlitestore.ErrMissing) {
		t.Errorf("%v", err)
	}
}
