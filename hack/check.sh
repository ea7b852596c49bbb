#!/usr/bin/env bash
# The inner loop. Stops at the first thing that is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '== %s\n' "$1"; }

step "format"
mapfile -t files < <(git ls-files -co --exclude-standard --deduplicate '*.go')
bad=$(gofmt -l "${files[@]}")
if [ -n "$bad" ]; then
	printf 'not formatted (run gofmt -w):\n%s\n' "$bad"
	exit 1
fi

step "vet"
go vet ./...

step "lint"
go -C tools build -o "$PWD/bin/staticcheck" honnef.co/go/tools/cmd/staticcheck
bin/staticcheck ./...

step "unit tests"
# The race detector needs a C compiler; without one the tests run plain.
race=()
if [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null; then
	race=(-race)
else
	echo "no C compiler: without -race"
fi
go test -short "${race[@]}" ./...
CGO_ENABLED=0 go -C tools test -count=1 ./...
CGO_ENABLED=0 go -C monitoring test -count=1 ./...

step "generated files"
tools/gen.sh
if ! git diff --quiet -- api charts docs/reference docs/metrics.md docs/settings.md; then
	git --no-pager diff --stat -- api charts docs/reference docs/metrics.md docs/settings.md
	echo "generated files differ: commit what 'make gen' made"
	exit 1
fi
echo "all good"
