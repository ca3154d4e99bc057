package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/registry"
)

func retaining(effect registry.Effect, retain, window time.Duration) (*registry.Info, error) {
	r := registry.New()
	err := r.AddRaw(registry.RawTool{
		Name: "pay", Effect: effect, Retain: retain, KeyWindow: window,
		Run: func(context.Context, json.RawMessage) (any, error) { return nil, nil },
	})
	if err != nil {
		return nil, err
	}
	return r.Tools()[0], nil
}

func TestContentIsRetainedForNinetyDaysOrWhatTheToolSays(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct{ retain, window, want time.Duration }{
		{0, 0, 90 * day}, {0, 120 * day, 120 * day}, {day, 0, day}, {30 * day, 7 * day, 30 * day}, {365 * day, 0, 365 * day},
	} {
		i, err := retaining(registry.NonIdempotentWrite, c.retain, c.window)
		if err != nil || i.Retain != c.want {
			t.Errorf("Retain %v, KeyWindow %v: %v %v, want %v", c.retain, c.window, i, err, c.want)
		}
	}
	r := registry.New()
	registry.Add(r, registry.Tool[struct{}, string]{
		Name: "pay", Effect: registry.IdempotentWrite, Retain: 2 * day, Run: func(context.Context, struct{}) (string, error) { return "", nil },
	})
	if got := r.Tools()[0].Retain; got != 2*day {
		t.Errorf("Retain of a typed tool is %v", got)
	}
}

func TestARetentionThatIsTooShortIsRefusedAndTheMendIsSaid(t *testing.T) {
	for _, c := range []struct {
		effect         registry.Effect
		retain, window time.Duration
		want           string
	}{
		{registry.NonIdempotentWrite, 24*time.Hour - 1, 0, "Retain 23h59m59.999999999s is too short"},
		{registry.NonIdempotentWrite, 24 * time.Hour, 48 * time.Hour, "use at least 48h0m0s"},
		{registry.IdempotentWrite, time.Hour, 0, "use at least 24h0m0s"},
		{registry.NonIdempotentWrite, -1, 0, "Retain is negative: leave it 0"},
		{registry.Read, 48 * time.Hour, 0, "Retain is of no use with Read"},
	} {
		if _, err := retaining(c.effect, c.retain, c.window); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Retain %v, KeyWindow %v of a %v: %v, want %q", c.retain, c.window, c.effect, err, c.want)
		}
	}
}
