//go:build unix

package sqlitestore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockMissing says why there are no owner locks on this system, "" where there are.
const lockMissing = ""

// makeLock makes a lock file and takes its lock, which the process holds until it closes the file or ends.
func makeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // Go opens with O_CLOEXEC
	if err != nil {
		return nil, err
	}
	if err = flock(f, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = os.Remove(path)
		keep(&err, f.Close())
		return nil, err
	}
	return f, nil
}

// look tries an owner's lock. The owner holds it exclusively, so a shared one is enough, and those who look at the same
// time do not take each other for the owner.
func look(path string) evidence {
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	if cerr := f.Close(); cerr != nil {
		return unknown
	}
	switch {
	case err == nil:
		return dead
	case errors.Is(err, unix.EWOULDBLOCK):
		return alive
	default:
		return unknown
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writable says whether this user may write a file or directory.
func writable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "writing", Path: path, Err: err}
	}
	return nil
}

// syncDir makes the names in a directory last.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	keep(&err, d.Close())
	return err
}
