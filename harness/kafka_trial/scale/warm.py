"""`check` in a session that is warm, as the judge of a row of trials has it: `python -m kafka_trial.scale.warm FOLDER`.

The first judgements warm Spark, its workers and the page cache, and are not counted. Then a history is judged that was
not seen before (`anew_s`: without a cache), and again (`cached_s`).
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from kafka_trial.history.store import RunFolder
from kafka_trial.judging import check_run

WARMING = 2


def main() -> None:
    """Prints the seconds as a JSON object, the last line of its output."""
    folder = RunFolder(Path(sys.argv[1]))
    for _ in range(WARMING):
        _timed(folder, anew=True)
    print(json.dumps({"anew_s": _timed(folder, anew=True), "cached_s": _timed(folder, anew=False)}))


def _timed(folder: RunFolder, *, anew: bool) -> float:
    if anew:
        shutil.rmtree(folder.cache, ignore_errors=True)
    began_s = time.monotonic()
    check_run(folder)
    return time.monotonic() - began_s


if __name__ == "__main__":
    main()
