"""What a stage cost in availability, in words: a line for a terminal, and the cells of the page's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.upgrade.availability import Availability, GroupAvailability, PartitionAvailability
from kafka_trial.upgrade.coordinator_loads import CoordinatorLoad
from kafka_trial.upgrade.record import RecordedStage

LONG_S: Final = 5.0  # what was unavailable for longer is told on a terminal
NOT_RECORDED: Final = "not recorded"


def long_times(stage: RecordedStage) -> str:
    """Returns in one line what was unavailable in a stage for longer than LONG_S, and loads that failed; "" where
    nothing was."""
    told = [(one.consumer, "; ".join(_long(one))) for one in stage.availability]
    return ". ".join(f"{consumer}: {words}" for consumer, words in told if words)


def _long(cost: Availability) -> Iterator[str]:
    group = cost.group
    if (group.unanswered_s or 0.0) > max(LONG_S, 2 * (group.answers_apart_s or 0.0)):
        yield f"the group was not served for {group.unanswered_s:.1f} s"
    if (group.coordinatorless_s or 0.0) > LONG_S:
        yield f"it had no coordinator for {group.coordinatorless_s:.1f} s"
    for load in group.loads or ():
        if load.seconds is None or load.seconds > LONG_S:
            yield f"{load_in_words(load)}{' to load it' if load.seconds else ''}"
    yield from _longest(cost.partitions, lambda one: one.unavailable_s, "took no record")
    yield from _longest(cost.partitions, lambda one: one.leaderless_s, "had no leader")


def _longest(
    partitions: Sequence[PartitionAvailability], seconds: Callable[[PartitionAvailability], float | None], what: str
) -> Iterator[str]:
    long = [one for one in partitions if (seconds(one) or 0.0) > LONG_S]
    if long:
        worst = max(long, key=lambda one: seconds(one) or 0.0)
        others = f", {len(long) - 1} more for longer than {LONG_S:.0f} s" if long[1:] else ""
        yield f"partition {worst.partition} {what} for {seconds(worst):.1f} s{others}"


def load_in_words(load: CoordinatorLoad) -> str:
    """Returns what a coordinator took to load the group, or why it did not."""
    name = node_name(load.broker)
    return f"{name} did not load it: {load.problem}" if load.seconds is None else f"{name} took {load.seconds:.2f} s"


def group_cells(group: GroupAvailability) -> list[str]:
    """Returns a group's part of a row: how long it was not served, had no coordinator, who that was, what they took to
    load it."""
    served = duration_in_words(group.unanswered_s)
    if group.unanswered_s is not None and group.answers_apart_s is not None:
        served += f" (answers are {group.answers_apart_s:.1f} s apart)"
    loads = NOT_RECORDED if group.loads is None else ", ".join(map(load_in_words, group.loads)) or "none was logged"
    return [served, duration_in_words(group.coordinatorless_s), nodes_in_words(group.coordinators), loads]


def partition_cells(cost: Availability) -> list[str]:
    """Returns the partitions' part of a row: how long the worst of them took no record, and had no leader."""
    return [
        _worst(cost.partitions, lambda one: one.unavailable_s),
        _worst(cost.partitions, lambda one: one.leaderless_s),
    ]


def _worst(
    partitions: Sequence[PartitionAvailability], seconds: Callable[[PartitionAvailability], float | None]
) -> str:
    known = [(value, one.partition) for one in partitions if (value := seconds(one)) is not None]
    if not known:
        return NOT_RECORDED
    longest_s, partition = max(known, key=lambda pair: (pair[0], -pair[1]))
    unknown = len(partitions) - len(known)
    rest = f", of {unknown} {NOT_RECORDED}" if unknown else ""
    return (f"{longest_s:.1f} s, partition {partition}" if longest_s else "0.0 s") + rest


def partition_in_words(one: PartitionAvailability) -> str:
    """Returns what a stage cost one partition."""
    durations = {
        "a record waited and none was acknowledged for": one.unavailable_s,
        "none was acknowledged for": one.unacknowledged_s,
        "none was sent for": one.sends_apart_s,
        "it had no leader for": one.leaderless_s,
    }
    told = (f"{what} {duration_in_words(seconds)}" for what, seconds in durations.items() if seconds is not None)
    return f"partition {one.partition}: {', '.join(told) or NOT_RECORDED}"


def nodes_in_words(nodes: Sequence[int]) -> str:
    """Returns nodes in the order of time."""
    return ", then ".join(map(node_name, nodes)) or NOT_RECORDED


def duration_in_words(seconds: float | None) -> str:
    """Returns a duration, or that it is not recorded."""
    return NOT_RECORDED if seconds is None else f"{seconds:.1f} s"
