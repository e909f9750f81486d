"""Clock samples: what the run's own clocks say of time, and of when the harness stood still.

Gathered for the trial context (`trial_context_builder.py`): one pair of clocks and one delay a second, and one delay
of each reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_trial.history.event import lacking
from kafka_trial.invariants.trial_context import STANDSTILL_NS, TOLERANCE_NS

Body = Mapping[str, Any]
Span = tuple[int, int]
EVERY_NS = 1_000_000_000  # where an event does not say how long the pause was to last


@dataclass
class ClockCollector:
    """What has been gathered so far."""

    clocks: list[tuple[int, int]] = field(default_factory=list)
    delays: list[tuple[int, int]] = field(default_factory=list)
    harness_stalls: list[Span] = field(default_factory=list)
    readings: list[tuple[str, int, int]] = field(default_factory=list)

    def take_clock(self, body: Body) -> None:
        """Takes the run's two clocks, read one after the other."""
        if not lacking("clock", body):  # else it has been named
            self.clocks.append((body["wall_ns"], body.get("read_ns", body["time_ns"])))

    def take_scheduling_delay(self, body: Body) -> None:
        """Takes how much longer than it was to last a pause of the harness was."""
        if lacking("scheduling_delay", body):
            return
        at_ns, delay_ns = body["time_ns"], body["delay_ns"]
        self.delays.append((at_ns, delay_ns))
        if delay_ns > STANDSTILL_NS:
            self.harness_stalls.append((max(0, at_ns - delay_ns - body.get("every_ns", EVERY_NS)), at_ns))

    def take_reading_delay(self, body: Body) -> None:
        """Takes how late a reader was: beyond the tolerance between sources a standstill, if only of this reader."""
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
