"""The harness's end of the witnesses: starts them in a household, tells them when to read to the end, stops them.

A witness that died, fell behind or met something it cannot decode makes the verdict unknown: `snapshot` says which.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.cluster import Cluster, Lane
from kafka_trial.concurrency import Child, Household
from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.history.store import RunFolder
from kafka_trial.waiting import wait_until
from kafka_trial.witness.post import BEHIND, DEAD, READY

READY_WITHIN_S: Final = 30.0
ANSWER_MARGIN_S: Final = 5.0
STOP_WITHIN_S: Final = 10.0
STDERR_SHOWN_BYTES: Final = 2000


class Witness:
    """One witness process. Its events are in the history, its complaints in `logs/witness-<name>.stderr`."""

    def __init__(self, name: str, child: Child, commands: int, answers: int, stderr: Path) -> None:
        self.name = name
        self.child = child
        self.message: str | None = None
        self._commands = commands
        self._answers = answers
        self._stderr = stderr
        self._read = b""
        self._ready = False
        os.set_blocking(answers, False)

    @property
    def alive(self) -> bool:
        return self.child.alive

    def ready(self, *, within_s: float = READY_WITHIN_S) -> None:
        """Waits until it follows its log.

        Raises:
            StartError: it died, or was not ready in time; with its last words.
        """
        if self._ready:
            return
        try:
            answer = self._answer(within_s)
        except (WaitTimeout, UnjudgeableError) as error:
            raise StartError(f"the witness {self.name} did not start: {error}") from error
        if answer.get("state") != READY:
            raise StartError(f"the witness {self.name} did not start: {answer}{self._complaint()}")
        self._ready = True

    def ask(self, *, within_s: float) -> None:
        """Tells it to read up to the end as of now; `answer` then waits for what it says."""
        with suppress(OSError):  # it has died: the answer will say so
            os.write(self._commands, f"snapshot {within_s:g}\n".encode())

    def answer(self, *, within_s: float) -> str:
        """Returns `complete`, `behind`, `undecodable` or `dead`; `message` then says more."""
        try:
            answer = self._answer(within_s + ANSWER_MARGIN_S)
        except WaitTimeout as error:
            self.message = str(error)
            return BEHIND if self.alive else DEAD
        self.message = answer.get("message")
        return str(answer["state"])

    def snapshot(self, *, within_s: float) -> str:
        """Has it read up to the end as of now; returns `complete`, `behind`, `undecodable` or `dead`."""
        self.ask(within_s=within_s)
        return self.answer(within_s=within_s)

    def stop(self, *, within_s: float = STOP_WITHIN_S) -> int | None:
        """Tells it to stop and returns its exit code; one that does not in time is killed."""
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1
        try:
            return self.child.wait(within_s=within_s)
        except WaitTimeout:
            return self.child.end(within_s=1.0)
        finally:
            if self._answers >= 0:
                os.close(self._answers)
                self._answers = -1

    def _answer(self, within_s: float) -> Mapping[str, Any]:
        wait_until(
            self._answered,
            within_s=within_s,
            what=f"the witness {self.name} to answer",
            every_s=0.01,
            alive=self._death,
            detail=self._complaint,
        )
        line, _, self._read = self._read.partition(b"\n")
        answer: dict[str, Any] = orjson.loads(line)
        return answer

    def _answered(self) -> bool:
        with suppress(BlockingIOError):
            self._read += os.read(self._answers, 65536)
        return b"\n" in self._read

    def _death(self) -> str | None:
        if self.child.alive or self._answered():  # its last answer may have come between two looks
            return None
        return f"it has exited with {self.child.exit_code}"

    def _complaint(self) -> str:
        said = self._stderr.read_bytes()[-STDERR_SHOWN_BYTES:].decode(errors="replace").strip()
        return f"stderr: {said}" if said else "nothing on its stderr"


def start_witnesses(
    household: Household, cluster: Cluster, *, folder: RunFolder, topic: str, group: str, lanes: Sequence[Lane]
) -> list[Witness]:
    """Starts the three witnesses of a trial: of the offsets log, of the request log, and the observer.

    They start side by side; call `ready` on each.

    Raises:
        StartError: a process cannot be started.
    """
    history, bootstrap = ["--history", str(folder.history)], ["--bootstrap", cluster.observer_bootstrap]
    logs = [f"--log=b{number}={broker.request_log}" for number, broker in sorted(cluster.brokers.items())]
    leased = ",".join(str(lane.index) for lane in lanes)
    commands = {
        "offsets_log": [*bootstrap, *history, "--group", group],
        "request_log": [*logs, *history, "--group", group, "--lanes", leased],
        "observe": [*bootstrap, *history, "--topic", topic, "--group", group],
    }
    return [start_witness(household, name, arguments, folder=folder) for name, arguments in commands.items()]


def start_witness(household: Household, name: str, arguments: Sequence[str], *, folder: RunFolder) -> Witness:
    """Starts `python -m kafka_trial.witness.<name>` with our ends of its pipes in a Witness.

    Raises:
        StartError: it cannot be started.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    stderr = folder.logs / f"witness-{name}.stderr"
    argv = [sys.executable, "-m", f"kafka_trial.witness.{name}", *arguments]
    try:
        with stderr.open("wb") as complaints:
            child = household.spawn(
                f"witness {name}", argv, stdin=their_commands, stdout=their_answers, stderr=complaints
            )
    finally:
        os.close(their_commands)
        os.close(their_answers)
    return Witness(name, child, commands, answers, stderr)


def snapshot_all(witnesses: Sequence[Witness], *, within_s: float) -> dict[str, str]:
    """Has all witnesses read to the end side by side; returns the state of each, by name."""
    until_s = time.monotonic() + within_s
    for witness in witnesses:
        witness.ask(within_s=within_s)
    return {witness.name: witness.answer(within_s=max(0.0, until_s - time.monotonic())) for witness in witnesses}
