package codec_test

import (
	"reflect"
	"testing"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

type sixFields struct {
	OrderID  string  `json:"order_id" once:"key"`
	Cents    int64   `json:"cents" jsonschema:"minimum=1"`
	Currency string  `json:"currency" jsonschema:"enum=EUR,enum=USD"`
	Partial  bool    `json:"partial"`
	Reason   string  `json:"reason,omitempty" once:"-"`
	Ratio    float64 `json:"ratio"`
}

type sixPlain struct {
	OrderID  string  `json:"order_id" once:"key"`
	Cents    int64   `json:"cents"`
	Currency string  `json:"currency"`
	Partial  bool    `json:"partial"`
	Reason   string  `json:"reason,omitempty" once:"-"`
	Ratio    float64 `json:"ratio"`
}

const sixArguments = `{"order_id":"ord_10442","cents":4200,"currency":"EUR","partial":false,"reason":"damaged in transit","ratio":0.5}`

func benchDecode(b *testing.B, c *codec.Codec, err error) {
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decode(sixArguments); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode6Fields(b *testing.B) {
	c, err := codec.New(reflect.TypeFor[sixFields](), codec.Options{})
	benchDecode(b, c, err)
}

func BenchmarkDecode6FieldsNoConstraint(b *testing.B) {
	c, err := codec.New(reflect.TypeFor[sixPlain](), codec.Options{})
	benchDecode(b, c, err)
}

func BenchmarkDecode6FieldsRaw(b *testing.B) {
	c, err := codec.NewRaw(codec.RawSpec{})
	benchDecode(b, c, err)
}
