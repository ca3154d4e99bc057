package promises_test

var effects = []group{
	{
		title: "One effect for one operation",
		how:   "`make histories`, `make mutants`, `make field`",
		promises: []promise{
			{
				says:  "Calls that mean one operation run its handler once, however many processes make them at the same moment. The others wait for its result.",
				rests: "UNIQUE (namespace, identity), written and committed before the handler starts",
				shown: []string{
					"sqlitestore.TestTwoProcessesThatCallAtOnceRunOneHandlerAndReadOneResult", "middleware.TestFiftyCallsAtOnceRunOnce",
					"middleware.TestAFreedOperationIsClaimedByOneOfItsWaiters", "sqlitestore.TestFiftyCallersClaimOneIdentityOnce",
					"pgstore.TestAThousandCallersClaimOneIdentityOnce", "sqlitestore.TestHistoriesOfAStoreHaveAnOrder",
					"pgstore.TestHistoriesOfAStoreHaveAnOrder", "ledgertest: race/of 50 claimers of one identity one wins",
				},
			},
			{
				says:  "A model that asks again, in one turn or a later one and under whatever id, reads `already_done` with the first result, its time and a count. Your program sees it in the events and in the report.",
				rests: "an identity made of the tool and its arguments, never of the call's id",
				shown: []string{
					"agent.TestAskedAgainUnderANewIDTheEffectHappensOnce", "agent.TestIdenticalCallsUnderDifferentIDsRunOnceAndAreAllAnswered",
					"middleware.TestARepeatUnderANewIDIsAnsweredWithTheFirstResultAndItsTime", "middleware.TestIdenticalCallsOfOneTurnRunOnceAndEachIsAnswered",
					"agent.TestARunAnswersItsCallsAndEnds", "agent.ExampleLoop_StreamChat", "middleware.TestLogTellsTheVerdictAndNoDataOfUsers",
				},
			},
			{
				says:  "Calls that mean different things all run, and look-ups and polls every time. An id that comes back on another call stops nothing.",
				rests: "the same identity; an id counts inside its turn alone; nothing is stored of a `Read`",
				shown: []string{
					"agent.TestCallsOfOneToolWithOtherArgumentsAllRun", "middleware.TestTwoCallsOfOneToolWithOtherArgumentsBothRun",
					"middleware.TestACallIDAloneIsNoKey", "agent.TestAnIDThatComesBackInALaterTurnIsMendedOnTheWireAlone",
					"agent.TestOneIDOnTwoCallsOfATurnIsTwoCalls", "middleware.TestReadsAreNeverStoppedAndLeaveNoRow", "toolonce-gateway.TestReadsPassThroughEveryTime",
				},
			},
			{
				says:   "With a business key, another amount is a `conflict` that names the field and not its value. What you leave out, words or a client's clock, makes no second operation.",
				rests:  "`once:\"key\"` makes the identity, the other fields a fingerprint, without those that are `once:\"-\"`",
				chosen: "without a key, a call in other words is another operation and runs",
				shown: []string{
					"middleware.TestFourCasesOfABusinessKey", "middleware.TestWordsThatDifferDoNotMakeAnotherOperationWithAKeyAndDoWithout",
					"middleware.TestOtherArgumentsThanThoseOfWhatIsUnsettledAreAConflictAndChangeNothing", "codec.TestKeyIsMadeOfTheTaggedFieldsAlone",
					"middleware.TestAFieldThatIsLeftOutMakesNoOtherOperationOfATry", "codec.TestIgnoredFieldsAreNoPartOfTheHashAtAnyDepth",
					"ledgertest: claim/another fingerprint of one identity is not won and sees the first",
				},
			},
			{
				says:  "A model that keeps repeating what is done is stopped. Every call is answered, and the API accepts the history.",
				rests: "a budget of repeats for each operation and run",
				shown: []string{"agent.TestARepeatBudgetEndsTheRunWithEveryCallAnswered", "middleware.TestTheFourthRepeatIsAnsweredAndEndsTheRun", "middleware.TestDoingAndUndoingInACircleEndsTheRun", "agent.TestARunThatRepeatsItselfEndsWithAHistoryThatIsAccepted"},
			},
			{
				says:  "What was cancelled can be booked anew, once. Where the user asks for it again, a tool that allows it does it once more.",
				rests: "the undo that is done releases what it undoes in one transaction; `repeat_of` is part of the identity",
				shown: []string{
					"middleware.TestBookCancelBookCancelAreFourOperations", "agent.TestKilledBetweenItsWritesAnUndoIsMadeOnceAndMakesRoomForTheNext",
					"sqlitestore.TestAnUndoIsNotDoneUnlessWhatItUndoesIsReleased", "middleware.TestAnOperationIsRepeatedOnce",
					"agent.TestKilledBetweenAWantedRepeatIsMadeOnceInEveryForm", "ledgertest: race/of two undos at once one wins",
				},
			},
			{
				says:  "A call that needs a person does not run before one has approved it. An approval serves that very call, once.",
				rests: "the approval is spent in the claim's transaction",
				shown: []string{
					"middleware.TestACallThatNeedsAnApprovalWaitsWithoutARowAndRunsOnceApproved", "middleware.TestAnApprovalServesTheVeryCallAlone",
					"agent.TestWhatAPersonHasDecidedCountsInAnotherProcess", "middleware.TestADenialStandsForEqualCallsOfItsRunAlone",
					"ledgertest: approval/serves one claim", "ledgertest: decide/of 50 at once one answers",
				},
			},
			{
				says:  "No tenant meets the operations of another.",
				rests: "the namespace in every key and in every query",
				shown: []string{
					"ledgertest: namespaces/find does not cross", "ledgertest: namespaces/change does not cross", "ledgertest: namespaces/claim does not cross by what it has seen", "middleware.TestNamespacesDoNotMeet",
					"ledgertest: namespaces/one identity in two namespaces is two operations", "journaltest: namespaces/runs of one are unknown in another",
				},
			},
			{
				says:  "An MCP server behind the gateway, or its tools in your loop, are guarded in the same way.",
				rests: "the same guard in front of them",
				shown: []string{"toolonce-gateway.TestTwoEqualCallsPayOnce", "toolonce-gateway.TestKilledGatewayLeavesInDoubtAndResolveSettles", "toolonce-gateway.TestKilledServerLeavesInDoubtAndResolveSettles", "mcp.TestImportedWriteHappensOnce", "mcp.TestExportedWriteHappensOncePerRun"},
			},
		},
	},
}
