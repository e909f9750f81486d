"""Hanging transactions: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from histories import (
    Line,
    after,
    ended,
    fault,
    finding,
    healed,
    judged,
    judgement,
    left_open,
    not_judged,
    phase,
    producer_began,
    stood_still,
    undecided,
)
from histories import with_settings as settings_with
from kafka_trial.judge.cache import from_plain, to_plain

IN_TRANSACTION = settings_with(progress="transaction", delivery="exactly-once")
BEGAN = producer_began(timeout_s=1)


def test_hanging_transaction_holds() -> None:
    """What was begun was ended."""
    lines = [BEGAN, ended("commit", 0), ended("commit", None)]
    assert judged("hanging-transaction", lines, settings=IN_TRANSACTION) == []


@pytest.mark.parametrize(("log", "named"), [(None, "__consumer_offsets-0"), (3, "out-3")])
def test_hanging_transaction_is_broken(log: int | None, named: str) -> None:
    """Open for twelve seconds, with a timeout of one."""
    found = finding("hanging-transaction", [BEGAN, left_open(log, since_s=12)], settings=IN_TRANSACTION)
    attributes = [dict(one.attributes) for one in found.instances]
    assert attributes == [{"producer_id": 7, "log": named, "open_ms": 12_000, "timeout_ms": 1000}]


@pytest.mark.parametrize("since_s", [0.5, 5, 11.4])
def test_hanging_transaction_only_looks_broken_while_its_coordinator_has_time(since_s: float) -> None:
    """In flight; or timed out, and not looked at yet."""
    assert judged("hanging-transaction", [BEGAN, left_open(0, since_s=since_s)], settings=IN_TRANSACTION) == []


def test_hanging_transaction_only_looks_broken_where_it_ended_later() -> None:
    """Found open at one look, and ended by the next."""
    lines = [BEGAN, left_open(0, since_s=12), ended("abort", 0)]
    assert judged("hanging-transaction", lines, settings=IN_TRANSACTION) == []


def test_hanging_transaction_is_broken_after_one_that_ended() -> None:
    """The marker is of the transaction before: it lies below."""
    lines = [BEGAN, ended("commit", None), left_open(None, since_s=12)]
    assert [one["producer_id"] for one in judged("hanging-transaction", lines, settings=IN_TRANSACTION)] == [7]


def test_hanging_transaction_is_undecided_under_a_fault() -> None:
    """A fault was in force when it was due, or just before."""
    begun = [BEGAN, fault("pause", None), left_open(0, since_s=30)]
    assert undecided("hanging-transaction", begun, settings=IN_TRANSACTION) == 1
    over = [BEGAN, fault("pause", None), healed(), after(8), left_open(0, since_s=30)]
    assert undecided("hanging-transaction", over, settings=IN_TRANSACTION) == 1


def test_hanging_transaction_is_broken_long_after_a_fault() -> None:
    """The coordinator has had its ten seconds since."""
    lines = [BEGAN, fault("pause", None), healed(), after(11), left_open(0, since_s=30)]
    assert [one["open_ms"] for one in judged("hanging-transaction", lines, settings=IN_TRANSACTION)] == [30_000]


def test_hanging_transaction_is_undecided_where_the_machine_stood_still() -> None:
    """Nobody had the time to end it."""
    lines = [BEGAN, stood_still(2), left_open(0, since_s=12)]
    assert undecided("hanging-transaction", lines, settings=IN_TRANSACTION) == 1


def test_hanging_transaction_is_undecided_where_nobody_saw_the_timeout() -> None:
    """A producer that began outside of what the request log tells."""
    assert undecided("hanging-transaction", [left_open(0, since_s=12)], settings=IN_TRANSACTION) == 1


def test_hanging_transaction_is_not_judged_without_a_snapshot() -> None:
    """Nobody asked the witnesses to read to the end."""
    lines = [BEGAN, phase("drain"), left_open(0, since_s=12)]
    because = not_judged("hanging-transaction", lines, settings=IN_TRANSACTION, snapshot=False)
    assert because == "the trial did not reach its snapshot"


def test_hanging_transaction_is_not_about_other_consumers() -> None:
    """A consumer without transactions is not judged, and nothing is missed."""
    missing = finding("hanging-transaction", [], settings=settings_with(delivery="exactly-once")).not_judged
    assert missing is not None
    assert not missing.applies


def test_what_is_known_of_transactions_survives_the_cache() -> None:
    """A second check reads them from plain data."""
    lines = [BEGAN, left_open(None, since_s=12), left_open(3, since_s=12), ended("commit", 1)]
    known = judgement(lines, settings=IN_TRANSACTION).trial_context
    assert (len(known.open_transactions), known.outputs_ended) == (2, 1)
    assert from_plain(orjson.loads(orjson.dumps(to_plain(known)))) == known


@pytest.mark.parametrize(("since_s", "found"), [(11.5, 0), (11.501, 1)])
def test_hanging_transaction_is_told_when_its_time_is_over(since_s: float, found: int) -> None:
    """A timeout of one second, ten until the coordinator looks, and half a second between sources."""
    assert len(judged("hanging-transaction", [BEGAN, left_open(0, since_s=since_s)], settings=IN_TRANSACTION)) == found


@pytest.mark.parametrize(("wait_s", "found"), [(10.49, 0), (10.491, 1)])
def test_after_a_fault_the_coordinator_has_ten_seconds_anew(wait_s: float, found: int) -> None:
    """From the last healing on, of whatever fault; half a second between sources."""
    over = [fault("pause", None), healed(), fault("stall", "m0", number=1), after(20), healed(1), after(wait_s)]
    lines = [BEGAN, *over, left_open(0, since_s=60)]
    told = finding("hanging-transaction", lines, settings=IN_TRANSACTION)
    assert (len(told.instances), sum(told.undecided.values())) == (found, 1 - found)


def test_a_fault_that_was_never_healed_leaves_it_undecided_beside_one_that_was() -> None:
    """However long ago either of them began."""
    lines = [BEGAN, fault("pause", None), healed(), fault("stall", "m0", number=1), after(60), left_open(0, since_s=50)]
    assert undecided("hanging-transaction", lines, settings=IN_TRANSACTION) == 1


def test_hanging_transactions_are_told_of_each() -> None:
    """Two that hang in two logs, one that has time, one of which nobody knows how much it has."""
    others = [left_open(2, since_s=5, producer=8), left_open(3, since_s=99, producer=9)]
    lines = [
        BEGAN,
        producer_began(timeout_s=60, producer=8),
        left_open(0, since_s=20),
        left_open(1, since_s=30),
        *others,
    ]
    found = finding("hanging-transaction", lines, settings=IN_TRANSACTION)
    told = [(one.attributes["log"], one.attributes["open_ms"], one.events) for one in found.instances]
    assert told == [("out-0", 20_000, ("transactions#0",)), ("out-1", 30_000, ("transactions#1",))]
    assert list(found.undecided.values()) == [1]


@pytest.mark.parametrize(("before", "found"), [([stood_still(0.75)], 1), ([stood_still(0.76)], 0)])
def test_a_stall_of_a_quarter_of_the_session_excuses_no_coordinator(before: list[Line], found: int) -> None:
    """Only more than that does."""
    lines = [BEGAN, *before, after(3), left_open(0, since_s=12)]
    assert len(finding("hanging-transaction", lines, settings=IN_TRANSACTION).instances) == found
    long_ago = [BEGAN, stood_still(2), after(15), left_open(0, since_s=12)]
    assert len(judged("hanging-transaction", long_ago, settings=IN_TRANSACTION)) == 1


def test_a_transaction_that_began_nobody_knows_when_began_when_it_was_seen() -> None:
    """Its first record bears no time."""
    nameless = left_open(0, since_s=99)
    line = replace(nameless, fields={name: value for name, value in nameless.fields.items() if name != "began_s"})
    assert judged("hanging-transaction", [BEGAN, line], settings=IN_TRANSACTION) == []
