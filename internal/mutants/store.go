package main

const (
	storeClaim    = "sqlitestore/claim.go"
	storeClaiming = "sqlitestore/claiming.go"
	storeFind     = "sqlitestore/find.go"
	schema        = "sqlitestore/schema.sql"
)

var storeClaims = []mutant{
	{
		name: "sqlite: claim: new after an undo", breaks: "A run books and cancels without end: nobody counts what was not looked for.",
		file: storeClaiming, old: " || changed == 1 || c.New {", new: " || changed == 1 {",
		caught: storeLedger + "claim as new/of what was done and undone is not won, and a claim that was looked for is",
	},
	{
		name: "sqlite: claim: no UNIQUE", breaks: "Every claimer gets a row of its own, and all run the refund.",
		file: schema, old: "CREATE UNIQUE INDEX operations_identity", new: "CREATE INDEX operations_identity",
		more:   []edit{{storeClaim, " ON CONFLICT (namespace, identity, released) DO NOTHING", ""}},
		caught: storeLedger + "claim/two claimers of one identity: one wins",
	},
	{
		name: "sqlite: claim: look first, then insert", breaks: "Two processes that see no row at the same moment both run the refund.",
		file: schema, old: "CREATE UNIQUE INDEX operations_identity", new: "CREATE INDEX operations_identity",
		more: []edit{
			{storeClaim, " ON CONFLICT (namespace, identity, released) DO NOTHING", ""},
			{storeClaim, "\ts.f.owners.used.Store(true)\n", "\ts.f.owners.used.Store(true)\n" +
				"\tif r, ok, _ := s.find(ctx, middleware.Query{Identity: c.Identity}); ok && c.Seen.Operation == \"\" && r.State != middleware.Released {\n" +
				"\t\treturn r, false, nil\n\t}\n"},
		},
		caught: storeLedger + "race/of 50 claimers of one identity one wins",
	},
	{
		name: "sqlite: claim: place not compared", breaks: "A resumed call runs again although its place points to what it has done.",
		file: storeClaiming, old: "return operationOf(operation) == c.SeenAlias, err", new: "return operation != 0, err",
		caught: storeLedger + "claim/is not won at a place that points to another operation",
	},
	{
		name: "sqlite: claim: alias not in the commit", breaks: "After a crash the same call is not found at its place.",
		file: schema, old: "WHEN new.turn > 0 BEGIN", new: "WHEN new.turn < 0 BEGIN",
		caught: storeLedger + "claim/the alias of the call is in its commit",
	},
	{
		name: "sqlite: claim: what is undone need not be done", breaks: "A booking is cancelled while it is being made, and stays.",
		file: storeClaim, old: "id = +?14 AND namespace = +?2 AND state = 'done'", new: "id = +?14 AND namespace = +?2",
		caught: storeLedger + "claim/is not won by an undo of a row that is running",
	},
	{
		name: "sqlite: claim: undone in two ways at once", breaks: "A charge is voided and refunded: the money goes back twice.",
		file: storeClaim, old: "undoes = +?14 AND namespace = +?2 AND state IN ('running', 'in_doubt')", new: "undoes = +?14 AND namespace = +?2 AND state = 'free'",
		caught: storeLedger + "undo/two tools do not cancel one booking at once",
	},
	{
		name: "sqlite: claim: what is repeated need not be done", breaks: "A payment whose outcome is unknown is repeated on purpose.",
		file: storeClaim, old: "id = +?26 AND namespace = +?2 AND state = 'done'", new: "id = +?26 AND namespace = +?2",
		caught: storeLedger + "repeat/of a row that is in doubt is not won",
	},
	{
		name: "sqlite: claim: what is repeated may have expired", breaks: "An operation that is forgotten is repeated without anybody having seen its result.",
		file: storeClaim, old: "(expires = 0 OR expires > ?23)", new: "(expires >= 0 OR expires > ?23)",
		caught: storeLedger + "repeat/of a row that has expired is not won",
	},
	{
		name: "sqlite: claim: token seen not compared", breaks: "Who looked before another claimed and freed the row takes it as though nothing had been.",
		file: storeClaim, old: "AND state = 'free' AND token = +?27", new: "AND state = 'free' AND (1 OR token = +?27)",
		more:   []edit{{storeClaiming, " || r.Token != seen.Token", ""}},
		caught: storeLedger + "claim again/is not won with another token",
	},
	{
		name: "sqlite: claim: state seen not compared", breaks: "A claim over a row that was free takes it from the process that runs it by now.",
		file: storeClaim, old: "AND state = 'free' AND token = +?27", new: "AND token = +?27",
		more:   []edit{{storeClaiming, " || r.State != seen.State", ""}},
		caught: storeLedger + "claim again/is not won where the row is not free any more",
	},
	{
		name: "sqlite: claim: over a done row that has not expired", breaks: "What is done runs again for whoever has looked at it.",
		file: storeClaim, old: "AND expires > 0 AND expires <= ?4", new: "AND (1 OR expires <= ?4)",
		caught: storeLedger + "claim expired/is not won before the date",
	},
	{
		name: "sqlite: claim: over what an open call needs", breaks: "A run that goes on after a long pause does again what its stored turn has done.",
		file: storeClaim, old: "\n\t\t\tAND NOT ` + openCall", new: "`",
		caught: "./sqlitestore TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold/of a run that goes on",
	},
	{
		name: "sqlite: claim: any output of the turn closes a call", breaks: "Of two calls of a turn the one whose output is not stored is done again.",
		file: "sqlitestore/journal.go", old: " AND outputs.position = aliases.position))", new: "))",
		caught: "./sqlitestore TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold/with only another call's output stored",
	},
	{
		name: "sqlite: claim: an earlier deadline is forgotten", breaks: "A person says that it did not happen while a request of the claim before may land.",
		file: storeClaim, old: "deadline = max(deadline, ?8)", new: "deadline = ?8",
		caught: storeLedger + "claim again/the deadlines of all claims count",
	},
	{
		name: "sqlite: generation not grown by an undo", breaks: "The second booking has the first one's key: the provider answers with the one that was cancelled.",
		file: storeClaiming, old: "r.Generation = last + 1", new: "r.Generation = last",
		caught: storeLedger + "key/grows on release, from the last generation",
	},
	{
		name: "sqlite: namespace left out of identities", breaks: "A tenant's refund is taken for another tenant's.",
		file: storeFind, old: "coalesce((SELECT id FROM operations WHERE namespace = +?1 AND", new: "coalesce((SELECT id FROM operations WHERE",
		more:   []edit{{storeFind, "`operations WHERE id = ` + ofIdentity + ` AND namespace = +?1`", "`operations WHERE id = ` + ofIdentity"}},
		caught: storeLedger + "namespaces/find does not cross",
	},
	{
		name: "sqlite: namespace left out of ids", breaks: "A tenant who knows an id reads another tenant's result.",
		file: storeFind, old: "operations WHERE id = +?3 AND namespace = +?1", new: "operations WHERE id = +?3 AND (1 OR namespace = +?1)",
		caught: storeLedger + "namespaces/find does not cross",
	},
	{
		name: "sqlite: namespace left out of places", breaks: "A tenant's run finds another tenant's result at its place.",
		file: storeFind, old: "= aliases.operation AND meant.namespace = +?1", new: "= aliases.operation",
		more:   []edit{{storeFind, "`aliases.namespace = +?1 AND", "`"}, {storeFind, "ofIdentity + `) AND operations.namespace = +?1`", "ofIdentity + `)`"}},
		caught: storeLedger + "namespaces/find does not cross",
	},
	{
		name: "sqlite: namespace left out of resources", breaks: "A cancel finds another tenant's booking.",
		file: storeFind, old: "operations WHERE namespace = +?1 AND tool = +?3", new: "operations WHERE (1 OR namespace = +?1) AND tool = +?3",
		caught: storeLedger + "namespaces/find does not cross",
	},
	{
		name: "sqlite: namespace left out of undos", breaks: "A tenant cancels another tenant's booking.",
		file: storeClaim, old: "id = +?14 AND namespace = +?2 AND state = 'done'", new: "id = +?14 AND state = 'done'",
		caught: storeLedger + "namespaces/undo does not cross",
	},
	{
		name: "sqlite: namespace left out of repeats", breaks: "A tenant repeats another tenant's payment.",
		file: storeClaim, old: "id = +?26 AND namespace = +?2 AND state = 'done'", new: "id = +?26 AND state = 'done'",
		caught: storeLedger + "namespaces/a repeat on purpose does not cross",
	},
	{
		name: "sqlite: namespace left out of lists", breaks: "An operator sees, and settles, what is another tenant's.",
		file: storeFind, old: "FROM operations WHERE namespace = +?1`\n\tif len", new: "FROM operations WHERE (1 OR namespace = +?1)`\n\tif len",
		caught: storeLedger + "namespaces/list does not cross",
	},
	{
		name: "sqlite: a commit is not synced", breaks: "After a power cut the claim is gone, and the refund is made again.",
		file: "sqlitestore/driver_cgo.go", old: "\"_synchronous\":  {\"FULL\"}", new: "\"_synchronous\":  {\"NORMAL\"}",
		more:   []edit{{"sqlitestore/driver_cgo.go", "{\"synchronous\", int64(2)}", "{\"synchronous\", int64(1)}"}},
		caught: "./sqlitestore TestEveryConnectionKeepsWhatItCommits",
	},
	{
		name: "sqlite: a missing lock file is taken for a dead owner", breaks: "A living process whose lock file was lost has its refunds made again by others.",
		file: "sqlitestore/owner.go", old: "return e == dead, err\n", new: "return e != alive, err\n",
		caught: "./sqlitestore TestMissingLockFileSaysNothing",
	},
}
