package sqlitestore

import "context"

// What is running or in doubt must be found among millions of operations that are done, but an index of it would be
// written twice for each operation. So the index has only what is old enough: everything that runs and is not in it has
// an id from low on, and low is raised every now and then, when few are left to be put into the index.
const (
	lowestID = `SELECT low FROM meta`
	listOld  = `UPDATE operations SET listed = 1 WHERE id >= (` + lowestID + `) AND id < ?1 AND state = 'running' AND listed = 0`
	raiseLow = `UPDATE meta SET low = ?1 WHERE low < ?1`

	manyAbove = `SELECT count(*) FROM (SELECT 1 FROM operations WHERE id >= (` + lowestID + `) LIMIT ?1)`

	// raiseEvery is how many claims a process makes before it raises low.
	raiseEvery = 1000
)

// raise raises low to the present.
func (f *file) raise(ctx context.Context) error {
	return f.writer.do(ctx, func(x *tx) error {
		low := f.now().UnixMilli() << idRandom
		if err := x.run(listOld, low); err != nil {
			return err
		}
		return x.run(raiseLow, low)
	})
}

// raiseIfFar raises low where programs that end early have left it behind.
func (f *file) raiseIfFar(ctx context.Context) error {
	var above int64
	if _, err := f.reader.one(ctx, manyAbove, []any{&above}, raiseEvery); err != nil || above < raiseEvery {
		return err
	}
	return f.raise(ctx)
}
