"""Head-of-line blocking: literal histories; what repeats is written once. W is 10 s for these settings."""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    Line,
    after,
    asked,
    assigned,
    delivered,
    effect,
    fault,
    fetched,
    finding,
    judged,
    lasting,
    log_end,
    not_judged,
    on,
    processed,
    revoked,
    stood_still,
    taken_back,
    undecided,
    waited,
    with_settings,
)
from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.claim import Claim

NAME = "head-of-line-blocking"
FRAME: dict[str, Any] = {"records": 12, "old": True}  # partition 0 has twelve records, partition 1 none
BOTH = assigned("m0", 0, 1)
THERE = [BOTH, log_end(12), fetched("m0", 0, size_bytes=9)]


def turns(count: int, *, wait_s: float = 2.0, work_s: float = 0.01, first: int = 0, member: str = "m0") -> list[Line]:
    """So many records of partition 0, each so long after the one before, and so long in hand."""
    return [
        line
        for offset in range(first, first + count)
        for line in (after(wait_s), delivered(member, offset), after(work_s), processed(member, offset))
    ]


def test_a_partition_is_worked_through_as_fast_as_its_records_come() -> None:
    """Twelve records, one after the other."""
    assert judged(NAME, [THERE, turns(12, wait_s=0.1)], **FRAME) == []


def test_head_of_line_blocking_is_broken() -> None:
    """A record every two seconds, though all lay there, and the member had nothing else to do."""
    found = finding(NAME, [THERE, turns(8)], **FRAME)
    assert [(one.partition, one.attributes, one.events) for one in found.instances] == [
        (
            0,
            {"offset": 1, "member": "m0", "lasted_ms": 14190, "idle_ms": 14070},
            ("consumer-m0-0#3", "consumer-m0-0#4", "consumer-m0-0#15", "consumer-m0-0#16"),
        )
    ]


def test_head_of_line_blocking_is_broken_where_the_record_was_not_even_asked_for() -> None:
    """A client that fetches what it polls, and nothing else: its fetch is answered at once, when it comes at last."""
    asking = [
        line
        for offset in range(8)
        for line in (after(2), fetched("m0", offset, size_bytes=9), *turns(1, wait_s=0.01, first=offset))
    ]
    assert [one["offset"] for one in judged(NAME, [BOTH, log_end(12), asking], **FRAME)] == [1]


