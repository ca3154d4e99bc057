package journaltest

import (
	"context"
	"slices"

	"github.com/toolonce/toolonce/agent/journal"
)

// BrokenJournal breaks one promise of a sound journal, as a careless store would.
type BrokenJournal struct {
	Name string
	// Fails names the case that is there to tell.
	Fails string
	// Also are the names of the other cases that fail, as patterns of [path.Match].
	Also []string
	// Wrap puts the fault on top of a sound system.
	Wrap func(System) System
}

// Broken gives journals that break a promise each. They show that the cases tell, and what a loop does on top of such a
// journal.
func Broken() []BrokenJournal {
	return slices.Concat(brokenRights(), brokenWrites(), brokenEnds(), brokenReads())
}

func brokenRights() []BrokenJournal {
	return []BrokenJournal{
		{
			Name: "no token check", Wrap: faulty(noTokenCheck),
			Fails: "append/loses where another process has taken the run, and stores nothing",
			Also: []string{
				"take/what failed under an earlier token leaves the run with who has it",
				"*/loses under a token that is not the run's, and stores nothing",
				"leave/loses where another process has taken the run, and stores nothing",
				"namespaces/a token is worth nothing in another",
				"race/a slow process stores its turn before the run is taken, or not at all",
			},
		},
		{
			Name: "taken from the living", Wrap: faulty(fromTheLiving),
			Fails: "take/not while the owner lives",
			Also: []string{
				"take/a run whose owner is gone, with all its turns and outputs",
				"take/not while another call of this process has it", "take/a run of this process whose * has failed",
				"take/what failed under an earlier token leaves the run with who has it",
				"leave/loses under a token that is not the run's, and stores nothing",
				"leave/loses where another process has taken the run, and stores nothing",
				"leave/at another turn than the last one stores nothing", "namespaces/of one process share who has a run",
				"race/of 50 *", "read/takes nothing", "namespaces/a token is worth nothing in another",
			},
		},
		{
			Name: "no evidence", Wrap: faulty(noEvidence),
			Fails: "take/a run whose owner is gone, with all its turns and outputs",
			Also: []string{
				"begin/another * is another run", "take/a run that has no turn yet", "*/loses where another process has taken the run, and stores nothing",
				"race/of 50 who begin a run whose owner is gone one takes it",
				"race/a slow process stores its turn before the run is taken, or not at all", "runs/tell who has them",
			},
		},
		{
			Name: "a call that has failed keeps the run", Wrap: faulty(keepsTheRun),
			Fails: "take/a run of this process whose Append has failed",
			Also: []string{
				"take/a run of this process whose Leave has failed",
				"append/a turn that does not follow the last one stores nothing",
				"leave/at another turn than the last one stores nothing",
				"race/of 50 calls of the process that has failed one takes the run",
			},
		},
		{
			Name: "input ignored", Wrap: faulty(noInput),
			Fails: "begin/another input is another run",
			Also:  []string{"begin/another * is another run", "forget/a run that was forgotten is begun by nobody"},
		},
		{
			Name: "namespace ignored", Wrap: oneNamespace,
			Fails: "namespaces/runs of one are unknown in another",
			Also: []string{
				"namespaces/names and ids do not run together", "namespaces/a token is worth nothing in another",
				"read/a run of another namespace is none", "runs/of another namespace are not listed", "namespaces/forget does not cross",
			},
		},
	}
}

func brokenWrites() []BrokenJournal {
	return []BrokenJournal{
		{
			Name: "ErrLost reported as success", Wrap: faulty(lostIsSuccess),
			Fails: "append/loses where another process has taken the run, and stores nothing",
			Also: []string{
				"begin/a run with an answer is not taken by who sees it",
				"take/what failed under an earlier token leaves the run with who has it", "*/loses *",
				"namespaces/a token is worth nothing in another", "forget/a token is worth nothing afterwards",
				"race/a slow process stores its turn before the run is taken, or not at all",
			},
		},
		{
			Name: "a turn that is stored is told as it came", Wrap: faulty(adoptsNothing),
			Fails: "append/a turn that is stored stays, with the outputs before it",
			Also: []string{
				"content/what is returned is the caller's alone",
				"race/of two turns the first stays, and both are told which",
			},
		},
		{
			Name: "a second output overwrites the first", Wrap: faulty(overwrites),
			Fails: "append/an output that is stored stays, and others join it",
			Also: []string{
				"append/a turn that is stored stays, with the outputs before it",
				"leave/an output that is stored stays, and others join it",
			},
		},
		{
			Name: "turns are numbered as they come", Wrap: faulty(renumbers),
			Fails: "append/a turn that does not follow the last one stores nothing",
			Also: []string{
				"take/a run of this process whose Append has failed",
				"race/of 50 calls of the process that has failed one takes the run", "runs/tell who has them",
			},
		},
	}
}

