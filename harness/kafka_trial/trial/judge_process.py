"""The judge in a process of its own, warm beside a session of trials.

Judging is Python and Spark at full speed; in the process that reads the members' lines it would delay them, and late
lines look like late work. `python -m kafka_trial.trial.judge_process` reads run folders from stdin, a line each, judges
them one after the other, and answers each with a line: a pickled verdict or error, in base64.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafka_trial.errors import KafkaTrialError, UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import ChildProcesses, start_child_rpc
from kafka_trial.trial.console import Console
from kafka_trial.verdict.decide import Verdict

JUDGED_WITHIN_S = 900.0
LEAST_S = 1.0  # of a judge that has warmed up
LEAST_S_PER_MB = 0.042  # 10^6 messages, a gigabyte of history, took 42 to 80 s on two cores that had nothing else to do


class JudgeProcess:
    """A running judge; `check` may be called from several threads, and serves one after the other.

    `scratch` is an empty folder for what Spark writes; it outlives this process, and goes with the child processes.
    """

    def __init__(self, child_processes: ChildProcesses, scratch: Path) -> None:
        argv = [sys.executable, "-m", "kafka_trial.trial.judge_process", str(scratch)]
        environment = os.environ | {"TMPDIR": str(scratch)}
        self._rpc = start_child_rpc(child_processes, "judge", argv, env=environment, stderr=None)
        self._turn = threading.Lock()

    def check(self, folder: RunFolder, *, meanwhile: Callable[[], object] = lambda: None) -> Verdict:
        """Has a run folder judged, its verdict and pages written, and returns the verdict.

        `meanwhile` is called again and again until then.

        Raises:
            KafkaTrialError: what judging raised there.
            UnjudgeableError: the process died, or did not answer in time.
        """
        with self._turn:
            with suppress(BrokenPipeError):  # it has died: the wait says so
                self._rpc.tell(str(folder.path))
            what = f"the judgement on {folder.path.name}"
            line = self._rpc.answer(within_s=JUDGED_WITHIN_S, what=what, meanwhile=meanwhile)
        outcome = pickle.loads(base64.b64decode(line))
        if isinstance(outcome, Verdict):
            return outcome
        raise outcome

    def close(self) -> None:
        """Closes our ends: the process ends when it has read the last folder."""
        self._rpc.close()


def judging_in_words(folder: RunFolder) -> str:
    """Returns what judging a run is about to do, and how long that takes at least, by the size of its history.

    At most nobody knows: a judge that has not warmed up, or a busy machine, can take many times that.
    """
    size_mb = sum(file.stat().st_size for file in folder.history_files()) / 1e6
    least_s = LEAST_S + LEAST_S_PER_MB * size_mb
    return f"judging {size_mb:.0f} MB of history: at least {least_s:.0f} s, longer on a busy machine or the first time"


def main() -> None:
    """Judges every folder named on stdin until it closes; warms up before the first."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nothing but answers may reach the harness there
    from kafka_trial import plugins
    from kafka_trial.check import check_run
    from kafka_trial.judge.warm_up import warm_up

    plugins.load()
    with Console(live=False, who="judge"):  # the first one of a machine trains Spark's archive
        warm_up(Path(sys.argv[1]))
    for line in sys.stdin.buffer:
        folder = RunFolder(Path(os.fsdecode(line.rstrip(b"\n"))))
        outcome: Verdict | KafkaTrialError
        try:
            outcome = check_run(folder)
        except KafkaTrialError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - a judge that broke is the harness's failure: unknown, and said
            outcome = UnjudgeableError(f"the judge failed on {folder.path}: {type(error).__name__}: {error}")
        answers.write(base64.b64encode(pickle.dumps(outcome)) + b"\n")


if __name__ == "__main__":
    main()
