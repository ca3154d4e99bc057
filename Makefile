# Everything a developer runs. The gate, .ci/run, calls the same targets.
GOLANGCI_LINT_VERSION = v2.15.0
LINT = bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
# mcp is a module of its own, so that nobody else gets what it depends on.
each = set -e; for m in . mcp; do (cd $$m; $(1)); done

.PHONY: help test race lint fmt field crash fuzz histories mutants power bench demo guarantees

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

test: ## run the tests
	@$(call each,go test ./...)

race: export GORACE = atexit_sleep_ms=0
race: ## run the tests with the race detector
	@$(call each,go test -race ./...)

lint: $(LINT) ## run the linters, go vet among them
	@$(call each,$(CURDIR)/$(LINT) run --config $(CURDIR)/.golangci.yml ./...; go mod tidy -diff)

$(LINT):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv bin/golangci-lint $@

fmt: ## format the code
	gofmt -w .

field: export TOOLONCE_FIELD_DATA := $(abspath $(or $(TOOLONCE_FIELD_DATA),../shared))
field: ## check the verdicts on saved transcripts, in TOOLONCE_FIELD_DATA
	@test -d "$(TOOLONCE_FIELD_DATA)/transcripts" || { echo "make field: no folder $(TOOLONCE_FIELD_DATA)/transcripts: set TOOLONCE_FIELD_DATA to the folder that holds it" >&2; exit 1; }
	go test -count=1 -v -run '^TestField' ./transcript ./agent ./cmd/toolonce

crash: export TOOLONCE_KILLS := $(or $(TOOLONCE_KILLS),1000)
crash: export TOOLONCE_TABLE := $(abspath $(TOOLONCE_TABLE))
crash: ## kill real processes at every point of a guarded call and of a run, TOOLONCE_KILLS of them in a matrix
	go test -count=1 -v -run '^TestKilled' ./sqlitestore ./pgstore ./agent
	cd mcp && go test -count=1 -v -run '^TestKilled' ./cmd/toolonce-gateway
	go test -count=1 -timeout 30m -v -run '^TestKilled' ./internal/crash

power: export TOOLONCE_SEEDS := $(or $(TOOLONCE_SEEDS),30)
power: ## cut the power under the SQLite store at many points, TOOLONCE_SEEDS times
	go test -count=1 -timeout 30m -v -run '^TestPowerLoss' ./sqlitestore

FUZZ = registry/internal/codec:FuzzDecode registry/internal/codec:FuzzCanonical transcript:FuzzRead agent:FuzzChatStream \
	agent:FuzzResponseStream agent:FuzzMendedHistoriesPass agent:FuzzAnswersPair agent:FuzzNothingButTheFieldChanges
fuzz: ## try odd inputs, FUZZTIME (20s) on each target
	@set -e; for t in $(FUZZ); do go test -run '^$$' -fuzz "^$${t#*:}\$$" -fuzztime $(or $(FUZZTIME),20s) ./$${t%:*}; done

histories: export TOOLONCE_SEEDS := $(or $(TOOLONCE_SEEDS),1000)
histories: ## check what stores do under concurrency, on TOOLONCE_SEEDS histories each
	go test -count=1 -timeout 60m -v -run '^TestHistories' ./internal/history ./sqlitestore ./pgstore

mutants: ## build the guard, the stores and the loop with one fault each, and show that a test catches each
	@go run ./internal/mutants

bench: ## measure, each figure beside its floor
	go test -run '^$$' -bench . -benchtime 2s ./registry/... ./middleware ./sqlitestore ./pgstore ./agent

demo: ## tell the story of one refund, without and with the guard
	go run ./examples/refund-bot

guarantees: export TOOLONCE_FIELD_DATA := $(abspath $(TOOLONCE_FIELD_DATA))
guarantees: export TOOLONCE_TABLE := $(abspath $(TOOLONCE_TABLE))
guarantees: ## write the tables of GUARANTEES.md, from TOOLONCE_FIELD_DATA and TOOLONCE_TABLE too where they are set
	go test -count=1 -run '^TestGuaranteesAreUpToDate$$' ./internal/promises -update
