package promises_test

var outages = []group{
	{
		title: "Crashes, timeouts, failed requests",
		how:   "`make crash`, `make mutants`",
		promises: []promise{
			{
				says:  "A run that is started again goes on behind the last stored answer. What has run is not run again, and an answer that is stored is not asked for again.",
				rests: "an answer of the model is stored before its first handler, each result as soon as it is there",
				shown: []string{
					"agent.TestKilledAtEachPointTheRunGoesOnWithNothingTwice", "crash.TestKilledAnywhereTheOutcomeIsExact",
					"agent.TestKilledInTheThirdCallOfATurnTheFirstTwoKeepTheirResults", "agent.TestAFailedRequestIsAskedAgainWithoutTheTurnBefore",
					"agent.TestAFinishedRunIsAnsweredWithoutARequest", "agent.TestKilledWhileStreamedTheRunGoesOnUnstreamedAndTheOtherWayRound",
					"sqlitestore.TestKilledBetweenTurnsTheRunGoesOnWithAllThatWasStored", "agent.TestADeployThatChangesASchemaRunsNoStoredCallAgain",
				},
			},
			{
				says:  "Two processes never go on with one run: the second is told so before any request, and may take over when the first is gone.",
				rests: "the run's token; each turn is unique in its run",
				shown: []string{
					"agent.TestKilledOnlyAfterASecondProcessWasRefused", "agent.TestARunThatIsGoingOnIsTaken",
					"agent.TestASlowProcessThatWasTakenForDeadStoresAndRunsNothingMore", "journaltest: take/not while the owner lives",
					"journaltest: race/of 50 who begin a run whose owner is gone one takes it",
				},
			},
			{
				says:   "A process that dies with a call begun leaves it in doubt, and not refused for ever: a `Lookup`, a second try with the same key, or a person settles it.",
				rests:  "the alias row of the call, and what the tool declares",
				chosen: "a claim whose handler had not started looks like any other: nobody can know",
				shown: []string{
					"middleware.TestKilledAfterTheEffectRefundsOnce", "sqlitestore.TestKilledAtEachPointTheOutcomeIsExact",
					"toolonce.TestWhatIsInDoubtIsFoundAndSettled", "middleware.TestRecoverSettlesTheOrphansOfANamespaceAndNothingElse",
					"middleware.TestKilledWhileALookupIsAskedTheNextProcessAsksIt", "refund-bot.TestSettledByAPersonTheSameRunGoesOn",
				},
			},
			{
				says:  "An effect in the store's own database happens exactly once: it is committed with its result, or nothing of it stays.",
				rests: "`Local: true`: the handler runs in the transaction that makes its row done",
				shown: []string{
					"sqlitestore.TestWhatALocalToolChangesStaysWithItsResult", "pgstore.TestWhatALocalToolChangesStaysWithItsResult", "sqlitestore.TestOfALocalToolThatFailsNothingStays", "sqlitestore.TestOfALocalToolWhoseCommitFailsNothingStays",
					"sqlitestore.TestOfALocalToolThatIsKeptFromRunningNothingStays", "sqlitestore.TestALocalToolThatEndsItsTransactionIsInDoubt", "sqlitestore.TestKilledAtEachPointTheOutcomeIsExact",
				},
			},
			{
				says:  "A timeout, a panic or any error that proves nothing is `outcome_unknown`: the model is told not to retry, and nothing runs it again by itself. The process lives, and who waits is answered.",
				rests: "only `registry.NoEffect` is proof that nothing happened",
				shown: []string{
					"middleware.TestAnUnclearErrorOfAToolIsHeldForAPerson", "middleware.TestAPanicIsUnclearAndReleasesTheWaiters",
					"agent.TestAPanicOfAToolIsAnOutcomeThatIsNotKnown", "agent.TestAPanicOfAReadBesideOthersIsAnsweredAndTheyAreToo",
					"middleware.TestAToolThatEndsItsGoroutineIsUnclearAtOnce", "registry.TestOnlyProofFreesAndOfJoinedErrorsEach",
				},
			},
			{
				says:   "Proof that nothing happened frees the operation, and the next try has a fresh key. Proof of a later attempt says nothing of the first. What is stored is told with its date, as a repeat.",
				rests:  "`registry.NoEffect`; the generation of the key; the envelope `already_done`",
				chosen: "a refusal that must be final is returned as a value; to clear one operation on purpose, resolve it as not happened, undo it, or repeat it",
				shown: []string{
					"middleware.TestNoEffectFreesAndTheNextTryHasANewKey", "middleware.TestNoEffectOfALaterAttemptSpeaksForItselfOnly",
					"middleware.TestACallerThatLeavesBetweenTheClaimAndTheHandlerGivesTheClaimBack", "middleware.TestNoEffectAfterAnUnclearClaimKeepsTheKey",
					"middleware.TestARefusalThatIsAValueIsTheResultOfAllRepeats", "middleware.TestDidNotHappenKeepsTheKeyUnlessANewOneIsAskedFor",
					"ledgertest: give back/frees the row and changes nothing else",
				},
			},
			{
				says:  "Your provider sees one idempotency key on every attempt, and a request is not sent a second time by the HTTP client, nor after its time.",
				rests: "a key made of namespace, identity and generation, stored with the claim",
				shown: []string{
					"middleware.TestRerunUsesTheSameKeyThreeTimesAndThenHolds", "registry.TestKeysAreTheSameOnEveryAttemptAndDifferByPart",
					"registry.TestTheHTTPClientDoesNotSendAStampedRequestAgainByItself", "registry.TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow",
					"registry.TestUnsafeRequestsOfAGuardedCallCarryAKeyOfTheirOwn", "middleware.TestOutsideTheKeyWindowNothingIsRunAgain",
				},
			},
			{
				says:  "Attempts never overlap. A repeat waits for the one that runs or is told `in_progress`, and a result that comes after the timeout is kept and serves later repeats.",
				rests: "the claim's token and attempt; a result is taken from any attempt of it",
				shown: []string{
					"middleware.TestAtTheTimeoutTheWaitEndsAndTheLateResultIsStored", "middleware.TestARepeatWhileTheFirstRunsWaitsForItOrIsToldSo",
					"middleware.TestALateResultOfASlowProcessSettlesWhatIsInDoubt", "middleware.TestTheFirstResultStandsAndTheOwnersCallerReadsIt",
					"sqlitestore.TestAProcessThatArrivesWhileAnothersHandlerRunsWaitsAndReadsItsResult",
					"ledgertest: complete/a late result is taken from in doubt, and ends settling",
				},
			},
			{
				says:  "A result that cannot be stored is an error for your program, and never a failure for the model. While the process lives it knows the result and goes on saving. When it has died, the outcome is unknown.",
				rests: "the row stays as it is until a result is stored",
				shown: []string{
					"agent.TestAResultThatCannotBeSavedEndsTheRunAndIsNeverAToolError", "middleware.TestAResultThatWasNeverSavedIsUnknownOnceItsProcessHasDied",
					"middleware.TestAResultThatCannotBeSavedEndsTheRunAndIsKeptAndStoredLater", "middleware.TestACommitThatSeemedToFailIsNotTakenForALateResult",
					"middleware.TestWhateverFailsItHappensAtMostOnceAndNothingStaysStuck",
				},
			},
			{
				says:   "Time alone never makes an operation free for a second run, however slow its owner is.",
				rests:  "a flock of the owner on SQLite; on PostgreSQL the deadlines of the attempts",
				chosen: "there is no lease that runs out",
				shown: []string{
					"middleware.TestWhatMayHaveHappenedIsNotRunAgainHoweverLate", "sqlitestore.TestKilledOwnerIsGoneForOthersAndNotBefore",
					"sqlitestore.TestMissingLockFileSaysNothing", "sqlitestore.TestOwnerLivesUntilItsLastHandlerHasReturned",
					"ledgertest: claim/a running row whose deadline is over is not won", "ledgertest: owner/is gone once killed, and not before",
				},
			},
			{
				says:  "\"It did not happen\", from your provider or a person, counts only when no earlier request can land any more.",
				rests: "the stored deadlines of all attempts",
				shown: []string{
					"middleware.TestDidNotHappenIsRefusedWhileARequestMayLandAndALateResultIsShown", "middleware.TestLookupSaysAbsentOnlyAfterTheDeadlineAndThenItRunsWithTheSameKey",
					"toolonce.TestDidNotHappenIsRefusedBeforeTheDeadlinesAndSaysUntilWhen", "ledgertest: not happened/is too early before the deadlines of all attempts are over",
				},
			},
			{
				says:  "The SDK's own repeats of a request are one turn, and all waiting ends with your context or the run's time.",
				rests: "a turn is recorded from the answer that arrived",
				shown: []string{"agent.TestRetriesOfTheSDKAreOneTurn", "agent.TestTheTimeOfAnAttemptEndsARequest", "agent.TestTheSDKsRetriesGoOnAroundARefusal"},
			},
		},
	},
}
