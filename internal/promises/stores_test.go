package promises_test

var stores = []group{
	{
		title: "Stores",
		how:   "`make power`, `make histories`; `ledgertest` and `journaltest` for a store of yours",
		promises: []promise{
			{
				says:  "SQLite, PostgreSQL and the store in memory keep one contract, and yours can be checked against it.",
				rests: "a suite of cases, each proven by a store that breaks it",
				shown: []string{
					"sqlitestore.TestStoreKeepsTheContractOfALedger", "pgstore.TestStoreKeepsTheContractOfALedger", "ledgertest.TestMemoryLedgerKeepsTheContract", "ledgertest.TestBrokenLedgersFailTheirCasesAndNoOthers",
					"sqlitestore.TestStoreKeepsTheContractOfAJournal", "pgstore.TestStoreKeepsTheContractOfAJournal", "journaltest.TestBrokenJournalsFailTheirCasesAndNoOthers",
					"mutants.TestNoMutantIsStale",
				},
			},
			{
				says:   "What was acknowledged survives a power cut.",
				rests:  "synchronous=FULL on every connection of SQLite, synchronous_commit on PostgreSQL",
				chosen: "SQLite has no weaker setting; on PostgreSQL it must be allowed by name, and a call may then run twice after a power cut",
				shown: []string{
					"sqlitestore.TestPowerLossLosesNothingThatWasAcknowledged", "sqlitestore.TestPowerLossIsSeenWhereCommitsAreNotSynced", "sqlitestore.TestEveryConnectionKeepsWhatItCommits",
					"sqlitestore.TestConnectionWhoseCommitsMightBeLostIsRefused", "pgstore.TestCommitsThatMayBeLostAreRefusedUnlessAllowed",
				},
			},
			{
				says:  "Every connection has the same settings, and no write is refused because another was quicker: it waits its turn, and a busy file is told after a timeout.",
				rests: "one writer, which takes the write lock when it begins",
				shown: []string{
					"sqlitestore.TestEveryConnectionKeepsWhatItCommits", "ledgertest: race/repeats are all counted", "sqlitestore.TestTwoProcessesClaimOneIdentityOnce",
					"sqlitestore.TestTenThousandCallersAtOnce", "sqlitestore.TestBusyFileIsToldAfterTheTimeout",
				},
			},
			{
				says:  "A caller who leaves makes no half write: it is whole or absent, and what his handler comes to is stored all the same. After an error nothing runs in what is left of a transaction.",
				rests: "writes have a time of their own, and a savepoint each",
				shown: []string{
					"sqlitestore.TestCancelledCallerLeavesWritesWholeOrAbsent", "sqlitestore.TestABadWriteDoesNotFailItsNeighbours", "sqlitestore.TestWritesWhoseCommonCommitFailsAreMadeOneByOne",
					"middleware.TestOutcomesAreStoredThoughTheirCallerHasGone", "ledgertest: context/a claim is whole or absent",
				},
			},
			{
				says:  "A full disk is told as that, with its first cause. No handler starts without its claim, and the store works again when there is room.",
				rests: "the claim's commit comes first",
				shown: []string{"sqlitestore.TestFullDiskIsToldWithItsFirstCauseAndTheStoreWorksAfterwards", "middleware.TestAClaimThatSeemedToFailIsFreedAndNeverRun", "middleware.TestAStoreThatFailsOnReadingRunsNothingAgain"},
			},
			{
				says:   "Without cgo the program builds, and opening the SQLite store says in a sentence what is missing.",
				rests:  "a build tag; the store adds no driver name of its own",
				chosen: "the driver cannot be exchanged for one in pure Go: without a C compiler, use PostgreSQL",
				shown:  []string{"sqlitestore.TestWithoutCgoThePackageBuildsAndOpenSaysWhatIsMissing", "sqlitestore.TestTheStoreNamesNoDriverOfItsOwn"},
			},
			{
				says:  "A file of another program, of a newer version or damaged is refused and left as it is. A network file system is refused unless you allow it.",
				rests: "what the file says of itself is read before anything is written",
				shown: []string{
					"sqlitestore.TestForeignDatabaseIsRefusedUnchanged", "sqlitestore.TestNewerSchemaIsRefusedUnchanged", "sqlitestore.TestDamagedFileIsRefusedUnchanged",
					"sqlitestore.TestNetworkFileSystemIsRefusedUnlessAllowed", "pgstore.TestSchemaOfAnotherProgramIsRefusedAndLeftAlone",
				},
			},
		},
	},
}
