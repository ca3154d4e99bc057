package main

const (
	pgClaim    = "pgstore/claim.go"
	pgClaiming = "pgstore/claiming.go"
	pgFind     = "pgstore/find.go"
	pgLocal    = "pgstore/local.go"
	pgSchema   = "pgstore/schema.sql"
)

// pgOtherRows lets a query that goes by the id of a row find another tenant's.
var pgOtherRows = edit{pgFind, "operations.id = found.id AND (operations.namespace = $1) IS TRUE", "operations.id = found.id AND (true OR operations.namespace = $1)"}

var pgClaims = []mutant{
	{
		name: "postgres: claim: new after an undo", breaks: "A run books and cancels without end: nobody counts what was not looked for.",
		file: pgClaim, old: "if c.New && row.Operation != \"\" || ", new: "if ",
		caught: pgLedger + "claim as new/of what was done and undone is not won, and a claim that was looked for is",
	},
	{
		name: "postgres: claim: no UNIQUE", breaks: "Every claimer gets a row of its own, and all run the refund.",
		file: pgSchema, old: "CREATE UNIQUE INDEX operations_identity", new: "CREATE INDEX operations_identity",
		caught: pgLedger + "claim/two claimers of one identity: one wins",
	},
	{
		name: "postgres: claim: place not compared", breaks: "A resumed call runs again although its place points to what it has done.",
		file: pgClaiming, old: "WHERE CASE WHEN $12::bigint IS NULL THEN NOT EXISTS", new: "WHERE true OR CASE WHEN $12::bigint IS NULL THEN NOT EXISTS",
		caught: pgLedger + "claim/is not won at a place that points to another operation than seen",
	},
	{
		name: "postgres: claim: won without its place", breaks: "A resumed call runs again although its place points to what it has done.",
		file: pgClaiming, old: "CASE WHEN EXISTS (SELECT 1 FROM pointed)", new: "CASE WHEN (true OR EXISTS (SELECT 1 FROM pointed))",
		caught: pgLedger + "claim/is not won at a place that points to another operation than seen",
	},
	{
		name: "postgres: claim: at a place that another has just taken", breaks: "Of two calls at one place both run, and only one is found there after a crash.",
		file: pgClaiming, old: "` + atTakenPlace + ` AND aliases.operation = (SELECT operation FROM place)\n\t\t\tRETURNING 1", new: "` + atTakenPlace + `\n\t\t\tRETURNING 1",
		caught: "./pgstore TestOfTwoWhoClaimAtAPlaceThatMeantAnotherOneWins",
	},
	{
		name: "postgres: claim: alias not in the commit", breaks: "After a crash the same call is not found at its place.",
		file: pgClaiming, old: "$4::text, $5::bigint, $6::bigint, CASE WHEN NOT EXISTS", new: "$4::text, -$5::bigint, $6::bigint, CASE WHEN NOT EXISTS",
		caught: pgLedger + "claim/the alias of the call is in its commit",
	},
	{
		name: "postgres: claim: what is undone need not be done", breaks: "A booking is cancelled while it is being made, and stays.",
		file: pgClaiming, old: "WHERE id = $12 AND state = 'done') = 1", new: "WHERE id = $12) = 1",
		caught: pgLedger + "claim/is not won by an undo of a row that is running",
	},
	{
		name: "postgres: claim: undone in two ways at once", breaks: "A charge is voided and refunded: the money goes back twice.",
		file: pgSchema, old: "CREATE UNIQUE INDEX operations_undoes", new: "CREATE INDEX operations_undoes",
		caught: pgLedger + "undo/two tools do not cancel one booking at once",
	},
	{
		name: "postgres: claim: what is repeated need not be done", breaks: "A payment whose outcome is unknown is repeated on purpose.",
		file: pgClaiming, old: "WHERE id = $13 AND state = 'done'", new: "WHERE id = $13",
		caught: pgLedger + "repeat/of a row that is in doubt is not won",
	},
	{
		name: "postgres: claim: what is repeated may have expired", breaks: "An operation that is forgotten is repeated without anybody having seen its result.",
		file: pgClaiming, old: "(expires IS NULL OR expires > statement_timestamp())", new: "(true OR expires > statement_timestamp())",
		caught: pgLedger + "repeat/of a row that has expired is not won",
	},
	{
		name: "postgres: claim: token seen not compared", breaks: "Who looked before another claimed and freed the row takes it as though nothing had been.",
		file: pgClaiming, old: "AND identity = $3 AND token = $27", new: "AND identity = $3 AND (true OR token = $27)",
		caught: pgLedger + "claim again/is not won with another token",
	},
	{
		name: "postgres: claim: state seen not compared", breaks: "A claim over a row that was free takes it from the process that runs it by now.",
		file: pgClaiming, old: "ifSeen + `state = 'free' AND `", new: "ifSeen + `true AND `",
		more:   []edit{{pgClaiming, "AND identity = $3 AND token = $27", "AND identity = $3 AND (true OR token = $27)"}},
		caught: pgLedger + "claim again/is not won where the row is not free any more",
	},
	{
		name: "postgres: claim: over a done row that has not expired", breaks: "What is done runs again for whoever has looked at it.",
		file: pgClaiming, old: "state = 'done' AND expires <= statement_timestamp() AND", new: "state = 'done' AND",
		caught: pgLedger + "claim expired/is not won before the date",
	},
	{
		name: "postgres: claim: over what an open call needs", breaks: "A run that goes on after a long pause does again what its stored turn has done.",
		file: pgClaiming, old: "statement_timestamp() AND NOT ` + openCall + ` AND `", new: "statement_timestamp() AND `",
		caught: "./pgstore TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold/of a run that goes on",
	},
	{
		name: "postgres: claim: any output of the turn closes a call", breaks: "Of two calls of a turn the one whose output is not stored is done again.",
		file: pgTurns, old: " AND outputs.position = aliases.position))", new: "))",
		caught: "./pgstore TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold/with only another call's output stored",
	},
	{
		name: "postgres: claim: an earlier deadline is forgotten", breaks: "A person says that it did not happen while a request of the claim before may land.",
		file: pgClaiming, old: "greatest(deadline, statement_timestamp() + $8::interval)", new: "statement_timestamp() + $8::interval",
		caught: pgLedger + "claim again/the deadlines of all claims count",
	},
	{
		name: "postgres: generation not grown by an undo", breaks: "The second booking has the first one's key: the provider answers with the one that was cancelled.",
		file: pgClaiming, old: "n.generation = inTheWay.Generation + 1", new: "n.generation = inTheWay.Generation",
		more:   []edit{{pgClaiming, "(SELECT coalesce(max(generation) + 1, 0)", "(SELECT coalesce(max(generation), 0)"}},
		caught: pgLedger + "key/grows on release, from the last generation",
	},
	{
		name: "postgres: claim: found by its token alone", breaks: "A claim whose answer was lost runs although another process has taken it over.",
		file: pgClaim, old: "row.State == middleware.Running && row.Attempt == 1 && row.OwnerMine", new: "row.Attempt == 1",
		caught: "./pgstore TestClaimThatAnotherHasTakenOverMeanwhileDoesNotRun",
	},
	{
		name: "postgres: claim: not found by its token", breaks: "A refund whose claim's answer was lost waits for itself, and is never made.",
		file: pgClaim, old: "n.doubtful && row.Token == c.Token", new: "n.doubtful && row.Token == \"\"",
		caught: "./pgstore TestClaimWhoseAnswerIsLostIsFoundByItsToken",
	},
	{
		name: "postgres: namespace left out of identities", breaks: "A tenant's refund is taken for another tenant's.",
		file: pgFind, old: "@operations WHERE namespace = $1 AND identity = $%d", new: "@operations WHERE (true OR namespace = $1) AND identity = $%d",
		more:   []edit{pgOtherRows},
		caught: pgLedger + "namespaces/find does not cross",
	},
	{
		name: "postgres: namespace left out of ids", breaks: "A tenant who knows an id reads another tenant's result.",
		file: pgOtherRows.file, old: pgOtherRows.old, new: pgOtherRows.new,
		caught: pgLedger + "namespaces/find does not cross",
	},
	{
		name: "postgres: namespace left out of places", breaks: "A tenant's run finds another tenant's result at its place.",
		file: pgFind, old: "WHERE namespace = $1 AND run = $2 AND turn = $%d", new: "WHERE (true OR namespace = $1) AND run = $2 AND turn = $%d",
		more:   []edit{pgOtherRows},
		caught: pgLedger + "namespaces/find does not cross",
	},
	{
		name: "postgres: namespace left out of resources", breaks: "A cancel finds another tenant's booking.",
		file: pgFind, old: "@operations WHERE namespace = $1 AND tool = $%d", new: "@operations WHERE (true OR namespace = $1) AND tool = $%d",
		more:   []edit{pgOtherRows},
		caught: pgLedger + "namespaces/find does not cross",
	},
	{
		name: "postgres: namespace left out of undos and repeats", breaks: "A tenant cancels another tenant's booking.",
		file: pgClaiming, old: "(namespace = $2) IS TRUE FOR SHARE", new: "(true OR namespace = $2) FOR SHARE",
		caught: pgLedger + "namespaces/undo does not cross",
	},
	{
		name: "postgres: namespace left out of lists", breaks: "An operator sees, and settles, what is another tenant's.",
		file: pgFind, old: "WHERE operations.namespace = $1`", new: "WHERE (true OR operations.namespace = $1)`",
		caught: pgLedger + "namespaces/list does not cross",
	},
	{
		name: "postgres: namespace left out of notes", breaks: "A tenant's repeats count for another tenant's operation.",
		file: pgClaim, old: "lockOperation = `SELECT id FROM @operations WHERE id = $1 AND (namespace = $2) IS TRUE", new: "lockOperation = `SELECT id FROM @operations WHERE id = $1 AND (true OR namespace = $2)",
		caught: pgLedger + "namespaces/note does not cross",
	},
	{
		name: "postgres: a commit may be lost", breaks: "After a power cut the claim is gone, and the refund is made again.",
		file: "pgstore/open.go", old: "case synchronous == \"off\" && !d.opts.AllowAsyncCommit:", new: "case synchronous == \"\":",
		caught: "./pgstore TestCommitsThatMayBeLostAreRefusedUnlessAllowed",
	},
	{
		name: "postgres: a missing owner is taken for a dead one", breaks: "After a restore a living process has its refunds made again by others.",
		file: "pgstore/row.go", old: "!row.OwnerMine && r.ownerGone.Bool", new: "!row.OwnerMine && (r.ownerGone.Bool || !r.ownerGone.Valid)",
		caught: "./pgstore TestOwnerWhoseRowIsMissingIsUnknown",
	},
	{
		name: "postgres: heartbeats are overdue while the server is down", breaks: "After a restart of the server all living processes are taken for dead.",
		file: "pgstore/owner.go", old: "greatest(owner.beat, pg_postmaster_start_time()) + owner.overdue", new: "owner.beat + owner.overdue",
		caught: "./pgstore TestTimeInWhichTheServerWasDownDoesNotCount",
	},
	{
		name: "postgres: local: a result that loses is committed", breaks: "A process that was taken for dead makes its effect beside that of the one that took over.",
		file: pgLocal, old: "\tif !c.made {\n\t\treturn row, middleware.ErrLost\n", new: "\tif !c.made {\n\t\treturn row, errors.Join(middleware.ErrLost, tx.Commit(ending))\n",
		caught: "./pgstore TestOfTwoAttemptsOfALocalToolTheFirstToBeStoredStays",
	},
	{
		name: "postgres: local: an ended transaction is not noticed", breaks: "A tool that commits for itself is taken for one of which nothing stays, and runs again.",
		file: pgLocal, old: "TxStatus() == 'I'", new: "TxStatus() == 'X'",
		caught: "./pgstore TestALocalToolThatEndsItsTransactionIsInDoubt",
	},
}
