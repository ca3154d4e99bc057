package main

const (
	attempts = "middleware/attempt.go"
	settling = "middleware/settle.go"
	saving   = "middleware/save.go"
)

// guardOutcomes are faults in what becomes of a handler that has started.
var guardOutcomes = []mutant{
	{
		name: "guard: the result is saved under the caller's context", breaks: "The user closes the browser during the refund: it is made, and its result is lost.",
		file: attempts, old: "g: g, ctx: context.WithoutCancel(ctx), call", new: "g: g, ctx: ctx, call",
		caught: guard + "TestOutcomesAreStoredThoughTheirCallerHasGone/a result",
	},
	{
		name: "guard: any error is proof that nothing happened", breaks: "A refund whose answer was lost is made again.",
		file: attempts, old: "registry.HasNoEffect(o.err) && first,", new: "o.err != nil && first,",
		caught: guard + "TestAnUnclearErrorOfAToolIsHeldForAPerson",
	},
	{
		name: "guard: NoEffect of a later attempt frees", breaks: "\"Connection refused\" on the second try frees what the first has done.",
		file: attempts, old: "first := a.row.Attempt == 1 ||", new: "first := a.row.Attempt >= 1 ||",
		caught: guard + "TestNoEffectOfALaterAttemptSpeaksForItselfOnly",
	},
	{
		name: "guard: late NoEffect of a later attempt frees", breaks: "The same, where the second try comes back after its time.",
		file: attempts, old: "case a.row.Attempt == 1 && (notRun(o)", new: "case a.row.Attempt >= 1 && (notRun(o)",
		caught: guard + "TestALateNoEffectOfALaterAttemptSpeaksForItselfOnly",
	},
	{
		name: "guard: no new key after NoEffect", breaks: "The provider answers the next try by replaying the decline.",
		file: attempts, old: "proof && a.row.Attempt == 1 && !a.row.Unclear, !proof", new: "proof && a.row.Attempt == 0, !proof",
		caught: guard + "TestNoEffectFreesAndTheNextTryHasANewKey",
	},
	{
		name: "guard: a new key after an unclear claim", breaks: "A person erred, and the provider does not know the next try for the same refund.",
		file: attempts, old: "proof && a.row.Attempt == 1 && !a.row.Unclear, !proof", new: "proof && a.row.Attempt == 1, !proof",
		caught: guard + "TestNoEffectAfterAnUnclearClaimKeepsTheKey",
	},
	{
		name: "guard: a key for each attempt", breaks: "The provider takes the second try for another refund.",
		file: attempts, old: "Key: a.row.Key, Number", new: "Key: fmt.Sprint(a.row.Key, a.row.Attempt), Number",
		caught: guard + "TestRerunUsesTheSameKeyThreeTimesAndThenHolds",
	},
	{
		name: "guard: tried without a bound", breaks: "A refund that never comes out clearly is tried for ever.",
		file: settling, old: "returned && a.row.Attempt < maxAttempts:", new: "returned && a.row.Attempt > 0:",
		more:   []edit{{meet, "t.MaxAttempts = maxAttempts", "t.MaxAttempts = 100"}},
		caught: guard + "TestRerunUsesTheSameKeyThreeTimesAndThenHolds",
	},
	{
		name: "guard: the key window is not handed to the ledger", breaks: "A day later the provider has forgotten the key, and the refund is made again.",
		file: meet, old: "t.KeyWindow = max(info.KeyWindow-g.Margin, 1)", new: "t.KeyWindow = 0",
		caught: guard + "TestAnOrphanIsRunAgainInsideTheKeyWindowAlone/outside",
	},
	{
		name: "guard: the key window has no margin", breaks: "A request sent in the last second of the window lands after it.",
		file: meet, old: "t.KeyWindow = max(info.KeyWindow-g.Margin, 1)", new: "t.KeyWindow = info.KeyWindow",
		caught: guard + "TestAnOrphanIsRunAgainInsideTheKeyWindowAlone/outside",
	},
	{
		name: "guard: AbsentAfter is not handed to the ledger", breaks: "A provider that is slow to show effects has the refund made twice.",
		file: meet, old: "t.AbsentAfter = info.AbsentAfter", new: "t.AbsentAfter = 0",
		caught: guard + "TestLookupSaysAbsentOnlyAfterTheDeadlineAndThenItRunsWithTheSameKey",
	},
	{
		name: "guard: a claim's deadline is shorter than its handler's time", breaks: "\"Did not happen\" is believed while the handler may still send.",
		file: once, old: "= info.Timeout+g.Margin, info.KeyWindow", new: "= g.Margin, info.KeyWindow",
		caught: guard + "TestDidNotHappenIsRefusedUntilTheMarginAfterTheTimeoutIsOver",
	},
	{
		name: "guard: a claim's deadline has no margin", breaks: "A request sent in the handler's last second lands after \"did not happen\" was believed.",
		file: once, old: "= info.Timeout+g.Margin, info.KeyWindow", new: "= info.Timeout, info.KeyWindow",
		caught: guard + "TestDidNotHappenIsRefusedUntilTheMarginAfterTheTimeoutIsOver",
	},
	{
		name: "guard: a slow claim eats up the margin", breaks: "The store was slow: the handler sends until the deadline, and what it sends lands after it.",
		file: attempts, old: "last.Before(end) {", new: "last.IsZero() {",
		caught: guard + "TestAHandlersTimeEndsBeforeItsDeadlineThoughTheClaimWasSlow",
	},
	{
		name: "guard: the handler's context does not end", breaks: "A handler that waits for its context sends after its deadline.",
		file: "middleware/bounded.go", old: "\t\tw.ctx.expire()\n", new: "",
		caught: guard + "TestAHandlersTimeEndsBeforeItsDeadlineThoughTheClaimWasSlow",
	},
	{
		name: "guard: the transport is not told when time is over", breaks: "A handler that ignores its context sends the refund after it was settled.",
		file: attempts, old: ", SendBefore: end}", new: "}",
		caught: guard + "TestARequestOfAHandlerThatIsLateIsNotSent/after its time",
	},
	{
		name: "guard: the transport is not told of the key window", breaks: "A slow attempt sends with a key that the provider has forgotten.",
		file: attempts, old: "\t\ttry.WindowEnd = a.row.KeySince.Add(info.KeyWindow - a.g.Margin)\n", new: "\t\t_ = try\n",
		caught: guard + "TestARequestOfAHandlerThatIsLateIsNotSent/outside the key window",
	},
	{
		name: "guard: a late result is dropped", breaks: "A refund that took longer than its time stays in doubt, although its result came.",
		file: attempts, old: "if !inTime && (ran(o) || unreadable(o.err)) {", new: "if !inTime && ran(o) && o.res.Operation != \"\" {",
		caught: guard + "TestAtTheTimeoutTheWaitEndsAndTheLateResultIsStored",
	},
	{
		name: "guard: a late Lookup's result is dropped", breaks: "What a slow Lookup has found stays in doubt.",
		file: settling, old: "\t\t\tif o.err == nil || unreadable(o.err) {\n", new: "\t\t\tif unreadable(o.err) {\n",
		caught: guard + "TestALookupThatAnswersAfterItsTimeoutIsKept",
	},
	{
		name: "guard: a handler counts as returned at its timeout", breaks: "A person frees what a handler of this very process is about to do.",
		file: attempts, old: ", a.timedOut)\n", new: ", func() { a.held.Returned(); a.timedOut() })\n",
		caught: guard + "TestDidNotHappenIsRefusedWhileARequestMayLandAndALateResultIsShown",
	},
	{
		name: "guard: an unsure Lookup is taken for absent", breaks: "The provider is down for a moment, and the refund is made again.",
		file: settling, old: "\tif registry.HasNoEffect(o.err) {\n\t\tt := a.step(Absent)", new: "\tif o.err != nil {\n\t\tt := a.step(Absent)",
		caught: guard + "TestWhatMayHaveHappenedIsNotRunAgainHoweverLate/a Lookup that does not know",
	},
	{
		name: "guard: Lookup gets the new call's input", breaks: "The Lookup looks for what the model says now, does not find it, and the refund is made again.",
		file: meet, old: "stored, err := c.With(row.Input)", new: "stored, err := c.With(c.Input())",
		caught: guard + "TestLookupGetsTheStoredInputAndNotTheNewCalls",
	},
	{
		name: "guard: the next attempt gets what the first has changed", breaks: "A handler that edits its input refunds something else on the second try.",
		file: attempts, old: "\tif a.used {\n", new: "\tif !a.used && a.cause != nil {\n",
		caught: guard + "TestEachAttemptGetsTheStoredInputWhateverTheOneBeforeHasMadeOfIt",
	},
	{
		name: "guard: an unreadable result counts as an error", breaks: "A refund whose result is no JSON is made three times.",
		file: attempts, old: "\tcase unreadable(o.err):\n\t\treturn a.keep(Complete, o)\n", new: "",
		caught: guard + "TestAResultOverTheStoredLimitOrThatIsNoJSONIsNeverRunAgain",
	},
	{
		name: "guard: saving is tried once", breaks: "The disk was full for a second: the refund is in progress until the process ends, and in doubt then.",
		file: saving, old: "\t\ta.notSaved(o, err)\n", new: "\t\ta.notSaved(o, err)\n\t\tbreak\n",
		caught: guard + "TestAResultThatCannotBeSavedEndsTheRunAndIsKeptAndStoredLater",
	},
	{
		name: "guard: an unsaved result is forgotten", breaks: "While the disk is full nobody reads what this process knows.",
		file: saving, old: "\t\ta.held.Changed(&row)\n", new: "\t\ta.held.Changed(nil)\n",
		caught: guard + "TestAResultThatCannotBeSavedEndsTheRunAndIsKeptAndStoredLater",
	},
	{
		name: "guard: a result that cannot be saved is told to the model", breaks: "The run goes on as though the refund were on record.",
		file: saving, old: "\ta.tell(registry.Result{}, e)\n", new: "\ta.tell(a.call.Failed(a.row.Operation, e), nil)\n",
		caught: guard + "TestAResultThatCannotBeSavedEndsTheRunAndIsKeptAndStoredLater",
	},
	{
		name: "guard: Close does not wait for handlers", breaks: "A deploy ends the process between the refund and its record.",
		file: "middleware/handlers.go", old: "\t\tif n == 0 {\n", new: "\t\tif n >= 0 {\n",
		caught: guard + "TestHandlersAreWaitedForUntilTheirResultIsStored",
	},
	{
		name: "guard: a doubtful take-over is carried on twice", breaks: "After a hiccup of the store two calls of a process both settle one refund.",
		file: "middleware/handlers.go", old: "may, e.carried = !e.carried, true", new: "may, e.carried = true, true",
		more:   []edit{{"middleware/handlers.go", "if !other.doubtful {", "if !other.doubtful && other.h == nil {"}},
		caught: guard + "TestATakeOverOfTwoWhoseAnswersWereLostIsMadeOnce",
	},
}

