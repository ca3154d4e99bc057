package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// columns of operations, in the order of [record.dest].
var columns = strings.Fields(`
	id identity fingerprint canonical tool state token attempt deadline owner settle settler
	generation key key_since unclear by_person undoes repeat_of resource resource_out late
	run turn position call_id arguments conversation created since done_at keep expires settled_by settled_why
	input result`)

var (
	all       = "operations." + strings.Join(columns, ", operations.")
	returning = " RETURNING " + strings.Join(columns, ", ")
)

// record is a row as it is stored.
type record struct {
	middleware.Row
	id, owner, settler, undoes, repeatOf, keep int64
	result, settle                             sql.NullString
}

func (r *record) dest() []any {
	return append(make([]any, 0, 48), // with room for what comes with a row
		&r.id, (*hash)(&r.Identity), (*hash)(&r.Fingerprint), &r.Canonical, &r.Tool, (*string)(&r.State), (*hash)(&r.Token),
		&r.Attempt, (*moment)(&r.Deadline), &r.owner, &r.settle, &r.settler,
		&r.Generation, (*hash)(&r.Key), (*moment)(&r.KeySince), &r.Unclear, &r.ByPerson, (*number)(&r.undoes), (*number)(&r.repeatOf),
		(*hash)(&r.Resource), &r.ResourceOut, &r.Late,
		&r.Claimer.Run, &r.Claimer.Turn, &r.Claimer.Position, &r.Claimer.CallID, (*hash)(&r.Claimer.Arguments), &r.Conversation,
		(*moment)(&r.Created), (*moment)(&r.Since), (*moment)(&r.DoneAt), &r.keep, (*moment)(&r.Expires), &r.SettledBy, &r.SettledWhy,
		&r.Input, &r.result)
}

// found is dest for the queries that look for one row.
func (r *record) found() []any { return append(r.dest(), &r.Repeats) }

// row works out what is not stored.
func (s *Store) row(ctx context.Context, r *record) (middleware.Row, error) {
	if r.id == 0 {
		return middleware.Row{}, nil
	}
	r.Result = r.result.String
	s.content().OpenRow(&r.Row)
	o := s.f.owners
	row := r.Row
	row.Namespace, row.Operation = s.namespace, operationOf(r.id)
	if r.undoes != 0 {
		row.Undoes = operationOf(r.undoes)
	}
	if r.repeatOf != 0 {
		row.RepeatOf = operationOf(r.repeatOf)
	}
	row.Claimer.Tool, row.Claimer.Fingerprint = r.Tool, r.Fingerprint
	row.HasResult, row.Settle = r.result.Valid, r.settle.String
	row.Now = time.Unix(0, s.f.now().UnixNano()).UTC()
	var err error
	if row.Owner, err = o.find(ctx, r.owner); err != nil {
		return row, err
	}
	if row.State == middleware.Running || row.State == middleware.InDoubt {
		e, err := o.evidence(ctx, r.owner)
		if err != nil {
			return row, err
		}
		row.OwnerMine, row.OwnerGone, row.OwnerUnknown = r.owner == o.id, e == dead, e == unknown
	}
	if row.Settle != "" {
		row.SettleGone, err = o.isGone(ctx, r.settler)
	}
	return row, err
}

// An operation's id is its row's: milliseconds since 1970, so that new rows lie beside each other, and 21 random bits.
const (
	idPrefix = "op_"
	idBase   = 36
	idRandom = 21
)

func newID(now time.Time) int64 {
	return now.UnixMilli()<<idRandom | rand.Int64N(1<<idRandom)
}

func operationOf(id int64) string { return idPrefix + strconv.FormatInt(id, idBase) }

// idOf is 0 for what is no id of ours.
func idOf(operation string) int64 {
	s, ok := strings.CutPrefix(operation, idPrefix)
	if !ok {
		return 0
	}
	id, err := strconv.ParseInt(s, idBase, 64)
	if err != nil || id <= 0 || operationOf(id) != operation {
		return 0
	}
	return id
}

// hash is hexadecimal in Go and bytes in the file, or text in both where it is something else.
type hash string

func pack(s string) any {
	if len(s) == 0 || len(s)%2 != 0 {
		return s
	}
	var room [64]byte
	b := room[:0]
	for i := 0; i < len(s); i += 2 {
		high, low := digit(s[i]), digit(s[i+1])
		if high|low > 15 {
			return s
		}
		b = append(b, high<<4|low)
	}
	return bytes.Clone(b)
}

// digit is 255 for what is no lower-case hexadecimal digit.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// packOrNull is NULL for "".
func packOrNull(s string) any {
	if s == "" {
		return nil
	}
	return pack(s)
}

// Scan implements sql.Scanner.
func (h *hash) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*h = ""
	case []byte:
		*h = hash(hex.EncodeToString(v))
	case string:
		*h = hash(v)
	default:
		return fmt.Errorf("a hash is stored as %T", v)
	}
	return nil
}

// moment is a time in Go and nanoseconds in the file.
type moment time.Time

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) error {
	n, ok := v.(int64)
	switch {
	case !ok:
		return fmt.Errorf("a time is stored as %T", v)
	case n == 0:
		*m = moment{}
	default:
		*m = moment(time.Unix(0, n).UTC())
	}
	return nil
}

// number is 0 for NULL.
type number int64

// Scan implements sql.Scanner.
func (n *number) Scan(v any) error {
	*n = 0
	if v == nil {
		return nil
	}
	i, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a number is stored as %T", v)
	}
	*n = number(i)
	return nil
}

// numberOrNull is NULL for 0.
func numberOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// after is now and d, without overflow.
func after(now int64, d time.Duration) int64 {
	if d > 0 && now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}
