package main

// What a test of a ledger or a journal is called, before the name of the case.
const (
	memoryLedger  = "./middleware/ledgertest TestMemoryLedgerKeepsTheContract/"
	storeLedger   = "./sqlitestore TestStoreKeepsTheContractOfALedger/"
	memoryJournal = "./agent/journal/journaltest TestMemoryJournalKeepsTheContract/"
	storeJournal  = "./sqlitestore TestStoreKeepsTheContractOfAJournal/"
	pgLedger      = "./pgstore TestStoreKeepsTheContractOfALedger/"
	pgJournal     = "./pgstore TestStoreKeepsTheContractOfAJournal/"
)

const memory = "middleware/memory.go"

var memoryClaims = []mutant{
	{
		name: "memory: claim: new after an undo", breaks: "A run books and cancels without end: nobody counts what was not looked for.",
		file: memory, old: "l.lastReleased(c.Identity) != nil || ", new: "",
		caught: memoryLedger + "claim as new/of what was done and undone is not won, and a claim that was looked for is",
	},
	{
		name: "memory: claim: look first, then insert", breaks: "Two processes that see no row at the same moment both run the refund.",
		file: memory, old: "\tr := old\n", new: "\tl.mu.Unlock()\n\ttime.Sleep(time.Millisecond)\n\tl.mu.Lock()\n\tr := old\n",
		caught: memoryLedger + "race/of 50 claimers of one identity one wins",
	},
	{
		name: "memory: claim: not unique while it runs", breaks: "A second call runs beside the first, whose handler has not returned.",
		file: memory, old: "r.Identity == identity && r.State != Released {", new: "r.Identity == identity && r.State != Released && r.State != Running {",
		caught: memoryLedger + "claim/a row that is running is not won unseen",
	},
	{
		name: "memory: claim: not unique in doubt", breaks: "A repeat runs although the first may have happened.",
		file: memory, old: "r.Identity == identity && r.State != Released {", new: "r.Identity == identity && r.State != Released && r.State != InDoubt {",
		caught: memoryLedger + "claim/a row that is in doubt is not won unseen",
	},
	{
		name: "memory: claim: not unique once done", breaks: "A repeat runs again what is done.",
		file: memory, old: "r.Identity == identity && r.State != Released {", new: "r.Identity == identity && r.State != Released && r.State != Done {",
		caught: memoryLedger + "claim/a row that is done is not won unseen",
	},
	{
		name: "memory: claim: freed by time", breaks: "A slow handler loses its claim when its deadline is over, and a second one runs beside it.",
		file: memory, old: "return r.State == Free || r.State == Done && expired(r, now)",
		new:    "return r.State == Free || r.State == Done && expired(r, now) || now.After(r.Deadline)",
		caught: memoryLedger + "claim/a running row whose deadline is over is not won",
	},
	{
		name: "memory: claim: place not compared", breaks: "A resumed call runs again although its place points to what it has done.",
		file: memory, old: "case at != c.SeenAlias:", new: "case at != c.SeenAlias && false:",
		caught: memoryLedger + "claim/is not won at a place that points to another operation",
	},
	{
		name: "memory: claim: alias not in the commit", breaks: "After a crash the same call is not found at its place.",
		file: memory, old: "\tl.alias(memoryAlias{Alias: c.Call,", new: "\t_ = (memoryAlias{Alias: c.Call,",
		more:   []edit{{memory, "identity: c.Identity, repeat: c.Repeat})", "identity: c.Identity, repeat: c.Repeat}.Alias)"}},
		caught: memoryLedger + "claim/the alias of the call is in its commit",
	},
	{
		name: "memory: claim: what is undone need not be done", breaks: "A booking is cancelled while it is being made, and stays.",
		file: memory, old: "u != nil && u.State == Done", new: "u != nil",
		caught: memoryLedger + "claim/is not won by an undo of a row that is running",
	},
	{
		name: "memory: claim: undone in two ways at once", breaks: "A charge is voided and refunded: the money goes back twice.",
		file: memory, old: " && l.undoing(c.Undoes) == \"\")", new: ")",
		caught: memoryLedger + "undo/two tools do not cancel one booking at once",
	},
	{
		name: "memory: claim: what is repeated need not be done", breaks: "A payment whose outcome is unknown is repeated on purpose.",
		file: memory, old: "r != nil && r.State == Done && !expired", new: "r != nil && !expired",
		caught: memoryLedger + "repeat/of a row that is in doubt is not won",
	},
	{
		name: "memory: claim: what is repeated may have expired", breaks: "An operation that is forgotten is repeated without anybody having seen its result.",
		file: memory, old: "r.State == Done && !expired(r, now))", new: "r.State == Done)",
		caught: memoryLedger + "repeat/of a row that has expired is not won",
	},
	{
		name: "memory: claim: token seen not compared", breaks: "Who looked before another claimed and freed the row takes it as though nothing had been.",
		file: memory, old: " || r.Token != c.Seen.Token:", new: ":",
		caught: memoryLedger + "claim again/is not won with another token",
	},
	{
		name: "memory: claim: id seen not compared", breaks: "Of two who saw one expired row the slower runs over the faster one's new row.",
		file: memory, old: "case r.Operation != c.Seen.Operation || r.State", new: "case r.State",
		caught: memoryLedger + "claim again/is not won with another id",
	},
	{
		name: "memory: claim: over a done row that has not expired", breaks: "What is done runs again for whoever has looked at it.",
		file: memory, old: "r.State == Done && expired(r, now)\n", new: "r.State == Done\n",
		caught: memoryLedger + "claim expired/is not won before the date",
	},
	{
		name: "memory: claim: an earlier deadline is forgotten", breaks: "A person says that it did not happen while a request of the claim before may land.",
		file: memory, old: "r.Deadline = later(r.Deadline, now.Add(c.Deadline))", new: "r.Deadline = now.Add(c.Deadline)",
		caught: memoryLedger + "claim again/the deadlines of all claims count",
	},
	{
		name: "memory: generation not grown by an undo", breaks: "The second booking has the first one's key: the provider answers with the one that was cancelled.",
		file: memory, old: "return last.Generation + 1", new: "return last.Generation",
		caught: memoryLedger + "key/grows on release, from the last generation",
	},
	{
		name: "memory: namespace left out of identities", breaks: "A tenant's refund is taken for another tenant's.",
		file: memory, old: "if r.Namespace == l.namespace && r.Identity == identity && r.State != Released {", new: "if r.Identity == identity && r.State != Released {",
		caught: memoryLedger + "namespaces/one identity in two namespaces is two operations",
	},
	{
		name: "memory: namespace left out of places", breaks: "A tenant's call cannot be claimed, because another tenant's stands at its place.",
		file: memory, old: "if a.namespace == l.namespace && a.Run == run && a.Turn", new: "if a.Run == run && a.Turn",
		caught: memoryLedger + "namespaces/one identity in two namespaces is two operations",
	},
	{
		name: "memory: namespace left out of rows", breaks: "A tenant who knows an id changes another tenant's operation.",
		file: memory, old: "r != nil && r.Namespace == l.namespace {", new: "r != nil {",
		caught: memoryLedger + "namespaces/change does not cross",
	},
	{
		name: "memory: namespace left out of resources", breaks: "A cancel finds another tenant's booking.",
		file: memory, old: "if r.Namespace != l.namespace || r.Tool != tool", new: "if r.Tool != tool",
		caught: memoryLedger + "namespaces/find does not cross",
	},
	{
		name: "memory: a repeat takes the place of a call", breaks: "A call that is noted elsewhere is not found as the same call again.",
		file: memory, old: "\tif l.place(call.Run, call.Turn, call.Position) == nil {\n", new: "\t{\n",
		caught: memoryLedger + "note/leaves a place alone that points elsewhere",
	},
}
