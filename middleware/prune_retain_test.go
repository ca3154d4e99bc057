package middleware_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func TestAToolsRetainIsThatOfItsOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, runs := middleware.Memory(), 0
		h := payTool(2*day, &runs).Handler(middleware.Once(l, nil))
		pay(t, h, "first")
		time.Sleep(2*day - time.Second)
		forget(t, l, 0)
		time.Sleep(2 * time.Second)
		forget(t, l, 1)
		if res := pay(t, h, "first"); res.Verdict != registry.AlreadyDone || runs != 1 {
			t.Error(res, runs)
		}
	})
}
