"""The reading probe: how long a line waits in its pipe before the harness reads it, measured for every reader.

A process of ours (`probe_writer.py`) writes the time into a pipe of each reader, and the thread that reads the member's
streams reads that pipe too. All that was written into the streams before one of these times had been read when they
were next found empty: so the time from the stamp before it until then is as long as any line can have waited. The
greatest of each second goes into the history of the run (`reading_delay`); the judge orders lines by it.

What a container prints has come through its engine before it is in our pipe, and nothing measures that way: 286 ms were
seen on a busy machine, of an image that flushes each line. So it counts as `ENGINE_HOLDS_NS`, which is the greatest
tolerance between sources.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_trial.consumers import probe_writer
from kafka_trial.history.recorder import EventWriter
from kafka_trial.process.children import ChildProcesses

TELL_EVERY_NS = 1_000_000_000
STAMPS_READ_MAX = 512
ENGINE_HOLDS_NS = 500_000_000  # as long as the judge lets any line wait
WRITER = Path(probe_writer.__file__)


class ReaderProbe:
    """The probe of one reader: `descriptor` is read by it, beside the streams of its member."""

    def __init__(self, descriptor: int, record: EventWriter, reader: str, *, least_ns: int = 0) -> None:
        self.descriptor = descriptor
        self._least_ns = least_ns
        self._record = record
        self._reader = reader
        self._since_ns: int | None = None
        self._waiting: list[int] = []
        self._worst_ns = 0
        self._told_ns = time.monotonic_ns()

    def take(self) -> bool:
        """Reads the times that were written; called before the streams are read. False: nobody writes any more."""
        size = probe_writer.STAMP.size
        chunk = os.read(self.descriptor, STAMPS_READ_MAX * size)  # each was written whole
        self._waiting += [stamp for (stamp,) in probe_writer.STAMP.iter_unpack(chunk[: len(chunk) // size * size])]
        return bool(chunk)

    def emptied(self) -> None:
        """Notes that the streams were found empty after the last `take`: nothing written before it waits any more."""
        now_ns = time.monotonic_ns()
        if self._waiting and self._since_ns is not None:
            self._worst_ns = max(self._worst_ns, now_ns - self._since_ns)
        if self._waiting:
            self._since_ns = self._waiting[-1]
            self._waiting.clear()
        if now_ns - self._told_ns >= TELL_EVERY_NS:
            self.tell()

    def tell(self) -> None:
        """Writes the greatest delay since the last one told, if there was anything to measure."""
        if self._worst_ns:
            self._record.record("reading_delay", reader=self._reader, delay_ns=max(self._worst_ns, self._least_ns))
        self._worst_ns, self._told_ns = 0, time.monotonic_ns()


class ReadingProbe:
    """The probe of a trial: gives every reader one of its own; made by `reading_probe`."""

    def __init__(self, record: EventWriter, writer: socket.socket, *, least_ns: int = 0) -> None:
        self._record = record
        self._least_ns = least_ns
        self._writer = writer

    def of(self, reader: str) -> ReaderProbe:
        """Returns the probe of one reader, named as the source it writes; whoever reads it closes its descriptor."""
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(write_end, False)
            with suppress(OSError):  # the writer has gone: then nothing is measured, and the judge knows it
                socket.send_fds(self._writer, [b"+"], [write_end])
        finally:
            os.close(write_end)
        return ReaderProbe(read_end, self._record, reader, least_ns=self._least_ns)


@contextmanager
def reading_probe(child_processes: ChildProcesses, record: EventWriter, *, least_ns: int = 0) -> Iterator[ReadingProbe]:
    """Yields the probe of a trial, whose process ends with the `with`; `least_ns`: no line counts as read sooner."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            child = child_processes.spawn("reading-probe", [sys.executable, "-I", "-S", WRITER], stdin=theirs.fileno())
        try:
            yield ReadingProbe(record, ours, least_ns=least_ns)
        finally:
            ours.close()
            child.wait(within_s=10.0)
