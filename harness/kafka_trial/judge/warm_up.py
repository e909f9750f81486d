"""Warming up: a history of two lines is judged before the first real one, which then takes a fifth of the time.

What the first judgement of a process pays for: Spark's first plan, its Python worker, and imports in both; the next two
still for what Java compiles.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judge import judge

TIMES = 3


def warm_up(scratch: Path) -> None:
    """Judges a history of two lines, in a new folder in `scratch`; what fails now will fail again, and is told then."""
    with suppress(KafkaTrialError, OSError):
        folder = RunFolder(Path(tempfile.mkdtemp(prefix="warm-up-", dir=scratch)))
        folder.history.mkdir()
        with Recorder(folder.history, "run") as run:
            run.record("phase", phase="faults")
        with Recorder(folder.history, "consumer-m0-0") as member:
            member.record("delivered", member="m0", topic="warm-up", partition=0, offset=0)
        for _ in range(TIMES):
            judge(folder)
