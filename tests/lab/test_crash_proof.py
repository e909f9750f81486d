"""The proof of a crash: literal histories of one member that dies with one or two records at stake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_trial.history.event import Event
from lab.cases.crash_matrix import (
    AFTER_COMMIT,
    AFTER_EFFECT,
    BEFORE_COMMIT,
    BEFORE_PROCESSING,
    COMMIT_LEAVES,
    COMMIT_TAKEN,
    END_LEAVES,
    END_TAKEN,
    FROZEN,
    IN_HAND,
    OF_KEYS,
    OF_TABLES,
    OFFSETS_LEAVE,
    PAUSED,
    Place,
)
from lab.cases.crash_proof import effects_left, prove

S = 1_000_000_000
KILL_S = 10
AFTER_ITS_EFFECT = OF_TABLES[3]
TWO_OF_ONE_KEY = OF_KEYS[1]
PRODUCER = 7  # of m1, in every incarnation: its transactional id is the member's


class History:
    """Two records r0 and r1 in partition 0, which m1 has, and r2 in partition 1, which it has not; m1 dies at 10 s."""

    def __init__(self, *, bit: bool = True) -> None:
        self.events: list[Event] = []
        for number, partition in enumerate((0, 0, 1)):
            offset = number if partition == 0 else 0
            fields = {"id": f"r{number}", "partition": partition, "offset": offset, "key": f"k{partition}"}
            self.add("workload", 1, "send", outcome="ok", **fields)
        self.add("consumer-m1-0", 1, "started", lane=4)
        self.add("consumer-m1-0", 2, "assigned", entries=[{"partition": 0}])
        self.add("nemesis", 15, "evidence", bit=bit, message="request 2 was cut")
        self.add("consumer-m1-0", KILL_S, "exited", member="m1", signal=9)

    def add(self, source: str, at_s: float, kind: str, **fields: Any) -> History:
        """Adds an event; what is none of its own fields becomes a detail."""
        core = {name: fields.pop(name) for name in list(fields) if name in Event.__dataclass_fields__}
        self.events.append(Event(source, len(self.events), round(at_s * S), kind, **core, details=fields))
        return self

    def effect(self, record: str, at_s: float = 5) -> History:
        """The record had its effect."""
        return self.add("sink", at_s, "effect", id=record, outcome="ok")

    def committed(self, position: int, at_s: float = 5, **fields: Any) -> History:
        """The position of partition 0 was committed."""
        return self.add("offsets", at_s, "committed", partition=0, committed_offset=position, **fields)

    def asks_commit(self, position: int) -> History:
        """The member asks to commit a position of partition 0, and never hears of it."""
        entries = [{"partition": 0, "committed_offset": position}]
        return self.add("consumer-m1-0", 6, "commit", outcome="invoke", entries=entries)

    def producers(self) -> History:
        """m1 began with epoch 0; its successor was let in at 12.5 s, and what m1 had left open had ended by then."""
        for at_s, epoch in ((1, 0), (12.5, 2)):
            fields = {"lane": 4, "producer_id": PRODUCER, "producer_epoch": epoch, "error": 0}
            wall_ns = round(at_s * S)
            self.add("requests-b0", at_s, "request", api="INIT_PRODUCER_ID", source_wall_ns=wall_ns, **fields)
        return self

    def ended(self, source: str, *, at_s: float = 12.4, epoch: int = 1, state: str = "abort") -> History:
        """A marker ends what the producer had open in the offsets log, or in partition 3 of the output topic."""
        fields = {"producer_id": PRODUCER, "producer_epoch": epoch, "state": state, "source_wall_ns": round(at_s * S)}
        place = {"topic": "out", "partition": 3} if source == "transactions" else {}
        return self.add(source, at_s + 0.1, "transaction_marker", **place, **fields)

    def delivered(self, offset: int, *, source: str = "consumer-m1-0", at_s: float = 6) -> History:
        """A record of partition 0 is handed to a member."""
        return self.add(source, at_s, "delivered", partition=0, offset=offset)


@pytest.mark.parametrize(
    ("place", "history", "point"),
    [
        (IN_HAND, History().effect("r0").committed(1), BEFORE_PROCESSING),
        (IN_HAND, History().effect("r0"), ""),  # something else is at stake
        (IN_HAND, History().effect("r0").effect("r1").committed(2), ""),  # no record waited
        (COMMIT_LEAVES, History().asks_commit(2), BEFORE_COMMIT),
        (COMMIT_LEAVES, History().effect("r0").effect("r1").asks_commit(2), AFTER_EFFECT),
        (COMMIT_LEAVES, History().effect("r0").committed(1).asks_commit(1), ""),  # it was taken after all
        (COMMIT_LEAVES, History(), ""),  # it had asked for nothing
        (COMMIT_TAKEN, History().committed(2).asks_commit(2), AFTER_COMMIT),
        (COMMIT_TAKEN, History().effect("r0").effect("r1").committed(2).asks_commit(2), ""),  # both are there
        (COMMIT_TAKEN, History().effect("r1").committed(1), ""),  # one of each
        (COMMIT_LEAVES, History().committed(2).asks_commit(2), ""),  # of a point that is not the place's
    ],
    ids=lambda value: value.name if isinstance(value, Place) else None,
)
def test_what_stood_at_the_kill_is_the_point(place: Place, history: History, point: str) -> None:
    """By effects without a commit, and commits without an effect, of the partitions that the member had."""
    assert prove(history.events, place).point == point


def test_what_comes_a_second_after_the_kill_is_others_work() -> None:
    """An effect half a second later was done before; one three seconds later is the successor's."""
    late, later = History().asks_commit(2).effect("r0", 10.5), History().asks_commit(2).effect("r0", 13)
    assert [prove(one.events, COMMIT_LEAVES).point for one in (late, later)] == [AFTER_EFFECT, BEFORE_COMMIT]


