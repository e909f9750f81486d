"""The recorder: the event writer of one source. Numbers its events, stamps them, and appends whole lines to its file.

Every actor of a trial has one; two never share a file. A line is handed to the kernel whole, so what was written
survives a kill -9 of its writer. A writer that could not write once (the disk is full) never writes again, and its file
says that it was cut: the last line is torn.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import orjson

from kafka_trial.history.event import SCHEMA


class EventWriter(Protocol):
    """What writes events down: a recorder, or what stands before one."""

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event."""
        ...


class Recorder:
    """Appends events of one source to `<folder>/<source>.jsonl`; safe to call from several threads.

    `buffer_events` lines are gathered before a write (1: every line at once); `flush` writes what waits.
    """

    def __init__(self, folder: Path, source: str, *, buffer_events: int = 1) -> None:
        self.source = source
        self.path = folder / f"{source}.jsonl"
        self._file = open(self.path, "x+b", buffering=0)  # noqa: SIM115 - closed by close(); "x": a source has one life
        self._lock = threading.Lock()
        self._seq = 0
        self._waiting: list[bytes] = []
        self._buffer_events = buffer_events
        self._broken: OSError | None = None

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Writes one event and returns its seq; fields that are None are left out.

        `time_ns` is given only where the moment of receipt was taken elsewhere on this machine.

        Raises:
            OSError: the file cannot be written, now or at any time before.
        """
        body = {name: value for name, value in fields.items() if value is not None}
        with self._lock:
            seq = self._seq
            self._seq += 1
            stamp = time.monotonic_ns() if time_ns is None else time_ns
            head = {"schema": SCHEMA, "source": self.source, "seq": seq, "time_ns": stamp, "kind": kind}
            self._waiting.append(orjson.dumps(head | body, option=orjson.OPT_APPEND_NEWLINE))
            if len(self._waiting) >= self._buffer_events:
                self._write()
        return seq

    def flush(self) -> None:
        """Hands every waiting line to the kernel."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Writes what waits and closes the file; further records are an error."""
        with self._lock:
            try:
                if self._broken is None:  # else it has been told already
                    self._write()
            finally:
                self._file.close()

    def _write(self) -> None:
        if self._broken is not None:
            raise self._broken
        view = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._broken = OSError(error.errno, error.strerror, str(self.path))
            self._tear()
            raise self._broken from error

    def _tear(self) -> None:
        """Takes the newline off the last line: a history that goes on after a gap must not look whole."""
        with suppress(OSError):
            size_bytes = os.fstat(self._file.fileno()).st_size
            if size_bytes and os.pread(self._file.fileno(), 1, size_bytes - 1) == b"\n":
                os.ftruncate(self._file.fileno(), size_bytes - 1)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
