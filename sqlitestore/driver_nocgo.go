//go:build !cgo

package sqlitestore

import (
	"context"
	"database/sql/driver"
	"time"
)

const driverMissing = "this program was built without cgo, which SQLite's driver needs: build it with CGO_ENABLED=1 and a C compiler, or give OpenDB a driver in Go"

func newConnector(string, time.Duration, bool) (driver.Connector, error) {
	return nil, ErrUnsupported
}

func probe(context.Context, string) (stamp, error) { return stamp{}, ErrUnsupported }

func sqliteKind(error) error { return nil }

func driverUnkept(error) bool { return false }

func driverSameKey(error) bool { return false }

func driverInTransaction(any) (open, known bool) { return false, false }
