package pgstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func ask(g *gatherer[string], what string, send func([]string) bool) {
	_ = g.do(context.Background(), what, send) // whose context does not end
}

// stuck has a leader of two requests, its own and another's, send until release is closed, and then say that it was not sent.
func stuck(g *gatherer[string], release <-chan struct{}, other func([]string) bool) (done <-chan time.Time) {
	over := make(chan time.Time, 1)
	began := make(chan struct{})
	go ask(g, "who lets them gather", func([]string) bool {
		go ask(g, "the leader", func([]string) bool {
			close(began)
			<-release
			return false
		})
		synctest.Wait()
		go func() {
			ask(g, "another", other)
			over <- time.Now()
		}()
		synctest.Wait()
		return true
	})
	<-began
	return over
}

func TestWhoWasGivenBackLeadsAtOnceWhereNobodyDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gatherer[string]{patience: time.Second}
		release := make(chan struct{})
		done := stuck(g, release, func([]string) bool { return true })
		ask(g, "who passes by", func([]string) bool { return true }) // it waits for a second, and leads
		released := time.Now()
		close(release)
		if waited := (<-done).Sub(released); waited != 0 {
			t.Errorf("it waited for %v more", waited)
		}
	})
}

func TestWhoWasGivenBackDoesNotWaitForAnotherThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gatherer[string]{patience: time.Second}
		release, never := make(chan struct{}), make(chan struct{})
		done := stuck(g, release, func([]string) bool { return true })
		go ask(g, "who is stuck too", func([]string) bool {
			<-never
			return true
		})
		time.Sleep(1500 * time.Millisecond)
		released := time.Now()
		close(release)
		if waited := (<-done).Sub(released); waited > time.Second {
			t.Errorf("it waited for %v", waited)
		}
		close(never)
	})
}
