package main

const (
	pgChange = "pgstore/change.go"
	// pgAnyAttempt is for a step whose attempt is not compared.
	pgAnyAttempt = "aim + anyAttempt"
)

var pgSteps = []mutant{
	{
		name: "postgres: no token check", breaks: "The late result of an earlier claim becomes the result of a later one.",
		file: pgChange, old: "(namespace = $2) IS TRUE AND token = $3`", new: "(namespace = $2) IS TRUE AND (true OR token = $3)`",
		caught: pgLedger + "complete/loses on a row that is running with another token",
	},
	{
		name: "postgres: namespace left out of steps", breaks: "A tenant who knows an id changes another tenant's operation.",
		file: pgChange, old: "(namespace = $2) IS TRUE AND token = $3`", new: "(true OR namespace = $2) AND token = $3`",
		caught: pgLedger + "namespaces/change does not cross",
	},
	{
		name: "postgres: complete: attempt compared", breaks: "The result of a slow first attempt is lost, although it is what happened.",
		file: pgChange, old: "toDone + aim + anyAttempt + takesResult", new: "toDone + seen + takesResult",
		caught: pgLedger + "complete/a result is taken from any attempt",
	},
	{
		name: "postgres: complete: state not compared", breaks: "A second result overwrites the one that the model has read.",
		file: pgChange, old: "(state IN ('running', 'in_doubt') OR state = 'free' AND by_person)", new: "(true OR by_person)",
		caught: pgLedger + "complete/the first result stays: a second one loses and is marked late",
	},
	{
		name: "postgres: complete: not from in doubt", breaks: "A result that comes after the timeout is lost, and a person must find out what is known.",
		file: pgChange, old: "(state IN ('running', 'in_doubt') OR state", new: "(state = 'running' OR state",
		caught: pgLedger + "complete/a late result is taken from in doubt, and ends settling",
	},
	{
		name: "postgres: complete: a late result is not marked", breaks: "Nobody sees that a refund was made twice.",
		file: pgChange, old: "SET late = true WHERE", new: "SET late = late WHERE",
		caught: pgLedger + "complete/the same result of another claim is late",
	},
	{
		name: "postgres: complete: a lost answer is taken for a loss", breaks: "A refund that was stored is told as one whose result was not.",
		file: pgChange, old: "case middleware.Complete, middleware.Found:\n\t\treturn c.stored(), nil", new: "case middleware.Complete, middleware.Found:\n\t\treturn false, nil",
		caught: "./pgstore TestChangeWhoseAnswerIsLostIsMadeOnce",
	},
	{
		name: "postgres: give back: attempt not compared", breaks: "\"Not sent\" of a slow first attempt frees what the second one has done.",
		file: pgChange, old: "`false` + seen + `", new: "`false` + " + pgAnyAttempt + " + `",
		caught: pgLedger + "give back/loses on a row that is running with an earlier attempt",
	},
	{
		name: "postgres: give back: state not compared", breaks: "What is done becomes free, and runs again.",
		file: pgChange, old: "`false` + seen + ` AND state IN ('running', 'in_doubt')`", new: "`false` + seen",
		caught: pgLedger + "give back/loses on a row that is done",
	},
	{
		name: "postgres: doubt: attempt not compared", breaks: "A verdict on the first attempt puts the second one in doubt while it runs.",
		file: pgChange, old: "toDoubt + seen + owned", new: "toDoubt + " + pgAnyAttempt + " + owned",
		caught: pgLedger + "doubt/loses on a row that is running with an earlier attempt",
	},
	{
		name: "postgres: doubt: state not compared", breaks: "What is done is in doubt again, and its result is not told.",
		file: pgChange, old: "toDoubt + seen + owned", new: "toDoubt + seen + ` AND state <> 'released' AND $5::bigint > 0 AND $6::text IS NOT NULL`",
		caught: pgLedger + "doubt/loses on a row that is done",
	},
	{
		name: "postgres: doubt: while the owner lives", breaks: "Another process puts in doubt what its owner is just doing.",
		file: pgChange, old: "owner.name = $6::text AND ` + isGone + `) END`", new: "owner.name = $6::text) END`",
		caught: pgLedger + "doubt/loses where the owner lives",
	},
	{
		name: "postgres: again: attempt not compared", breaks: "Two who saw the first attempt end both start the next.",
		file: pgChange, old: "toNext + seen + owned", new: "toNext + " + pgAnyAttempt + " + owned",
		caught: pgLedger + "again/loses on a row that is running with an earlier attempt",
	},
	{
		name: "postgres: again: state not compared", breaks: "What is done or in doubt runs again.",
		file: pgChange, old: "toNext + seen + owned", new: "toNext + seen + ` AND state <> 'released' AND $6::text IS NOT NULL`",
		caught: pgLedger + "again/loses on a row that is done",
	},
	{
		name: "postgres: again: while the owner lives", breaks: "Two processes run one refund at the same time.",
		file: pgChange, old: "owner.name = $6::text AND ` + isGone + `) END`", new: "owner.name = $6::text) END`",
		caught: pgLedger + "again/loses where the owner lives",
	},
	{
		name: "postgres: again: while the handler runs", breaks: "A handler that has not returned runs beside its next attempt.",
		file: pgChange, old: "attempt < $8::integer) AND NOT $9::boolean", new: "attempt < $8::integer) AND $9::boolean IS NOT NULL",
		caught: pgLedger + "again/loses while the owner's handler runs",
	},
	{
		name: "postgres: again: bound not looked at", breaks: "A refund that never comes out clearly is tried for ever.",
		file: pgChange, old: "attempt < $8::integer)", new: "attempt > 0)",
		caught: pgLedger + "again/loses at the bound",
	},
	{
		name: "postgres: again: key window not looked at", breaks: "The provider has forgotten the key, and makes the refund again.",
		file: pgChange, old: "($10::interval IS NULL OR `", new: "(true OR $10::interval IS NULL OR `",
		caught: pgLedger + "again/loses where the key window is over",
	},
	{
		name: "postgres: again: a lost answer is taken for a loss", breaks: "An attempt that is stored and never made is waited for until its deadline.",
		file: pgChange, old: "\t\t\treturn false, ErrUnknown\n", new: "\t\t\treturn false, nil\n",
		caught: "./pgstore TestNextAttemptWhoseAnswerIsLostIsNotTakenForLost",
	},
	{
		name: "postgres: take: attempt not compared", breaks: "An answer about the first attempt is taken for one about the second.",
		file: pgChange, old: "settler = $5` + seen + unsettled", new: "settler = $5` + " + pgAnyAttempt + " + unsettled",
		caught: pgLedger + "take in doubt/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "postgres: take: state seen not compared", breaks: "Who decided on a running row settles one that others settle by now.",
		file: pgChange, old: "settler = $5` + seen + owned", new: "settler = $5` + seen + ` AND $6::text IS NOT NULL`",
		caught: pgLedger + "take running/loses on a row that is in doubt",
	},
	{
		name: "postgres: take: while the owner lives", breaks: "A Lookup is asked about what its owner is just doing.",
		file: pgChange, old: "owner.name = $6::text AND ` + isGone + `) END`", new: "owner.name = $6::text) END`",
		caught: pgLedger + "take running/loses where the owner lives",
	},
	{
		name: "postgres: take: while another settles", breaks: "Two processes hear \"absent\" of one refund, and both make it.",
		file: pgChange, old: "(settle IS NULL OR settler <> $5", new: "(settle IS NULL OR true OR settler <> $5",
		caught: pgLedger + "take in doubt/loses while another process settles",
	},
	{
		name: "postgres: settled: mark not compared", breaks: "Who was taken for dead and asked slowly answers for the one that took over.",
		file: pgChange, old: "AND state = 'in_doubt' AND settle = `", new: "AND state = 'in_doubt' AND settle IS NOT NULL AND '' <> `",
		caught: pgLedger + "absent/loses with another mark",
	},
	{
		name: "postgres: settled: attempt not compared", breaks: "An old \"absent\" starts a third attempt while the second one's outcome is unknown.",
		file: pgChange, old: "= seen + ` AND state = 'in_doubt' AND settle = `", new: "= " + pgAnyAttempt + " + ` AND state = 'in_doubt' AND settle = `",
		caught: pgLedger + "absent/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "postgres: settled: state not compared, settling not ended", breaks: "What a slow Lookup finds replaces the result that the model has read.",
		file: pgChange, old: "= seen + ` AND state = 'in_doubt' AND settle = `", new: "= seen + ` AND settle = `",
		more:   []edit{{pgChange, "+ keep, settle = NULL, settler = 0,", "+ keep,"}},
		caught: pgLedger + "found/loses on a row that is done",
	},
	{
		name: "postgres: absent: bound not looked at", breaks: "A refund that the provider never shows is made for ever.",
		file: pgChange, old: "attempt < $8::integer)", new: "attempt > 0)",
		caught: pgLedger + "absent/loses at the bound",
	},
	{
		name: "postgres: absent: before the deadlines are over", breaks: "A request in flight lands after the Lookup has said \"absent\", and the next attempt makes it twice.",
		file: pgChange, old: "` >= deadline + $10::interval`", new: "` >= deadline - interval '100 years' + $10::interval`",
		caught: pgLedger + "absent/is too early before the deadlines of all attempts are over",
	},
	{
		name: "postgres: absent: before AbsentAfter is over", breaks: "A provider that is slow to show effects has the refund made twice.",
		file: pgChange, old: "` >= deadline + $10::interval`", new: "` >= deadline + 0 * $10::interval`",
		caught: pgLedger + "absent/is too early before AbsentAfter is over",
	},
	{
		name: "postgres: absent: while the handler runs", breaks: "A handler that ignores its context does its work after the next attempt has.",
		file: pgChange, old: "attempt < $8::integer) AND NOT $9::boolean", new: "attempt < $8::integer) AND $9::boolean IS NOT NULL",
		caught: pgLedger + "absent/is too early while a handler of this process runs",
	},
	{
		name: "postgres: an earlier attempt's deadline is forgotten", breaks: "\"Did not happen\" is believed while a request of an earlier attempt may land.",
		file: pgChange, old: "greatest(deadline, ` + now + ` + $7::interval)", new: "` + now + ` + $7::interval",
		caught: pgLedger + "again/keeps the latest deadline",
	},
	{
		name: "postgres: happened: attempt not compared", breaks: "A person's verdict on the first attempt is taken for one on the second, which is still open.",
		file: pgChange, old: "` + seen + ` AND state = 'in_doubt'`,", new: "` + " + pgAnyAttempt + " + ` AND state = 'in_doubt'`,",
		caught: pgLedger + "happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "postgres: happened: state not compared", breaks: "A person's verdict replaces the result that was found meanwhile.",
		file: pgChange, old: "` + seen + ` AND state = 'in_doubt'`,", new: "` + seen + ` AND state <> 'released'`,",
		caught: pgLedger + "happened/loses on a row that is done",
	},
	{
		name: "postgres: not happened: attempt not compared", breaks: "\"Did not happen\", said of the first attempt, frees what the second one may have done.",
		file: pgChange, old: "` + seen + ` AND state = 'in_doubt' AND NOT", new: "` + " + pgAnyAttempt + " + ` AND state = 'in_doubt' AND NOT",
		caught: pgLedger + "not happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "postgres: not happened: state not compared", breaks: "A person frees what is done, and it runs again.",
		file: pgChange, old: "` + seen + ` AND state = 'in_doubt' AND NOT", new: "` + seen + ` AND state <> 'released' AND NOT",
		caught: pgLedger + "not happened/loses on a row that is done",
	},
	{
		name: "postgres: not happened: before the deadlines are over", breaks: "A person frees a refund whose request is under way.",
		file: pgChange, old: "NOT $9::boolean AND deadline <= ` + now,", new: "NOT $9::boolean`,",
		caught: pgLedger + "not happened/is too early before the deadlines of all attempts are over",
	},
	{
		name: "postgres: not happened: while the handler runs", breaks: "A person frees what a handler of this very process is about to do.",
		file: pgChange, old: "NOT $9::boolean AND deadline <= ` + now,", new: "$9::boolean IS NOT NULL AND deadline <= ` + now,",
		caught: pgLedger + "not happened/is too early while a handler of this process runs",
	},
	{
		name: "postgres: generation not grown", breaks: "After \"declined\" the provider answers the next try by replaying the decline.",
		file: pgChange, old: "CASE WHEN $5::boolean THEN 1 ELSE 0 END", new: "CASE WHEN $5::boolean THEN 0 ELSE 0 END",
		caught: pgLedger + "key/grows where a row is given back with a new key",
	},
	{
		name: "postgres: undo in one statement releases nothing", breaks: "What was cancelled cannot be booked again.",
		file: pgChange, old: "query += undoesNothing", new: "query += \"\"",
		caught: pgLedger + "undo/complete releases what is undone, at once",
	},
	{
		name: "postgres: undo releases only what a handler has undone", breaks: "A cancel that a Lookup or a person settles leaves the booking as it was: it cannot be booked again.",
		file: pgChange, old: "return c.t.Step == middleware.Complete || c.t.Step == middleware.Found || c.t.Step == middleware.Happened", new: "return c.t.Step == middleware.Complete",
		caught: pgLedger + "undo/happened releases what is undone, at once",
	},
	{
		name: "postgres: undo releases whoever has the identity now", breaks: "The second of two cancels of one booking releases the next booking, which stands at the provider.",
		file: pgChange, old: "WHERE operations.id = changed.undoes", new: "WHERE operations.identity = (SELECT identity FROM @operations WHERE id = changed.undoes)",
		caught: pgLedger + "undo/two tools that cancel one booking: the new booking stays",
	},
}
