package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pgtest"
)

const mainEnv = "RIVER_WORKERS_MAIN"

// TestMain is the program, too, whose workers are killed.
func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestKilledInTheRefundAnotherWorkerGoesOnAndRefundsNothing(t *testing.T) {
	dsn, temp := pgtest.Start(t), t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-dsn", dsn)
	cmd.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v\n%s\n%s", err, errs.String(), out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; last != "refunds counted in the provider's own table: 1" {
		t.Errorf("the last line is %q", last)
	}
	for says, times := range map[string]int{
		"MOVES 5.00": 1, "(signal: killed)": 1, "job 1, attempt 2: takes run ticket-42": 1, "finds re_1001_1": 1,
		"asks the model for turn 1": 1, "asks the model for turn 2": 1, `answers: It is refunded, {"id":"re_1001_1"}`: 2,
	} {
		if n := strings.Count(out.String(), says); n != times {
			t.Errorf("it says %d times, and not %d, %q", n, times, says)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("it has left %v, %v", left, err)
	}
	if n := schemas(t.Context(), t, dsn); n > 0 {
		t.Errorf("it has left %d schemas", n)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func schemas(ctx context.Context, t *testing.T, dsn string) (n int) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'river%'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
