#!/usr/bin/env bash
# Installs Kafka Trial into a virtual environment, made where it is missing, from the hash-pinned locks: VENV [-e]
# Every step says what it does, and how far it has come every few seconds; what a tool printed is shown where it failed.
set -eu
from=$(cd "$(dirname "$0")/.." && pwd)
python=$1/bin/python
scratch=$(mktemp -d)
tool=
cleaned() { [ -z "$tool" ] || kill "$tool" 2>/dev/null || true; rm -rf "$scratch"; }
trap cleaned EXIT
trap 'exit 130' INT TERM

packages() { grep -c '^[A-Za-z0-9].*==' "$1"; }

# doing WHAT PACKAGES COMMAND…: runs a command and tells every few seconds how many packages it has come to.
doing() {
  local what=$1 count=$2 began=$SECONDS told=$SECONDS status=0
  shift 2
  echo "$what"
  TMPDIR=$scratch "$@" >"$scratch/said" 2>&1 &
  tool=$!
  while kill -0 "$tool" 2>/dev/null; do
    if [ $((SECONDS - told)) -ge 7 ]; then
      told=$SECONDS
      echo "  $(so_far "$count")$((SECONDS - began)) s so far"
    fi
    sleep 0.5
  done
  wait "$tool" || status=$?
  tool=
  [ "$status" = 0 ] || { tail -n 30 "$scratch/said" >&2; echo "$what: failed with status $status" >&2; exit "$status"; }
  echo "  done in $((SECONDS - began)) s"
}

# so_far PACKAGES: how many packages pip has come to, how many MB lie unpacked, and the last thing it said.
so_far() {
  [ "$1" = 0 ] && return
  local seen
  seen=$(grep -c '^Collecting' "$scratch/said" || true)
  echo "package $seen of $1, $(du -sm "$scratch" | cut -f1) MB ($(tail -n 1 "$scratch/said" | cut -c1-60 | sed 's/^ *//')), "
}

pip() { exec "$python" -m pip install --progress-bar off --disable-pip-version-check "$@"; }

[ -x "$python" ] || doing "making the virtual environment $1" 0 "${PYTHON:-python3}" -m venv "$1"
count=$(packages "$from/ci/build.lock")
doing "installing $count packages that build others" "$count" pip --require-hashes -r "$from/ci/build.lock"
count=$(packages "$from/ci/requirements.lock")
doing "installing $count packages, some 700 MB to fetch, 2 GB while they are built: one to five minutes" "$count" \
  pip --no-build-isolation --require-hashes -r "$from/ci/requirements.lock"
doing "installing Kafka Trial itself" 0 pip --no-build-isolation --no-deps ${2-} "$from"
