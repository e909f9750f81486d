"""Child RPC: a child process that is told lines on its stdin and answers with lines on its stdout.

Workload, witnesses, the judge and the measured reader are such children. What they write to stderr are complaints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kafka_trial.process.children import Child, ChildProcesses
from kafka_trial.process.waiting import wait_until

STDERR_SHOWN_BYTES = 2000


class ChildRpc:
    """Our end. One asks and waits at a time; whoever has several threads sees to that."""

    def __init__(self, child: Child, commands: int, answers: int, stderr: Path | None) -> None:
        self.child = child
        self._commands = commands
        self._answers = answers
        self._stderr = stderr
        self._read = b""
        os.set_blocking(answers, False)

    def tell(self, line: str) -> None:
        """Writes one line.

        Raises:
            OSError: the child has closed its end, most likely because it died.
        """
        os.write(self._commands, os.fsencode(line) + b"\n")

    def answer(
        self, *, within_s: float, what: str, every_s: float = 0.01, meanwhile: Callable[[], object] = lambda: None
    ) -> bytes:
        """Waits for the next line and returns it, without its end; `what` names it where it does not come.

        `meanwhile` is called again and again, as long as it waits.

        Raises:
            WaitTimeout: it did not come in time, or the child died before it answered; with its last words.
        """

        def death() -> str | None:
            meanwhile()
            return self._death()

        wait_until(self._answered, within_s=within_s, what=what, every_s=every_s, alive=death, detail=self.complaint)
        line, _, self._read = self._read.partition(b"\n")
        return line

    def complaint(self) -> str:
        """Returns the last that the child wrote to stderr, in words."""
        if self._stderr is None:
            return "its stderr is ours"
        said = self._stderr.read_bytes()[-STDERR_SHOWN_BYTES:].decode(errors="replace").strip()
        return f"stderr: {said}" if said else "nothing on its stderr"

    def hang_up(self) -> None:
        """Closes the child's stdin: there will be no further line; idempotent."""
        self._commands = _closed(self._commands)

    def close(self) -> None:
        """Closes both of our ends; idempotent."""
        self.hang_up()
        self._answers = _closed(self._answers)

    def _answered(self) -> bool:
        with suppress(BlockingIOError):
            self._read += os.read(self._answers, 1 << 16)
        return b"\n" in self._read

    def _death(self) -> str | None:
        if self.child.alive or self._answered():  # its last answer may have come between two looks
            return None
        return f"it has exited with {self.child.exit_code}"


def start_child_rpc(
    child_processes: ChildProcesses,
    name: str,
    argv: Sequence[str],
    *,
    stderr: Path | None,
    env: Mapping[str, str] | None = None,
) -> ChildRpc:
    """Starts a child with the other ends; its stderr goes to a file of its own, or to ours (None).

    Raises:
        StartError: it cannot be started.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    complaints = 2 if stderr is None else os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        child = child_processes.spawn(
            name, argv, env=env, stdin=their_commands, stdout=their_answers, stderr=complaints
        )
    finally:
        for theirs in (their_commands, their_answers, *(() if stderr is None else (complaints,))):
            os.close(theirs)
    return ChildRpc(child, commands, answers, stderr)


def _closed(descriptor: int) -> int:
    if descriptor >= 0:
        os.close(descriptor)
    return -1
