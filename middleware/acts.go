package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Kinds of acts, see [Act].
const (
	ActHappened    = "happened"     // a person's verdict on an operation
	ActNotHappened = "not_happened" // another
	ActApproved    = "approved"     // the answer to an approval
	ActDenied      = "denied"       // another
	ActPruned      = "pruned"       // begun, by hand
	ActForgot      = "forgot"       // the content of a run
)

// Act is what a person did to a store: who, when, why. Acts are numbered from 1, without gaps, across all namespaces, and
// never changed nor removed: the Hash of each covers it and the hash before it, so that who has noted one can tell later
// whether anything up to it was changed.
type Act struct {
	Number    int
	Namespace string
	At        time.Time // the store's clock, in microseconds
	Kind      string    // one of the Act constants, or the program's own
	Target    string    // the operation, approval or run
	By, Why   string
	Detail    string // for people
	Hash      string // hexadecimal SHA-256
}

// Chained is the hash of the act after one with the hash before, "" for the first. It is over the fields in their order,
// each as its length in bytes, a colon and itself, numbers in decimal and the time in microseconds since 1970.
func (a *Act) Chained(before string) string {
	h := sha256.New()
	prev, _ := hex.DecodeString(before)
	h.Write(prev)
	for _, field := range []string{
		strconv.Itoa(a.Number), a.Namespace, strconv.FormatInt(a.At.UnixMicro(), 10), a.Kind, a.Target, a.By, a.Why, a.Detail,
	} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(field), field) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// CheckActs reports the first of all acts of a store, from number 1 on, that is missing or not as it was recorded.
func CheckActs(all []Act) error {
	before := ""
	for i := range all {
		a := &all[i]
		switch {
		case a.Number != i+1:
			return fmt.Errorf("middleware: act %d is missing: after act %d comes act %d", i+1, i, a.Number)
		case a.Hash != a.Chained(before):
			return fmt.Errorf("middleware: act %d, or what was before it, is not as it was recorded", a.Number)
		}
		before = a.Hash
	}
	return nil
}

// Recorder is a Ledger that remembers what people did to it.
//
//  1. A Happened or NotHappened that is made, and a Decide that answers, are recorded in the same transaction, with the
//     operation or the approval as Target.
//  2. Record adds an act: Kind, Target, By, Why and Detail are the caller's. By must not be empty.
//  3. Acts lists those of the namespace, oldest first; AllActs those of all, as CheckActs wants them.
type Recorder interface {
	Record(ctx context.Context, a Act) (Act, error)
	Acts(ctx context.Context) ([]Act, error)
	AllActs(ctx context.Context) ([]Act, error)
}

// Check says what keeps an act from being recorded.
func (a *Act) Check() error {
	if a.By == "" {
		return errors.New("middleware: an act is a person's: say who in Act.By")
	}
	return nil
}

// record adds an act to the chain.
func (m *memory) record(a Act) Act {
	before := ""
	if n := len(m.acts); n > 0 {
		before = m.acts[n-1].Hash
	}
	a.Number, a.At = len(m.acts)+1, time.Now().UTC().Truncate(time.Microsecond)
	a.Hash = a.Chained(before)
	m.acts = append(m.acts, a)
	return a
}

// Record implements Recorder.
func (l *MemoryLedger) Record(_ context.Context, a Act) (Act, error) {
	if err := a.Check(); err != nil {
		return Act{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.Namespace = l.namespace
	return l.record(a), nil
}

// Acts implements Recorder.
func (l *MemoryLedger) Acts(ctx context.Context) ([]Act, error) {
	all, err := l.AllActs(ctx)
	var mine []Act
	for _, a := range all {
		if a.Namespace == l.namespace {
			mine = append(mine, a)
		}
	}
	return mine, err
}

// AllActs implements Recorder.
func (l *MemoryLedger) AllActs(context.Context) ([]Act, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Act(nil), l.acts...), nil
}

// VerdictAct is the act that a step is, for a Ledger; ok is false for one that is no person's.
func VerdictAct(t *Transition) (a Act, ok bool) {
	a = Act{Kind: ActHappened, Target: t.Operation, By: t.By, Why: t.Why}
	if t.Step == NotHappened {
		a.Kind = ActNotHappened
	}
	return a, t.Step == Happened || t.Step == NotHappened
}

// DecisionAct is the act that an answer to an approval is, for an Approver.
func DecisionAct(a *Approval) Act {
	act := Act{Kind: ActDenied, Target: a.ID, By: a.By, Why: a.Why}
	if a.State == Approved {
		act.Kind = ActApproved
	}
	return act
}
