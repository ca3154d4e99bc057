//go:build unix && cgo

package crash_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	fewKills = 20 // of a test that was not asked for more
	together = 6  // stories
	tries    = 10 // for a story that did not happen as it was to
)

// count is what an undisturbed run is.
type count struct {
	writes      []string // to the store
	writesAfter []string // of the process that goes on behind an effect whose result is not saved
	length      length
}

// length is how long a process takes.
type length struct {
	life time.Duration // from its start to its end
	work time.Duration // from the open store on
}

// TestKilledAnywhereTheOutcomeIsExact kills TOOLONCE_KILLS processes on each store: each point of each way to run, then at
// random times by TOOLONCE_SEED. TOOLONCE_CELL names a cell, or the beginning of several on one store, to be killed alone;
// TOOLONCE_TABLE names a file for the tables in Markdown.
func TestKilledAnywhereTheOutcomeIsExact(t *testing.T) {
	only, told := os.Getenv("TOOLONCE_CELL"), false
	tables := legend + "\n"
	for _, store := range []string{onSQLite, onPostgres} {
		if only != "" && !strings.HasPrefix(only, store+"/") {
			continue
		}
		told = true
		t.Run(store, func(t *testing.T) {
			m := &matrix{t: t, dir: t.TempDir(), home: homeOf(t, store), settings: settingsOn(store), slots: make(chan struct{}, together), only: only}
			tables += "\n" + m.kill()
		})
	}
	if !told {
		t.Fatalf("TOOLONCE_CELL=%q: there is no such store", only)
	}
	if file := os.Getenv("TOOLONCE_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(tables), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// kill kills, and gives the table.
func (m *matrix) kill() string {
	t := m.t
	m.seed = number(t, "TOOLONCE_SEED", 1)
	kills := int(number(t, "TOOLONCE_KILLS", fewKills))
	t.Logf("TOOLONCE_SEED=%d TOOLONCE_KILLS=%d", m.seed, kills)
	m.count()
	if t.Failed() {
		return ""
	}
	byPoint, err := plan(m.settings, m.counted)
	if err != nil {
		t.Fatal(err)
	}
	cells := spread(byPoint)
	if n := total(cells); n > kills { // some are at random all the same
		for n = 0; n < len(cells) && total(cells[:n+1]) <= kills-kills/10; n++ {
		}
		cells = cells[:n]
	}
	if m.only != "" {
		cells = m.onlyThose(spread(byPoint))
	}
	m.tellAll(cells)
	for n := 1; m.kills < kills && m.only == ""; {
		var more []cell
		for range min(kills-m.kills, 8*together) {
			more = append(more, m.atRandom(n))
			n++
		}
		m.tellAll(more)
	}
	return m.print(byPoint)
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, s)
	}
	return n
}

// matrix is all stories together.
type matrix struct {
	t        *testing.T
	dir      string
	home     home
	settings []setting
	seed     uint64
	only     string
	slots    chan struct{} // one for each story that keeps the machine busy
	counted  map[setting]count

	mu       sync.Mutex
	kills    int
	missed   int // stories that were told again, as the process had ended before its kill
	slow     int // and as the machine was slow
	outcomes []outcome
}

// each calls f for all of some values, a few at a time.
func each[T any](m *matrix, all []T, f func(T)) {
	var wg sync.WaitGroup
	for _, v := range all {
		m.slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-m.slots }()
			f(v)
		})
	}
	wg.Wait()
}

// story is a cell that is to happen.
func (m *matrix) story(c cell) (*story, func(), error) {
	dir, err := os.MkdirTemp(m.dir, "story")
	if err != nil {
		return nil, nil, err
	}
	s := &story{cell: c, world: newWorld(m.home(dir)), slots: m.slots}
	return s, func() {
		s.abandon()
		_ = os.RemoveAll(dir)
	}, nil
}

