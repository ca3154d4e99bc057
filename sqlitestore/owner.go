package sqlitestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// evidence is what a lock file says about its owner.
type evidence int

const (
	unknown evidence = iota // no lock file, or none that can be read
	alive
	dead
)

// owners knows who may own operations and runs, and who has gone.
//
// An owner makes its lock file, locks it, and only then makes its row, so a row without a file means that the file was
// lost or that somebody recorded the owner's end. Recording comes before removal, and a name is never used again. So an
// owner is gone if its row says so, or if its lock can be had; a file that is missing without a word says nothing.
type owners struct {
	dir    string
	name   string
	id     int64
	lock   *os.File
	used   atomic.Bool // a row may name this owner
	reader *reader

	mu    sync.Mutex
	names map[int64]string
	ids   map[string]int64
	gone  map[int64]bool // for good
}

const (
	insertOwner = `INSERT INTO owners (name, since) VALUES (?1, ?2) RETURNING id`
	deleteOwner = `DELETE FROM owners WHERE id = +?1`
	ownerGone   = `UPDATE owners SET gone = +?2 WHERE id = +?1 AND gone = 0`
	ownerByID   = `SELECT id, name, gone FROM owners WHERE id = +?1`
	ownerByName = `SELECT id, name, gone FROM owners WHERE name = +?1`
	ownersLeft  = `SELECT id, name FROM owners WHERE gone = 0 AND id <> ?1`
)

// newOwners makes this process an owner of operations in f.
func newOwners(ctx context.Context, f *file) (_ *owners, err error) {
	o := &owners{
		dir: f.path + "-owners", name: rand.Text(), reader: f.reader,
		names: map[int64]string{}, ids: map[string]int64{}, gone: map[int64]bool{},
	}
	if err := os.Mkdir(o.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := syncDir(filepath.Dir(o.dir)); err != nil { // also where another has made it, and may not have come so far
		return nil, err
	}
	if o.lock, err = makeLock(o.file(o.name)); err != nil {
		return nil, err
	}
	err = syncDir(o.dir)
	if err == nil {
		err = f.writer.do(ctx, func(x *tx) error {
			_, err := x.one(insertOwner, []any{&o.id}, o.name, f.now().UnixNano())
			return err
		})
	}
	if err != nil {
		keep(&err, o.release(true))
		return nil, err
	}
	o.know(o.id, o.name, false)
	if err := o.bury(ctx, f); err != nil {
		keep(&err, o.release(o.leave(ctx, f)))
		return nil, err
	}
	return o, nil
}

func (o *owners) file(name string) string { return filepath.Join(o.dir, name) }

func (o *owners) know(id int64, name string, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names[id], o.ids[name] = name, id
	if gone {
		o.gone[id] = true
	}
}

// bury records who has gone since the last time, and then removes their lock files.
func (o *owners) bury(ctx context.Context, f *file) error {
	gone := map[int64]string{}
	err := o.reader.each(ctx, ownersLeft, func(rows *sql.Rows) error {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		if look(o.file(name)) == dead {
			gone[id] = name
		}
		return nil
	}, o.id)
	if err != nil || len(gone) == 0 {
		return err
	}
	err = f.writer.do(ctx, func(x *tx) error {
		for id := range gone {
			if _, err := x.exec(ownerGone, id, f.now().UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, name := range gone {
		o.know(id, name, true)
		_ = os.Remove(o.file(name)) // only tidying
	}
	return nil
}

// leave records that this owner has gone, while its lock is still held. An owner that never owned anything leaves no
// trace. It reports whether the lock file may be removed.
func (o *owners) leave(ctx context.Context, f *file) bool {
	return f.writer.do(ctx, func(x *tx) error {
		if !o.used.Load() {
			return x.run(deleteOwner, o.id)
		}
		return x.run(ownerGone, o.id, f.now().UnixNano())
	}) == nil
}

// release lets the lock go. A file that stays shows by its free lock that its owner has gone.
func (o *owners) release(remove bool) error {
	if remove {
		_ = os.Remove(o.file(o.name)) // only tidying
	}
	return o.lock.Close()
}

// find gives an owner's name, "" for one that is not known.
func (o *owners) find(ctx context.Context, id int64) (string, error) {
	o.mu.Lock()
	name, ok := o.names[id]
	o.mu.Unlock()
	if ok || id == 0 {
		return name, nil
	}
	_, name, _, err := o.read(ctx, ownerByID, id)
	return name, err
}

// read reads an owner's row; id 0 is none.
func (o *owners) read(ctx context.Context, query string, arg any) (id int64, name string, gone bool, err error) {
	var at int64
	ok, err := o.reader.one(ctx, query, []any{&id, &name, &at}, arg)
	if err == nil && ok {
		o.know(id, name, at != 0)
	}
	return id, name, at != 0, err
}

// isGone reports whether an owner is gone by evidence.
func (o *owners) isGone(ctx context.Context, id int64) (bool, error) {
	e, err := o.evidence(ctx, id)
	return e == dead, err
}

func (o *owners) evidence(ctx context.Context, id int64) (evidence, error) {
	if id == o.id {
		return alive, nil
	}
	name, err := o.find(ctx, id)
	if err != nil || name == "" {
		return unknown, err
	}
	o.mu.Lock()
	gone := o.gone[id]
	o.mu.Unlock()
	if gone {
		return dead, nil
	}
	e := look(o.file(name))
	switch e {
	case dead:
		o.know(id, name, true)
	case unknown: // removed since its end was recorded?
		if _, _, gone, err = o.read(ctx, ownerByID, id); gone {
			return dead, err
		}
	case alive:
	}
	return e, err
}

// declare records an owner as gone on a person's word. It is refused where the owner's lock shows that it lives.
func (o *owners) declare(ctx context.Context, f *file, name string) error {
	id, _, _, err := o.read(ctx, ownerByName, name)
	if err != nil {
		return err
	}
	e, err := o.evidence(ctx, id)
	switch {
	case err != nil:
		return err
	case id == 0:
		return errors.New("there is no such owner: take the name from Row.Owner, or from the error of Begin")
	case e == alive:
		return errors.New("that process lives: its lock is held")
	}
	err = f.writer.do(ctx, func(x *tx) error {
		_, err := x.exec(ownerGone, id, f.now().UnixNano())
		return err
	})
	if err == nil {
		o.know(id, name, true)
	}
	return err
}

// goneByName gives the id of an owner that is gone by evidence, 0 for one that is not.
func (o *owners) goneByName(ctx context.Context, name string) (int64, error) {
	o.mu.Lock()
	id := o.ids[name]
	o.mu.Unlock()
	if id == 0 {
		var err error
		if id, _, _, err = o.read(ctx, ownerByName, name); err != nil {
			return 0, err
		}
	}
	if gone, err := o.isGone(ctx, id); err != nil || !gone {
		return 0, err
	}
	return id, nil
}
