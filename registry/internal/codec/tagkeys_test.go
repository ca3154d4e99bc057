package codec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

func TestTagKeysThatWouldCountForNothingAreRefused(t *testing.T) {
	for tag, want := range map[reflect.StructTag]string{
		`json:"id" onc:"key"`:                        `struct tag key "onc": write "once"`,
		`json:"id" Once:"key"`:                       `struct tag key "Once": write "once"`,
		`json:"id" jsonshema:"minLength=1"`:          `struct tag key "jsonshema": write "jsonschema"`,
		`json:"id" once:"key" once:"-"`:              `struct tag key "once" stands twice`,
		`json:"id" bson:"id" yaml:"id" once:"key"`:   "",
		`json:"id" validate:"required" db:"id_once"`: "",
	} {
		_, err := codec.New(reflect.StructOf([]reflect.StructField{{Name: "ID", Type: reflect.TypeFor[string](), Tag: tag}}), codec.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
	}
}
