package main

const (
	answers   = "middleware/answer.go"
	transport = "registry/transport.go"
	canon     = "registry/internal/codec/canon.go"
	session   = "agent/session.go"

	loop = "./agent "
)

// callsAndRequests are faults in what a call means and in what is sent for it.
var callsAndRequests = []mutant{
	{
		name: "transport: sends after the deadline", breaks: "A slow handler sends the refund after a person has said that it did not happen.",
		file: transport, old: "!over.IsZero() && !now.Before(over) {", new: "!over.IsZero() && now.IsZero() {",
		caught: "./registry TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow/late, first attempt",
	},
	{
		name: "transport: sends outside the key window", breaks: "The provider has forgotten the key, and makes the refund again.",
		file: transport, old: "!a.WindowEnd.IsZero() && a.WindowEnd.Before(over) {", new: "!a.WindowEnd.IsZero() && over.IsZero() {",
		caught: "./registry TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow/window over",
	},
	{
		name: "transport: \"not sent\" of a later attempt is proof", breaks: "The second try was not sent, and what the first one sent is made again.",
		file: transport, old: "noEffect: a.Number == 1 && !a.sent.Load()}", new: "noEffect: !a.sent.Load()}",
		caught: "./registry TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow/late, second attempt",
	},
	{
		name: "transport: \"not sent\" after a first request is proof", breaks: "The second of two requests was not sent, and the first is made again.",
		file: transport, old: "noEffect: a.Number == 1 && !a.sent.Load()}", new: "noEffect: a.Number == 1}",
		caught: "./registry TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow/late after a first request",
	},
	{
		name: "transport: net/http sends again by itself", breaks: "A connection breaks after the refund, and net/http makes it again.",
		file: transport, old: "r.Header[strings.ToLower(\"Idempotency-Key\")] = []string{derive(", new: "r.Header[\"Idempotency-Key\"] = []string{derive(strings.ToLower(\"\")+",
		caught: "./registry TestTheHTTPClientDoesNotSendAStampedRequestAgainByItself",
	},
	{
		name: "arguments: parts of a hash run together", breaks: "The refund of order 1 in shop 23 is taken for that of order 12 in shop 3.",
		file: canon, old: "AppendUint64(b, uint64(len(p)))", new: "AppendUint64(b, uint64(len(p)))[:len(b)]",
		caught: "./registry/internal/codec TestHashesAreThoseOfTheGoldenFile",
	},
	{
		name: "arguments: free text is part of what is meant", breaks: "The model words the reason anew, and the refund is made again.",
		file: canon, old: "(c == cutIgnored && f.once.ignored || c", new: "(c",
		caught: "./registry/internal/codec TestIgnoredFieldsAreNoPartOfTheHashAtAnyDepth",
	},
	{
		name: "arguments: null and absent differ", breaks: "The model sends null for what it left out before, and the refund is made again.",
		file: canon, old: " || f.optional && string(v) == \"null\")", new: ")",
		caught: "./registry/internal/codec TestHashesAreThoseOfTheGoldenFile",
	},
	{
		name: "one proof among joined errors frees", breaks: "Of two requests one was not sent: the other is made again.",
		file: "registry/errors.go", old: "\t\tif !HasNoEffect(err) {\n\t\t\treturn false\n\t\t}\n\t}\n\treturn len(errs) > 0", new: "\t\tif HasNoEffect(err) {\n\t\t\treturn true\n\t\t}\n\t}\n\treturn false",
		caught: "./registry TestOnlyProofFreesAndOfJoinedErrorsEach",
	},
}

