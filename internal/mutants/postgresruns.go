package main

import "slices"

const (
	pgTurns = "pgstore/journal.go"
	pgRuns  = "pgstore/journal_begin.go"
)

// pgSeen and pgLocked are what looks at a run before it is written to.
var (
	pgSeen   = edit{pgTurns, "AND token = $3`\n\tlockRun", "AND (true OR token = $3)`\n\tlockRun"}
	pgLocked = edit{pgTurns, "AND token = $3 FOR UPDATE", "AND (true OR token = $3) FOR UPDATE"}
)

var pgJournals = []mutant{
	{
		name: "postgres: run taken from the living", breaks: "Two processes go on with one run, and its calls are made twice.",
		file: pgRuns, old: "case b.gone:\n", new: "case b.gone || b.name.valid:\n",
		caught: pgJournal + "take/not while the owner lives",
	},
	{
		name: "postgres: run taken twice in one process", breaks: "Two requests with one run id both go on with it.",
		file: pgRuns, old: "); held {", new: "); held && false {",
		caught: pgJournal + "take/not while another call of this process has it",
	},
	{
		name: "postgres: run taken by two at once", breaks: "Two processes that see the owner gone at the same moment both go on with its run.",
		file: pgRuns, old: "AND token = $3 AND NOT finished", new: "AND (true OR token = $3) AND NOT finished",
		caught: pgJournal + "race/of 50 who begin a run whose owner is gone one takes it",
	},
	{
		name: "postgres: token stays when a run is taken", breaks: "A process that was taken for dead goes on writing to the run.",
		file: pgRuns, old: "seen := b.r.Token\n", new: "seen := b.r.Token\n\t\tb.token = seen\n",
		caught: pgJournal + "append/loses where another process has taken the run, and stores nothing",
	},
	{
		name: "postgres: journal: token not compared", breaks: "A process that was taken for dead goes on writing to the run.",
		file: pgTurns, old: "AND token = $3 AND owner <> 0\n\t\tAND (SELECT", new: "AND (true OR token = $3) AND owner <> 0\n\t\tAND (SELECT",
		more:   []edit{pgSeen, pgLocked},
		caught: pgJournal + "append/loses under a token that is not the run's, and stores nothing",
	},
	{
		name: "postgres: journal: a run that was left is written to", breaks: "Who has given a run up stores a turn that whoever takes it does not see.",
		file: pgTurns, old: "AND token = $3 AND owner <> 0\n\t\tAND (SELECT", new: "AND token = $3\n\t\tAND (SELECT",
		caught: pgJournal + "append/loses where the run was left or is unknown, and stores nothing",
	},
	{
		name: "postgres: a stored turn is overwritten", breaks: "The calls that were run are not those of the answer that is stored.",
		file: pgTurns, old: "myRun + ` RETURNING run)", new: "myRun + ` ON CONFLICT (run, number) DO UPDATE SET answer = excluded.answer RETURNING run)",
		more:   []edit{{pgTurns, "WHERE turns.run = runs.id) = $4`\n", "WHERE turns.run = runs.id) >= $4`\n"}},
		caught: pgJournal + "append/a turn that is stored stays, with the outputs before it",
	},
	{
		name: "postgres: outputs stored twice", breaks: "A call has two outputs, and the API refuses the history for ever.",
		file: pgSchema, old: "PRIMARY KEY (run, turn, position)", new: "CHECK (run > 0)",
		caught: pgJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "postgres: a stored output is overwritten", breaks: "What is stored is not what the model was told.",
		file: pgTurns, old: "myRun + ` ON CONFLICT DO NOTHING`", new: "myRun + ` ON CONFLICT (run, turn, position) DO UPDATE SET content = excluded.content`",
		caught: pgJournal + "append/an output that is stored stays, and others join it",
	},
	{
		name: "postgres: a run is never finished", breaks: "The same run again asks the model again, whose calls do it again.",
		file: pgTurns, old: "SET finished = $6, ended", new: "SET finished = false AND $6, ended",
		caught: pgJournal + "append/with Final finishes the run and gives it up",
	},
	{
		name: "postgres: journal: input not compared", breaks: "A second message under a used run id gets the answer to the first.",
		file: pgRuns, old: " || !bytes.Equal(r.Input, b.start.Input):", new: " || false && !bytes.Equal(r.Input, b.start.Input):",
		caught: pgJournal + "begin/another input is another run",
	},
	{
		name: "postgres: journal: namespace left out", breaks: "A tenant reads another tenant's run.",
		file: pgRuns, old: "WHERE namespace = $1 AND run = $2`", new: "WHERE (true OR namespace = $1) AND run = $2 ORDER BY runs.id DESC`",
		caught: pgJournal + "namespaces/runs of one are unknown in another",
	},
	{
		name: "postgres: journal: namespace left out of writes", breaks: "A tenant writes to another tenant's run.",
		file: pgTurns, old: "FROM @runs AS runs WHERE namespace = $1 AND run = $2 AND token = $3 AND owner <> 0", new: "FROM @runs AS runs WHERE (true OR namespace = $1) AND run = $2 AND token = $3 AND owner <> 0",
		more: []edit{
			{pgTurns, "WHERE namespace = $1 AND run = $2 AND token = $3`\n\tlockRun", "WHERE (true OR namespace = $1) AND run = $2 AND token = $3`\n\tlockRun"},
			{pgTurns, "WHERE namespace = $1 AND run = $2 AND token = $3 FOR UPDATE", "WHERE (true OR namespace = $1) AND run = $2 AND token = $3 FOR UPDATE"},
		},
		caught: pgJournal + "namespaces/a token is worth nothing in another",
	},
}

