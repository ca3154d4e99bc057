package main

const memoryChange = "middleware/memory_change.go"

var memorySteps = []mutant{
	{
		name: "memory: complete: token not compared", breaks: "The late result of an earlier claim becomes the result of a later one.",
		file: memoryChange, old: "is(token && (r.State == Running", new: "is((r.State == Running",
		caught: memoryLedger + "complete/loses on a row that is running with another token",
	},
	{
		name: "memory: complete: attempt compared", breaks: "The result of a slow first attempt is lost, although it is what happened.",
		file: memoryChange, old: "is(token && (r.State == Running", new: "is(attempt && (r.State == Running",
		caught: memoryLedger + "complete/a result is taken from any attempt",
	},
	{
		name: "memory: complete: state not compared", breaks: "A second result overwrites the one that the model has read.",
		file: memoryChange, old: "is(token && (r.State == Running || r.State == InDoubt || r.State == Free && r.ByPerson))", new: "is(token)",
		caught: memoryLedger + "complete/the first result stays: a second one loses and is marked late",
	},
	{
		name: "memory: complete: not from in doubt", breaks: "A result that comes after the timeout is lost, and a person must find out what is known.",
		file: memoryChange, old: "(r.State == Running || r.State == InDoubt || r.State == Free &&", new: "(r.State == Running || r.State == Free &&",
		caught: memoryLedger + "complete/a late result is taken from in doubt, and ends settling",
	},
	{
		name: "memory: complete: a late result is not marked", breaks: "Nobody sees that a refund was made twice.",
		file: memoryChange, old: "r.Late = r.Late || t.Step == Complete && !stored", new: "_ = stored",
		caught: memoryLedger + "complete/the same result of another claim is late",
	},
	{
		name: "memory: give back: attempt not compared", breaks: "\"Not sent\" of a slow first attempt frees what the second one has done.",
		file: memoryChange, old: "is(attempt && (r.State == Running || r.State == InDoubt))", new: "is(token && (r.State == Running || r.State == InDoubt))",
		caught: memoryLedger + "give back/loses on a row that is running with an earlier attempt",
	},
	{
		name: "memory: give back: state not compared", breaks: "What is done becomes free, and runs again.",
		file: memoryChange, old: "is(attempt && (r.State == Running || r.State == InDoubt))", new: "is(attempt)",
		caught: memoryLedger + "give back/loses on a row that is done",
	},
	{
		name: "memory: doubt: attempt not compared", breaks: "A verdict on the first attempt puts the second one in doubt while it runs.",
		file: memoryChange, old: "case Doubt:\n\t\treturn is(attempt &&", new: "case Doubt:\n\t\treturn is(token &&",
		caught: memoryLedger + "doubt/loses on a row that is running with an earlier attempt",
	},
	{
		name: "memory: doubt: state not compared", breaks: "What is done is in doubt again, and its result is not told.",
		file: memoryChange, old: "case Doubt:\n\t\treturn is(attempt && r.State == Running && owner)", new: "case Doubt:\n\t\treturn is(attempt && owner)",
		caught: memoryLedger + "doubt/loses on a row that is done",
	},
	{
		name: "memory: doubt: while the owner lives", breaks: "Another process puts in doubt what its owner is just doing.",
		file: memoryChange, old: "case Doubt:\n\t\treturn is(attempt && r.State == Running && owner)", new: "case Doubt:\n\t\treturn is(attempt && r.State == Running)",
		caught: memoryLedger + "doubt/loses where the owner lives",
	},
	{
		name: "memory: again: attempt not compared", breaks: "Two who saw the first attempt end both start the next.",
		file: memoryChange, old: "case Again:\n\t\treturn is(attempt &&", new: "case Again:\n\t\treturn is(token &&",
		caught: memoryLedger + "again/loses on a row that is running with an earlier attempt",
	},
	{
		name: "memory: again: state not compared", breaks: "What is done or in doubt runs again.",
		file: memoryChange, old: "case Again:\n\t\treturn is(attempt && r.State == Running && owner", new: "case Again:\n\t\treturn is(attempt && owner",
		caught: memoryLedger + "again/loses on a row that is done",
	},
	{
		name: "memory: again: while the owner lives", breaks: "Two processes run one refund at the same time.",
		file: memoryChange, old: "r.State == Running && owner && !l.handlers", new: "r.State == Running && !l.handlers",
		caught: memoryLedger + "again/loses where the owner lives",
	},
	{
		name: "memory: again: while the handler runs", breaks: "A handler that has not returned runs beside its next attempt.",
		file: memoryChange, old: "owner && !l.handlers.Running(r.Operation) &&", new: "owner &&",
		caught: memoryLedger + "again/loses while the owner's handler runs",
	},
	{
		name: "memory: again: bound not looked at", breaks: "A refund that never comes out clearly is tried for ever.",
		file: memoryChange, old: "\t\t\tbelow(r.Attempt, t.MaxAttempts) &&", new: "\t\t\t",
		caught: memoryLedger + "again/loses at the bound",
	},
	{
		name: "memory: again: key window not looked at", breaks: "The provider has forgotten the key, and makes the refund again.",
		file: memoryChange, old: "(t.KeyWindow == 0 || now.Before(r.KeySince.Add(t.KeyWindow))))", new: "now.After(r.KeySince.Add(-1)))",
		caught: memoryLedger + "again/loses where the key window is over",
	},
	{
		name: "memory: take: attempt not compared", breaks: "An answer about the first attempt is taken for one about the second.",
		file: memoryChange, old: "return is(attempt && r.State == InDoubt && t.State == InDoubt", new: "return is(token && r.State == InDoubt && t.State == InDoubt",
		caught: memoryLedger + "take in doubt/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "memory: take: state seen not compared", breaks: "Who decided on a running row settles one that others settle by now.",
		file: memoryChange, old: "\t\tif t.State == Running {\n\t\t\treturn is(attempt && r.State == Running && owner)", new: "\t\tif t.State == Running {\n\t\t\treturn is(attempt && owner)",
		caught: memoryLedger + "take running/loses on a row that is in doubt",
	},
	{
		name: "memory: take: while the owner lives", breaks: "A Lookup is asked about what its owner is just doing.",
		file: memoryChange, old: "\t\tif t.State == Running {\n\t\t\treturn is(attempt && r.State == Running && owner)", new: "\t\tif t.State == Running {\n\t\t\treturn is(attempt && r.State == Running)",
		caught: memoryLedger + "take running/loses where the owner lives",
	},
	{
		name: "memory: take: while another settles", breaks: "Two processes hear \"absent\" of one refund, and both make it.",
		file: memoryChange, old: "t.State == InDoubt && (r.Settle == \"\" || l.gone[r.settler]))", new: "t.State == InDoubt)",
		caught: memoryLedger + "take in doubt/loses while another process settles",
	},
	{
		name: "memory: settled: mark not compared", breaks: "Who was taken for dead and asked slowly answers for the one that took over.",
		file: memoryChange, old: "r.State == InDoubt && r.Settle == t.Mark && t.Mark != \"\"", new: "r.State == InDoubt",
		caught: memoryLedger + "absent/loses with another mark",
	},
	{
		name: "memory: settled: attempt not compared", breaks: "An old \"absent\" starts a third attempt while the second one's outcome is unknown.",
		file: memoryChange, old: "mine := attempt && r.State == InDoubt", new: "mine := token && r.State == InDoubt",
		caught: memoryLedger + "absent/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "memory: settled: state not compared, settling not ended", breaks: "What a slow Lookup finds replaces the result that the model has read.",
		file: memoryChange, old: "mine := attempt && r.State == InDoubt && r.Settle", new: "mine := attempt && r.Settle",
		more:   []edit{{memoryChange, "r.Settle, r.ByPerson = t.Result, t.HasResult, now, \"\", false", "r.ByPerson = t.Result, t.HasResult, now, false"}},
		caught: memoryLedger + "found/loses on a row that is done",
	},
	{
		name: "memory: absent: before the deadlines are over", breaks: "A request in flight lands after the Lookup has said \"absent\", and the next attempt makes it twice.",
		file: memoryChange, old: "return l.over(r, now, t.AbsentAfter)", new: "return l.over(r, later(now, r.Deadline), 0)",
		caught: memoryLedger + "absent/is too early before the deadlines of all attempts are over",
	},
	{
		name: "memory: absent: before AbsentAfter is over", breaks: "A provider that is slow to show effects has the refund made twice.",
		file: memoryChange, old: "return l.over(r, now, t.AbsentAfter)", new: "return l.over(r, now, 0)",
		caught: memoryLedger + "absent/is too early before AbsentAfter is over",
	},
	{
		name: "memory: absent or not happened: while the handler runs", breaks: "A handler that ignores its context does its work after the next attempt has.",
		file: memoryChange, old: "\tif l.handlers.Running(r.Operation) {\n", new: "\tif false {\n",
		caught: memoryLedger + "not happened/is too early while a handler of this process runs",
	},
	{
		name: "memory: an earlier attempt's deadline is forgotten", breaks: "\"Did not happen\" is believed while a request of an earlier attempt may land.",
		file: memoryChange, old: "r.Deadline = later(r.Deadline, now.Add(t.Deadline))", new: "r.Deadline = now.Add(t.Deadline)",
		caught: memoryLedger + "again/keeps the latest deadline",
	},
	{
		name: "memory: happened: attempt not compared", breaks: "A person's verdict on the first attempt is taken for one on the second, which is still open.",
		file: memoryChange, old: "case Happened:\n\t\treturn is(attempt &&", new: "case Happened:\n\t\treturn is(token &&",
		caught: memoryLedger + "happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "memory: happened: state not compared", breaks: "A person's verdict replaces the result that was found meanwhile.",
		file: memoryChange, old: "case Happened:\n\t\treturn is(attempt && r.State == InDoubt)", new: "case Happened:\n\t\treturn is(attempt)",
		caught: memoryLedger + "happened/loses on a row that is done",
	},
	{
		name: "memory: not happened: attempt not compared", breaks: "\"Did not happen\", said of the first attempt, frees what the second one may have done.",
		file: memoryChange, old: "if !attempt || r.State != InDoubt {", new: "if !token || r.State != InDoubt {",
		caught: memoryLedger + "not happened/loses on a row that is in doubt with an earlier attempt",
	},
	{
		name: "memory: not happened: state not compared", breaks: "A person frees what is done, and it runs again.",
		file: memoryChange, old: "if !attempt || r.State != InDoubt {", new: "if !attempt {",
		caught: memoryLedger + "not happened/loses on a row that is done",
	},
	{
		name: "memory: not happened: before the deadlines are over", breaks: "A person frees a refund whose request is under way.",
		file: memoryChange, old: "return l.over(r, now, 0)", new: "return l.over(r, later(now, r.Deadline), 0)",
		caught: memoryLedger + "not happened/is too early before the deadlines of all attempts are over",
	},
	{
		name: "memory: generation not grown", breaks: "After \"declined\" the provider answers the next try by replaying the decline.",
		file: memoryChange, old: "r.Generation++\n\t\t\tr.Key, r.Unclear", new: "r.Key, r.Unclear",
		caught: memoryLedger + "key/grows where a row is given back with a new key",
	},
	{
		name: "memory: undo releases only what a handler has undone", breaks: "A cancel that a Lookup or a person settles leaves the booking as it was: it cannot be booked again.",
		file: memoryChange, old: "r.Undoes != \"\" && u != nil", new: "r.Undoes != \"\" && t.Step == Complete && u != nil",
		caught: memoryLedger + "undo/happened releases what is undone, at once",
	},
	{
		name: "memory: undo releases whoever has the identity now", breaks: "The second of two cancels of one booking releases the next booking, which stands at the provider.",
		file: memoryChange, old: "if u := l.row(r.Undoes); r.Undoes", new: "u := l.row(r.Undoes)\n\t\tif u != nil && l.live(u.Identity) != nil {\n\t\t\tu = l.live(u.Identity)\n\t\t}\n\t\tif r.Undoes",
		caught: memoryLedger + "undo/two tools that cancel one booking: the new booking stays",
	},
	{
		name: "memory: undo releases without being done", breaks: "A cancel that surely had no effect makes room for a second booking.",
		file: memoryChange, old: "\tcase GiveBack, NotHappened:\n\t\tstate(Free)\n", new: "\tcase GiveBack, NotHappened:\n\t\tif u := l.row(r.Undoes); u != nil {\n\t\t\tu.State = Released\n\t\t}\n\t\tstate(Free)\n",
		caught: memoryLedger + "undo/an undo that is given back releases nothing",
	},
}
