"""The clock of a timeline: instants of the history as milliseconds since the start of the trial."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_trial.model.kernels import Ints

NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class TimelineClock:
    """Counts from `zero_ns`, the start of the trial; what lies before `begin_ns` or after `end_ns` (an ownership that
    never ended, a clock that was wrong) is put there."""

    zero_ns: int
    begin_ns: int
    end_ns: int

    def ms(self, time_ns: int) -> int:
        """Returns an instant in nanoseconds as milliseconds."""
        return (min(max(time_ns, self.begin_ns), self.end_ns) - self.zero_ns) // NS_PER_MS

    def many_ms(self, time_ns: Ints) -> list[int]:
        """Returns instants in nanoseconds as milliseconds."""
        found: list[int] = ((time_ns.clip(self.begin_ns, self.end_ns) - self.zero_ns) // NS_PER_MS).tolist()
        return found

    def buckets(self, time_ns: Ints, count: int) -> Ints:
        """Returns in which of so many equal parts of the timeline each instant lies."""
        width_ns = max(1, (self.end_ns - self.begin_ns) // count)
        found: Ints = (time_ns.clip(self.begin_ns, self.end_ns) - self.begin_ns) // width_ns
        return found
