package sqlitestore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// application marks our files: "once".
const application = 0x6f6e6365

//go:embed schema.sql
var schema1 string

// migrations lead from each version of the schema to the next; the first makes an empty file ours.
var migrations = []string{schema1}

const (
	askApplication = "PRAGMA application_id"
	askVersion     = "PRAGMA user_version"
	askTables      = "SELECT count(*) FROM sqlite_schema"
)

// stamp is what a file says of whose it is.
type stamp struct{ application, version, tables int64 }

// check refuses what is not ours or not yet known.
func (s stamp) check() error {
	switch {
	case s == stamp{}:
		return nil
	case s.application != application:
		return ErrForeign
	case s.version > int64(len(migrations)):
		return fmt.Errorf("the file was made by a newer toolonce: schema %d, this program knows %d: %w", s.version, len(migrations), ErrNewer)
	}
	return nil
}

// Open opens the database at path and makes it, readable by this user alone, where there is none. Directories are not
// made, except "<path>-owners" for the lock files. Whatever keeps the file from being used is an error that matches one
// of the Err variables, and the file is left as it was.
func Open(path string, opts *Options) (*Store, error) {
	f, err := open(path, opts.orDefaults())
	if err != nil {
		return nil, wrap("opening", path, err)
	}
	return &Store{f: f}, nil
}

func open(path string, opts Options) (_ *file, err error) {
	if why := driverMissing + lockMissing; why != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	f := &file{opts: opts, ctx: context.Background(), now: time.Now}
	return f, f.open(path)
}

func (f *file) open(path string) (err error) {
	ctx := f.ctx // what is waited for has bounds of its own
	var blank bool
	if f.path, blank, err = locate(ctx, path, f.opts); err != nil {
		return err
	}
	if f.writer, err = newWriter(ctx, f.path, f.opts.WriteTimeout); err != nil {
		return err
	}
	return f.start(ctx, blank, func(ctx context.Context) (*reader, error) { return newReader(ctx, f.path, f.opts.WriteTimeout) })
}

// start makes the file ours and this process one of its owners. After an error the writer is closed.
func (f *file) start(ctx context.Context, blank bool, reading func(context.Context) (*reader, error)) (err error) {
	defer func() {
		if err != nil {
			keep(&err, f.reader.close())
			keep(&err, f.writer.close())
		}
	}()
	if err := f.migrate(ctx, blank); err != nil {
		return err
	}
	if f.reader, err = reading(ctx); err != nil {
		return err
	}
	if f.opened, err = os.Stat(f.path); err != nil {
		return err
	}
	if err := f.raiseIfFar(ctx); err != nil {
		return err
	}
	f.owners, err = newOwners(ctx, f)
	return err
}

// making keeps a file of which this process has a descriptor of its own from being opened by SQLite before that is
// closed: closing it lets go SQLite's locks.
var making sync.Mutex

// locate finds or makes the file, by its real name, and refuses what cannot be used without changing it. blank: the file
// has nothing yet, but its write-ahead log may have.
func locate(ctx context.Context, path string, opts Options) (_ string, blank bool, err error) {
	path, exists, err := realPath(path)
	if err != nil {
		return "", false, err
	}
	dir := filepath.Dir(path)
	if !exists && opts.MustExist {
		return "", false, ErrMissing
	}
	if name, err := network(dir); err != nil {
		return "", false, err
	} else if name != "" && !opts.AllowNetwork {
		return "", false, fmt.Errorf("it is on a network file system (%s), where SQLite's locks cannot be relied on: %w", name, ErrNetwork)
	}
	if exists {
		s, err := probe(ctx, path)
		if err != nil && !errors.Is(kindOf(err), ErrDamaged) { // it may be in the making: SQLite's locks will tell
			return "", false, err
		}
		if err := s.check(); err != nil {
			return "", false, err
		}
		if blank = s == (stamp{}); err == nil && opts.MustExist && blank && !logged(path) {
			return "", false, errEmpty
		}
		if err := writable(path); err != nil {
			return "", false, err
		}
	}
	if err := writable(dir); err != nil {
		return "", false, err
	}
	return path, blank, create(path)
}

// logged reports whether a write-ahead log has anything: whoever made the file may have died before it was moved there.
func logged(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

var errEmpty = fmt.Errorf("it is empty: %w", ErrMissing)

// create makes an empty file where there is none.
func create(path string) error {
	making.Lock()
	defer making.Unlock()
	n, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return n.Close()
}

// realPath follows links, so that all who open the file agree on where its lock files are.
func realPath(path string) (real string, exists bool, err error) {
	switch {
	case path == "":
		return "", false, fmt.Errorf("%w: it is empty: name a file", ErrPath)
	case strings.Contains(path, ":memory:"):
		return "", false, fmt.Errorf("%w: a ledger in memory forgets: name a file, or use middleware.Memory for a trial", ErrPath)
	case strings.HasPrefix(path, "file:"):
		return "", false, fmt.Errorf("%w: it is a URI: give the path alone, Open knows the settings", ErrPath)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", false, err
	}
	real, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, lerr := os.Lstat(path)
		switch {
		case lerr != nil:
			real, err = filepath.EvalSymlinks(filepath.Dir(path))
			return filepath.Join(real, filepath.Base(path)), false, err
		case info.Mode()&fs.ModeSymlink != 0:
			return "", false, err // it leads nowhere
		}
		real, err = filepath.EvalSymlinks(path) // another process has just made it
	}
	if err != nil {
		return "", false, err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", false, err
	case info.IsDir():
		return "", false, fmt.Errorf("%w: it is a directory: name a file in it", ErrPath)
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%w: it is a device, a socket or a pipe", ErrPath)
	case info.Size() == 1: // SQLite takes it for an empty one
		return "", false, fmt.Errorf("%w: it has one byte", ErrDamaged)
	}
	return real, true, nil
}

// migrate makes an empty file ours and brings an older schema up to date, each step whole or not at all. blank: see locate.
func (f *file) migrate(ctx context.Context, blank bool) error {
	for {
		again := false
		err := f.writer.do(ctx, func(x *tx) error {
			again = false
			var s stamp
			for q, to := range map[string]*int64{askApplication: &s.application, askVersion: &s.version, askTables: &s.tables} {
				if _, err := x.one(q, []any{to}); err != nil {
					return err
				}
			}
			if err := s.check(); err != nil || s.version == int64(len(migrations)) {
				return err
			}
			if f.opts.MustExist && s == (stamp{}) {
				return errEmpty
			}
			again = true
			return x.script(fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d", migrations[s.version], application, s.version+1))
		})
		if err != nil || !again {
			if blank && err == nil {
				err = f.writer.checkpoint(ctx) // the file alone tells now whose it is
			}
			return err
		}
		blank = true
	}
}
