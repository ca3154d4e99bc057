package promises_test

var wires = []group{
	{
		title: "Call ids and histories",
		how:   "`make fuzz`",
		promises: []promise{
			{
				says:  "An id that is missing, comes back in a later turn or is too long is another one on the wire, one to one: the same in the call, in its output and after a crash.",
				rests: "ids of at most 40 characters, made of the call's place; what came stays in the store",
				shown: []string{
					"agent.TestIDsOfAServerAreMendedOnTheWireAndStayAcrossAttempts", "agent.TestEmptyIDsGetIDsOfOursThatAreTheSameEachTime", "agent.TestCallsWithoutIDsGetOnesThatStayTheSame",
					"agent.TestAnIDThatComesBackIsAnotherOneOnTheWire", "agent.TestLongIDsAreShortenedOneToOne", "agent.TestLongIDsAreMappedOneToOne",
					"agent.TestStreamsOfOddServersAreRead", "middleware.TestACallIDIsKeptUpTo256BytesAndBeyondThatAsItsHash",
				},
			},
			{
				says:  "On the Responses API calls are known by their call_id. One that is announced under one item id and completed under another is one call, and an item id that is none is left out.",
				rests: "pairing by call_id alone",
				shown: []string{
					"agent.TestACallThatIsConfirmedUnderAnotherItemIDIsOneCall", "agent.TestAnAnnouncedCallIsTheCallThatConfirmsIt", "agent.TestAnItemIDThatIsNoneOfACallsItemIsLeftOut",
					"agent.TestWhatTheResponsesAPIRefusesIsMendedOnTheWireAlone", "agent.TestTheLoopProvokesNoRefusalWhereANaiveOneWould",
				},
			},
			{
				says:  "Every call is answered once, behind its call and in call order, whichever is ready first.",
				rests: "outputs are put together by position",
				shown: []string{
					"agent.TestOutputsStandInCallOrderWhicheverIsReadyFirst", "agent.TestEveryCallIsAnsweredInCallOrder", "agent.TestOutputsGoBehindTheirCallsInCallOrder",
					"agent.TestReadsRunTogetherAtMostEightAndAWriteAlone", "agent.FuzzAnswersPair",
				},
			},
			{
				says:  "After a cancel the conversation goes on: the calls of the turn stand there as unknown or not executed, and the same run may go on with them.",
				rests: "a turn is closed before the next user message",
				shown: []string{
					"agent.TestACancelledTurnIsClosedForAnotherRun", "agent.TestACancelledTurnIsGoneOnWithByTheSameRun", "agent.TestCancelledBetweenCallsTheRestIsAnsweredAsNotExecuted",
					"agent.TestCancelledInACallTheConversationGoesOn", "middleware.TestCancelEndsTheCallersWaitAndNotTheHandler",
				},
			},
			{
				says:  "A history that you have cut is mended before it is sent: outputs without a call are left out, a hole is filled from the store or told as unknown, and nothing runs to fill it. Arguments that are no object block no later request.",
				rests: "`CheckChat`, `CheckResponse`, and the loop before each request",
				shown: []string{
					"agent.TestAHoleInTheCallersHistoryIsFilledFromTheLedger", "agent.TestOutputsWhoseCallsWereCutOffAreLeftOut", "agent.TestAHoleInATurnIsClosedInCallOrder",
					"agent.TestTheLoopProvokesNoRefusalWhereANaiveOneWould", "agent.FuzzMendedHistoriesPass",
					"agent.TestArgumentsThatAreNoObjectAreAnsweredAndBlockNoLaterTurn", "agent.TestArgumentsThatAreNoObjectDoNotBlockTheConversation",
				},
			},
		},
	},
	{
		title: "Streams and the end of an answer",
		how:   "`make fuzz`",
		promises: []promise{
			{
				says:  "Odd indexes, -1, holes, none at all or one for all, lead to no panic, no call without a name and no two calls glued into one.",
				rests: "pieces are joined by id, index and name; what cannot be told apart is an error",
				shown: []string{
					"agent.TestPiecesOfCallsAreJoinedToTheRightCalls/index -1", "agent.TestPiecesOfCallsAreJoinedToTheRightCalls/index 1 first",
					"agent.TestPiecesOfCallsAreJoinedToTheRightCalls/holes", "agent.TestPiecesOfCallsAreJoinedToTheRightCalls/no call at all",
					"agent.TestPiecesOfCallsAreJoinedToTheRightCalls/every call at index 0 under its own id", "agent.TestPiecesOfCallsAreJoinedToTheRightCalls/no index, whole calls in one chunk",
					"agent.TestABadStreamHasNoAnswer", "agent.TestStreamsOfOddServersAreRead", "agent.FuzzChatStream", "agent.FuzzResponseStream",
				},
			},
			{
				says:   "A stream that ends without its end mark, or is cancelled, runs nothing and stores nothing. A cancel is the context's error. The next attempt asks again.",
				rests:  "finish_reason or response.completed",
				chosen: "that goes for servers that never send the mark as well; there is no way to opt in, ask them without a stream",
				shown: []string{
					"agent.TestAStreamOfATurnCutAnywhereRunsNothingAndIsAskedForAgain", "agent.TestAStreamCutAnywhereHasNoAnswer", "agent.TestAResponseStreamCutAnywhereHasNoAnswer",
					"agent.TestGarbageInAStreamRunsNothing", "agent.TestAWholeAnswerNeedsNoFinishReason",
					"agent.TestACancelInMidStreamIsTheContextsError", "agent.TestACancelledStreamIsNoEnd",
				},
			},
			{
				says:  "Calls run although the finish reason is \"stop\", and without calls the loop ends although it is \"tool_calls\".",
				rests: "the calls decide, not the reason",
				shown: []string{
					"agent.TestTheEndOfAnAnswerDecidesWhetherItsCallsRun", "agent.TestCallsRunUnderAnyFinishReasonOfAWholeAnswer",
					"agent.TestAnAnswerWithoutCallsEndsTheLoop", "agent.TestAStreamMayEndWithoutCallsOrWithCallsUnderStop",
				},
			},
		},
	},
	{
		title: "parallel_tool_calls",
		promises: []promise{
			{
				says:  "The field is left out where models or servers refuse it, and where a request has no tools. A refusal is met once, by code or by its text, and remembered for that deployment.",
				rests: "a dated table, and what the server says; your own rules come first",
				shown: []string{
					"agent.TestTheFieldIsAbsentWhereItIsRefused", "agent.TestARefusedFieldIsLeftOutOnceMoreAndFromThenOn", "agent.TestServersSayInManyWordsThatTheyRefuseTheField",
					"agent.TestTheCallersRulesComeBeforeTheTable", "agent.TestARefusalHoldsForItsHostDeploymentAndModel", "transcript.TestAzureRefusesWithTheMessageAlone",
				},
			},
			{
				says:   "Models that are known to repeat calls, or to lose strict mode for several, are forced to one call; false really stands in the request, on every retry.",
				rests:  "the same table, applied to the bytes of the request",
				chosen: "a fine-tuned model is forced where its tools are strict",
				shown:  []string{"agent.TestAForcedFalseStandsOnTheWireOnEveryRetry", "agent.TestTheParallelTableDecidesByModel", "agent.TestTheParallelTableDecidesByRequest", "agent.TestAnAliasIsDecidedByTheModelThatAnsweredItToo"},
			},
			{
				says:  "A server that ignores the field changes nothing: writes run one after the other in call order, and every id is answered.",
				rests: "the order is kept here",
				shown: []string{"agent.TestCallsOfAServerThatIgnoresSerialRunInCallOrder", "agent.TestCallsKeepTheirOrderWhereTheFieldIsIgnoredOrRefused", "agent.TestParallelToolCallsIsDecidedForEachRequestOfALoop"},
			},
		},
	},
}
