package main

const (
	pgParty  = "pgstore/together.go"
	pgGather = "pgstore/gather.go"
	pgLook   = "pgstore/look.go"

	pgLost     = "./pgstore TestManyWhoseAnswersAreLostLoseNothingAndDoNothingTwice"
	pgOneID    = "./pgstore TestTwoOfManyClaimsThatGetOneIDBothWin"
	pgResults  = "./pgstore TestManyResultsShareATransactionAndEachIsToldItsOwn"
	pgReleased = "./pgstore TestAnIdentityThatIsReleasedWhileManyAreClaimedGetsTheNextGeneration"
)

// pgTogether are mutants of what goes to the server for many callers at once.
var pgTogether = []mutant{
	{
		name: "postgres: together: what was undone is won", breaks: "Tools run whose claims the server has undone: others run them again.",
		file: pgParty, old: "n.tried, n.doubtful = err == nil,", new: "n.tried, n.doubtful = true,",
		more:   []edit{{pgParty, "n.won = ok && err == nil &&", "n.won = ok &&"}},
		caught: pgReleased,
	},
	{
		name: "postgres: together: won by another's id", breaks: "Two callers take one operation for theirs, and one of the two has no row.",
		file: pgParty, old: "string(w.token) == n.c.Token;", new: "string(w.token) != \"\";",
		caught: pgOneID,
	},
	{
		name: "postgres: together: the place of another's row", breaks: "A resumed call finds what another call has done, and takes it for its own.",
		file: pgParty, old: "c.id = new.id AND c.token = new.token", new: "c.id = new.id",
		caught: pgOneID,
	},
	{
		name: "postgres: together: a lost claim is taken for none", breaks: "Refunds whose claims' answer was lost wait for themselves, and are never made.",
		file: pgParty, old: "n.tried, n.doubtful = err == nil, mayBeMade(err)", new: "n.tried, n.doubtful = err == nil, false",
		caught: pgLost,
	},
	{
		name: "postgres: together: a lost result is taken for a loss", breaks: "Refunds that were stored are told as ones whose result was not.",
		file: pgParty, old: "c.tried, c.doubtful = err == nil, mayBeMade(err)", new: "c.tried, c.doubtful = err == nil, false",
		caught: pgLost,
	},
	{
		name: "postgres: together: released meanwhile", breaks: "The second booking has the first one's key: the provider answers with the one that was cancelled.",
		file: pgParty, old: "\tb.run(checkTogether, ids, namespaces, tokens, identities)\n", new: "",
		caught: pgReleased,
	},
	{
		name: "postgres: together: released before fails all", breaks: "Each booking after a cancel makes all calls of that moment wait for each other.",
		file: pgParty, old: "readsCommitted + ` AND ` + releasedBefore + ` IS NULL`", new: "readsCommitted + ` AND (true OR ` + releasedBefore + ` IS NULL)`",
		caught: "./pgstore TestAnIdentityThatWasReleasedGetsTheNextGenerationAndFailsNoNeighbour",
	},
	{
		name: "postgres: together: told of a neighbour's result", breaks: "A caller whose result was refused is told that it is stored, and the other way round.",
		file: pgParty, old: "made[number-1] = true", new: "made[len(all)-number] = true",
		caught: pgResults,
	},
	{
		name: "postgres: together: no token check", breaks: "The late result of an earlier claim becomes the result of a later one.",
		file: pgParty, old: " AND operations.token = c.token` + takesResult", new: "` + takesResult",
		caught: pgResults,
	},
	{
		name: "postgres: together: state not compared", breaks: "A second result overwrites the one that the model has read.",
		file: pgParty, old: " + takesResult + undoesNothing + ", new: " + undoesNothing + ",
		caught: pgResults,
	},
	{
		name: "postgres: together: undo releases nothing", breaks: "What was cancelled cannot be booked again.",
		file: pgParty, old: " + takesResult + undoesNothing + ", new: " + takesResult + ",
		caught: pgResults,
	},
	{
		name: "postgres: together: a lock keeps all waiting", breaks: "One session with an open transaction stops all tools of a process.",
		file: pgParty, old: "'lock_timeout', '500'", new: "'lock_timeout', '0'",
		caught: "./pgstore TestALockThatOneClaimWaitsForKeepsNoNeighbourWaiting", hangs: true,
	},
	{
		name: "postgres: together: who leads keeps all waiting", breaks: "One session with an open transaction stops all tools of a process.",
		file: pgGather, old: "if g.depose(r) {", new: "if false && g.depose(r) {",
		caught: "./pgstore TestWhoLeadsAndWaitsForALockKeepsNobodyElseWaiting", hangs: true,
	},
	{
		name: "postgres: together: told of a neighbour's look", breaks: "A call that has an operation is taken for a new one, and a tool that knows better is asked.",
		file: pgLook, old: "all[i].nothing = false", new: "all[len(all)-1-i].nothing = false",
		caught: "./pgstore TestManyWhoLookAtOnceAreEachToldTheirOwn",
	},
	{
		name: "postgres: together: places not looked at", breaks: "A resumed call whose arguments are read otherwise today runs again.",
		file: pgLook, old: "aliases.position = c.position LIMIT 1", new: "aliases.position = -1 LIMIT 1",
		caught: "./pgstore TestManyWhoLookAtOnceAreEachToldTheirOwn",
	},
	{
		name: "postgres: together: given back to nobody", breaks: "Calls whose leader has left wait until somebody else comes by.",
		file: pgGather, old: "g.leader == r || g.leader == nil {", new: "g.leader == r {",
		caught: "./pgstore TestWhoWasGivenBackLeadsAtOnceWhereNobodyDoes",
	},
	{
		name: "postgres: together: patience but once", breaks: "Calls whose leader has left wait for the next one, however long that is stuck.",
		file: pgGather, old: "\t\t\ttimer.Reset(g.patience) // it is being sent, or will wait again\n", new: "",
		caught: "./pgstore TestWhoWasGivenBackDoesNotWaitForAnotherThatIsStuck",
	},
	{
		name: "postgres: together: all the time for all", breaks: "One connection that a firewall has forgotten makes the outcome of a hundred calls unknown.",
		file: pgParty, old: "time.Until(until)/2", new: "time.Until(until)",
		caught: "./pgstore TestASilentConnectionFailsNobodyThatWentTogether",
	},
	{
		name: "postgres: another isolation level", breaks: "A booking after a cancel gets the key of the one that was cancelled, and is not made.",
		file: pgClaiming, old: "'read committed' THEN true", new: "'read committed' OR true THEN true",
		caught: "./pgstore TestASessionOfAnotherIsolationLevelClaimsNothing",
	},
	{
		name: "postgres: local: the session as a tool leaves it", breaks: "After a tool has turned synchronous commits off, the server may forget claims whose refunds were made.",
		file: "pgstore/local.go", old: "if !asItWas {", new: "if false && !asItWas {",
		caught: "./pgstore TestLocalToolThatChangesItsSessionLeavesItToNobody",
	},
}
