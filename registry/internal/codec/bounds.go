package codec

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bounds are what a schema says of a whole number. A number within needs no look at the schema, which would take as long as
// all the rest of a call's arguments.
type bounds struct{ min, max int64 }

// boundsOf is nil where the schema says more, or bounds that are no whole numbers.
func boundsOf(o *object, s *jsonschema.Schema) *bounds {
	for _, m := range o.members {
		if m.name != "minimum" && m.name != "maximum" && !slices.Contains(structural, m.name) || m.name == "$ref" {
			return nil
		}
	}
	b := &bounds{math.MinInt64, math.MaxInt64}
	for _, x := range []struct {
		from *big.Rat
		to   *int64
	}{{s.Minimum, &b.min}, {s.Maximum, &b.max}} {
		if x.from == nil {
			continue
		}
		if !x.from.IsInt() || !x.from.Num().IsInt64() {
			return nil
		}
		*x.to = x.from.Num().Int64()
	}
	return b
}

func (b *bounds) hold(text []byte) bool {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return err == nil && b.min <= n && n <= b.max
}
