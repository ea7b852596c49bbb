#!/usr/bin/env bash
# usage: hack/patiently.sh WHAT COMMAND...
# Runs a command and says every 30 seconds (or PATIENCE) that it still runs, so
# that nobody takes silence for the end. Its exit code is that of the command.
set -uo pipefail
what=$1
shift

ticker() {
	local began=$SECONDS spent
	while sleep "${PATIENCE:-30}"; do
		spent=$((SECONDS - began))
		printf '.. %s: running for %d:%02d\n' "$what" $((spent / 60)) $((spent % 60))
	done
}

# In a process group of its own, so that its sleep ends with it. The command
# stays in ours, where Ctrl-C reaches it.
set -m
ticker &
clock=$!
set +m
trap 'kill -- "-$clock" 2>/dev/null; wait "$clock" 2>/dev/null' EXIT
trap 'exit 143' TERM

"$@"
