#!/usr/bin/env bash
# Installs Kafka Trial into a virtual environment, made where it is missing, from the hash-pinned locks: VENV [-e]
set -eu
from=$(cd "$(dirname "$0")/.." && pwd)
python=$1/bin/python
test -x "$python" || "${PYTHON:-python3}" -m venv "$1"
"$python" -m pip install --quiet --require-hashes -r "$from/ci/build.lock"
"$python" -m pip install --quiet --no-build-isolation --require-hashes -r "$from/ci/requirements.lock"
"$python" -m pip install --quiet --no-build-isolation --no-deps ${2-} "$from"
