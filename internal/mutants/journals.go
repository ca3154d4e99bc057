package main

const (
	memoryRuns = "agent/journal/memory.go"
	storeTurns = "sqlitestore/journal.go"
	storeRuns  = "sqlitestore/journal_begin.go"
)

var journals = []mutant{
	{
		name: "memory: run taken from the living", breaks: "Two processes go on with one run, and its calls are made twice.",
		file: memoryRuns, old: "!r.owner.gone && (r.owner != j.owner || j", new: "!r.owner.gone && (r.owner == j.owner && j",
		caught: memoryJournal + "take/not while the owner lives",
	},
	{
		name: "memory: run taken twice in one process", breaks: "Two requests with one run id both go on with it.",
		file: memoryRuns, old: "(r.owner != j.owner || j.owner", new: "(r.owner != j.owner || false && j.owner",
		caught: memoryJournal + "take/not while another call of this process has it",
	},
	{
		name: "memory: token stays when a run is taken", breaks: "A process that was taken for dead goes on writing to the run.",
		file: memoryRuns, old: "r.Token, r.owner = rand.Text(), j.owner", new: "if r.owner = j.owner; r.Token == \"\" {\n\t\tr.Token = rand.Text()\n\t}",
		caught: memoryJournal + "append/loses where another process has taken the run, and stores nothing",
	},
	{
		name: "memory: journal: token not compared", breaks: "A process that was taken for dead goes on writing to the run.",
		file: memoryRuns, old: "r.owner != nil && r.Token == token {", new: "r.owner != nil {",
		caught: memoryJournal + "append/loses under a token that is not the run's, and stores nothing",
	},
	{
		name: "memory: a stored turn is overwritten", breaks: "The calls that were run are not those of the answer that is stored.",
		file: memoryRuns, old: "n <= last: // it is stored\n", new: "n <= last:\n\t\tr.Turns[n-1].Answer = bytes.Clone(e.Turn.Answer)\n",
		caught: memoryJournal + "append/a turn that is stored stays, with the outputs before it",
	},
	{
		name: "memory: outputs stored twice", breaks: "A call has two outputs, and the API refuses the history for ever.",
		file: memoryRuns, old: "if !found {", new: "if i >= 0 || found {",
		caught: memoryJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "memory: a stored output is overwritten", breaks: "What is stored is not what the model was told.",
		file: memoryRuns, old: "if !found {", new: "if found {\n\t\t\tt.Outputs[i] = o\n\t\t} else {",
		caught: memoryJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "memory: a run is never finished", breaks: "The same run again asks the model again, whose calls do it again.",
		file: memoryRuns, old: "r.Finished, r.owner = true, nil", new: "r.owner = nil",
		caught: memoryJournal + "append/with Final finishes the run and gives it up",
	},
	{
		name: "memory: journal: input not compared", breaks: "A second message under a used run id gets the answer to the first.",
		file: memoryRuns, old: "case r.Run != s.Run || r.API != s.API || !bytes.Equal(r.Input, s.Input):", new: "case r.Run != s.Run || r.API != s.API:",
		caught: memoryJournal + "begin/another input is another run",
	},
	{
		name: "memory: journal: namespace left out", breaks: "A tenant reads another tenant's run.",
		file: memoryRuns, old: "id := memoryID{j.namespace, s.Run.ID}", new: "id := memoryID{\"\", s.Run.ID}",
		more:   []edit{{memoryRuns, "r, err := j.runs[memoryID{j.namespace, run}]", "r, err := j.runs[memoryID{\"\", run}]"}},
		caught: memoryJournal + "namespaces/runs of one are unknown in another",
	},
	{
		name: "sqlite: run taken from the living", breaks: "Two processes go on with one run, and its calls are made twice.",
		file: storeRuns, old: "case e == alive:\n\t\treturn journal.ErrRunTaken", new: "case e == alive:\n\t\treturn nil",
		caught: storeJournal + "take/not while the owner lives",
	},
	{
		name: "sqlite: run taken twice in one process", breaks: "Two requests with one run id both go on with it.",
		file: storeRuns, old: "); held {", new: "); held && false {",
		caught: storeJournal + "take/not while another call of this process has it",
	},
	{
		name: "sqlite: run taken by two at once", breaks: "Two processes that see the owner gone at the same moment both go on with its run.",
		file: storeRuns, old: "AND token = +?3 AND finished = 0", new: "AND (1 OR token = +?3) AND finished = 0",
		caught: storeJournal + "race/of 50 who begin a run whose owner is gone one takes it",
	},
	{
		name: "sqlite: token stays when a run is taken", breaks: "A process that was taken for dead goes on writing to the run.",
		file: storeRuns, old: "SET token = +?4, owner = +?5", new: "SET token = coalesce(token, +?4), owner = +?5",
		more:   []edit{{storeRuns, "\t\tb.r.Token = b.token\n", "\t\tb.token = b.r.Token\n"}},
		caught: storeJournal + "append/loses where another process has taken the run, and stores nothing",
	},
	{
		name: "sqlite: journal: token not compared", breaks: "A process that was taken for dead goes on writing to the run.",
		file: storeTurns, old: "AND token = +?3 AND owner <> 0", new: "AND (1 OR token = +?3) AND owner <> 0",
		caught: storeJournal + "append/loses under a token that is not the run's, and stores nothing",
	},
	{
		name: "sqlite: journal: a run that was left is written to", breaks: "Who has given a run up stores a turn that whoever takes it does not see.",
		file: storeTurns, old: "AND token = +?3 AND owner <> 0", new: "AND token = +?3",
		caught: storeJournal + "append/loses where the run was left or is unknown, and stores nothing",
	},
	{
		name: "sqlite: a stored turn is overwritten", breaks: "The calls that were run are not those of the answer that is stored.",
		file: storeTurns, old: "_, err = x.one(turnAnswer, []any{(*[]byte)(&stored.Turn.Answer)}, id, e.Turn.Number)",
		new:    "err = x.run(`UPDATE turns SET answer = ?3 WHERE run = ?1 AND number = ?2`, id, e.Turn.Number, string(e.Turn.Answer))",
		caught: storeJournal + "append/a turn that is stored stays, with the outputs before it",
	},
	{
		name: "sqlite: outputs stored twice", breaks: "A call has two outputs, and the API refuses the history for ever.",
		file: schema, old: "PRIMARY KEY (run, turn, position)", new: "CHECK (run > 0)",
		caught: storeJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "sqlite: a stored output is overwritten", breaks: "What is stored is not what the model was told.",
		file: storeTurns, old: "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING", new: "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET content = excluded.content",
		caught: storeJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "sqlite: a run is never finished", breaks: "The same run again asks the model again, whose calls do it again.",
		file: storeTurns, old: "SET finished = 1, owner = 0", new: "SET owner = 0",
		caught: storeJournal + "append/with Final finishes the run and gives it up",
	},
	{
		name: "sqlite: journal: input not compared", breaks: "A second message under a used run id gets the answer to the first.",
		file: storeRuns, old: " || !bytes.Equal(r.Input, b.start.Input) {", new: " {",
		caught: storeJournal + "begin/another input is another run",
	},
	{
		name: "sqlite: journal: namespace left out", breaks: "A tenant reads another tenant's run.",
		file: storeRuns, old: "created FROM runs WHERE namespace = +?1 AND run =", new: "created FROM runs WHERE (1 OR namespace = +?1) AND run =",
		caught: storeJournal + "namespaces/runs of one are unknown in another",
	},
	{
		name: "sqlite: journal: namespace left out of writes", breaks: "A tenant writes to another tenant's run.",
		file: storeTurns, old: "WHERE namespace = +?1 AND run = +?2 AND token", new: "WHERE (1 OR namespace = +?1) AND run = +?2 AND token",
		caught: storeJournal + "namespaces/a token is worth nothing in another",
	},
}
