#!/usr/bin/env bash
# What `make test` runs: what needs no cluster beside what does, each in a process of its own; the arguments go to both.
# Live trials leave half of the machine idle, and the judge's own tests need but one core.
set -u
cd "$(dirname "$0")/.."
readonly NOTHING_SELECTED=5
readonly PYTEST=(.venv/bin/python -m pytest --durations=10)
log=$(mktemp)
"${PYTEST[@]}" -p no:cacheprovider -m "not cluster" "$@" >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT

"${PYTEST[@]}" -m cluster "$@"
live=$?
wait "$beside"
still=$?
cat "$log"
[ "$live" = "$NOTHING_SELECTED" ] && live=$still
[ "$still" = "$NOTHING_SELECTED" ] && still=$live
exit "$((live ? live : still))"
