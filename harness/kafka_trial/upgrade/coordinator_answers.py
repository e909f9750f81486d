"""What the coordinators of a group answered, by the brokers' request logs, and which of it shows that they serve it.

An answer without an error shows it, but one: to a classic heartbeat a coordinator that is still loading the group
answers "blindly" without an error too (`GroupCoordinator.scala`, `GroupCoordinatorService.java`), so that members wait.
Such answers lie within a load that the broker logged, or between a refusal of it and its next other answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kafka_trial.history.event import Event
from kafka_trial.history.store import RunFolder
from kafka_trial.model.kernels import NONE, Ints
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic
from kafka_trial.upgrade.availability_events import StageTimes, events_of, seconds, within

HEARTBEAT: Final = "HEARTBEAT"  # of the classic protocol
SYNC_GROUP: Final = "SYNC_GROUP"
# What a group's coordinator answers to members, and to commits.
OF_COORDINATOR: Final = frozenset(
    (HEARTBEAT, "CONSUMER_GROUP_HEARTBEAT", "JOIN_GROUP", SYNC_GROUP, "OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
)
REFUSALS: Final = frozenset((14, 15, 16))  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
LOST_SIGHT: Final = frozenset(("behind", "dead", "undecodable"))  # states of a witness

Span = tuple[int, int]  # from when to when, by the monotonic clock, in nanoseconds


@dataclass(frozen=True)
class Answer:
    """An answer to a member: when it was sent; `ok`: it has no error, not of one partition either."""

    at_ns: int
    api: str
    member: str
    error: int
    ok: bool

    @property
    def may_be_blind(self) -> bool:
        return self.api == HEARTBEAT and self.ok

    @property
    def tells_nothing(self) -> bool:
        """A sync that is refused for a rebalance: so it is too while the group is loading."""
        return self.api == SYNC_GROUP and not self.ok


class Answers:
    """The answers that a group had of its coordinators: `any_ns`, and `served_ns`, those that show that it was served.

    Instants of the monotonic clock, in their order.
    """

    def __init__(
        self, folder: RunFolder, group: str, clocks: TrialContext, loads: Mapping[int, Sequence[Span]]
    ) -> None:
        """Reads them from a history; `clocks`: its pairs of both clocks, `loads`: those that brokers logged."""
        self._lost_sight: list[int] = []
        by_broker = self._read(folder, group, clocks)
        every = [one for answers in by_broker.values() for one in answers]
        served = [one for broker, answers in by_broker.items() for one in showing(answers, loads.get(broker, ()))]
        self.any_ns: Ints = np.sort(np.array([one.at_ns for one in every], np.int64))
        self.served_ns: Ints = np.sort(np.array([one.at_ns for one in served], np.int64))
        self._by_member: dict[str, list[int]] = defaultdict(list)
        for one in served:
            self._by_member[one.member].append(one.at_ns)

    def complete(self, time: StageTimes) -> bool:
        """Tells whether the logs can say how long there was no answer: members asked by then, and all was read."""
        return bool((self.any_ns <= time.heal_ns).any()) and not any(
            time.begin_ns <= lost_ns < time.end_ns for lost_ns in self._lost_sight
        )

    def apart_s(self, time: StageTimes) -> float | None:
        """Returns how far answers to one member are apart as a rule; None where no member had three."""
        each = (within(np.sort(np.array(at_ns, np.int64)), time) for at_ns in self._by_member.values())
        medians = [float(np.median(np.diff(at_ns))) for at_ns in each if len(at_ns) > 2]
        return seconds(min(medians)) if medians else None

    def _read(self, folder: RunFolder, group: str, clocks: TrialContext) -> Mapping[int, list[Answer]]:
        """Returns the answers of each broker, in their order."""
        read: list[tuple[int, Event]] = []
        for event in events_of(folder, "requests-*"):
            if event.kind == "witness" and event.details.get("state") in LOST_SIGHT:
                self._lost_sight.append(event.time_ns)
            elif event.details.get("group") == group and event.details.get("api") in OF_COORDINATOR:
                read.append((int(event.source.rpartition("-b")[2]), event))
        read_ns = np.array([event.time_ns for _, event in read], np.int64)
        wall_ns = np.array([NONE if one.source_wall_ns is None else one.source_wall_ns for _, one in read], np.int64)
        at_ns = np.minimum(monotonic(clocks, wall_ns, read_ns), read_ns)
        by_broker: dict[int, list[Answer]] = defaultdict(list)
        for number in np.argsort(at_ns, kind="stable"):
            broker, event = read[number]
            by_broker[broker].append(_answer(int(at_ns[number]), event))
        return by_broker


def _answer(at_ns: int, event: Event) -> Answer:
    told = event.details
    error = int(told.get("error") or 0)
    errors = [error, *(entry.get("error") or 0 for entry in told.get("entries") or ())]
    member = str(told.get("member_id") or told.get("client_id") or "")
    refused = next((one for one in errors if one in REFUSALS), error)
    return Answer(at_ns, str(told.get("api")), member, refused, "error" in told and not any(errors))


def showing(answers: Sequence[Answer], loads: Sequence[Span]) -> Iterator[Answer]:
    """Yields those answers of one broker, in their order, that show that it served the group; `loads`: those that it
    logged. Where a refusal is its last other answer, and it logged no load since, a heartbeat is no blind one."""
    telling = [one.at_ns for one in answers if not (one.may_be_blind or one.tells_nothing)]
    last_ns = max(telling, default=0)
    refused_ns: int | None = None
    for one in answers:
        if one.may_be_blind:
            loading = any(begin_ns <= one.at_ns <= end_ns for begin_ns, end_ns in loads)
            loaded = refused_ns is None or any(refused_ns < end_ns <= one.at_ns for _, end_ns in loads)
            if not loading and (loaded or one.at_ns > last_ns):
                yield one
        elif one.error in REFUSALS:
            refused_ns = one.at_ns
        elif not one.tells_nothing:
            refused_ns = None
            if one.ok:
                yield one