def test_others_partitions_prove_nothing() -> None:
    """An effect in a partition that the member did not have is not at stake; nor is one that it gave back."""
    others = History().effect("r2").asks_commit(2)
    gone = History().add("consumer-m1-0", 3, "revoked", entries=[{"partition": 0}]).effect("r0")
    assert prove(others.events, COMMIT_LEAVES).point == BEFORE_COMMIT
    assert prove(gone.events, IN_HAND).effects_without_commit == 0


def test_a_position_in_a_transaction_counts_from_its_marker() -> None:
    """Sent and not ended it is not there; ended with a commit it is; ended with an abort it is not."""
    sent = {"producer_id": PRODUCER}
    pending = History().committed(2, **sent).asks_commit(2)
    ended = History().committed(2, **sent).ended("offsets", at_s=6, epoch=0, state="commit")
    aborted = History().committed(2, **sent).ended("offsets", at_s=6, epoch=0)
    assert prove(pending.events, END_TAKEN).open_commit == "no"
    assert prove(ended.events, END_TAKEN).point == AFTER_COMMIT
    assert prove(aborted.events, END_TAKEN).point == ""


def left_open(*, output: bool = True, position: int | None = None) -> History:
    """m1 dies with a transaction open: what of it was in the logs is aborted as its successor is let in."""
    history = History().producers().asks_commit(2)
    if output:
        history.ended("transactions")
    return history if position is None else history.committed(position, producer_id=PRODUCER).ended("offsets")


@pytest.mark.parametrize(
    ("place", "history", "point"),
    [
        (OFFSETS_LEAVE, left_open(), AFTER_EFFECT),
        (END_LEAVES, left_open(position=2), BEFORE_COMMIT),
        (OFFSETS_LEAVE, left_open(position=2), ""),  # the positions had been handed in
        (END_LEAVES, left_open(), ""),  # they had not
        (END_LEAVES, left_open(position=1), ""),  # others had
        (END_LEAVES, left_open(output=False, position=2), ""),  # no record of it lay in the output topic
        (END_LEAVES, left_open(position=2).effect("r0"), ""),  # readers see a half of it
        (IN_HAND, left_open(), ""),  # a batch was done: its records lay in the log
    ],
    ids=lambda value: value.name if isinstance(value, Place) else None,
)
def test_inside_a_transaction_the_logs_tell_what_was_there(place: Place, history: History, point: str) -> None:
    """Its output and its positions, uncommitted, by the markers that take them back."""
    assert prove(history.events, place).point == point