func brokenEnds() []BrokenJournal {
	return []BrokenJournal{
		{
			Name: "Final is forgotten", Wrap: faulty(noFinal),
			Fails: "append/with Final finishes the run and gives it up",
			Also: []string{
				"begin/a run with an answer *", "begin/another * is another run",
				"*/loses where the run is finished, and stores nothing",
				"append/a turn that is stored stays, with the outputs before it",
				"append/with Final needs no turn before it", "read/a run is given whole, whoever has it, without its token",
				"runs/of a conversation, and those without an answer, are told apart", "namespaces/forget does not cross",
			},
		},
		{
			Name: "Leave forgets the outputs", Wrap: faulty(forgetful),
			Fails: "leave/stores the outputs of the last turn, and gives the run up",
			Also: []string{
				"*/an output that is stored stays, and others join it",
				"append/is whole or absent where the caller has gone", "read/a run is given whole, whoever has it, without its token",
				"leave/at another turn than the last one stores nothing", "content/outputs are kept byte for byte",
			},
		},
		{
			Name: "what was forgotten has ended", Wrap: faulty(forgivesForgotten),
			Fails: "forget/a run that was forgotten is begun by nobody",
			Also:  []string{"race/of who begins a run and who has it forgotten one does"},
		},
		{
			Name: "answers are kept as JSON values", Wrap: faulty(asValues),
			Fails: "content/answers are kept byte for byte",
		},
	}
}

// fault is what is wrong with a journal. Its functions are nil where nothing is.
type fault struct {
	begin func(context.Context, *brokenJournal, journal.Start) (journal.Record, error)
	store func(context.Context, *brokenJournal, journal.Entry) (journal.Entry, error)
	leave func(context.Context, *brokenJournal, journal.Leaving) error

	list func(context.Context, *brokenJournal, journal.RunsQuery) ([]journal.Summary, error)
	read func(context.Context, *brokenJournal, string) (journal.Record, bool, error)
}

// brokenJournal is a view of one process on a journal with a fault.
type brokenJournal struct {
	journal.Journal // the sound one
	*fault
	process *int
	view    string
}

func (b *brokenJournal) Begin(ctx context.Context, s journal.Start) (journal.Record, error) {
	if b.begin == nil {
		return b.Journal.Begin(ctx, s)
	}
	return b.begin(ctx, b, s)
}

func (b *brokenJournal) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	if b.store == nil {
		return b.Journal.Append(ctx, e)
	}
	return b.store(ctx, b, e)
}

func (b *brokenJournal) Leave(ctx context.Context, l journal.Leaving) error {
	if b.leave == nil {
		return b.Journal.Leave(ctx, l)
	}
	return b.leave(ctx, b, l)
}

// faulty makes a Wrap that gives all processes of a system one fault.
func faulty(f func() *fault) func(System) System {
	return func(sys System) System {
		broken := f()
		var forget func(journal.Journal, string) error
		if sys.Forget != nil {
			forget = func(j journal.Journal, run string) error { return sys.Forget(j.(*brokenJournal).Journal, run) }
		}
		return System{
			Forget: forget,
			Open:   func() journal.Journal { return &brokenJournal{sys.Open(), broken, new(int), "the default"} },
			Kill:   func(j journal.Journal) { sys.Kill(j.(*brokenJournal).Journal) },
			Namespace: func(j journal.Journal, name string) journal.Journal {
				b := j.(*brokenJournal)
				return &brokenJournal{sys.Namespace(b.Journal, name), broken, b.process, "named " + name}
			},
		}
	}
}

// oneNamespace gives all tenants the same view.
func oneNamespace(sys System) System {
	sys.Namespace = func(j journal.Journal, _ string) journal.Journal { return j }
	return sys
}
