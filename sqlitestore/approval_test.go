//go:build cgo

package sqlitestore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func aQuestion(run string) middleware.Approval {
	c := aClaim(run, 1)
	return middleware.Approval{Call: c.Call, Identity: c.Identity, Input: []byte(`{"card":"4111"}`)}
}

func TestApprovalsAreFoundByAnIndex(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	for _, states := range [][]middleware.ApprovalState{nil, {middleware.Pending}, {middleware.Pending, middleware.Denied}} {
		plans, err := s.ApprovalPlans(states...)
		check(t, err)
		if len(plans) < 5 {
			t.Errorf("%d plans of 5 queries", len(plans))
		}
		for _, plan := range plans {
			if strings.HasPrefix(plan, "SCAN") {
				t.Errorf("listing %v: %s", states, plan)
			}
		}
	}
}

func TestATenantThatHasOnlyAskedIsListed(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	claimed(t, s.Namespace("acme"), aClaim("run", 1))
	for _, name := range []string{"acme", "globex"} {
		_, err := s.Namespace(name).Ask(t.Context(), aQuestion("run"), time.Hour)
		check(t, err)
	}
	names, err := s.Namespaces(t.Context())
	check(t, err)
	if diff := cmp.Diff([]string{"acme", "globex"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestApprovalsOutliveTheProcessThatAsked(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	asked, err := s.Ask(t.Context(), aQuestion("run"), time.Hour)
	check(t, err)
	check(t, s.Close())
	all, err := open(t, path, nil).Approvals(t.Context(), middleware.Pending)
	check(t, err)
	asked.Now = time.Time{}
	for i := range all {
		all[i].Now = time.Time{}
	}
	if diff := cmp.Diff([]middleware.Approval{asked}, all); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsOfApprovalsDoNotTellWhatWasAsked(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	check(t, s.Write("PRAGMA query_only = on"))
	a := aQuestion("secret-run")
	_, aerr := s.Ask(t.Context(), a, time.Hour)
	_, derr := s.Decide(t.Context(), middleware.Decision{Run: "secret-run", Turn: 1, By: "Ann", Why: "4111"})
	for _, err := range []error{aerr, derr} {
		if err == nil || strings.Contains(err.Error(), "4111") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), a.Call.CallID) {
			t.Errorf("the error says %v", err)
		}
	}
}

func TestAQuestionAboutACallThatIsAnsweredIsClosed(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	c := aClaim("run", 1)
	a, err := s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, time.Hour)
	check(t, err)
	r, err := s.Begin(t.Context(), aStart("run"))
	check(t, err)
	_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
	check(t, err)
	if all, err := s.Approvals(t.Context(), middleware.Pending); err != nil || len(all) != 1 {
		t.Fatalf("%d are pending before, %v", len(all), err)
	}
	// A limit was in the way, and what the model is told of that is stored.
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "limit", Verdict: registry.Refused}}}))
	all, err := s.Approvals(t.Context(), middleware.Pending)
	if err != nil || len(all) != 0 {
		t.Errorf("%d are pending, %v", len(all), err)
	}
	if _, err := s.Decide(t.Context(), middleware.Decision{Run: "run", Turn: 1, ID: a.ID, Approve: true, By: "ann"}); !errors.Is(err, middleware.ErrLost) {
		t.Errorf("approving it: %v", err)
	}
}
