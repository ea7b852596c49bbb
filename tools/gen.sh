#!/usr/bin/env bash
# Regenerates everything that is made from the code: deepcopy functions and CRDs,
# also those of the charts, and the reference in docs/. The same input always gives
# the same output.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go -C tools build -o "$bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen

rm -f api/crds/*.yaml
"$bin/controller-gen" \
	object:headerFile=tools/header.txt \
	crd:allowDangerousTypes=false \
	paths=./api/... \
	output:crd:dir=api/crds

for folder in charts/karpenter/crds charts/karpenter-crd/files; do
	rm -f "$folder"/*.yaml
	cp api/crds/*.yaml "$folder"/
done

CGO_ENABLED=0 go run ./internal/reference/cmd/reference docs
