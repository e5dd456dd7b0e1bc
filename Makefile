# The commands of this repository. Tools are pinned in tools/*/go.mod and built
# into bin/ when a target first needs them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
export PATH := $(BIN):$(PATH)

FUZZTIME ?= 20s
BENCH ?= .
BENCHCOUNT ?= 6
UPDATE ?=
SOAKTIME ?= 5m

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r t h; do printf '  %-14s %s\n' "$$t" "$$h"; done

.PHONY: test
test: ## Run the tests
	go test ./...

.PHONY: race
race: ## Run the tests under the race detector, in a random order
	go test -race -shuffle=on ./...

.PHONY: faults
faults: ## Run the fault suite
	go test -race ./internal/faults/

.PHONY: soak
soak: ## Load clients while every fault happens, for SOAKTIME (5m); nothing may be left
	SOAKTIME=$(SOAKTIME) go test -v -count=1 -timeout=0 -run='^TestSoak$$' ./internal/soak | grep -vE '^(=== | +--- PASS)'

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (20s)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: bench
bench: ## Run the benchmarks that match BENCH (.), BENCHCOUNT (6) times; all of them write BENCHMARKS.md
	BENCH='$(BENCH)' BENCHCOUNT=$(BENCHCOUNT) .ci/bench

.PHONY: benchalloc
benchalloc: ## Check that operations allocate no more than on record; UPDATE=1 records anew
	UPDATE=$(UPDATE) .ci/benchalloc

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/buf ## Run the linters over Go and proto files
	golangci-lint config verify
	golangci-lint run ./...
	cd tools/benchreport && golangci-lint run ./...
	buf lint

.PHONY: fmt
fmt: $(BIN)/golangci-lint $(BIN)/buf ## Format Go and proto files
	golangci-lint fmt ./...
	buf format -w

.PHONY: generate
generate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc ## Generate the Go code of the proto files
	buf generate

.PHONY: checkgenerate
checkgenerate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc ## Check that the generated code is current
	.ci/checkgenerate

.PHONY: bufbreaking
bufbreaking: $(BIN)/buf ## Check the proto files for breaking changes since the last release, or commit
	.ci/bufbreaking

.PHONY: docs snippets
docs: ## Check README.md and docs/: the Go code compiles, commands exist, shown output is current
	go run ./internal/cmd/readmecheck -run
snippets: docs

.PHONY: examples
examples: ## Run every example program
	.ci/examples

.PHONY: upstream
upstream: ## Run the tests against the newest release of gRPC-Go; the tree stays as it is
	.ci/upstream

# What is not for Linux is for all others, so one of them will do.
.PHONY: platforms
platforms: ## Compile what users import and run for another system than Linux, and for 32 bits
	for p in windows/amd64 linux/386; do \
		echo "$$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build ./interceptor ./timeoutcfg/... ./cmd/... ./examples/...; \
	done

.PHONY: tidy
tidy: ## Tidy every module
	for mod in . tools/*/; do go -C "$$mod" mod tidy; done

.PHONY: checktidy
checktidy: ## Check that every module is tidy and its dependencies are unaltered
	for mod in . tools/*/; do go -C "$$mod" mod tidy -diff; go -C "$$mod" mod verify; done

.PHONY: tools
tools: $(BIN)/buf $(BIN)/golangci-lint $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc ## Build the tools into bin/

.PHONY: ci
ci: ## Run all checks, as CI does
	.ci/run

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf bin
	find . -name .git -prune -o -type f \( -name '*.test' -o -name '*.out' -o -name '*.prof' \) -exec rm {} +

# Nobody debugs the tools; without symbols they link faster. Go install leaves a
# file alone that is as it should be, hence touch.
$(BIN)/buf: tools/buf/go.mod tools/buf/go.sum
	GOBIN=$(BIN) go -C tools/buf install -ldflags='-s -w' tool
	touch $@

$(BIN)/golangci-lint: tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	GOBIN=$(BIN) go -C tools/golangci-lint install -ldflags='-s -w' tool
	touch $@

$(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc: tools/protoc-gen/go.mod tools/protoc-gen/go.sum
	GOBIN=$(BIN) go -C tools/protoc-gen install -ldflags='-s -w' tool
	touch $@
