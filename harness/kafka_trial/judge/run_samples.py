"""Samples: what the run's own clocks say of time, and what members' processes, memory and membership say of them.

Gathered for the trial context (`trial_context_builder.py`): one pair of clocks and one delay a second, and one delay of
each reader. Of memory only the samples are kept that are above all before them, of the kernel's out-of-memory killer
only the rises of its counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kafka_trial.history.event import lacking
from kafka_trial.judge.history_names import HistoryNames
from kafka_trial.model.trial_context import HARNESS_STALL_NS, TOLERANCE_NS, CpuWait, Epoch, OomRise, Peak

Body = Mapping[str, Any]
Span = tuple[int, int]
EVERY_NS = 1_000_000_000  # where an event does not say how long the pause was to last


@dataclass
class ClockCollector:
    """What has been gathered so far."""

    clocks: list[tuple[int, int]] = field(default_factory=list)
    delays: list[tuple[int, int]] = field(default_factory=list)
    cpu_waits: list[CpuWait] = field(default_factory=list)
    harness_stalls: list[Span] = field(default_factory=list)
    readings: list[tuple[str, int, int]] = field(default_factory=list)

    def take_clock(self, body: Body) -> None:
        """Takes the run's two clocks, read one after the other."""
        if not lacking("clock", body):  # else it has been named
            self.clocks.append((body["wall_ns"], body.get("read_ns", body["time_ns"])))

    def take_scheduling_delay(self, body: Body) -> None:
        """Takes how much longer than it was to last a pause of the harness was."""
        if lacking("scheduling_delay", body) or body["delay_ns"] < 0:
            return
        at_ns, delay_ns = body["time_ns"], body["delay_ns"]
        self.delays.append((at_ns, delay_ns))
        if delay_ns > HARNESS_STALL_NS:
            self.harness_stalls.append((max(0, at_ns - delay_ns - body.get("every_ns", EVERY_NS)), at_ns))

    def take_cpu_wait(self, body: Body) -> None:
        """Takes how long members and brokers waited for a processor."""
        if not lacking("cpu_wait", body):
            self.cpu_waits.append(CpuWait(*(body[one.name] for one in fields(CpuWait))))

    def take_reading_delay(self, body: Body) -> None:
        """Takes how late a reader was: beyond the tolerance between sources a stall, if only of this reader."""
        if lacking("reading_delay", body):
            return
        at_ns, delay_ns = body["time_ns"], body["delay_ns"]
        self.readings.append((body["reader"], at_ns, delay_ns))
        if delay_ns > TOLERANCE_NS:
            self.harness_stalls.append((max(0, at_ns - delay_ns - EVERY_NS), at_ns))

    def trial_context(self) -> dict[str, Any]:
        """Returns the fields of `TrialContext` that these are."""
        return {
            "clocks": tuple(sorted(self.clocks)),
            "delays": tuple(sorted(self.delays)),
            "cpu_waits": tuple(self.cpu_waits),
            "harness_stalls": _apart(self.harness_stalls),
            "readings": tuple(sorted(self.readings)),
        }


def _apart(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Returns spans of time in order, those joined that lie no further apart than the tolerance between sources."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1] + TOLERANCE_NS:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)


ASKED = ("no", "stop", "overdue", "kill")


@dataclass
class ResourceCollector:
    """What has been gathered so far."""

    peaks: list[Peak] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    oom_rises: list[OomRise] = field(default_factory=list)
    topic_changes: list[int] = field(default_factory=list)
    _highest: dict[tuple[str, int], int] = field(default_factory=dict)
    _oom: tuple[int, int] | None = None  # the last reading: when, how many
    _partitions: dict[str, int] = field(default_factory=dict)

    def trial_context(self) -> dict[str, Any]:
        """Returns the fields of `TrialContext` that these are."""
        return {
            "peaks": tuple(self.peaks),
            "epochs": tuple(self.epochs),
            "oom_read": self._oom is not None,
            "oom_rises": tuple(self.oom_rises),
            "topic_changes": tuple(self.topic_changes),
        }

    def take_topic(self, name: str, body: Body) -> None:
        """Notes when a topic has other partitions than it had."""
        before = self._partitions.setdefault(name, body["partitions"])
        if before != body["partitions"]:
            self._partitions[name] = body["partitions"]
            self.topic_changes.append(body["time_ns"])

    def take_resources(self, source: int, body: Body) -> None:
        """Keeps a sample of an incarnation's memory that is above all before it."""
        member, incarnation, rss_bytes = body.get("member"), body.get("incarnation", 0), body.get("rss_bytes", 0)
        if not (isinstance(member, str) and _whole(incarnation) and _whole(rss_bytes)):
            return
        if rss_bytes > self._highest.get((member, incarnation), -1):
            self._highest[member, incarnation] = rss_bytes
            self.peaks.append(Peak(member, incarnation, rss_bytes, source, body["seq"]))

    def take_oom_kills(self, source: int, body: Body) -> None:
        """Keeps a rise of the counter of the kernel's out-of-memory killer."""
        count: Any = body.get("count")
        if not _whole(count):
            return
        if self._oom is not None and count > self._oom[1]:
            self.oom_rises.append(OomRise(self._oom[0], body["time_ns"], count - self._oom[1], source, body["seq"]))
        self._oom = body["time_ns"], count

    def take_epoch(self, names: HistoryNames, source: int, body: Body) -> None:
        """Takes the group's generation, or its epoch, of a record of the offsets log."""
        if names.is_of_group(body) and _whole(body.get("epoch")):
            wall_ns = body["source_wall_ns"] if _whole(body.get("source_wall_ns")) else None
            self.epochs.append(Epoch(body["epoch"], wall_ns, body["time_ns"], source, body["seq"]))


def exit_words(body: Body) -> dict[str, Any]:
    """Returns what the last line of an incarnation says of who ended it."""
    words: dict[str, Any] = {}
    if body.get("asked") in ASKED:
        words["asked"] = body["asked"]
    if _whole(body.get("asked_ns")):
        words["asked_ns"] = body["asked_ns"]
    within_s = body.get("within_s")
    if isinstance(within_s, int | float) and not isinstance(within_s, bool) and 0 <= within_s < 1e9:
        words["within_s"] = float(within_s)
    return words


def _whole(value: Any) -> Any:
    """Tells whether a value is a whole number that the columns can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) < value < 2**63 - 1