// loops are faults in the loop.
var loops = []mutant{
	{
		name: "loop: a turn is run before it is stored", breaks: "Two processes run the calls of two answers to one question.",
		file: session, old: "\tkept, err := s.store.Append(", new: "\tfor i, c := range a.calls {\n" +
			"\t\t_, _ = s.handle(ctx, &registry.Call{Run: s.rec.Run, Turn: n, Position: i, ID: c.id, Tool: c.name, Arguments: c.arguments, Journaled: true})\n\t}\n" +
			"\tkept, err := s.store.Append(",
		caught: loop + "TestASlowProcessRunsNothingOfATurnThatItCannotStore",
	},
	{
		name: "loop: another stored answer is not adopted", breaks: "The calls that run are not those of the turn that is stored.",
		file: session, old: "if !bytes.Equal(kept.Turn.Answer, raw) {", new: "if !bytes.Equal(kept.Turn.Answer, raw) && len(raw) == 0 {",
		caught: loop + "TestAnAnswerThatWasStoredBeforeIsTheOneThatCounts",
	},
	{
		name: "loop: the outputs are not stored with the next turn", breaks: "After a crash the model reads that its calls were cut off, and makes them again.",
		file: session, old: "Outputs: s.outputs, Final: a.final,", new: "Final: a.final,",
		caught: loop + "TestKilledAtEachPointTheRunGoesOnWithNothingTwice",
	},
	{
		name: "loop: the answer is not stored as the last", breaks: "The same run again does not get the saved answer, and its process must end before it can be asked for anew.",
		file: session, old: "Outputs: s.outputs, Final: a.final,", new: "Outputs: s.outputs,",
		caught: loop + "TestAFinishedRunIsAnsweredWithoutARequest",
	},
	{
		name: "loop: calls are not known as journaled", breaks: "Another call at a place that is taken is made besides.",
		file: session, old: "journaled: true,", new: "journaled: false,",
		caught: loop + "TestAnotherCallAtAPlaceThatIsTakenIsAConflict",
	},
	{
		name: "loop: the user asks with every call", breaks: "The model repeats a payment on purpose, and nobody has asked for it.",
		file: "agent/answering.go", old: "Asked: a.asked,", new: "Asked: time.Now(),",
		caught: loop + "TestTheUserHasAskedWhenTheRunBeganWhateverTheTimeOfItsCalls",
	},
	{
		name: "loop: writes run together", breaks: "A cancel overtakes the booking that stands before it.",
		file: "agent/answering.go", old: " && a.read(a.calls[from+n].name) {", new: " {",
		caught: loop + "TestReadsRunTogetherAtMostEightAndAWriteAlone",
	},
	{
		name: "loop: the calls of a cut stream run", breaks: "A connection breaks in the middle of an amount, and the refund is made with what had come.",
		file: "agent/chatstream.go", old: "\tcase s.finish == \"\":\n", new: "\tcase s.finish == \"-\":\n",
		caught: loop + "TestAStreamOfATurnCutAnywhereRunsNothingAndIsAskedForAgain",
	},
	{
		name: "loop: the calls of a cut response stream run", breaks: "The same on the Responses API.",
		file: "agent/responsestream.go", old: "\tif s.err == nil && s.final == nil {\n\t\treturn nil, &IncompleteError{Calls: s.calls}\n", new: "\tif s.err == nil && s.final == nil {\n\t\treturn s.end(gjson.Parse(\"{}\"), \"completed\")\n",
		caught: loop + "TestAStreamOfATurnCutAnywhereRunsNothingAndIsAskedForAgain",
	},
	{
		name: "loop: calls run behind a finish_reason of length", breaks: "The refund is made with the half of its arguments.",
		file: "agent/chat.go", old: "\"tool_use\", \"end_turn\", \"eos\":", new: "\"tool_use\", \"end_turn\", \"eos\", \"length\", \"content_filter\":",
		caught: loop + "TestTheEndOfAnAnswerDecidesWhetherItsCallsRun",
	},
	{
		name: "loop: calls of an incomplete response run", breaks: "The same on the Responses API.",
		file: "agent/responserun.go", old: "\t\tif calls == 0 {\n\t\t\treturn nil\n", new: "\t\tif calls >= 0 {\n\t\t\treturn nil\n",
		caught: loop + "TestTheEndOfAnAnswerDecidesWhetherItsCallsRun",
	},
	{
		name: "loop: a forced tool choice holds for ever", breaks: "The model must call the refund tool in every turn, until the limit.",
		file: "agent/params.go", old: "\tcase v.Type == gjson.String && v.String() == \"required\":\n\t\treturn json.RawMessage(`\"auto\"`), true\n", new: "",
		caught: loop + "TestAForcedToolChoiceHoldsForTheFirstTurnAlone",
	},
	{
		name: "loop: a call that is delivered twice is two calls", breaks: "A server that sends a call twice has its note added twice.",
		file: "agent/chatrun.go", old: "\tcalls, _ = delivered(calls)\n", new: "",
		caught: loop + "TestACallThatIsDeliveredTwiceIsOneCallOfTheRun",
	},
}
