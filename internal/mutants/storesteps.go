package main

const storeChange = "sqlitestore/change.go"

var storeSteps = []mutant{
	{
		name: "sqlite: no token check", breaks: "The late result of an earlier claim becomes the result of a later one.",
		file: storeChange, old: "namespace = +?2 AND token = +?3`", new: "namespace = +?2 AND (1 OR token = +?3)`",
		caught: storeLedger + "complete/loses on a row that is running with another token",
	},
	{
		name: "sqlite: namespace left out of steps", breaks: "A tenant who knows an id changes another tenant's operation.",
		file: storeChange, old: "namespace = +?2 AND token = +?3`", new: "(1 OR namespace = +?2) AND token = +?3`",
		caught: storeLedger + "namespaces/change does not cross",
	},
	{
		name: "sqlite: complete: attempt compared", breaks: "The result of a slow first attempt is lost, although it is what happened.",
		file: storeChange, old: "AND (state IN ('running', 'in_doubt') OR", new: "AND attempt = +?4 AND (state IN ('running', 'in_doubt') OR",
		caught: storeLedger + "complete/a result is taken from any attempt",
	},
	{
		name: "sqlite: complete: state not compared", breaks: "A second result overwrites the one that the model has read.",
		file: storeChange, old: "AND (state IN ('running', 'in_doubt') OR", new: "AND (1 OR state IN ('running', 'in_doubt') OR",
		caught: storeLedger + "complete/the first result stays: a second one loses and is marked late",
	},
	{
		name: "sqlite: complete: not from in doubt", breaks: "A result that comes after the timeout is lost, and a person must find out what is known.",
		file: storeChange, old: "AND (state IN ('running', 'in_doubt') OR", new: "AND (state = 'running' OR",
		caught: storeLedger + "complete/a late result is taken from in doubt, and ends settling",
	},
	{
		name: "sqlite: complete: a late result is not marked", breaks: "Nobody sees that a refund was made twice.",
		file: storeChange, old: "SET late = 1 WHERE", new: "SET late = 0 WHERE",
		caught: storeLedger + "complete/the same result of another claim is late",
	},
	{
		name: "sqlite: give back: attempt not compared", breaks: "\"Not sent\" of a slow first attempt frees what the second one has done.",
		file: storeChange, old: "AND attempt = +?4 AND state IN ('running', 'in_doubt')`", new: "AND state IN ('running', 'in_doubt')`",
		caught: storeLedger + "give back/loses on a row that is running with an earlier attempt",
	},
	{
		name: "sqlite: give back: state not compared", breaks: "What is done becomes free, and runs again.",
		file: storeChange, old: "AND attempt = +?4 AND state IN ('running', 'in_doubt')`", new: "AND attempt = +?4`",
		caught: storeLedger + "give back/loses on a row that is done",
	},
	{
		name: "sqlite: doubt: attempt not compared", breaks: "A verdict on the first attempt puts the second one in doubt while it runs.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'running' AND owner = +?6`", new: "` AND state = 'running' AND owner = +?6`",
		caught: storeLedger + "doubt/loses on a row that is running with an earlier attempt",
	},
	{
		name: "sqlite: doubt: state not compared", breaks: "What is done is in doubt again, and its result is not told.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'running' AND owner = +?6`", new: "` AND attempt = +?4 AND state <> 'released' AND owner = +?6`",
		caught: storeLedger + "doubt/loses on a row that is done",
	},
	{
		name: "sqlite: doubt: while the owner lives", breaks: "Another process puts in doubt what its owner is just doing.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'running' AND owner = +?6`", new: "` AND attempt = +?4 AND state = 'running' AND (1 OR owner = +?6)`",
		caught: storeLedger + "doubt/loses where the owner lives",
	},
	{
		name: "sqlite: again: attempt not compared", breaks: "Two who saw the first attempt end both start the next.",
		file: storeChange, old: "AND attempt = +?4 AND state = 'running' AND (?8", new: "AND state = 'running' AND (?8",
		caught: storeLedger + "again/loses on a row that is running with an earlier attempt",
	},
	{
		name: "sqlite: again: state not compared", breaks: "What is done or in doubt runs again.",
		file: storeChange, old: "AND attempt = +?4 AND state = 'running' AND (?8", new: "AND attempt = +?4 AND state <> 'released' AND (?8",
		caught: storeLedger + "again/loses on a row that is done",
	},
	{
		name: "sqlite: again: while the owner lives", breaks: "Two processes run one refund at the same time.",
		file: storeChange, old: "AND owner = +?9 AND ?10 = 0", new: "AND (1 OR owner = +?9) AND ?10 = 0",
		caught: storeLedger + "again/loses where the owner lives",
	},
	{
		name: "sqlite: again: while the handler runs", breaks: "A handler that has not returned runs beside its next attempt.",
		file: storeChange, old: "AND owner = +?9 AND ?10 = 0", new: "AND owner = +?9 AND (1 OR ?10 = 0)",
		caught: storeLedger + "again/loses while the owner's handler runs",
	},
	{
		name: "sqlite: again: bound not looked at", breaks: "A refund that never comes out clearly is tried for ever.",
		file: storeChange, old: "AND state = 'running' AND (?8 = 0 OR attempt < ?8)", new: "AND state = 'running' AND (?8 = 0 OR attempt > 0)",
		caught: storeLedger + "again/loses at the bound",
	},
	{
		name: "sqlite: again: key window not looked at", breaks: "The provider has forgotten the key, and makes the refund again.",
		file: storeChange, old: "(?11 = 0 OR ?5 - key_since < ?11)", new: "(1 OR ?5 - key_since < ?11)",
		caught: storeLedger + "again/loses where the key window is over",
	},
	{
		name: "sqlite: take: attempt not compared", breaks: "An answer about the first attempt is taken for one about the second.",
		file: storeChange, old: "AND attempt = +?4 AND state = +?8", new: "AND state = +?8",
		caught: storeLedger + "take in doubt/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "sqlite: take: state seen not compared", breaks: "Who decided on a running row settles one that others settle by now.",
		file: storeChange, old: "AND attempt = +?4 AND state = +?8", new: "AND attempt = +?4 AND (1 OR state = +?8)",
		caught: storeLedger + "take running/loses on a row that is in doubt",
	},
	{
		name: "sqlite: take: while the owner lives", breaks: "A Lookup is asked about what its owner is just doing.",
		file: storeChange, old: "(state = 'running' AND owner = +?9 OR", new: "(state = 'running' AND (1 OR owner = +?9) OR",
		caught: storeLedger + "take running/loses where the owner lives",
	},
	{
		name: "sqlite: take: while another settles", breaks: "Two processes hear \"absent\" of one refund, and both make it.",
		file: storeChange, old: "(settle IS NULL OR settler = +?10)", new: "(1 OR settler = +?10)",
		caught: storeLedger + "take in doubt/loses while another process settles",
	},
	{
		name: "sqlite: settled: mark not compared", breaks: "Who was taken for dead and asked slowly answers for the one that took over.",
		file: storeChange, old: "AND state = 'in_doubt' AND settle = +`", new: "AND state = 'in_doubt' AND 0 < 1 + `",
		caught: storeLedger + "absent/loses with another mark",
	},
	{
		name: "sqlite: settled: attempt not compared", breaks: "An old \"absent\" starts a third attempt while the second one's outcome is unknown.",
		file: storeChange, old: "AND attempt = +?4 AND state = 'in_doubt' AND settle = +`", new: "AND state = 'in_doubt' AND settle = +`",
		caught: storeLedger + "absent/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "sqlite: settled: state not compared, settling not ended", breaks: "What a slow Lookup finds replaces the result that the model has read.",
		file: storeChange, old: "AND attempt = +?4 AND state = 'in_doubt' AND settle = +`", new: "AND attempt = +?4 AND settle = +`",
		more:   []edit{{storeChange, "ELSE ?5 + keep END, settle = NULL, settler = 0,", "ELSE ?5 + keep END,"}},
		caught: storeLedger + "found/loses on a row that is done",
	},
	{
		name: "sqlite: absent: bound not looked at", breaks: "A refund that the provider never shows is made for ever.",
		file: storeChange, old: "?9 AND (?8 = 0 OR attempt < ?8)", new: "?9 AND (?8 = 0 OR attempt > 0)",
		caught: storeLedger + "absent/loses at the bound",
	},
	{
		name: "sqlite: absent: before the deadlines are over", breaks: "A request in flight lands after the Lookup has said \"absent\", and the next attempt makes it twice.",
		file: storeChange, old: "AND ?10 = 0 AND ?5 - ?11 >= deadline", new: "AND ?10 = 0 AND (1 OR ?5 - ?11 >= deadline)",
		caught: storeLedger + "absent/is too early before the deadlines of all attempts are over",
	},
	{
		name: "sqlite: absent: before AbsentAfter is over", breaks: "A provider that is slow to show effects has the refund made twice.",
		file: storeChange, old: "AND ?10 = 0 AND ?5 - ?11 >= deadline", new: "AND ?10 = 0 AND ?5 - 0 * ?11 >= deadline",
		caught: storeLedger + "absent/is too early before AbsentAfter is over",
	},
	{
		name: "sqlite: absent: while the handler runs", breaks: "A handler that ignores its context does its work after the next attempt has.",
		file: storeChange, old: "AND ?10 = 0 AND ?5 - ?11 >= deadline", new: "AND (1 OR ?10 = 0) AND ?5 - ?11 >= deadline",
		caught: storeLedger + "absent/is too early while a handler of this process runs",
	},
	{
		name: "sqlite: an earlier attempt's deadline is forgotten", breaks: "\"Did not happen\" is believed while a request of an earlier attempt may land.",
		file: storeChange, old: "deadline = max(deadline, ?7)", new: "deadline = ?7",
		caught: storeLedger + "again/keeps the latest deadline",
	},
	{
		name: "sqlite: happened: attempt not compared", breaks: "A person's verdict on the first attempt is taken for one on the second, which is still open.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'in_doubt'`", new: "` AND state = 'in_doubt'`",
		caught: storeLedger + "happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "sqlite: happened: state not compared", breaks: "A person's verdict replaces the result that was found meanwhile.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'in_doubt'`", new: "` AND attempt = +?4 AND state <> 'released'`",
		caught: storeLedger + "happened/loses on a row that is done",
	},
	{
		name: "sqlite: not happened: attempt not compared", breaks: "\"Did not happen\", said of the first attempt, frees what the second one may have done.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'in_doubt'\n", new: "` AND state = 'in_doubt'\n",
		caught: storeLedger + "not happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "sqlite: not happened: state not compared", breaks: "A person frees what is done, and it runs again.",
		file: storeChange, old: "` AND attempt = +?4 AND state = 'in_doubt'\n", new: "` AND attempt = +?4 AND state <> 'released'\n",
		caught: storeLedger + "not happened/loses on a row that is done",
	},
	{
		name: "sqlite: not happened: before the deadlines are over", breaks: "A person frees a refund whose request is under way.",
		file: storeChange, old: "AND ?11 = 0 AND deadline <= ?5", new: "AND ?11 = 0 AND (1 OR deadline <= ?5)",
		caught: storeLedger + "not happened/is too early before the deadlines of all attempts are over",
	},
	{
		name: "sqlite: not happened: while the handler runs", breaks: "A person frees what a handler of this very process is about to do.",
		file: storeChange, old: "AND ?11 = 0 AND deadline <= ?5", new: "AND (1 OR ?11 = 0) AND deadline <= ?5",
		caught: storeLedger + "not happened/is too early while a handler of this process runs",
	},
	{
		name: "sqlite: generation not grown", breaks: "After \"declined\" the provider answers the next try by replaying the decline.",
		file: storeChange, old: "generation = generation + ?6", new: "generation = generation + 0 * ?6",
		caught: storeLedger + "key/grows where a row is given back with a new key",
	},
	{
		name: "sqlite: undo in one statement releases nothing", breaks: "What was cancelled cannot be booked again.",
		file: storeChange, old: "s + ` AND undoes IS NULL` + returning", new: "s + returning",
		caught: storeLedger + "undo/complete releases what is undone, at once",
	},
	{
		name: "sqlite: undo releases only what a handler has undone", breaks: "A cancel that a Lookup or a person settles leaves the booking as it was: it cannot be booked again.",
		file: storeChange, old: "\tcase middleware.Complete, middleware.Found, middleware.Happened:\n", new: "\tcase middleware.Complete:\n",
		caught: storeLedger + "undo/happened releases what is undone, at once",
	},
	{
		name: "sqlite: undo releases whoever has the identity now", breaks: "The second of two cancels of one booking releases the next booking, which stands at the provider.",
		file: storeChange, old: "since = +?3 WHERE id = +?1 AND namespace", new: "since = +?3 WHERE identity = (SELECT identity FROM operations WHERE id = +?1) AND namespace",
		caught: storeLedger + "undo/two tools that cancel one booking: the new booking stays",
	},
	{
		name: "sqlite: undo releases in another transaction", breaks: "After a crash between the two the cancel is done, and what it cancelled cannot be booked again.",
		file: storeChange, old: "return c.releases(x)", new: "if err := x.run(\"COMMIT\"); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif err := x.run(\"BEGIN IMMEDIATE\"); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn c.releases(x)",
		caught: "./sqlitestore TestAnUndoIsNotDoneUnlessWhatItUndoesIsReleased",
	},
}
