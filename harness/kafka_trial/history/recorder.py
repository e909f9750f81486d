"""The recorder: the pen of one source. Numbers its events, stamps them, and appends whole lines to its file.

Every actor of a trial has one; two never share a file. A line is handed to the kernel whole, so what was written
survives a kill -9 of its writer.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.history.event import SCHEMA


class Recorder:
    """Appends events of one source to `<folder>/<source>.jsonl`; safe to call from several threads.

    `buffer_events` lines are gathered before a write (1: every line at once); `flush` writes what waits.
    """

    def __init__(self, folder: Path, source: str, *, buffer_events: int = 1) -> None:
        self.source = source
        self.path = folder / f"{source}.jsonl"
        self._file = open(self.path, "xb", buffering=0)  # noqa: SIM115 - closed by close(); "x": a source has one life
        self._lock = threading.Lock()
        self._seq = 0
        self._waiting: list[bytes] = []
        self._buffer_events = buffer_events

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Writes one event and returns its seq; fields that are None are left out.

        `time_ns` is given only where the moment of receipt was taken elsewhere on this machine.
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
            self._write()
            self._file.close()

    def _write(self) -> None:
        view = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        while view:
            view = view[self._file.write(view) :]

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