// guardAnswers are faults in what the model reads.
var guardAnswers = []mutant{
	{
		name: "answer: an output can forge a verdict", breaks: "A page that the tool fetched tells the model that the refund was done.",
		file: answers, old: "\tif forged(content) {\n", new: "\tif forged(content) && content == \"\" {\n",
		caught: guard + "TestAnOutputCannotForgeAVerdict",
	},
	{
		name: "answer: an output can forge a verdict in other letters", breaks: "The same, for a page that writes ToolOnce.",
		file: answers, old: "if strings.EqualFold(name, \"toolonce\") {", new: "if name == \"toolonce\" {",
		caught: guard + "TestAnOutputCannotForgeAVerdict",
	},
	{
		name: "answer: a read can forge a verdict", breaks: "The same, for a tool that only reads.",
		file: "middleware/unguarded.go", old: "o.res.Content = g.present(o.res.Content)", new: "o.res.Content = g.cut(o.res.Content)",
		caught: guard + "TestAnOutputCannotForgeAVerdict",
	},
	{
		name: "answer: a repeat reads as executed", breaks: "The model reads a second success, and tells the user of two refunds.",
		file: answers, old: "if same && claimedBy(row, c) && row.HasResult {", new: "if same && row.HasResult {",
		caught: guard + "TestTheSameCallAgainGetsItsOwnOutputUnwrapped",
	},
	{
		name: "answer: results cross conversations", breaks: "A customer reads the result of another customer's call.",
		file: answers, old: "case !sharesResult(c, row):", new: "case !sharesResult(c, row) && row.Result == \"\":",
		caught: guard + "TestAcrossConversationsTheResultIsSharedOnlyIfTheToolSaysSo",
	},
	{
		name: "answer: a panic tells its value", breaks: "The model, and whoever reads its answer, sees what the tool was working on.",
		file: "middleware/unguarded.go", old: "(panic of type %T)\", e.Value)", new: "(panic: %v)\", e.Value)",
		caught: guard + "TestAPanicIsUnclearAndReleasesTheWaiters",
	},
}
