"""Resets forward: positions that were moved on while the group had no members, and the records that were passed over.

Offsets that hold no record (compacted away, or a transaction's marker) are none that was passed over, nor is a record
that the sink has. What lay below the beginning of the partition is not there any more; retention may have taken it
before the reset or after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.audit.commits import Commit, commits_of, moved_forward, together
from kafka_trial.audit.history_lines import events_of
from kafka_trial.history.event import Event

OF_MEMBERS = ("group", "group_epoch", "member", "member_assignment", "group_tombstone")
OF_COMMITS = ("committed", "commit_tombstone")
RESET = "the group had no members then: it was reset, or by a consumer that is no member of it"


@dataclass(frozen=True)
class PassedOver:
    """A reset forward: how many records were read between its two positions, and how many of these the sink has.

    `handled` None: there is no sink. `gone`: so many offsets lie below the beginning of the partition. `read`: all that
    is there was read.
    """

    commit: Commit
    records: int
    handled: int | None
    gone: int
    read: bool

    @property
    def count(self) -> int:
        """How many records were passed over; of what was not read every offset counts for one."""
        there = self.commit.after - (self.commit.before or 0)
        return (self.records - (self.handled or 0) if self.read else there - self.gone) + self.gone

    @property
    def moved(self) -> str:
        """Which position was moved, from where to where, and what was passed over."""
        gone = f"; what lay at {self.gone} of these offsets is not there any more, and may not have been then"
        return f"{self.commit.moved} ({self._found()}{gone if self.gone else ''})"

    def _found(self) -> str:
        if not self.read and not self.records:
            return f"{self.count} offsets passed over, whose records were not read"
        passed = f"{self.records} records passed over"
        if self.handled is None:
            return f"{passed}, handled or not"
        return f"{passed}, {self.handled or 'none'} of them in the sink"


def read_commits(history: Path, *, topic: str, topic_id: str | None) -> Iterator[tuple[str, Commit]]:
    """Yields the commits of a run folder's offsets log by their events' names."""
    aborted = {event.details.get("log_offset") for event in events_of(history, "offsets", ("commit_aborted",))}
    events = events_of(history, "offsets", (*OF_MEMBERS, *OF_COMMITS))
    yield from commits_of(events, topic=topic, topic_id=topic_id, aborted=aborted)


def resets_forward(history: Path, *, topic: str, topic_id: str | None) -> list[Commit]:
    """Returns the commits that reset a position forward."""
    return moved_forward(one for _, one in read_commits(history, topic=topic, topic_id=topic_id) if one.outside)


def passed_over(
    moves: Sequence[Commit],
    records: Iterable[Event],
    effects: Iterable[Event] | None,
    starts: Mapping[int, int],
    *,
    read: bool,
) -> list[PassedOver]:
    """Returns the resets that passed over something, or may have.

    `records` are the topic's, `effects` the sink's (None: there is none), `starts` says where partitions begin.
    """
    between = _between(moves, records)
    wanted = {name for names in between.values() for name in names if name is not None}
    handled = None if effects is None else {event.id for event in effects if event.id in wanted}
    found = [_passed(one, names, handled, starts.get(one.partition, 0), read=read) for one, names in between.items()]
    return [one for one in found if one.count]


def _between(moves: Sequence[Commit], records: Iterable[Event]) -> dict[Commit, list[str | None]]:
    """Returns the ids of the records that lie between the two positions of each move."""
    between: dict[Commit, list[str | None]] = {one: [] for one in moves}
    by_partition: dict[int, list[Commit]] = {}
    for one in moves:
        by_partition.setdefault(one.partition, []).append(one)
    for record in records if moves else ():
        for one in by_partition.get(record.partition or 0, ()):
            if (one.before or 0) <= (record.offset or 0) < one.after:
                between[one].append(record.id)
    return between


def _passed(
    one: Commit, names: Sequence[str | None], handled: Set[str | None] | None, start: int, *, read: bool
) -> PassedOver:
    gone = max(0, min(one.after, start) - (one.before or 0))
    return PassedOver(
        commit=one,
        records=len(names),
        handled=None if handled is None else sum(name in handled for name in names),
        gone=gone,
        read=read or len(names) == one.after - (one.before or 0) - gone,
    )


def in_words(found: Sequence[PassedOver]) -> Iterator[str]:
    """Yields the resets as sentences: as one what was done with the group at one time."""
    by_time: dict[str, list[PassedOver]] = {}
    for one in sorted(found, key=lambda one: (one.commit.wall_ns, one.commit.partition)):
        by_time.setdefault(one.commit.when_and_who, []).append(one)
    for when_and_who, ones in by_time.items():
        told = together((one.moved, when_and_who) for one in ones)
        yield f"skipped: {sum(one.count for one in ones)} undecided: {RESET}: {told}"
