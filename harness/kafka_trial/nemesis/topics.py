"""Faults of the topic under trial: judged from what its leaders say of their logs, and which partitions there are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import LogSnapshot, TopicSnapshot
from kafka_trial.process.waiting import pause, wait_until

ASKED_EVERY_S = 0.5
WAITS_MAX_S = 300.0  # as long as a drain lasts at most, by default


@fault(
    "records-deleted",
    targets=("leader", "all"),
    scope="members",
    heals=True,
    consequences=[Consequence.CHANGES_TOPIC, Consequence.HARMLESS],
    waits=True,
)
def records_deleted(injection: Injection, *, older_than_s: float = 0.0, once_due: bool = False) -> Iterator[Evidence]:
    """Deletes all that a partition held older_than_s ago, as retention does; it does not come back.

    By DeleteRecords, which raises the log start offset as retention does (KIP-107), but of one partition, at once and
    to the record, where `retention.ms` takes whole segments of a whole topic some time after they are due. With
    `once_due` nothing goes that a group which keeps its claim may not have done yet: the fault waits until the group
    has committed past it, or has had as long as it may take to converge (longer on a machine that is busier by then),
    but no longer than 300 s.

    Raises:
        UnjudgeableError: `once_due`, and nobody here knows how long the group may take.
    """
    wanted = _partitions(injection)
    ends = injection.log("before").ends
    below = {partition: end for partition, end in ends.items() if wanted is None or partition in wanted}
    waited = _await_due(injection, ends, below) if once_due else Waited()
    if not waited.due:
        yield Evidence(False, f"after {WAITS_MAX_S:g} s the group might still be at what is to go", asdict(waited))
        return
    pause(older_than_s, stop=injection.stop)
    before = injection.log("before").of(below)
    injection.injecting()
    injection.context.delete_records(below)
    inside = injection.hold(lambda: injection.log("inside"))
    yield evidence.records_deleted(before, inside, below).with_details(**asdict(waited) if once_due else {})


def _partitions(injection: Injection) -> set[int] | None:
    """Returns the partition that the target leads; None: all."""
    return None if injection.target.partition is None else {injection.target.partition}


@dataclass(frozen=True)
class Waited:
    """How it was waited until records are due: how long the group may take, how much longer as the machine was busier,
    how long it was, what the group had committed by then, and whether they are due."""

    due_s: float = 0.0
    busier_s: float = 0.0
    waited_s: float = 0.0
    committed: Mapping[str, int] = field(default_factory=dict)
    due: bool = True


def _await_due(injection: Injection, ends: Mapping[int, int], below: Mapping[int, int]) -> Waited:
    """Waits until the group has committed `below`, or has had the time for it."""
    context, committed = injection.context, dict[int, int]()
    if context.due_s is None:
        raise UnjudgeableError("nobody here knows how long the group may take over what lies there")
    due_s, busier_s, began_ns = context.due_s(ends), 0.0, time.monotonic_ns()

    def passed() -> bool:
        with suppress(UnjudgeableError):  # its coordinator is moving: asked again
            committed.update(context.committed_offsets())
        return injection.stop.is_set() or all(committed.get(part, 0) >= end for part, end in below.items())

    done = False
    while not done and (left_s := min(due_s + busier_s, WAITS_MAX_S) - _since_s(began_ns)) > 0:
        with suppress(WaitTimeout):  # it has had its time, unless the machine kept it from its work
            done = wait_until(passed, within_s=left_s, what="the group to commit past it", every_s=ASKED_EVERY_S)
        busier_s = context.busier_s(began_ns)
    return Waited(
        round(due_s, 1),
        round(busier_s, 1),
        round(_since_s(began_ns), 1),
        {str(part): committed[part] for part in sorted(below) if part in committed},
        done or due_s + busier_s <= WAITS_MAX_S,
    )


def _since_s(began_ns: int) -> float:
    return (time.monotonic_ns() - began_ns) / 1e9


SERVED_WITHIN_S = 10.0


def _complete(injection: Injection, seen: Evidence) -> Evidence:
    """Adds whether the group has noticed, and where the logs of the topic end by now."""
    ends = {str(partition): end for partition, end in injection.log("after").ends.items()}
    return seen.with_details(**injection.group_since(), log_ends=ends)


@fault(
    "partitions-added",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=[Consequence.CHANGES_TOPIC, Consequence.HARMLESS],
    complete=_complete,
)
def partitions_added(injection: Injection, *, added: int = 8) -> Iterator[Evidence]:
    """Adds partitions to the topic while it is in use; none can be taken away again.

    Records come there as soon as the load knows them, within five seconds; a key may have another partition from then
    on. Who reads the topic notices when it next asks for its metadata (`metadata_age_s`), or is told (KIP-848).
    """
    before = injection.topic("before")
    injection.context.add_partitions(len(before.leaders) + int(added))

    def look() -> tuple[TopicSnapshot, LogSnapshot]:
        return injection.topic("inside"), injection.log("inside")

    looks = injection.hold_until(
        look,
        lambda looks: evidence.partitions_added(before, [looks[-1][0]], looks[-1][1]).took_effect,
        within_s=SERVED_WITHIN_S,
    )
    yield evidence.partitions_added(before, [topic for topic, _ in looks], looks[-1][1])


@fault(
    "topic-created",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=[Consequence.CHANGES_TOPIC, Consequence.HARMLESS],
    complete=lambda injection, seen: seen.with_details(**injection.group_since()),
)
def topic_created(injection: Injection, *, topic: str = "") -> Iterator[Evidence]:
    """Creates a further topic that comes later, while the group is at work; its load begins with its opening burst.

    Who subscribes by a pattern notices when it next asks for metadata (`metadata_age_s`), or when its coordinator
    resolves the pattern again (KIP-848: once in ten seconds at most).

    Raises:
        UnjudgeableError: the trial has no such topic.
    """
    context = injection.context
    if topic not in context.later_topics:
        raise UnjudgeableError(f"no topic of this trial is called {topic!r} and comes later")
    of_topic = replace(context, topic=context.later_topics[topic])
    before = injection.keep("before", of_topic.topic_snapshot())
    injection.injecting()
    context.create_later_topic(topic)

    def look() -> tuple[TopicSnapshot, LogSnapshot]:
        return injection.keep("inside", of_topic.topic_snapshot()), injection.keep("inside", of_topic.log_snapshot())

    looks = injection.hold_until(
        look,
        lambda looks: evidence.topic_created(before, [looks[-1][0]], looks[-1][1]).took_effect,
        within_s=SERVED_WITHIN_S,
    )
    yield evidence.topic_created(before, [seen for seen, _ in looks], looks[-1][1])
