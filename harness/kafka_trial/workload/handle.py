"""The harness's end of the workload process: starts it in a household, gives it commands, and waits for its answers."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.concurrency import Child, Household
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.scenario import Burst, Load
from kafka_trial.waiting import wait_until

READY_WITHIN_S = 45.0
ANSWER_WITHIN_S = 10.0
CLOSE_WITHIN_S = 15.0  # on top of the bound of `stop`: writing the rest, closing the client, exiting
STDERR_SHOWN_BYTES = 2000


class ProducerHandle:
    """A running workload process: its sends are in `history/workload.jsonl`, its complaints in `logs`."""

    def __init__(self, child: Child, commands: int, answers: int, stderr: Path) -> None:
        self.child = child
        self._commands = commands
        self._answers = answers
        self._stderr = stderr
        self._read = b""
        self._turn = threading.Lock()  # bursts are commanded from threads of their own
        self._stopped: dict[str, int] | None = None
        os.set_blocking(answers, False)

    def opening_burst(self, *, within_s: float) -> int:
        """Sends the opening burst and returns how many records it had, once all of them are acknowledged.

        Raises:
            UnjudgeableError: a record was refused or its fate is unknown, the time ran out, or the process died.
        """
        counts = self._ask("open", "opened", within_s=within_s)
        if counts["ok"] != counts["sent"]:
            raise UnjudgeableError(
                f"opening burst: expected {counts['sent']} acknowledgements before any fault, seen {counts}; "
                f"`message` of the failed sends in workload.jsonl says why (record size, topic settings, brokers)"
            )
        return int(counts["sent"])

    def steady(self) -> None:
        """Begins the steady load."""
        self._ask("steady", "steady", within_s=ANSWER_WITHIN_S)

    def burst(self, records: int) -> int:
        """Begins a burst at full speed; returns its number of records, fewer where the load's maximum is reached."""
        return int(self._ask(f"burst {records}", "burst", within_s=ANSWER_WITHIN_S))

    def stop(self, *, within_s: float) -> dict[str, int]:
        """Stops the load, waits up to `within_s` for acknowledgements, and returns {sent, ok, fail, info}; idempotent.

        Raises:
            UnjudgeableError: the process died, or did not close in time: the history of the sends is incomplete.
        """
        if self._stopped is None:
            self._stopped = dict(self._ask(f"stop {within_s:g}", "stopped", within_s=within_s + CLOSE_WITHIN_S))
            self.child.wait(within_s=CLOSE_WITHIN_S)
            self.close()
        return self._stopped

    def close(self) -> None:
        """Closes our ends of the pipes: a process that still runs takes that as `stop`."""
        for descriptor in (self._commands, self._answers):
            if descriptor >= 0:
                os.close(descriptor)
        self._commands = self._answers = -1

    def __enter__(self) -> ProducerHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str, key: str, *, within_s: float) -> Any:
        with self._turn:
            try:
                os.write(self._commands, f"{command}\n".encode())
            except OSError as error:
                raise UnjudgeableError(
                    f"workload: cannot be told {command!r}: {error}; its exit status: {self.child.exit_code}; "
                    f"{self._complaint()}"
                ) from error
            return self.answer(key, within_s=within_s)

    def answer(self, key: str, *, within_s: float) -> Any:
        """Waits for the next answer and returns its `key`.

        Raises:
            UnjudgeableError: the process refused, died, or did not answer in time.
        """
        wait_until(
            self._answered,
            within_s=within_s,
            what=f"the workload to answer {key!r}",
            every_s=0.005,
            alive=self._death,
            detail=self._complaint,
        )
        line, _, self._read = self._read.partition(b"\n")
        body: dict[str, Any] = orjson.loads(line)
        if key not in body:
            raise UnjudgeableError(f"workload: expected an answer {key!r}, seen {body}")
        return body[key]

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


def start_producer(
    household: Household,
    *,
    bootstrap: str,
    topic: str,
    folder: RunFolder,
    load: Load,
    seed: int,
    recorded: bool = True,
) -> ProducerHandle:
    """Starts the workload process on a lane's `bootstrap` and returns once it has the topic's metadata.

    Raises:
        StartError: the process cannot be started.
        UnjudgeableError: it died or did not reach the brokers.
    """
    argv = [sys.executable, "-m", "kafka_trial.workload.producer", "--bootstrap", bootstrap, "--topic", topic]
    argv += ["--history", str(folder.history), "--load", load_to_json(load), "--seed", str(seed)]
    argv += [] if recorded else ["--unrecorded"]
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    stderr = folder.logs / "workload.stderr"
    try:
        with stderr.open("wb") as complaints:
            child = household.spawn("workload", argv, stdin=their_commands, stdout=their_answers, stderr=complaints)
    finally:
        os.close(their_commands)
        os.close(their_answers)
    handle = ProducerHandle(child, commands, answers, stderr)
    try:
        handle.answer("ready", within_s=READY_WITHIN_S)
    except UnjudgeableError:
        handle.close()
        raise
    return handle


def load_to_json(load: Load) -> str:
    """Returns a load as the process's argument."""
    return orjson.dumps(dataclasses.asdict(load)).decode()


def load_from_json(text: str) -> Load:
    """Returns the load of the process's argument."""
    table: Mapping[str, Any] = orjson.loads(text)
    return Load(**(dict(table) | {"bursts": tuple(Burst(**burst) for burst in table["bursts"])}))
