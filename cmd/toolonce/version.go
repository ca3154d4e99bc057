package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// versions are of this program and of what it knows.
type versions struct {
	Module         string `json:"module"`
	Revision       string `json:"revision,omitempty"` // of the source, where it was built from a repository
	Go             string `json:"go"`
	Platform       string `json:"platform"`
	SQLite         string `json:"sqlite"` // of the library in it
	SQLiteSchema   int    `json:"sqlite_schema"`
	PostgresSchema int    `json:"postgres_schema"`
}

func versionVerb(*flag.FlagSet) action {
	return func(ctx context.Context, e *env, _ []string) error {
		v := versions{
			Module: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			SQLiteSchema: sqlitestore.SchemaVersion(), PostgresSchema: pgstore.SchemaVersion(),
		}
		if info, ok := debug.ReadBuildInfo(); ok {
			v.Module = info.Main.Version
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					v.Revision = s.Value
				}
			}
		}
		var err error
		if v.SQLite, err = sqliteVersion(ctx); err != nil {
			v.SQLite = "none: " + err.Error()
		}
		if e.json {
			return e.printJSON(v)
		}
		for _, l := range [][2]string{
			{"toolonce", v.Module}, {"revision", v.Revision}, {"Go", v.Go + " " + v.Platform}, {"SQLite", v.SQLite},
			{"SQLite schema", strconv.Itoa(v.SQLiteSchema)}, {"PostgreSQL schema", strconv.Itoa(v.PostgresSchema)},
		} {
			if l[1] != "" {
				e.printf("%-18s %s\n", l[0], escape(l[1]))
			}
		}
		return nil
	}
}

// sqliteVersion asks the library, which is not there in a program without cgo.
func sqliteVersion(ctx context.Context) (v string, err error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&v)
	return v, err
}
