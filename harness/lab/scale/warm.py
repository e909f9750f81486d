"""`check` in a session that is warm, as the judge of a row of trials has it: `python -m lab.scale.warm FOLDER`.

The first judgements warm Spark, its workers and the page cache, and are not counted. Then a history is judged that was
not seen before (`anew_…`: without a cache), and again (`cached_…`): seconds, and processor seconds of Python, the JVM
and its workers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

import psutil

from kafka_trial.check import check_run
from kafka_trial.history.store import RunFolder

WARMING = 2


def main() -> None:
    """Prints the seconds as a JSON object, the last line of its output."""
    parser = argparse.ArgumentParser(prog="python -m lab.scale.warm", description=(__doc__ or "").split(":")[0])
    parser.add_argument("folder", type=Path, help="a run's folder, whose cache is thrown away and written anew")
    folder = RunFolder(parser.parse_args().folder)
    for _ in range(WARMING):
        _timed(folder, anew=True)
    anew, cached = _timed(folder, anew=True), _timed(folder, anew=False)
    print(json.dumps(dict(zip(("anew_s", "anew_cpu_s", "cached_s", "cached_cpu_s"), (*anew, *cached), strict=True))))


def _timed(folder: RunFolder, *, anew: bool) -> tuple[float, float]:
    if anew:
        shutil.rmtree(folder.cache, ignore_errors=True)
    began_s, used_s = time.monotonic(), _used_s()
    check_run(folder)
    return time.monotonic() - began_s, _used_s() - used_s


def _used_s() -> float:
    """Returns the processor time of this process and of all that it started; the workers are kept for the next one."""
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return float(sum(times.user + times.system for times in (process.cpu_times() for process in tree)))


if __name__ == "__main__":
    main()
