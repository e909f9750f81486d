"""The output of one member incarnation: its two streams, read by one thread, until the process is gone.

stdout becomes history (`wire.py`), or a log where the consumer prints no events; stderr becomes a log. Logs are
bounded, lines too: what a consumer prints is untrusted, its length too. Whatever is printed, the member is never
blocked by us and the harness's memory stays small.
"""

from __future__ import annotations

import os
import re
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LINE_BYTES_MAX = 16 * 1024 * 1024  # VerifiableConsumer prints whole values
QUOTE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline; of an overlong one only the head is kept, `size_bytes` counts it all."""

    text: bytes
    size_bytes: int

    @property
    def whole(self) -> bool:
        return len(self.text) == self.size_bytes


class LineCutter:
    """Cuts chunks into lines; keeps at most `bytes_max` of a line, and of one beyond that only the quote."""

    def __init__(self, *, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._overlong = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yields every line that ends in `chunk`."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._take(part)
            yield self._line()
        self._take(rest)

    def rest(self) -> Iterator[Line]:
        """Yields the last line, when its newline never came."""
        if self._size_bytes:
            yield self._line()

    def _take(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes <= self._bytes_max:
            self._parts.append(part)
        elif not self._overlong:
            self._overlong = True
            self._parts = [b"".join([*self._parts, part])[:QUOTE_BYTES_MAX]]

    def _line(self) -> Line:
        line = Line(b"".join(self._parts), self._size_bytes)
        self._parts, self._size_bytes, self._overlong = [], 0, False
        return line


CHUNK_BYTES = 1 << 16
LOG_BYTES_MAX = 10 * 1024 * 1024
AFTERMATH_S = 2.0  # a grandchild may hold the streams open for ever
LOOK_EVERY_S = 0.1

Reader = Callable[[bytes], None]


class Probe(Protocol):
    """A further pipe of a reader, by which it is measured (`reading_probe.py`)."""

    @property
    def descriptor(self) -> int: ...

    def take(self) -> bool:
        """Reads what waits there; False once nobody writes any more."""
        ...

    def emptied(self) -> None:
        """Hears that every stream was found empty after the last `take`."""
        ...

    def tell(self) -> None:
        """Writes down what was measured since it last was."""
        ...


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


def drain(
    readers: dict[int, Reader], *, alive: Callable[[], bool], stop: threading.Event, probe: Probe | None = None
) -> None:
    """Reads descriptors until they are closed, or nobody writes and the process has gone; closes them.

    A `stop` ends it too once the process has gone: a process that lives is read to its end. A `probe` is read beside
    them, before them each time, and closed with them.
    """
    with selectors.DefaultSelector() as selector:
        streams = set(readers)
        for descriptor in readers:
            selector.register(descriptor, selectors.EVENT_READ)
        if probe is not None:
            selector.register(probe.descriptor, selectors.EVENT_READ)
        gone_at: float | None = None
        try:
            while streams:
                ready = {key.fd for key, _ in selector.select(LOOK_EVERY_S)}
                if probe is not None and probe.descriptor in ready:
                    if not probe.take():
                        selector.unregister(probe.descriptor)
                    # What came after the look above, and before what the probe took, must be read before it is told.
                    ready = {key.fd for key, _ in selector.select(0)}
                sizes = {descriptor: _read(descriptor, readers[descriptor]) for descriptor in sorted(ready & streams)}
                for descriptor in [descriptor for descriptor, size in sizes.items() if not size]:
                    selector.unregister(descriptor)
                    streams.remove(descriptor)
                if probe is not None and all(size < CHUNK_BYTES for size in sizes.values()):
                    probe.emptied()
                if not alive():
                    gone_at = gone_at or time.monotonic()
                    if not sizes or stop.is_set() or time.monotonic() > gone_at + AFTERMATH_S:
                        return
        finally:
            for descriptor in readers:
                os.close(descriptor)
            if probe is not None:
                probe.tell()
                os.close(probe.descriptor)


def _read(descriptor: int, reader: Reader) -> int:
    """Hands what can be read now to the reader; returns its size, 0 at the end."""
    chunk = os.read(descriptor, CHUNK_BYTES)
    if chunk:
        reader(chunk)
    return len(chunk)
