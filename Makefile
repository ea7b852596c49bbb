# Everything needs Go, make and git only. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Without cgo everywhere (but for the race detector in `check`), so that no C
# compiler is needed and one build cache serves all modules.
GO  := env CGO_ENABLED=0 go
LAB := $(GO) -C lab

.PHONY: help demo test test-unit test-crds test-charts test-lab image chart workshop check gen lab-up lab-down lab-status bench agreement cases faults week test-aws

help: ## list the targets
	@line='^([a-z-]+):.*## (.*)$$'; while IFS= read -r text; do \
		if [[ $$text =~ $$line ]]; then printf '  make %-12s %s\n' "$${BASH_REMATCH[1]}" "$${BASH_REMATCH[2]}"; fi; \
	done <Makefile

demo: ## the main job on a real control plane and a simulated EC2; KEEP=1 leaves it running, API=v1 plays it with a NodePool
	@$(LAB) run ./cmd/lab demo $(if $(KEEP),--keep) $(if $(API),--api=$(API))

test: test-unit test-crds test-charts test-lab ## all tests; needs Go alone

test-unit:
	@echo "== unit tests =="
	@hack/patiently.sh "unit tests" $(GO) test ./...
	@hack/patiently.sh "tests of dashboard and alerts" $(GO) -C monitoring test -count=1 ./...

# The tables of the CRDs lie outside the tools module, where the test cache does
# not see them change.
test-crds:
	@echo "== CRDs in the API server's own validation =="
	@hack/patiently.sh "CRD tests" $(GO) -C tools test -count=1 ./...

test-charts:
	@echo "== charts, rendered by Helm's engine =="
	@hack/patiently.sh "chart tests" $(GO) -C charts test -count=1 ./...

test-lab:
	@echo "== tests on a real control plane (the first run builds it) =="
	@$(LAB) run ./cmd/lab build
	@hack/patiently.sh "lab tests" $(LAB) test -timeout 25m ./...

check: ## the inner loop: format, vet, lint, import rules, unit tests with the race detector, generated files
	@hack/check.sh

gen: ## regenerate deepcopy functions, CRDs and the reference in docs/
	@tools/gen.sh

lab-up: ## start the lab in the background; prints its kubeconfig
	@$(LAB) run ./cmd/lab up

lab-down: ## stop the lab and everything it started
	@$(LAB) run ./cmd/lab down

lab-status: ## say what runs
	@$(LAB) run ./cmd/lab status

bench: ## benchmarks; SEEDS=5: worst and median of so many problems; CURVE=1: how scheduling time grows
	@$(GO) run ./bench/cmd/table $(if $(SEEDS),-seeds $(SEEDS)) $(if $(CURVE),-curve)
	@$(GO) test -run '^$$' -bench . -benchmem ./internal/...

agreement: ## hold N random clusters (SEED=…) against kube-scheduler; what disagrees is saved as a test
	@$(LAB) run ./cmd/agreement -n $(or $(N),2000) -seed $(or $(SEED),1) -save agreement/testdata

cases: ## play the cases of test/cases on the rig: one line per check
	@$(GO) run ./cmd/karpctl run test/cases/case-*

faults: ## N random histories with faults (SEED=…), then every crash point of the main scenarios
	@$(GO) run ./sim/rig/cmd/faults -n $(or $(N),2000) -seed $(or $(SEED),1)
	@$(GO) run ./sim/rig/cmd/faults -sweep

week: ## a week of a cluster with a daily load: cost, disruptions, waits; fails if consolidation oscillates or costs too much
	@$(GO) run ./sim/rig/cmd/week

test-aws: ## the provider's suite against moto_server (where it is installed)
	@hack/test-aws.sh

image: ## the controller's image, with docker; IMAGE=registry.example.com/karpenter/controller:0.1.0
	@docker build --build-arg VERSION=$(or $(VERSION),$(shell git describe --tags --always)) -t $(or $(IMAGE),karpenter/controller:dev) .

chart: ## the charts with the real helm commands (v4 and v3, built once) and a real API server
	@$(LAB) run ./cmd/lab chart

workshop: ## docs/getting-started.md, command by command, and what goes further; needs aws and moto_server
	@$(LAB) run ./cmd/lab workshop
