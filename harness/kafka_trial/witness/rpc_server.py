"""The witness's end of its pipes: commands come in on stdin, answers go out on stdout and into the history.

Commands, one a line: `snapshot SECONDS` (read up to the end as of now, within a bound) and `stop`; the end of stdin
means stop. Answers, one JSON object a line: `{"state": ready | complete | behind | dead | undecodable, "message",
"position", "end"}`; each is a `witness` event in the witness's own file too.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.recorder import Recorder

READY, COMPLETE, BEHIND, DEAD, UNDECODABLE = "ready", "complete", "behind", "dead", "undecodable"
SNAPSHOT_WITHIN_S: Final = 30.0
_STDIN: Final = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """How far a witness has come; position and end are in its own unit (records or bytes), over all it reads."""

    state: str
    message: str | None = None
    position: int | None = None
    end: int | None = None


class Watching(Protocol):
    """What a witness does between commands."""

    def step(self) -> None:
        """Does a little work, at most about half a second of it."""
        ...

    def snapshot(self, *, within_s: float) -> Answer:
        """Reads up to the end as of now, and says whether it got there."""
        ...


def serve(watching: Watching, recorders: Sequence[Recorder]) -> int:
    """Answers `ready`, works until it is told to stop, and returns the exit status."""
    commands = Commands()
    _answer(Answer(READY), recorders)
    try:
        while (command := commands.next()) != "stop":
            if command is None:
                watching.step()
            else:
                _answer(watching.snapshot(within_s=_bound_s(command)), recorders)
    except KafkaTrialError as error:
        _answer(Answer(DEAD, str(error)), recorders)
        return error.exit_status
    return 0


class Commands:
    """Lines on stdin, taken without waiting."""

    def __init__(self) -> None:
        self._read = b""
        self._ended = False

    def next(self) -> str | None:
        """Returns the next whole command, `stop` at the end of stdin, None when there is nothing now."""
        while not self._ended and select.select([_STDIN], [], [], 0)[0]:
            part = os.read(_STDIN, 4096)
            self._ended = not part
            self._read += part
        line, newline, rest = self._read.partition(b"\n")
        if newline:
            self._read = rest
            return line.decode().strip()
        return "stop" if self._ended else None


def deadline_s(within_s: float) -> float:
    """Returns the instant on the monotonic clock at which a bound ends."""
    return time.monotonic() + within_s


def _bound_s(command: str) -> float:
    name, _, bound = command.partition(" ")
    if name != "snapshot":
        raise KafkaTrialError(f"unknown command {command!r}; valid: snapshot SECONDS, stop")
    return float(bound or SNAPSHOT_WITHIN_S)


def _answer(answer: Answer, recorders: Sequence[Recorder]) -> None:
    fields: dict[str, Any] = {
        name: value for name in ("state", "message", "position", "end") if (value := getattr(answer, name)) is not None
    }
    for recorder in recorders:
        recorder.record("witness", **fields)
        recorder.flush()
    sys.stdout.buffer.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()
