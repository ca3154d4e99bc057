//go:build !unix

package sqlitestore

import (
	"errors"
	"os"
)

const lockMissing = "this system has no flock, by which processes see that another has gone: use a Unix system or another store"

func makeLock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func look(string) evidence { return unknown }

func writable(string) error { return nil }

func syncDir(string) error { return nil }