// count runs each setting undisturbed, and once more with a kill behind the effect, and counts the writes.
func (m *matrix) count() {
	counted := map[setting]count{}
	each(m, m.settings, func(w setting) {
		c, err := m.undisturbed(w)
		if err == nil {
			c.writesAfter, err = m.goneOn(w)
		}
		if err != nil {
			m.t.Errorf("counting %+v: %v", w, err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		counted[w] = c
	})
	m.counted = counted
}

func (m *matrix) undisturbed(w setting) (c count, err error) {
	s, over, err := m.story(cell{setting: w})
	if err != nil {
		return c, err
	}
	defer over()
	ctx := m.t.Context()
	p, err := s.start(ctx)
	if err != nil {
		return c, err
	}
	begun := time.Now()
	p.tell(command{})
	if _, err = p.await("next"); err != nil {
		return c, err
	}
	opened := time.Now()
	said, err := p.do(first)
	if err == nil {
		err = s.check(first, said, doneHere)
	}
	if err == nil {
		err = s.end(ctx, doneHere)
	}
	return count{writes: said.Writes, length: length{time.Since(begun), time.Since(opened)}}, err
}

func (m *matrix) goneOn(w setting) (writes []string, err error) {
	s, over, err := m.story(cell{setting: w})
	if err != nil {
		return nil, err
	}
	defer over()
	p, err := s.opened(m.t.Context())
	if err != nil {
		return nil, err
	}
	p.tell(command{Run: first, At: refundMade})
	if _, err = p.await("here"); err == nil {
		err = s.dies(m.t.Context(), p)
	}
	if err != nil {
		return nil, err
	}
	if p, err = s.opened(m.t.Context()); err != nil {
		return nil, err
	}
	said, err := p.do(first)
	if err == nil && said.Err != "" {
		err = errors.New(said.Err)
	}
	return said.Writes, err
}

// atRandom is the nth cell that is killed at a random time.
func (m *matrix) atRandom(n int) cell {
	all := m.settings
	return cell{setting: all[5*n%len(all)], workers: []string{alone, sameRun, alone, sameKey}[n/len(all)%4], random: n}
}

// onlyThose are the cells that were asked for.
func (m *matrix) onlyThose(cells []cell) []cell {
	for n := range 10_000 {
		cells = append(cells, m.atRandom(n+1))
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return !strings.HasPrefix(c.String(), m.only) })
	if len(cells) == 0 {
		m.t.Fatalf("TOOLONCE_CELL=%q: there is no such cell", m.only)
	}
	return cells
}

// tellAll has cells happen.
func (m *matrix) tellAll(cells []cell) {
	each(m, cells, func(c cell) {
		r, stored, err := m.tell(c)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.kills += r.kills
		m.outcomes = append(m.outcomes, outcome{c, r, err != nil})
		if err != nil {
			m.t.Errorf("%s: %v\nstored: %+v\nrun it alone: TOOLONCE_SEED=%d TOOLONCE_CELL=%q go test -count=1 -v -run '^TestKilled' ./internal/crash",
				c, err, stored, m.seed, c)
		}
	})
}

// tell has a cell happen. What did not happen as it was to is tried again, at another time where that is random.
func (m *matrix) tell(c cell) (r result, f fact, err error) {
	var random *rand.Rand
	within := m.counted[c.setting].length
	if c.random > 0 {
		random = rand.New(rand.NewPCG(m.seed, uint64(c.random)))
	}
	for range tries {
		s, over, failed := m.story(c)
		if failed != nil {
			return r, f, failed
		}
		s.random, s.length = random, within
		err = s.tell(m.t.Context())
		if err != nil {
			f, _ = s.look(context.Background())
		}
		over()
		r, within = s.result, s.length
		if !errors.Is(err, errMissed) && !errors.Is(err, errSlow) {
			break
		}
		m.mu.Lock()
		if errors.Is(err, errSlow) {
			m.slow++
		} else {
			m.missed++
		}
		m.mu.Unlock()
	}
	return r, f, err
}