func pgApprovals() []mutant {
	const file = "pgstore/approval.go"
	all := []mutant{
		{
			name: "postgres: approval: not spent", breaks: "One approval serves any number of payments.",
			file: pgClaiming, old: "SET state = 'spent', operation = $17", new: "SET operation = $17",
			caught: pgLedger + "approval/serves one claim",
		},
		{
			name: "postgres: approval: not looked at by the claim", breaks: "What was never approved, or for another call, runs.",
			file: pgClaiming, old: "AND EXISTS (SELECT 1 FROM spent)", new: "AND (true OR EXISTS (SELECT 1 FROM spent))",
			caught: pgLedger + "approval/is not spent where there is none",
		},
		{
			name: "postgres: approval: state not compared", breaks: "A payment that a person has denied runs.",
			file: pgClaiming, old: "approvals.state = 'approved' AND ", new: "",
			caught: pgLedger + "approval/is not spent where it is denied",
		},
		{
			name: "postgres: approval: date not compared", breaks: "An approval of last week is spent today.",
			file: pgClaiming, old: "approvals.expires > statement_timestamp() AND ", new: "",
			caught: pgLedger + "approval/is not spent where it has expired",
		},
		{
			name: "postgres: approval: not bound to its namespace", breaks: "One tenant approves another tenant's payment.",
			file: pgClaiming, old: "(approvals.namespace = $1) IS TRUE", new: "(true OR approvals.namespace = $1)",
			caught: pgLedger + "namespaces/an approval does not cross",
		},
		{
			name: "postgres: approval: answered twice", breaks: "What one person has denied another one approves, and it runs.",
			file: file, old: "openQuestion = atQuestion + ` AND state = 'pending' AND", new: "openQuestion = atQuestion + ` AND",
			caught: pgLedger + "decide/is lost where it has been answered",
		},
		{
			name: "postgres: approval: a denial counts at its place alone", breaks: "The model asks once more in the next turn, and another person approves.",
			file: file, old: "(state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `)\n\t\tORDER", new: "state IN ('denied', 'pending', 'approved') AND ` + bound + `\n\t\tORDER",
			more:   []edit{{file, "(state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `))\n", "state IN ('denied', 'pending', 'approved') AND ` + bound + `)\n"}},
			caught: pgLedger + "ask/a denied one counts at every place of the run",
		},
	}
	for binding, old := range map[string]string{
		"run": "approvals.run = $4", "turn": "approvals.turn = $5", "position": "approvals.position = $18", "tool": "approvals.tool = $8",
		"fingerprint": "approvals.fingerprint = $10", "identity": "approvals.identity = mine.identity",
		"generation": "approvals.generation = mine.generation", "input": "approvals.digest IS NOT DISTINCT FROM $16",
	} {
		all = append(all, unbound("postgres", pgLedger, binding, pgClaiming, old, "(true OR "+old+")"))
	}
	return sorted(all)
}

// postgres are the mutants of pgstore.
func postgres() []mutant {
	return slices.Concat(pgClaims, pgSteps, pgTogether, pgApprovals(), pgJournals)
}
