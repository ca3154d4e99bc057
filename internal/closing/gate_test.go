package closing_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/internal/closing"
)

func TestNobodyEntersOnceCloseHasBegun(t *testing.T) {
	var g closing.Gate
	leave, ok := g.Enter()
	if !ok {
		t.Fatal("it is closed from the beginning")
	}
	ended := make(chan bool)
	go func() {
		_, _ = g.Close(time.Hour, func() error { close(ended); return nil })
	}()
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-ended:
		t.Error("it ends while somebody is inside")
	default:
	}
	leave()
	<-ended
	if _, ok := g.Enter(); ok {
		t.Error("somebody enters what is closed")
	}
}

func TestEndIsCalledOnceAndWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g closing.Gate
		calls, broken := 0, errors.New("broken")
		end := func() error {
			calls++
			time.Sleep(time.Minute)
			return broken
		}
		for i, most := range []time.Duration{time.Second, time.Second, time.Hour, time.Second} {
			over, err := g.Close(most, end)
			if want := i >= 2; over != want || want != errors.Is(err, broken) {
				t.Errorf("Close %d: over %v, %v", i, over, err)
			}
		}
		if calls != 1 {
			t.Errorf("end was called %d times", calls)
		}
	})
}
