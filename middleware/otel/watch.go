package otel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/toolonce/toolonce/middleware"
)

const (
	maxListed = 1000            // rows that a gauge looks at
	maxLook   = 5 * time.Second // how long it may take
)

// Watch tells, whenever metrics are collected, how many operations of a ledger are in doubt and how long the oldest has
// been, how many are orphans, how many approvals wait and how long the oldest has, and how many commits the ledger has
// made: as far as it is a Lister, an Approver, and has a method Commits() int64, as sqlitestore has. It is an error where
// it is none of these.
//
// It looks at one namespace: watch each, with Options.Attributes that tell them apart. Commits are those of the whole
// store, so watch one with a MeterProvider that keeps them, or take their maximum. A thousand operations in doubt are
// looked at, the latest ones; of more it tells a thousand, and of the oldest that it is at least as old. A look that fails
// or takes over 5 s tells nothing, and OpenTelemetry's error handler why.
//
// Call stop before the ledger is closed.
func Watch(l middleware.Ledger, opts *Options) (stop func() error, err error) {
	t := opts.telemetry()
	var observed []metric.Observable
	var looks []func(context.Context, metric.Observer) error
	var errs []error
	gauge := func(name, unit, what string) metric.Float64ObservableGauge {
		g, err := t.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs, observed = append(errs, err), append(observed, g)
		return g
	}
	if lister, ok := l.(middleware.Lister); ok {
		doubts := gauge("toolonce.in_doubt", "{operation}", "Operations whose outcome nobody knows.")
		age := gauge("toolonce.in_doubt.age", "s", "Since when the oldest of them is in doubt, 0 for none.")
		orphans := gauge("toolonce.orphans", "{operation}", "Operations whose process has died, not yet settled.")
		looks = append(looks, func(ctx context.Context, o metric.Observer) error {
			return t.operations(ctx, o, lister, doubts, age, orphans)
		})
	}
	if approver, ok := l.(middleware.Approver); ok {
		pending := gauge("toolonce.approvals.pending", "{approval}", "Calls that wait for a person.")
		age := gauge("toolonce.approvals.age", "s", "How long the oldest of them waits, 0 for none.")
		looks = append(looks, func(ctx context.Context, o metric.Observer) error { return t.approvals(ctx, o, approver, pending, age) })
	}
	if c, ok := l.(interface{ Commits() int64 }); ok {
		commits, err := t.meter.Int64ObservableCounter("toolonce.commits", metric.WithUnit("{commit}"), metric.WithDescription("Commits of this process."))
		errs, observed = append(errs, err), append(observed, commits)
		looks = append(looks, func(_ context.Context, o metric.Observer) error {
			o.ObserveInt64(commits, c.Commits(), t.with())
			return nil
		})
	}
	if len(looks) == 0 {
		return nil, fmt.Errorf("otel: watching a ledger: a %T is no Lister and no Approver: use one that is, as sqlitestore is", l)
	}
	r, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, maxLook)
		defer cancel()
		var errs []error
		for _, look := range looks {
			errs = append(errs, look(ctx, o))
		}
		return errors.Join(errs...)
	}, observed...)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("otel: watching a ledger: %w", err)
	}
	return r.Unregister, nil
}

func (t *telemetry) operations(ctx context.Context, o metric.Observer, l middleware.Lister, doubts, age, orphans metric.Float64Observable) error {
	rows, err := l.List(ctx, []middleware.State{middleware.InDoubt}, maxListed)
	if err != nil {
		return err
	}
	oldest := time.Duration(0)
	for _, r := range rows {
		oldest = max(oldest, r.Now.Sub(r.Since))
	}
	running, err := l.List(ctx, []middleware.State{middleware.Running}, maxListed)
	if err != nil {
		return err
	}
	gone := 0
	for _, r := range running {
		if r.OwnerGone {
			gone++
		}
	}
	o.ObserveFloat64(doubts, float64(len(rows)), t.with())
	o.ObserveFloat64(age, oldest.Seconds(), t.with())
	o.ObserveFloat64(orphans, float64(gone), t.with())
	return nil
}

func (t *telemetry) approvals(ctx context.Context, o metric.Observer, l middleware.Approver, pending, age metric.Float64Observable) error {
	all, err := l.Approvals(ctx, middleware.Pending)
	if err != nil {
		return err
	}
	waiting, oldest := 0, time.Duration(0)
	for _, a := range all {
		if a.Now.Before(a.Expires) {
			waiting, oldest = waiting+1, max(oldest, a.Now.Sub(a.Asked))
		}
	}
	o.ObserveFloat64(pending, float64(waiting), t.with())
	o.ObserveFloat64(age, oldest.Seconds(), t.with())
	return nil
}
