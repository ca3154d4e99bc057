//go:build cgo && !(linux && amd64)

package sqlitestore_test

import "testing"

func TestPowerLossLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Skip("the writes of a process are recorded on Linux and amd64 only")
}
