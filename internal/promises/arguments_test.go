package promises_test

var arguments = []group{
	{
		title: "Arguments",
		how:   "`make fuzz`",
		promises: []promise{
			{
				says:   "Arguments that your handler cannot tell apart are one operation: key order, blanks, escapes; 100, 100.0 and 1e2 in a whole number. Whole numbers reach it exactly: 2^53 and 2^53+1 are two.",
				rests:  "decoding into your Go type, then RFC 8785 and SHA-256, pinned by a golden file",
				chosen: "\"100\" in quotes and 10.5 are refused where a whole number is wanted",
				shown: []string{
					"codec.TestKeyOrderBlanksAndEscapesAreOneHash", "codec.TestIntegersAreExactInAnyNotation", "codec.TestRawNumbersKeepIntegersExact",
					"agent.TestNumbersThatDifferBeyondAFloatAreTwoCalls", "codec.TestHashesAreThoseOfTheGoldenFile",
					"codec.FuzzCanonical", "codec.TestStoredFormDecodesToTheSameValueAndForm",
				},
			},
			{
				says:  "null and absent are one in an optional field. Where a tool requires nothing, no text, null and `{}` are one; elsewhere they are refused. An object inside a JSON string is that object.",
				rests: "the same decoding; on the wire there is always an object",
				shown: []string{
					"codec.TestNullAndAbsentAreEqualInOptionalFieldsOnly", "codec.TestEmptyArgumentsAreAnEmptyObjectWhereNothingIsRequired",
					"codec.TestOneLayerOfDoubleEncodingIsTakenOff", "codec.TestFalsyValuesArePresent", "agent.TestInvalidArgumentsReachTheHandlerAndNeverTheWire",
				},
			},
			{
				says:  "Broken JSON, two objects glued together, text behind the object, NaN, and a name that is there twice or in other capitals are refused before anything is compared, approved or run.",
				rests: "the whole text must be one object with the names of the schema; a refusal leaves no row",
				shown: []string{
					"codec.TestBrokenJSONIsRefused", "codec.TestDuplicateAndCaseVariantNamesAreRefused", "middleware.TestBadCallsAreRefusedWithPathAndRuleAndLeaveNoRow",
					"middleware.TestWhatIsRefusedIsNotAskedAbout", "agent.TestArgumentsThatAreNoObjectAreAnsweredAndBlockNoLaterTurn", "codec.FuzzDecode",
				},
			},
			{
				says:   "An answer that was cut off or filtered runs none of its writes, even where the arguments look whole; arguments cut off under any other mark are refused.",
				rests:  "the finish reason, and the strict decoding",
				chosen: "such an answer is an error for your program and is not stored; the model is asked again, and there is no way to opt in",
				shown: []string{
					"agent.TestNothingRunsOfAnAnswerThatIsCutOffOrFiltered", "agent.TestArgumentsCutOffUnderAnyFinishReasonAreRefused",
					"agent.TestNothingRunsOfAResponseThatIsNotCompleted", "agent.TestTheEndOfAnAnswerDecidesWhetherItsCallsRun", "agent.TestACallThatTheModelDidNotFinishIsNotRun",
				},
			},
			{
				says:  "Arguments, results and keys of users are in no error text and no log.",
				rests: "errors name places and rules, never values",
				shown: []string{
					"agent.TestAnErrorQuotesNothingThatTheModelHasSaid", "codec.TestErrorsNamePlacesAndNeverValues", "agent.TestErrorsSayWhatTheAPISaysAndNothingOfTheRun", "sqlitestore.TestErrorsDoNotTellArgumentsOrResults",
					"middleware.TestLogTellsTheVerdictAndNoDataOfUsers",
				},
			},
		},
	},
	{
		title: "Schemas from Go structs",
		promises: []promise{
			{
				says:  "A struct makes a schema that strict mode takes: an object at the root, everything required and closed, optional fields nullable. One that contains itself does too, and never ends the program.",
				rests: "a schema made and checked when the tool is added; definitions by reference",
				shown: []string{
					"codec.TestEveryStrictSchemaObeysStrictMode", "codec.TestSchemasOnTheWire/root is inline, constraints that strict mode refuses are told in words",
					"codec.TestSchemasOnTheWire/optional is nullable and required, in the order of the struct",
					"codec.TestSchemasOnTheWire/a recursive root keeps its definition", "agent.TestToolsAreAcceptedByBothAPIs",
				},
			},
			{
				says:  "What strict mode cannot express, maps above all, is a mistake at start that names the field and the mend, unless you choose `Loose`.",
				rests: "the same check",
				shown: []string{"codec.TestMistakesNameTheFieldAndTheMend", "codec.TestLooseTakesWhatStrictCannotExpress", "registry.TestWiringMistakesAreFoundBeforeTheFirstCallAndSayTheMend"},
			},
			{
				says:  "Keywords that strict mode does not take are told to the model in words, and every rule, formats and bounds too, is checked here as well.",
				rests: "strict mode is never the only guard",
				shown: []string{"codec.TestSchemaRulesAreToldByTheirKeyword", "codec.TestWhatStrictModeRefusesIsToldInTheDescription", "agent.TestAFineTunedModelIsToldInWordsWhatItsSchemaMustNotSay", "codec.TestRawSchemaIsChecked", "transcript.TestStrictSchemasOutsideTheSubsetAreRefused"},
			},
		},
	},
}
