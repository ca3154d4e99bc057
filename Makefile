# Everything a developer runs. The gate, .ci/run, calls the same targets.
GOLANGCI_LINT_VERSION = v2.15.0
GO_LICENSES_VERSION = v1.6.0
GOVULNCHECK_VERSION = v1.9.0
LINT = bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
# mcp and two examples are modules of their own, so that nobody else gets what they depend on.
each = set -e; for m in . mcp examples/river-workers examples/pure-go; do (cd $$m; $(1)); done

.PHONY: help test race lint fmt field crash fuzz histories mutants power bench soak licences vuln release demo ui guarantees

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

crash: export TOOLONCE_KILLS := $(or $(TOOLONCE_KILLS),1400)
crash: export TOOLONCE_TABLE := $(abspath $(TOOLONCE_TABLE))
crash: ## kill real processes at every point of a guarded call and of a run, TOOLONCE_KILLS of them on each store in a matrix
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

soak: ## call, repeat and prune on SQLite for SOAK (10m), and see that nothing grows without bound
	go run ./internal/soak -for $(or $(SOAK),10m)

licences: ## write THIRD_PARTY.md: the licences of what is linked
	go run github.com/google/go-licenses@$(GO_LICENSES_VERSION) report ./... --ignore github.com/toolonce --template .licences.tpl 2>/dev/null > THIRD_PARTY.md

vuln: ## look for known vulnerabilities in what is called
	@$(call each,go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...)

release: VERSION = $(shell git describe --tags --always --dirty)
release: NAME = toolonce-$(VERSION)-$(shell go env GOOS)-$(shell go env GOARCH)
release: ## build toolonce for this platform into dist/, with its checksum: cgo needs a compiler of the target
	@mkdir -p dist/$(NAME)
	go build -buildvcs=true -trimpath -ldflags '-s -w' -o dist/$(NAME)/ ./cmd/toolonce
	cp LICENSE THIRD_PARTY.md CHANGELOG.md dist/$(NAME)/
	tar -C dist --sort=name --owner=0 --group=0 --mtime=@$$(git log -1 --format=%ct) -czf dist/$(NAME).tar.gz $(NAME)
	cd dist && sha256sum $(NAME).tar.gz > $(NAME).sha256

demo: ## tell the story of one refund, without and with the guard
	go run ./examples/refund-bot

ui: export TOOLONCE_SHOTS := $(abspath $(TOOLONCE_SHOTS))
ui: ## drive the operator's pages in Chromium (apt install chromium), and put pictures of them into TOOLONCE_SHOTS
	cd operator/uitest && go test -count=1 -timeout 10m -v .

guarantees: export TOOLONCE_FIELD_DATA := $(abspath $(TOOLONCE_FIELD_DATA))
guarantees: export TOOLONCE_TABLE := $(abspath $(TOOLONCE_TABLE))
guarantees: ## write the tables of GUARANTEES.md, from TOOLONCE_FIELD_DATA and TOOLONCE_TABLE too where they are set
	go test -count=1 -run '^TestGuaranteesAreUpToDate$$' ./internal/promises -update
