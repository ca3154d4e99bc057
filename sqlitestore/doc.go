// Package sqlitestore keeps the operations of package middleware and the runs of package journal in one SQLite file.
//
//	store, err := sqlitestore.Open("once.db", nil)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	handle := tools.Handler(middleware.Once(store.Namespace("acme"), nil))
//
// Several processes of one host may use the file at the same time. Each holds a lock file in the directory
// "<path>-owners" for as long as it lives; where that lock can be taken, its owner is gone and others may settle what it
// has left behind, and go on with its runs. Keep that directory together with the database: where a lock file is missing
// and nothing in the database says that its owner has gone, the owner counts as alive.
//
// Every commit is on the disk before a call returns (WAL, synchronous=FULL). SQLite's WAL does not work over a network,
// so a network file system is refused where it can be told.
package sqlitestore