def test_head_of_line_blocking_only_looks_broken_by_a_slow_handler() -> None:
    """It holds a record all the while."""
    assert judged(NAME, [THERE, turns(8, wait_s=0.1, work_s=2.0)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_by_what_is_tried_again() -> None:
    """The first record failed, and waits for its turn: it is in hand until it is done."""
    failed = [line for _ in range(8) for line in (after(2), delivered("m0", 1), processed("m0", 1, outcome="failed"))]
    assert judged(NAME, [THERE, turns(1), failed, processed("m0", 1), turns(8, first=2, wait_s=0.1)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_while_another_partition_lags() -> None:
    """Partition 1 has twelve records too, and none is done: who is slow with both is not blocked by one."""
    assert judged(NAME, [THERE, turns(8)], partitions=2, **FRAME) == []


def test_head_of_line_blocking_is_broken_beside_a_partition_that_is_done() -> None:
    """All of partition 1 was handled before."""
    fetch = on(1, fetched("m0", 0, size_bytes=9))
    done = [fetch, *(processed("m0", offset, partition=1) for offset in range(12))]
    assert [one["offset"] for one in judged(NAME, [THERE, done, turns(8)], partitions=2, **FRAME)] == [1]


@pytest.mark.parametrize(
    "others",
    [[assigned("m0")], [assigned("m0"), assigned("m1", 1)], [BOTH, revoked("m0", 1)]],
    ids=["there is none", "it is another member's", "it was given up"],
)
def test_head_of_line_blocking_only_looks_broken_without_another_partition(others: list[Line]) -> None:
    """There is nothing that it could wait for: idle, paused or slow, but not blocked."""
    assert judged(NAME, [others, THERE[1:], turns(8)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_where_the_broker_was_slow() -> None:
    """Each fetch took nearly two seconds to be answered."""
    slow = [
        line
        for offset in range(8)
        for line in (after(2), lasting(fetched("m0", offset, size_bytes=9), 1.9), *turns(1, wait_s=0, first=offset))
    ]
    assert judged(NAME, [BOTH, log_end(12), slow], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_where_commits_were_slow() -> None:
    """Each took nearly two seconds to be answered."""
    slow = [
        line
        for offset in range(8)
        for line in (after(2), asked("OFFSET_COMMIT", "m0", offset, took_ms=1900), *turns(1, wait_s=0, first=offset))
    ]
    assert judged(NAME, [THERE, slow], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_where_records_come_slowly() -> None:
    """One every two seconds, by the observer, and each is done when it comes."""
    coming = [line for offset in range(8) for line in (*turns(1, first=offset, wait_s=2), log_end(offset + 1))]
    assert judged(NAME, [BOTH, fetched("m0", 0, size_bytes=9), coming], **FRAME) == []


@pytest.mark.parametrize(
    ("waits", "blocked"),
    [((5.0, 5.0), 0), ((5.0, 5.0, 0.4), 0), ((4.0, 4.0, 4.0), 1), ((20.0, 0.6, 0.6, 0.1, 0.1), 1)],
    ids=["two waits", "the third is too short", "three", "without the longest still most of the time"],
)
def test_head_of_line_blocking_takes_three_waits(waits: tuple[float, ...], blocked: int) -> None:
    """Of half a second or more each."""
    lines = [turns(1, wait_s=wait_s, first=offset) for offset, wait_s in enumerate((0.1, *waits))]
    assert len(judged(NAME, [THERE, *lines], **FRAME)) == blocked


def test_head_of_line_blocking_only_looks_broken_by_one_long_wait() -> None:
    """A rebalance inside the ownership epoch may be one: without it the member was at work most of the time."""
    work = [*turns(3, wait_s=0.6, work_s=2), *turns(1, wait_s=20, first=3, work_s=2)]
    assert judged(NAME, [THERE, turns(1), *work, turns(1, first=5, wait_s=0.6)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_for_less_than_w() -> None:
    """Eight seconds."""
    assert judged(NAME, [THERE, turns(5)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_under_a_fault() -> None:
    """The leader of the partition was away."""
    assert judged(NAME, [THERE, fault("broker-kill", None), turns(8)], **FRAME) == []


def test_head_of_line_blocking_only_looks_broken_out_of_a_buffer() -> None:
    """Nobody knows when its lines were printed."""
    settings = with_settings(stdout="buffered")
    assert judged(NAME, [THERE, turns(8)], settings=settings, **FRAME) == []


def test_head_of_line_blocking_is_undecided_where_the_machine_stood_still() -> None:
    """A second is over a quarter of the session timeout."""
    assert undecided(NAME, [THERE, turns(4), stood_still(1), turns(4, first=4)], **FRAME) == 1


def test_head_of_line_blocking_is_undecided_where_the_member_waited_for_a_processor() -> None:
    """For ten seconds of fourteen: it may have been kept from its work; for two, it was not."""
    lines = [THERE, turns(4), waited(5, 8), turns(4, first=4), waited(5, 8)]
    assert undecided(NAME, lines, **FRAME) == 1
    assert len(judged(NAME, [THERE, turns(4), waited(1, 8), turns(4, first=4), waited(1, 8)], **FRAME)) == 1


@pytest.mark.parametrize(
    ("lines", "frame", "because"),
    [
        ([after(16)], {"records": 0}, "the consumer reported no delivered record"),
        ([BOTH, log_end(12), turns(8)], {}, "no member was seen to fetch on a lane of its own"),
        ([THERE, turns(8), taken_back(99)], {}, "it is not known when the records before them became readable"),
        ([THERE, turns(8)], {"whole": False}, "the control read of the topic is missing"),
        ([THERE, [processed("m0", 0)]], {}, "it is not known when handlers of m0 began: no delivered line"),
    ],
    ids=["nothing there", "no fetches", "transactions", "no witness", "ends only"],
)
def test_head_of_line_blocking_is_not_judged_without_its_evidence(
    lines: list[Any], frame: dict[str, Any], because: str
) -> None:
    """It needs lines of the handlers' begin and end, the request log, and log ends."""
    assert because in not_judged(NAME, lines, **FRAME | frame)


def test_head_of_line_blocking_is_not_judged_where_transactions_are() -> None:
    """What was processed is in hand until its transaction ends."""
    because = not_judged(NAME, [THERE, turns(8)], settings=with_settings(progress="transaction"), **FRAME)
    assert because.startswith("it has records in hand until its transaction ends")


def test_head_of_line_blocking_of_one_that_says_nothing_is_judged_as_late() -> None:
    """Whether it held a record nobody can see: no claim stays open for it."""
    found = finding(NAME, [THERE, effect(0)], settings=with_settings(events="none", sink="http"), **FRAME)
    assert found.not_judged is not None
    assert not found.not_judged.applies


@pytest.mark.parametrize(("converge_within_s", "weight"), [(None, None), (14.0, "violation"), (15.0, "tolerated")])
def test_head_of_line_blocking_breaks_the_claimed_convergence(
    converge_within_s: float | None, weight: str | None
) -> None:
    """Where it lasted longer than that; without the claim it is told."""
    known = find_invariant(NAME)
    assert known is not None
    claim = Claim("at-least-once", converge_within_s=converge_within_s)
    assert known.rule.claimed(claim) == (weight is not None)
    if weight is not None:
        assert known.rule.excuse(claim, {"lasted_ms": 14190})[0] == weight
