"""The reading probe: real pipes, a real writer, and a reader that is late."""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import Any

import pytest

from kafka_trial.consumers import probe_writer
from kafka_trial.consumers.output import CHUNK_BYTES, drain
from kafka_trial.consumers.reading_probe import ENGINE_HOLDS_NS, ReaderProbe, reading_probe
from kafka_trial.model.trial_context import TOLERANCE_NS
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until

MS = 1_000_000


class Told:
    """An event writer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        self.events.append({"kind": kind} | fields)
        return len(self.events) - 1


def test_a_reader_that_reads_at_once_is_measured_to_be_so() -> None:
    """What is told of a second is the greatest delay in it: at least the longest gap between two of its stamps.

    A single gap may be shorter than the writer's pace, after a stamp that came late; not all forty of a second.
    """
    told, (read_end, write_end) = Told(), os.pipe()
    with (
        ChildProcesses("test") as child_processes,
        reading_probe(child_processes, told) as probe,
        ThreadGroup("readers") as thread_group,
    ):
        own = probe.of("consumer-m0-0")
        thread_group.start(
            "m0", lambda: drain({read_end: _nothing}, alive=lambda: True, stop=thread_group.stop, probe=own)
        )
        wait_until(lambda: len(told.events) >= 2, within_s=30, what="two measures")
        os.close(write_end)
    kinds = {(event["kind"], event["reader"]) for event in told.events}
    assert kinds == {("reading_delay", "consumer-m0-0")}
    assert _worst_ns(told) >= probe_writer.EVERY_S * 0.9e9


def test_a_reader_that_is_kept_from_reading_is_measured_to_be_late() -> None:
    """A chunk that takes 0.3 s keeps what is written meanwhile waiting for about as long."""
    told, (read_end, write_end) = Told(), os.pipe()
    with (
        ChildProcesses("test") as child_processes,
        reading_probe(child_processes, told) as probe,
        ThreadGroup("readers") as thread_group,
    ):
        own = probe.of("consumer-m0-0")
        thread_group.start(
            "m0", lambda: drain({read_end: _slowly}, alive=lambda: True, stop=thread_group.stop, probe=own)
        )
        wait_until(lambda: told.events, within_s=30, what="a measure")
        os.write(write_end, b"a line\n")
        wait_until(lambda: _worst_ns(told) >= 270 * MS, within_s=30, what="the delay to be seen", every_s=0.1)
        os.close(write_end)


def test_what_an_engine_hands_on_may_have_waited_as_long_as_any_line_may() -> None:
    """Its reader may be prompt; one that is later still is measured. It is the greatest tolerance of the judge."""
    told, (read_end, write_end) = Told(), os.pipe()
    probe = ReaderProbe(read_end, told, "consumer-m0-0", least_ns=ENGINE_HOLDS_NS)
    now_ns = time.monotonic_ns()
    for late_ns in (20 * MS, 900 * MS):
        _stamps(write_end, now_ns - late_ns)
        assert (probe.take(), probe.emptied()) == (True, None)
        _stamps(write_end, now_ns)
        assert (probe.take(), probe.emptied()) == (True, None)
        probe.tell()
    os.close(write_end)
    prompt, late = (event["delay_ns"] for event in told.events)
    assert (prompt, late > 890 * MS) == (TOLERANCE_NS, True)


def test_a_stamp_counts_when_the_streams_are_empty() -> None:
    """While a whole chunk was read there may be more behind it: what waits there has waited since before the stamp."""
    told, (read_end, write_end) = Told(), os.pipe()
    probe = ReaderProbe(read_end, told, "consumer-m0-0")
    now_ns = time.monotonic_ns()
    _stamps(write_end, now_ns - 900 * MS)
    assert (probe.take(), probe.emptied()) == (True, None)
    _stamps(write_end, now_ns - 800 * MS, now_ns - 100 * MS)
    assert probe.take()  # nothing is known yet of what was written since the first one
    probe.emptied()
    probe.tell()
    os.close(write_end)
    assert not probe.take()
    os.close(read_end)
    assert [900 * MS <= event["delay_ns"] < 5000 * MS for event in told.events] == [True]


@pytest.mark.parametrize(("size", "found_empty"), [(10, True), (CHUNK_BYTES, False)])
def test_a_whole_chunk_leaves_open_whether_there_is_more(size: int, *, found_empty: bool) -> None:
    """A short one shows that the stream was empty then."""
    probe, (read_end, write_end), (stamps, stamper) = _Probe(), os.pipe(), os.pipe()
    probe.descriptor = stamps
    os.write(write_end, b"x" * min(size, 1 << 16))
    stop = threading.Event()
    stop.set()
    drain({read_end: _nothing}, alive=lambda: False, stop=stop, probe=probe)
    os.close(write_end)
    os.close(stamper)
    assert probe.empty == [True] * found_empty


def test_a_writer_that_has_gone_is_no_error() -> None:
    """Then nothing is measured any more, and the members are read all the same."""
    told, (read_end, write_end) = Told(), os.pipe()
    with ChildProcesses("test") as child_processes, reading_probe(child_processes, told) as probe:
        child_processes.children[0].kill()
        wait_until(lambda: not child_processes.children[0].alive, within_s=10, what="the writer to be gone")
        own = probe.of("consumer-m0-0")
        os.write(write_end, b"last words")
        os.close(write_end)
        heard: list[bytes] = []
        drain({read_end: heard.append}, alive=lambda: True, stop=threading.Event(), probe=own)
    assert (heard, told.events) == ([b"last words"], [])


class _Probe:
    """A probe that only counts."""

    def __init__(self) -> None:
        self.descriptor = -1
        self.empty: list[bool] = []

    def take(self) -> bool:
        return True

    def emptied(self) -> None:
        self.empty.append(True)

    def tell(self) -> None:
        """Nothing to tell."""


def _nothing(chunk: bytes) -> None:
    """Nobody listens."""


def _slowly(chunk: bytes) -> None:
    pause(0.3)


def _worst_ns(told: Told) -> int:
    return max(event["delay_ns"] for event in told.events)


def _stamps(pipe: int, *times_ns: int) -> None:
    os.write(pipe, b"".join(struct.pack("=q", time_ns) for time_ns in times_ns))


def test_a_line_that_came_before_a_stamp_is_read_before_it_counts() -> None:
    """A reader saw a stamp and no line; until it took the stamps a line had come, and then one more stamp.

    Smallest history of a false alarm on a busy machine: "a commit 290 ms before its record was processed", at 217 ms
    measured. The line waited in the pipe while the reader counted a stamp that was written after it.
    """
    (stamps, stamped), (read_end, write_end) = os.pipe(), os.pipe()
    told: list[str] = []

    class LateProbe:
        descriptor = stamps

        def take(self) -> bool:
            os.read(stamps, 1)
            os.write(write_end, b"a line\n")  # it came while the reader was kept from going on
            return True

        def emptied(self) -> None:
            if "counted" not in told:
                os.close(write_end)
            told.append("counted")

        def tell(self) -> None: ...

    os.write(stamped, b"1")
    drain({read_end: lambda _: told.append("read")}, alive=lambda: True, stop=threading.Event(), probe=LateProbe())
    os.close(stamped)
    assert told[:2] == ["read", "counted"]
