"""The output of one member incarnation: its two streams, read by one thread, until the process is gone.

stdout becomes history (`wire.py`), or a log where the consumer prints no events; stderr becomes a log. Logs are
bounded, lines too: whatever is printed, the member is never blocked by us and the harness's memory stays small.
"""

from __future__ import annotations

import os
import re
import selectors
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kafka_trial.consumers.lines import LineCutter

CHUNK_BYTES = 1 << 16
LOG_BYTES_MAX = 10 * 1024 * 1024
AFTERMATH_S = 2.0  # a grandchild may hold the streams open for ever
LOOK_EVERY_S = 0.1

Reader = Callable[[bytes], None]


class BoundedLog:
    """A log file that stops growing at `bytes_max` and says so in its last line."""

    def __init__(self, path: Path, *, bytes_max: int = LOG_BYTES_MAX) -> None:
        self._file = path.open("ab", buffering=0)
        self._left = bytes_max

    def write(self, chunk: bytes) -> None:
        """Appends what still fits."""
        if self._left <= 0:
            return
        self._file.write(chunk[: self._left])
        self._left -= len(chunk)
        if self._left <= 0:
            self._file.write(b"\n[kafka-trial: cut here, the log has reached its bound]\n")

    def close(self) -> None:
        self._file.close()


class LogMatch:
    """Watches streams for a line that matches a regular expression; `seen` once one has."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern.encode())
        self.seen = False

    def watching(self, reader: Reader) -> Reader:
        """Returns `reader` for one stream, with every line of it looked at until one matched."""
        cutter = LineCutter(bytes_max=CHUNK_BYTES)

        def both(chunk: bytes) -> None:
            if not self.seen:
                self.seen = any(self._pattern.search(line.text) for line in cutter.feed(chunk))
            reader(chunk)

        return both


def drain(readers: dict[int, Reader], *, alive: Callable[[], bool], stop: threading.Event) -> None:
    """Reads descriptors until they are closed, or nobody writes and the process has gone; closes them.

    A `stop` ends it too once the process has gone: a process that lives is read to its end.
    """
    with selectors.DefaultSelector() as selector:
        for descriptor in readers:
            selector.register(descriptor, selectors.EVENT_READ)
        gone_at: float | None = None
        try:
            while selector.get_map():
                ready = selector.select(LOOK_EVERY_S)
                for key, _ in ready:
                    if not _read(key.fd, readers[key.fd]):
                        selector.unregister(key.fd)
                if not alive():
                    gone_at = gone_at or time.monotonic()
                    if not ready or stop.is_set() or time.monotonic() > gone_at + AFTERMATH_S:
                        return
        finally:
            for descriptor in readers:
                os.close(descriptor)


def _read(descriptor: int, reader: Reader) -> bool:
    chunk = os.read(descriptor, CHUNK_BYTES)
    if chunk:
        reader(chunk)
    return bool(chunk)