@pytest.mark.parametrize("place", [OFFSETS_LEAVE, END_LEAVES], ids=lambda place: place.name)
def test_a_kill_alone_proves_no_transaction(place: Place) -> None:
    """Nor does a kill with a commit asked for, or with a producer that nobody has fenced."""
    for history in (History(), History().asks_commit(2), History().producers().asks_commit(2)):
        assert prove(history.events, place).point == ""


def test_only_the_abort_of_what_it_left_open_counts() -> None:
    """Not its own of before, nor its successor's of later, nor another producer's; nor one that committed."""
    for told in ({"epoch": 0}, {"at_s": 14, "epoch": 2}, {"state": "commit"}):
        history = left_open(output=False).ended("transactions", **told)  # type: ignore[arg-type]
        assert prove(history.events, OFFSETS_LEAVE).point == ""
    other = left_open()
    other.events[-1] = replace(other.events[-1], details={**other.events[-1].details, "producer_id": 8})
    assert prove(other.events, OFFSETS_LEAVE).point == ""


def test_two_orders_of_one_customer_must_be_in_hand() -> None:
    """Where a business key is what may be conflated: one record at stake of a key is not enough."""
    one, two = History().effect("r0").asks_commit(1), History().effect("r0").effect("r1").asks_commit(2)
    assert [prove(history.events, TWO_OF_ONE_KEY).point for history in (one, two)] == ["", AFTER_EFFECT]
    assert prove(two.events, TWO_OF_ONE_KEY).of_one_key == 2
    assert prove(one.events, COMMIT_LEAVES).point == AFTER_EFFECT


def test_a_position_in_a_table_is_where_the_successor_reads_on() -> None:
    """With r1 in hand and asked: the successor begins at r1, so neither its effect nor its position was there."""
    died = History().effect("r0").delivered(1)
    assert prove(died.delivered(1, source="consumer-m0-0", at_s=13).events, AFTER_ITS_EFFECT).point == AFTER_EFFECT
    moved = History().effect("r0").delivered(0).delivered(1, source="consumer-m0-0", at_s=13)
    assert prove(moved.events, AFTER_ITS_EFFECT).point == ""
    nobody = History().effect("r0").delivered(1)
    assert "nobody read on" in prove(nobody.events, AFTER_ITS_EFFECT).because


def frozen(*, processed_at_s: float | None = None, others_at_s: float = 8) -> History:
    """m1 is frozen from 5 s to 12 s with r1 in hand, which m0 is handed."""
    history = History().delivered(1, at_s=5.1).delivered(1, source="consumer-m0-0", at_s=others_at_s)
    for at_s, kind in ((5, "injected"), (12, "healing")):
        history.add("nemesis", at_s, kind)
    if processed_at_s is not None:
        history.add("consumer-m1-0", processed_at_s, "processed", partition=0, offset=1)
    history.events = [replace(event, member="m1") if event.kind == "evidence" else event for event in history.events]
    return history


def test_a_frozen_member_had_in_hand_what_others_were_handed() -> None:
    """Finished after it woke: landed. Finished before it froze, or handed to others only then: nothing was at stake."""
    landed, done, late = frozen(processed_at_s=12.5), frozen(processed_at_s=5.2), frozen(others_at_s=13)
    assert [prove(one.events, PAUSED).point for one in (landed, done, late)] == [FROZEN, "", ""]


def test_without_evidence_nothing_is_proven() -> None:
    """A fault that did not bite, none at all, and a history in which nobody was killed."""
    assert prove(History(bit=False).asks_commit(2).events, COMMIT_LEAVES).point == ""
    assert prove([], COMMIT_LEAVES).because == "the fault was never played"
    alive = [event for event in History().asks_commit(2).events if event.kind != "exited"]
    assert prove(alive, COMMIT_LEAVES).because == "nobody ended by signal 9"


def test_the_raw_events_tell_what_was_lost_and_doubled() -> None:
    """Of three records one has no effect, and one has two."""
    assert effects_left(History().effect("r0").effect("r0", 13).effect("r2").events) == (1, 1)
