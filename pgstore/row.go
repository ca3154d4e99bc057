package pgstore

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/toolonce/toolonce/middleware"
)

// columns of operations, in the order of [record.dest].
var columns = strings.Fields(`
	id identity fingerprint canonical tool state token attempt deadline owner settle settler
	generation key key_since unclear by_person undoes repeat_of resource resource_out late
	run turn position call_id arguments conversation created since done_at keep expires settled_by settled_why
	input result`)

var all = "operations." + strings.Join(columns, ", operations.")

// evidence is what [record.known] takes besides: what is known of who owns the row and who settles it, and the time.
const (
	evidence = `owner.name, ` + isGone + `, settler.id IS NOT NULL AND ` + settlerIsGone + `, statement_timestamp()`
	owners   = ` LEFT JOIN @owners AS owner ON owner.id = operations.owner LEFT JOIN @owners AS settler ON settler.id = operations.settler`
)

// record is a row as it is stored.
type record struct {
	middleware.Row
	id, owner, settler, undoes, repeatOf, undoneBy number
	keep                                           pgtype.Interval
	result, settle                                 nullable

	ownerName              nullable
	ownerGone, settlerGone sql.NullBool
}

func (r *record) dest() []any {
	return []any{
		&r.id, (*hash)(&r.Identity), (*hash)(&r.Fingerprint), &r.Canonical, (*word)(&r.Tool), (*string)(&r.State), (*word)(&r.Token),
		&r.Attempt, (*moment)(&r.Deadline), &r.owner, &r.settle, &r.settler,
		&r.Generation, (*hash)(&r.Key), (*moment)(&r.KeySince), &r.Unclear, &r.ByPerson, &r.undoes, &r.repeatOf,
		(*hash)(&r.Resource), (*word)(&r.ResourceOut), &r.Late,
		(*word)(&r.Claimer.Run), &r.Claimer.Turn, &r.Claimer.Position, (*word)(&r.Claimer.CallID), (*hash)(&r.Claimer.Arguments), (*word)(&r.Conversation),
		(*moment)(&r.Created), (*moment)(&r.Since), (*moment)(&r.DoneAt), &r.keep, (*moment)(&r.Expires), (*word)(&r.SettledBy), (*word)(&r.SettledWhy),
		&r.Input, &r.result,
	}
}

// known is dest with the evidence.
func (r *record) known() []any {
	return append(r.dest(), &r.ownerName, &r.ownerGone, &r.settlerGone, (*moment)(&r.Now))
}

// row works out what is not stored.
func (s *Store) row(r *record) middleware.Row {
	if r.id == 0 {
		return middleware.Row{}
	}
	r.Result = r.result.text
	s.content().OpenRow(&r.Row)
	row := r.Row
	row.Namespace, row.Operation = s.namespace, operationOf(r.id)
	row.Undoes, row.RepeatOf, row.UndoneBy = operationOf(r.undoes), operationOf(r.repeatOf), operationOf(r.undoneBy)
	row.Claimer.Tool, row.Claimer.Fingerprint = r.Tool, r.Fingerprint
	row.HasResult, row.Settle = r.result.valid, r.settle.text
	if row.Owner = r.ownerName.text; !r.ownerName.valid {
		row.Owner = strayName(r.owner)
	}
	if row.State == middleware.Running || row.State == middleware.InDoubt {
		row.OwnerMine = int64(r.owner) == s.d.owner
		row.OwnerGone = !row.OwnerMine && r.ownerGone.Bool
		row.OwnerUnknown = !row.OwnerMine && !r.ownerName.valid
	}
	row.SettleGone = r.settle.valid && int64(r.settler) != s.d.owner && r.settlerGone.Bool
	return row
}

// An operation's id is its row's: milliseconds since 1970, so that new rows lie beside each other, and 21 random bits.
// Nothing is decided by the milliseconds, so they may be of this process's clock.
const (
	idPrefix = "op_"
	idBase   = 36
	idRandom = 21
)

