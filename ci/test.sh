#!/usr/bin/env bash
# What `make test` runs: the live tests one after the other, and beside them what needs no cluster, then the sampled
# trials, each part in a process of its own; the arguments go to all. Live tests leave half of the machine idle.
set -u
cd "$(dirname "$0")/.."
readonly NOTHING_SELECTED=5
readonly PYTEST=(.venv/bin/python -m pytest --durations=10)
log=$(mktemp)
beside='' part=''
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT

worse() { # of two exit statuses; a part of which nothing was selected says nothing
  if [ "$1" = "$NOTHING_SELECTED" ]; then
    echo "$2"
  elif [ "$1" = 0 ] && [ "$2" != "$NOTHING_SELECTED" ]; then
    echo "$2"
  else
    echo "$1"
  fi
}

aside() {
  trap 'kill "$part" 2>/dev/null; exit 143' TERM
  local said=$NOTHING_SELECTED
  for marked in "not cluster" sample; do
    "${PYTEST[@]}" -p no:cacheprovider -m "$marked" "$@" >>"$log" 2>&1 &
    part=$!
    wait "$part"
    said=$(worse "$said" $?)
  done
  exit "$said"
}

aside "$@" &
beside=$!
"${PYTEST[@]}" -m "cluster and not sample" "$@"
live=$?
wait "$beside"
said=$(worse "$live" $?)
cat "$log"
exit "$said"
