//go:build cgo && linux && amd64

package sqlitestore_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// diskKind of an event.
type diskKind int

const (
	diskMade diskKind = iota
	diskMadeDir
	diskRemoved // the last that changes a directory
	diskWrote
	diskCut
	diskSynced
	diskNoted // the process has said something
)

// diskEvent is what a process did to a file or a directory. A name stands for an object until it is removed.
type diskEvent struct {
	kind   diskKind
	path   string
	object int
	in     int   // whose sync makes it last: the object's, or that of the directory that has the name
	at     int64 // of a write: where; of a cut: the size; of a sync: how many events there were when it began
	data   []byte
}

// diskSector is what a disk writes whole.
const diskSector = 512

// powerCut is an end of the power after so many events of a log. What was synced by then is on the disk; keeps says of the
// rest whether it is, a write as a whole or, where torn, sector by sector.
type powerCut struct {
	point int
	style string
	seed  uint64
}

var cutStyles = []string{"none", "all", "prefix", "few", "half", "most", "torn"}

// keeps gives the function that says what of the rest is on the disk.
func (c powerCut) keeps() (keeps func(i int) bool, torn func() bool) {
	r := rand.New(rand.NewPCG(c.seed, uint64(c.point)))
	share := map[string]float64{"none": 0, "all": 1, "few": 0.1, "half": 0.5, "most": 0.9, "torn": 0.7}[c.style]
	end := c.point - r.IntN(min(c.point, 20)+1)
	return func(i int) bool {
			if c.style == "prefix" {
				return i < end
			}
			return r.Float64() < share
		}, func() bool {
			return c.style == "torn" && r.IntN(2) == 0
		}
}

// disk writes what is left of the files into a directory that is empty.
func (c powerCut) disk(log []diskEvent, dir string) error {
	safe := map[int]int64{} // by object: events before are on the disk
	for _, e := range log[:c.point] {
		if e.kind == diskSynced {
			safe[e.object] = max(safe[e.object], e.at)
		}
	}
	names, dirs, content := map[string]int{}, map[int]bool{}, map[int][]byte{}
	keeps, torn := c.keeps()
	for i, e := range log[:c.point] {
		last := int64(i) < safe[e.in]
		if !last && !keeps(i) {
			continue
		}
		switch e.kind {
		case diskMade, diskMadeDir:
			names[e.path], dirs[e.object] = e.object, e.kind == diskMadeDir
		case diskRemoved:
			delete(names, e.path)
		case diskCut:
			content[e.object] = ofSize(content[e.object], e.at)
		case diskSynced, diskNoted:
		case diskWrote:
			content[e.object] = ofSize(content[e.object], max(int64(len(content[e.object])), e.at+int64(len(e.data))))
			for from := int64(0); from < int64(len(e.data)); {
				to := min(int64(len(e.data)), (e.at+from)/diskSector*diskSector+diskSector-e.at)
				if last || !torn() {
					copy(content[e.object][e.at+from:], e.data[from:to])
				}
				from = to
			}
		}
	}
	order := make([]string, 0, len(names)) // a directory before what is in it
	for name := range names {
		order = append(order, name)
	}
	slices.Sort(order)
	for _, name := range order {
		path, object := filepath.Join(dir, name), names[name]
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			continue // the directory is lost
		}
		if dirs[object] {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
		} else if err := os.WriteFile(path, content[object], 0o600); err != nil {
			return err
		}
	}
	return nil
}

func ofSize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}
