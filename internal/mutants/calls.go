package main

const (
	once    = "middleware/once.go"
	meet    = "middleware/meet.go"
	approve = "middleware/approve.go"
	call    = "registry/call.go"
	hopes   = "middleware/hope.go"
	callers = "middleware/caller.go"

	guard = "./middleware "
)

// guardCalls are faults in what the guard decides before a handler starts.
var guardCalls = []mutant{
	{
		name: "guard: claimed as new before Check is asked", breaks: "Check says no, and the row it was to keep away stays.",
		file: hopes, old: "case i.HasCheck || g.Admit", new: "case g.Admit",
		caught: guard + "TestACallOfWhichMoreIsAskedThanWhetherItIsNewIsLookedForFirst/Check",
	},
	{
		name: "guard: claimed as new again and again", breaks: "Who has lost one claim never looks, and is told that the operation changes.",
		file: hopes, old: "v.hoped || ", new: "",
		caught: guard + "TestANewCallIsClaimedWithoutALookAndAfterARepeatOthersAreLookedFor",
	},
	{
		name: "guard: a claim whose answer was lost is waited for", breaks: "The answer to the claim is lost: the call waits for a handler that nobody starts.",
		file: hopes, old: " || row.Token == claim.Token", new: "",
		caught: guard + "TestAClaimThatSeemedToFailIsFreedAndNeverRun",
	},
	{
		name: "guard: who has met an operation before its claimer is forgotten", breaks: "Close does not wait for a result that is still being stored.",
		file: "middleware/handlers.go", old: "other.held = append(other.held, p)", new: "p.h.open[operation] = e",
		caught: guard + "TestAHandlerIsKnownToRunThoughItsOperationWasMetBefore",
	},
	{
		name: "guard: a caller that has left saves the result", breaks: "The user closes the browser, and the run hears of a result and goes on.",
		file: callers, old: " || a.waits.Err() != nil", new: "",
		caught: guard + "TestACallerThatHasLeftSavesNothing",
	},
	{
		name: "guard: the handler runs before the claim", breaks: "The store is down: the refund is made, and nobody remembers it.",
		file: once, old: "\trow, won, err := g.ledger.Claim(", new: "\to := protect(marked(ctx, c), g.next, c)\n\trow, won, err := g.ledger.Claim(",
		more:   []edit{{once, "\tres, err := a.startAndWait(ctx)\n", "\ta.start(func() stage { return a.returned(o) })\n\tres, err := a.wait(ctx)\n"}},
		caught: guard + "TestAClaimThatIsLostForEverIsAnErrorAndRunsNothing",
	},
	{
		name: "guard: who loses a claim runs all the same", breaks: "A call that comes a moment after another one makes the refund too.",
		file: once, old: "\tif !won {\n\t\theld.End()", new: "\tif !won && row.Token == \"\" {\n\t\theld.End()",
		caught: guard + "TestAnApprovalIsSpentOnlyIfTheClaimIsWon",
	},
	{
		name: "guard: freed by time", breaks: "A repeat of a call whose outcome is unknown runs as soon as its deadline is over.",
		file: once, old: "\tcase Running, InDoubt:\n\t\treturn g.meet(ctx, v, row, false)", new: "\tcase Running, InDoubt:\n" +
			"\t\tt := Transition{Step: NotHappened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt}\n" +
			"\t\tif _, err := g.ledger.Change(ctx, t); err == nil {\n\t\t\treturn registry.Result{}, true, nil\n\t\t}\n" +
			"\t\treturn g.meet(ctx, v, row, false)",
		caught: guard + "TestWhatMayHaveHappenedIsNotRunAgainHoweverLate/hold",
	},
	{
		name: "guard: a claim whose answer is lost stays", breaks: "After a hiccup of the store a refund that nobody runs is in progress for ever.",
		file: once, old: "\t\tg.dropClaim(context.WithoutCancel(ctx), claim, held)\n", new: "\t\theld.End()\n",
		caught: guard + "TestAClaimThatSeemedToFailIsFreedAndNeverRun",
	},
	{
		name: "guard: the same call is not found first", breaks: "After a deploy, or when its order may not be refunded any more, a resumed call is refused although it was done.",
		file: once, old: "case same && row.State != Free:", new: "case same && row.State == \"\":",
		caught: guard + "TestTheSameCallIsAnsweredThoughItNoLongerDecodesOrPasses",
	},
	{
		name: "guard: the same call by its arguments' meaning alone", breaks: "A deploy that changes a schema makes every stored call a new one.",
		file: once, old: "return a.Arguments == c.ArgumentsHash() || fp", new: "return fp",
		caught: guard + "TestTheSameCallIsAnsweredThoughItNoLongerDecodesOrPasses",
	},
	{
		name: "guard: alias by id alone", breaks: "A server that calls every call call_0 has a second refund answered with the first one's result.",
		file: once, old: "return a.Arguments == c.ArgumentsHash() || fp != \"\" && a.Fingerprint == fp", new: "return fp != \"-\" && a.CallID == c.ID",
		caught: guard + "TestAnotherCallAtAPlaceIsDecidedByItsOwnIdentity",
	},
	{
		name: "guard: another call at a journaled place runs", breaks: "A turn that another process has stored otherwise is run besides.",
		file: once, old: "case !same && c.Journaled:", new: "case !same && c.Journaled && row.Operation == \"\":",
		caught: guard + "TestAnotherCallAtATakenPlaceOfAJournaledRunIsAConflictAndChangesNothing",
	},
	{
		name: "guard: fingerprint not compared", breaks: "The model asks for 125 after 100, and reads that it was done.",
		file: meet, old: "if m.row.Fingerprint != m.fingerprint {", new: "if m.row.Fingerprint != m.fingerprint && m.row.Operation == \"\" {",
		caught: guard + "TestFourCasesOfABusinessKey",
	},
	{
		name: "guard: a waiter compares the fingerprint once", breaks: "Who waits for a refund of 100 that fails reads as its result the 125 that came next.",
		file: meet, old: "\tfor {\n\t\tif m.row.State == Free {", new: "\tmet := m.row.Token\n\tfor {\n\t\tif m.row.State == Free {",
		more:   []edit{{meet, "if m.row.Fingerprint != m.fingerprint {", "if m.row.Fingerprint != m.fingerprint && m.row.Token == met {"}},
		caught: guard + "TestAWaiterThatWakesOnOtherArgumentsIsToldConflict",
	},
	{
		name: "guard: a waiter waits for the identity", breaks: "A booking that was cancelled while somebody waited for it is waited for again, or made again.",
		file: meet, old: "Query{Operation: m.row.Operation, Run: m.Run.ID}", new: "Query{Identity: m.row.Identity, Run: m.Run.ID}",
		caught: guard + "TestAWaiterIsToldOfTheOperationItMetAndNotOfTheNext",
	},
	{
		name: "guard: Check is asked of the first call alone", breaks: "Who may not see an order reads the result of its refund by asking for it again.",
		file: once, old: "if err := g.check(ctx, c); err != nil {", new: "if err := g.check(ctx, c); err != nil && row.Operation == \"\" {",
		caught: guard + "TestCheckIsAskedOnEveryCallRepeatsTooAndLeavesNoRow",
	},
	{
		name: "guard: Admit is not asked", breaks: "Limits and approvals of the program are passed over.",
		file: once, old: "if g.Admit != nil && !v.admitted && !c.OnlyAsk {", new: "if g.Admit != nil && v.admitted && !c.OnlyAsk {",
		caught: guard + "TestAdmitIsAskedAfterTheLedgerAndBeforeTheClaim",
	},
	{
		name: "guard: approval asked before the row is looked at", breaks: "What is done waits for an approval, or is refused for the want of one.",
		file: once, old: "\tswitch row.State {\n\tcase Running, InDoubt:\n", new: "\tif res, err := g.approve(ctx, c, &Claim{Identity: identity}, row.Generation); err != nil || res != nil {\n\t\treturn deref(res), false, err\n\t}\n" +
			"\tswitch row.State {\n\tcase Running, InDoubt:\n",
		caught: guard + "TestWhatIsDoneIsNeverAskedAbout",
	},
	{
		name: "guard: an approval is not handed to the claim", breaks: "One approval serves any number of payments.",
		file: approve, old: "claim.Approval = a.ID", new: "_ = a.ID",
		caught: guard + "TestACallThatNeedsAnApprovalWaitsWithoutARowAndRunsOnceApproved/pay",
	},
	{
		name: "guard: a denial ends with the tool's wish", breaks: "What a person has denied runs when the tool asks for no approval any more.",
		file: approve, old: "expires = -1\n", new: "return nil, nil\n",
		caught: guard + "TestADenialStandsWhenTheToolAsksForNoApprovalAnyMore",
	},
	{
		name: "guard: a repeat on purpose needs no approval", breaks: "A model that was talked into it pays twice, and nobody is asked.",
		file: approve, old: "asks, expires := c.Info().Repeat == registry.RepeatApproved, approvalTime", new: "asks, expires := false, approvalTime",
		caught: guard + "TestARepeatNeedsAnApprovalUnlessItIsFree",
	},
	{
		name: "guard: repeat_of of another tool", breaks: "A mail's id lets the model pay a second time.",
		file: approve, old: "case !ok || row.Tool != c.Tool ||", new: "case !ok ||",
		caught: guard + "TestARepeatIsRefusedUnlessAllItsConditionsHold/another tool",
	},
	{
		name: "guard: repeat_of with other arguments", breaks: "As a repeat of a small payment a large one is made.",
		file: approve, old: "|| row.Fingerprint != fingerprint ||", new: "|| row.Fingerprint == \"\" && fingerprint == \"\" ||",
		caught: guard + "TestARepeatIsRefusedUnlessAllItsConditionsHold/other arguments",
	},
	{
		name: "guard: repeat_of from another conversation", breaks: "An id that leaked from another chat lets the model do it again here.",
		file: approve, old: "first.Scope() != c.Run.Scope()", new: "first.Scope() == \"\"",
		caught: guard + "TestARepeatIsRefusedUnlessAllItsConditionsHold/another conversation",
	},
	{
		name: "guard: repeat_of without a newer message", breaks: "The model pays twice for one message of the user.",
		file: approve, old: "case !row.DoneAt.Before(c.Asked):", new: "case row.DoneAt.IsZero():",
		caught: guard + "TestARepeatIsRefusedUnlessAllItsConditionsHold/no newer user message",
	},
	{
		name: "guard: a repeat on purpose is made twice", breaks: "Two calls that repeat one payment are two payments.",
		file: approve, old: "return repeatIdentity(base, row.Operation), no, nil", new: "return repeatIdentity(base, row.Operation+aliasOf(c).Run), no, nil",
		caught: guard + "TestOfManyRepeatsAtOnceOneIsMade",
	},
	{
		name: "guard: repeats have no budget", breaks: "A model that repeats itself does so until the money for tokens is gone.",
		file: meet, old: "v.repeats <= g.Repeats {", new: "v.repeats >= 0 {",
		caught: guard + "TestTheFourthRepeatIsAnsweredAndEndsTheRun",
	},
	{
		name: "guard: doing and undoing has no budget", breaks: "A model books and cancels in a circle.",
		file: once, old: "if claim.Repeat && g.Repeats >= 0 &&", new: "if claim.Repeat && g.Repeats < 0 &&",
		caught: guard + "TestDoingAndUndoingInACircleEndsTheRun",
	},
	{
		name: "guard: an undo is identified without what it undoes", breaks: "Book, cancel, book, cancel: the second cancel is answered with the first, and the booking stays.",
		file: once, old: "return undoIdentity(base, target.Operation), target, nil", new: "return base, target, nil",
		caught: guard + "TestBookCancelBookCancelAreFourOperations",
	},
	{
		name: "guard: a cancel that is called again finds the booking before", breaks: "A cancel that the model repeats takes back a second booking, which nobody wanted to lose.",
		file: once, old: "if ok && last.State != Released && last.Undoes", new: "if ok && last.State == \"\" && last.Undoes",
		caught: guard + "TestACancelCalledTwiceTakesBackOneOfTwo",
	},
	{
		name: "guard: a call without a run is taken", breaks: "The refunds of two customers whose program sets no run are one.",
		file: once, old: "c.Refusal() == nil && c.Run.ID == \"\":", new: "c.Refusal() == nil && c.Run.ID == \"-\":",
		caught: guard + "TestACallWithoutARunIsAnErrorAndNotTheSameCallAsAnother",
	},
	{
		name: "identity with the call_id in it", breaks: "The model asks again under a new id, and the refund is made again.",
		file: call, old: "[]byte(c.Run.Scope()), []byte(c.Tool),", new: "[]byte(c.Run.Scope()), []byte(c.ID), []byte(c.Tool),",
		caught: guard + "TestARepeatUnderANewIDIsAnsweredWithTheFirstResultAndItsTime",
	},
	{
		name: "identity of a business key with the run in it", breaks: "Two runs refund one order.",
		file: call, old: "codec.Hash([]byte(\"key\"), []byte(c.Tool),", new: "codec.Hash([]byte(\"key\"), []byte(c.Run.ID), []byte(c.Tool),",
		caught: guard + "TestAcrossConversationsTheResultIsSharedOnlyIfTheToolSaysSo",
	},
	{
		name: "identity without the conversation", breaks: "The user asks in the next message whether it was done, and it is done again.",
		file: call, old: "if r.Conversation != \"\" {", new: "if r.ID == \"\" {",
		caught: guard + "TestScopeIsTheConversationWhereThereIsOneAndTheRunWhereNot",
	},
	{
		name: "identity without the tool", breaks: "A refund is taken for the cancel that has the same arguments.",
		file: call, old: "[]byte(c.Run.Scope()), []byte(c.Tool),", new: "[]byte(c.Run.Scope()),",
		caught: guard + "TestTheSameArgumentsOfAnotherToolAreAnotherOperation",
	},
	{
		name: "identity by call without the position", breaks: "Of two notes in one turn the second is answered with the first.",
		file: call, old: "[]byte(strconv.Itoa(c.Turn)), []byte(strconv.Itoa(c.Position)),", new: "[]byte(strconv.Itoa(c.Turn)),",
		caught: guard + "TestByCallEachPlaceIsMeant",
	},
}
