"""How long coordinators took to load a group: what brokers logged about its partition of the offsets log.

The lines are those of Kafka's coordinators (read in its sources and in the jars of 3.7.2, 3.9.2, 4.0.2, 4.1.2, 4.2.1,
4.2.2, 4.3.1 and 4.4.0): of the old one, `GroupMetadataManager.scala` up to 3.9, and of the new one,
`CoordinatorRuntime.java`, whose words are the same from 3.9 on. Each load begins with "Scheduling loading", and ends
with "Finished loading", with why it failed, or given up: unloaded again, or the process ended. Times are local, of the
brokers' machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np

from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.model.kernels import NONE
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic
from kafka_trial.trial.setup import KEPT_BYTES_MAX
from kafka_trial.upgrade.availability_events import NS_PER_S, StageTimes, seconds
from kafka_trial.upgrade.coordinator_answers import Span

NOT_ENDED: Final = "it had not ended"
MS_PER_S: Final = 1000
_LINE: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (?:INFO|ERROR) (.*)")
# Its process ends, or another one begins.
_PROCESS: Final = re.compile(r"\[GroupCoordinator (?:id=)?\d+\]:? (?:Starting up|Shutting down)\.")


@dataclass(frozen=True)
class CoordinatorLoad:
    """A coordinator that loaded the group's partition of the offsets log, by its server.log.

    `at_s`: when the line was written, in seconds since the rehearsal began. `seconds`: how long it took, as the broker
    counts it, with the wait for its scheduler; None where it failed (`problem`: why), or had not ended.
    """

    broker: int
    at_s: float
    seconds: float | None
    problem: str = ""


@dataclass(frozen=True)
class LoggedLoad:
    """A load that a server.log tells: when its last line was written (wall clock), how long it took (None: it failed,
    or had not ended), and what was wrong."""

    wall_ns: int
    took_s: float | None
    problem: str = ""


class _Words:
    """What is said of the loads of one partition."""

    def __init__(self, partition: int) -> None:
        place = re.escape(f"{OFFSETS_TOPIC}-{partition}") + r"(?!\d)"
        self.scheduled = re.compile(rf"Scheduling loading of (?:offsets and group )?metadata from {place}")
        self.finished = re.compile(
            rf"Finished loading (?:offsets and group|of) metadata from {place}.*? in (\d+) ?(?:ms|milliseconds)\b"
            rf"|Finished loading of metadata from {place} .*startTimeMs=(\d+), endTimeMs=(\d+)"
        )
        self.failed = re.compile(
            rf"Failed to load metadata from {place} with epoch \d+ due to (.*)\. \(|Error loading offsets from {place}"
        )
        # It serves already, or has loaded a later epoch: no load comes of it.
        self.needless = re.compile(
            rf"Already loading offsets and group metadata from {place}|The coordinator {place} is already "
            rf"|(?:Not|Ignored) loading (?:offsets and group )?metadata (?:for|from) {place}"
        )
        self.given_up = re.compile(
            rf"Scheduling unloading of (?:offsets and group )?metadata (?:for|from) {place}|{_PROCESS.pattern}"
        )


def logged_loads(server_log: str, partition: int) -> Iterator[LoggedLoad]:
    """Yields the loads of one partition of the offsets log that a broker's server.log tells, in their order."""
    words = _Words(partition)
    pending: list[int] = []  # when the loads were scheduled that have not ended
    for stamp, said in _LINE.findall(server_log):
        wall_ns = _wall_ns(stamp)
        if words.scheduled.search(said):
            pending.append(wall_ns)
        elif words.needless.search(said):
            pending = pending[:-1]
        elif words.given_up.search(said):
            pending = []
        elif finished := words.finished.search(said):
            pending = []
            yield LoggedLoad(wall_ns, _took_s(*finished.groups()))
        elif failed := words.failed.search(said):
            pending = []
            yield LoggedLoad(wall_ns, None, failed[1] or "its server.log does not say why")
    yield from (LoggedLoad(wall_ns, None, NOT_ENDED) for wall_ns in pending[:1])


def _took_s(took_ms: str | None, start_ms: str | None, end_ms: str | None) -> float:
    ms = int(took_ms) if took_ms else int(end_ms or 0) - int(start_ms or 0)
    return ms / MS_PER_S


def _wall_ns(stamp: str) -> int:
    moment = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").astimezone()
    return round(moment.timestamp() * MS_PER_S) * int(NS_PER_S) // MS_PER_S


class BrokerLogs:
    """What the brokers of a trial logged of the loads of its group, as far as it was kept: of a long log the end."""

    def __init__(self, logs: Path, group: str, clocks: TrialContext) -> None:
        """Reads the `bN-server.log` of a folder; `clocks`: the pairs of both clocks of the trial."""
        self._clocks = clocks
        self._loads: dict[int, list[tuple[int, LoggedLoad]]] = {}
        self._begin_ns: list[int] = []  # of logs whose beginning was not kept
        partition = group_partition(group, partitions=OFFSETS_PARTITIONS)
        for log in sorted(logs.glob("b[0-9]*-server.log")) if clocks.clocks else ():
            text = log.read_text(errors="replace")
            about = "\n".join(line for line in text.splitlines() if OFFSETS_TOPIC in line or _PROCESS.search(line))
            loads = [(self._monotonic_ns(one.wall_ns), one) for one in logged_loads(about, partition)]
            self._loads[int(log.name[1:].partition("-")[0])] = loads
            if log.stat().st_size >= KEPT_BYTES_MAX and (first := _LINE.search(text)):
                self._begin_ns.append(self._monotonic_ns(_wall_ns(first[1])))

    @property
    def spans(self) -> Mapping[int, Sequence[Span]]:
        """When each broker was loading, as far as it says how long it took."""
        return {
            broker: [(at_ns - int((one.took_s or 0.0) * NS_PER_S), at_ns) for at_ns, one in logged]
            for broker, logged in self._loads.items()
        }

    def loads(self, coordinators: Sequence[int], time: StageTimes, *, base_ns: int) -> Sequence[CoordinatorLoad] | None:
        """Returns the loads from the beginning of a stage to that of the next one, in their order; None where there
        are no logs, or not that of one of the coordinators, or one that begins later."""
        late = any(begin_ns > time.begin_ns for begin_ns in self._begin_ns)
        if late or not self._loads or not self._loads.keys() >= {*coordinators}:
            return None
        loads = [
            (at_ns, CoordinatorLoad(broker, seconds(at_ns - base_ns), one.took_s, one.problem))
            for broker, logged in self._loads.items()
            for at_ns, one in logged
            if time.begin_ns <= at_ns < time.end_ns
        ]
        return [load for _, load in sorted(loads, key=lambda pair: pair[0])]

    def _monotonic_ns(self, wall_ns: int) -> int:
        return int(monotonic(self._clocks, np.array([wall_ns]), np.array([NONE]))[0])
