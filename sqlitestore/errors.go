package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// What keeps a store from its work. Every error of the package that has one of these causes matches it with errors.Is;
// its text names the file. Nothing was written by the call that returned it.
var (
	// ErrFull: there is no room for what was to be written. The store works again once there is.
	ErrFull = errors.New("the disk is full: free some space and try again")
	// ErrReadOnly: the file, its directory or its file system cannot be written.
	ErrReadOnly = errors.New("the file or its directory is read-only: make both writable for this user")
	// ErrDamaged: the file is no SQLite database or its pages contradict each other.
	ErrDamaged = errors.New("the file is damaged: restore it from a backup, or recover it with the command sqlite3 and .recover")
	// ErrForeign: the file is a database of another program.
	ErrForeign = errors.New("the file is a database of another program: choose another path")
	// ErrNewer: the file has a schema that this program does not know yet.
	ErrNewer = errors.New("update this program")
	// ErrMissing: there is no such file, or no directory to make it in.
	ErrMissing = errors.New("there is no such file or directory: check the path, or make the directory first")
	// ErrMoved: the file was removed or replaced while it was open. Claims look for that, once in 5 ms.
	ErrMoved = errors.New("the file was removed or replaced while it was open, and what is written to it would be lost: open the store again")
	// ErrPath: the path cannot be that of a database: empty, a directory, or in memory.
	ErrPath = errors.New("the path is none of a file")
	// ErrNetwork: the file is on a network file system, where SQLite's locks cannot be relied on.
	ErrNetwork = errors.New("move the file to a local disk, or set Options.AllowNetwork if only one host ever opens it")
	// ErrBusy: somebody else held the write lock for longer than Options.WriteTimeout.
	ErrBusy = errors.New("another process has held the write lock too long: look for a program that keeps a transaction open")
	// ErrRunning: Close has waited for Options.Drain, and handlers still run or what they came to is not stored yet.
	ErrRunning = errors.New("handlers still run, or could not store yet what they came to: it stays open until they have; what is not stored when the process ends is unclear")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrUnsupported: the program was built in a way that leaves SQLite or file locks out.
	ErrUnsupported = errors.New("sqlitestore does not work in this program")
)

// wrap says what the package was doing with the file, and gives the cause its class.
func (f *file) wrap(doing string, err error) error { return wrap(doing, f.path, err) }

func wrap(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	if kind == nil || errors.Is(err, kind) {
		return fmt.Errorf("sqlitestore: %s %q: %w", doing, path, err)
	}
	return fmt.Errorf("sqlitestore: %s %q: %w: %w", doing, path, kind, err)
}

// kindOf is the class of an error from SQLite or from the system, nil for none.
func kindOf(err error) error {
	if k := sqliteKind(err); k != nil {
		return k
	}
	if k := codedKind(err); k != nil {
		return k
	}
	return systemKind(err)
}

func systemKind(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return ErrReadOnly
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return ErrMissing
	}
	return nil
}