func newID() int64 { return time.Now().UnixMilli()<<idRandom | rand.Int64N(1<<idRandom) }

// operationOf is "" for none.
func operationOf(id number) string {
	if id == 0 {
		return ""
	}
	return idPrefix + strconv.FormatInt(int64(id), idBase)
}

// idOf is 0 for what is no id of ours.
func idOf(operation string) number {
	s, ok := strings.CutPrefix(operation, idPrefix)
	id, err := strconv.ParseInt(s, idBase, 64)
	if !ok || err != nil || id <= 0 || operationOf(number(id)) != operation {
		return 0
	}
	return number(id)
}

// word is a text. What PostgreSQL cannot hold is kept as a mark and its hexadecimal.
type word string

const wordMark = "\x01"

func pack(s string) string {
	if strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, wordMark) && utf8.ValidString(s) {
		return s
	}
	return wordMark + hex.EncodeToString([]byte(s))
}

func unpack(s string) (string, error) {
	coded, ok := strings.CutPrefix(s, wordMark)
	if !ok {
		return s, nil
	}
	b, err := hex.DecodeString(coded)
	return string(b), err
}

// ScanText implements pgtype.TextScanner.
func (w *word) ScanText(t pgtype.Text) error {
	s, err := unpack(t.String)
	*w = word(s)
	return err
}

// raw is a word as bytes.
type raw []byte

// ScanText implements pgtype.TextScanner.
func (r *raw) ScanText(t pgtype.Text) error {
	s, err := unpack(t.String)
	*r = raw(s)
	return err
}

// nullable is a text that may be NULL.
type nullable struct {
	text  string
	valid bool
}

// ScanText implements pgtype.TextScanner.
func (n *nullable) ScanText(t pgtype.Text) error {
	n.valid = t.Valid
	return (*word)(&n.text).ScanText(t)
}

// hash is hexadecimal in Go and bytes in the database, or text in both where it is something else.
type hash string

const hashSize = 32

func packHash(s string) []byte {
	b, err := hex.DecodeString(s)
	if err == nil && len(b) == hashSize && hex.EncodeToString(b) == s {
		return b
	}
	b = []byte(pack(s)) // which has no zero byte
	if len(b) == hashSize {
		b = append(b, 0)
	}
	return b
}

// ScanBytes implements pgtype.BytesScanner.
func (h *hash) ScanBytes(b []byte) error {
	if len(b) == hashSize {
		*h = hash(hex.EncodeToString(b))
		return nil
	}
	s, err := unpack(strings.TrimSuffix(string(b), "\x00"))
	*h = hash(s)
	return err
}

// hashOrNull is NULL for "".
func hashOrNull(s string) []byte {
	if s == "" {
		return nil
	}
	return packHash(s)
}

// moment is a time, zero for NULL.
type moment time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m *moment) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.InfinityModifier != pgtype.Finite {
		return fmt.Errorf("a time is stored as %s", v.InfinityModifier)
	}
	*m = moment(v.Time.UTC())
	if !v.Valid {
		*m = moment{}
	}
	return nil
}

// number is an id, 0 for NULL.
type number int64

// orNull is NULL for 0.
func (n number) orNull() any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

// ScanInt64 implements pgtype.Int64Scanner.
func (n *number) ScanInt64(v pgtype.Int8) error {
	*n = number(v.Int64)
	return nil
}

// span is a time that must have passed: the database counts microseconds, so it is rounded up.
func span(d time.Duration) pgtype.Interval {
	µs := d.Microseconds()
	if d > 0 && d%time.Microsecond != 0 {
		µs++
	}
	return pgtype.Interval{Microseconds: µs, Valid: true}
}

// spanOrNull is NULL for 0.
func spanOrNull(d time.Duration) pgtype.Interval {
	s := span(d)
	s.Valid = d != 0
	return s
}
