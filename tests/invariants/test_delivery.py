"""Delivery: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    aborted,
    after,
    answered,
    asked,
    assigned,
    at_once,
    commit,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    judged,
    later,
    not_judged,
    on,
    phase,
    processed,
    revoked,
    started,
    stood_still,
    undecided,
    with_settings,
)
from kafka_trial.anomalies.claim_rule import Anomaly, in_the_range

RANGES = [(0, 2), (5, 8)]


def test_skipped_holds() -> None:
    """Both records were handled, then committed."""
    assert judged("skipped", [assigned("m0"), handled("m0", 0, 1), committed(2)]) == []


def test_skipped_is_broken() -> None:
    """Record 0 was committed past and never handled: the record and the commit prove it."""
    found = finding("skipped", [assigned("m0"), handled("m0", 1), committed(2, by="m0")])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"offset": 0, "committed_offset": 2, "by_operator": False, "in_flight_at_crash": False},
            ("observer#1", "offsets#0"),
        )
    ]


@pytest.mark.parametrize(("offset", "follows"), [(0, True), (1, True), (2, False), (4, False), (5, True), (7, True)])
def test_skipped_follows_from_the_commit_whose_range_it_lies_in(offset: int, *, follows: bool) -> None:
    """Two commits were ahead, from 0 up to 2 and from 5 up to 8; between the two nothing explains a loss."""
    ahead = [Anomaly("commit-ahead", "t", 0, {"offset": low, "committed_offset": high}, ()) for low, high in RANGES]
    assert in_the_range(ahead)(Anomaly("skipped", "t", 0, {"offset": offset}, ())) == follows


def test_skipped_only_looks_broken_where_a_sink_saw_the_effect() -> None:
    """The member says nothing of record 0, but its effect arrived."""
    assert judged("skipped", [assigned("m0"), handled("m0", 1), effect(0), committed(2)]) == []


def test_skipped_only_looks_broken_at_a_gap() -> None:
    """Offset 1 holds no record (a transaction marker): nothing to handle there."""
    lines = [assigned("m0"), handled("m0", 0), committed(2)]
    assert judged("skipped", lines, records=1) == []


def test_skipped_by_an_operator_says_so() -> None:
    """The position was moved from outside the lanes."""
    lines = [assigned("m0"), committed(2, by="operator")]
    assert [one["by_operator"] for one in judged("skipped", lines)] == [True, True]


def test_skipped_is_undecided_where_a_killed_member_could_not_speak() -> None:
    """Record 1 was committed by a member after its last line, which then died by signal 9."""
    lines = [assigned("m0"), handled("m0", 0), committed(2, by="m0"), exited("m0", signal=9)]
    assert undecided("skipped", lines) == 1


def test_skipped_at_a_crash_with_a_sink_is_in_flight() -> None:
    """With a sink nothing is left undecided: the record was in flight when its committer crashed."""
    lines = [assigned("m0"), committed(2, by="m0"), effect(0), exited("m0", signal=9)]
    assert [(one["offset"], one["in_flight_at_crash"]) for one in judged("skipped", lines)] == [(1, True)]


def test_skipped_is_not_in_flight_when_the_crash_came_later() -> None:
    """The crashed member committed once more on the partition: what it skipped before was no longer in flight."""
    lines = [assigned("m0"), effect(1), committed(1, by="m0"), committed(2, by="m0"), exited("m0", code=3)]
    assert [(one["offset"], one["in_flight_at_crash"]) for one in judged("skipped", lines)] == [(0, False)]


def test_skipped_is_not_judged_without_records() -> None:
    """An empty topic shows nothing."""
    assert not_judged("skipped", [assigned("m0")], records=0) == "there are no records"


def test_skipped_is_not_judged_where_nothing_tells_what_was_handled() -> None:
    """A consumer without events and without a sink."""
    settings = with_settings(events="none", sink="none")
    assert "nothing tells what was handled" in not_judged("skipped", [committed(2)], settings=settings)


def test_skipped_does_not_apply_where_progress_is_elsewhere() -> None:
    """What a consumer commits that keeps its position beside its results means nothing."""
    settings = with_settings(progress="sink")
    missing = finding("skipped", [assigned("m0"), handled("m0", 1), committed(2)], settings=settings).not_judged
    assert missing is not None
    assert not missing.applies


def test_unseen_holds() -> None:
    """Handled by the snapshot, though not committed."""
    assert judged("unseen", [assigned("m0"), handled("m0", 0, 1)]) == []


def test_unseen_is_broken() -> None:
    """Record 1 was delivered, and never completed, in a drain that was long enough."""
    lines = [assigned("m0"), handled("m0", 0), delivered("m0", 1), committed(1), phase("drain")]
    found = finding("unseen", [*lines, after(13)])
    assert [(one.attributes, one.events) for one in found.instances] == [({"offset": 1}, ("observer#2",))]


def test_unseen_is_undecided_where_the_drain_was_short() -> None:
    """A group may take B: what it had not done before that is no loss yet."""
    lines = [assigned("m0"), handled("m0", 0), delivered("m0", 1), committed(1), phase("drain")]
    found = finding("unseen", [*lines, after(5)])
    reason = (
        "not converged, but the drain was shorter than B = 11.0 s (a session expiry of 3 s: 3.0 s, a rebalance: 5.0 s, "
        "the commit interval: 1.0 s, twice a backlog of 1 at 1/s: 2.0 s; at least 10 s)"
    )
    assert (found.instances, found.count, dict(found.undecided)) == ((), 0, {reason: 1})


def test_unseen_is_undecided_where_the_machine_stood_still() -> None:
    """Whoever had no machine to work on is not blamed for what was left."""
    lines = [assigned("m0"), handled("m0", 0), committed(1), phase("drain"), after(6), stood_still(3), after(7)]
    assert undecided("unseen", lines) == 1


def test_unseen_only_looks_broken_where_it_was_committed_past() -> None:
    """What was committed past is `skipped`, not `unseen`."""
    assert judged("unseen", [assigned("m0"), handled("m0", 0), committed(2)]) == []


def test_unseen_is_not_judged_before_the_snapshot() -> None:
    """The trial ended before the drain was over."""
    assert "snapshot" in not_judged("unseen", [assigned("m0"), handled("m0", 0)], snapshot=False)


HANDED_OVER = [assigned("m0"), delivered("m0", 0), revoked("m0")]


def test_redelivered_holds() -> None:
    """The next owner starts where the first one ended."""
    lines = [assigned("m0"), handled("m0", 0), revoked("m0"), answered("m1", 1), assigned("m1"), handled("m1", 1)]
    assert judged("redelivered", lines) == []


def test_redelivered_is_counted() -> None:
    """A second owner was told to start at 0, and was delivered 0 again: legal, and named."""
    found = finding("redelivered", [*HANDED_OVER, answered("m1", 0), assigned("m1"), delivered("m1", 0)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "floor": 0}, ("consumer-m1-0#2", "consumer-m1-0#1"))
    ]


def test_redelivered_only_looks_so_inside_one_possession() -> None:
    """A second delivery in the same ownership epoch, where nothing was completed, is tried again."""
    assert judged("redelivered", [assigned("m0"), delivered("m0", 0), delivered("m0", 0)]) == []


def test_redelivered_is_not_judged_without_own_word() -> None:
    """Nobody said what was delivered."""
    assert "reported no delivered record" in not_judged("redelivered", [committed(1)])


def test_illegal_redelivery_holds() -> None:
    """Delivered again at the floor: legal."""
    lines = [*HANDED_OVER, answered("m1", 0), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == []


def test_illegal_redelivery_is_broken() -> None:
    """The broker answered 1, and the member started at 0."""
    lines = [*HANDED_OVER, committed(1), answered("m1", 1), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == [{"offset": 0, "floor": 1}]


def test_illegal_redelivery_is_broken_by_the_last_durable_commit() -> None:
    """No OffsetFetch was seen: the floor is what was committed long before the ownership epoch."""
    lines = [*HANDED_OVER, committed(1), after(2), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == [{"offset": 0, "floor": 1}]


def test_illegal_redelivery_is_broken_where_the_answer_was_to_an_earlier_question() -> None:
    """Three seconds before the assignment nobody asked for its sake: what was committed since is the floor."""
    lines = [*HANDED_OVER, answered("m1", 0), after(1), committed(1), after(2), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == [{"offset": 0, "floor": 1}]


def test_illegal_redelivery_only_looks_broken_while_a_commit_is_on_its_way() -> None:
    """The commit came so shortly before the ownership epoch that its owner may not have seen it."""
    lines = [*HANDED_OVER, committed(1), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == []


def test_illegal_redelivery_only_looks_broken_where_there_was_no_commit() -> None:
    """The broker answered "no commit": the log start is the floor."""
    lines = [*HANDED_OVER, answered("m1", -1), assigned("m1"), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == []


def test_illegal_redelivery_is_not_judged_without_the_brokers_word() -> None:
    """The witnesses never said that they had read to the end."""
    lines = [*HANDED_OVER, answered("m1", 1), assigned("m1"), delivered("m1", 0)]
    assert "offsets" in not_judged("illegal-redelivery", lines, whole=False)


def test_a_commit_of_an_aborted_transaction_covers_nothing() -> None:
    """Its twin says that it never took effect."""
    assert judged("skipped", [assigned("m0"), handled("m0", 0), commit("m0", 1), aborted(2), processed("m0", 0)]) == []


def test_no_commit_means_the_log_start() -> None:
    """The broker's -1 is no position: the floor is where the log begins."""
    lines = [*HANDED_OVER, answered("m1", -1), assigned("m1"), delivered("m1", 0)]
    assert judged("redelivered", lines) == [{"offset": 0, "floor": 0}]


def test_illegal_redelivery_only_looks_broken_where_the_position_fell_just_then() -> None:
    """Between the log and a member's file, less than half a second is no order: the lower position is possible."""
    lines = [*HANDED_OVER, committed(1), after(2), assigned("m1"), committed(0), delivered("m1", 0)]
    assert judged("illegal-redelivery", lines) == []


KILLED = exited("m0", signal=9)
NOT_DONE = [assigned("m0"), processed("m0", 0)]
TWO = committed(2)[0]


@pytest.mark.parametrize(
    ("lines", "cases"),
    [
        ([committed(2, by="m0"), KILLED], 1),
        ([at_once(TWO), asked("OFFSET_COMMIT", "m0", 2), KILLED], 0),
        ([later(TWO, 1_000_000), asked("OFFSET_COMMIT", "m0", 2), KILLED], 1),
        ([committed(2, by="m0"), exited("m0", code=1)], 0),
        ([committed(2, by="m0"), exited("m1", signal=9)], 0),
        ([committed(2, by="operator"), KILLED], 0),
        ([KILLED, started("m0-1"), after(1), committed(2, by="m0")], 0),
        ([committed(2), KILLED], 1),
        ([at_once(TWO), KILLED], 0),
        ([later(TWO, 1_000_000), KILLED], 1),
        ([KILLED, after(0.489), committed(2)], 1),
        ([KILLED, after(0.49), committed(2)], 0),
        ([committed(2), exited("m0", code=1)], 0),
        ([committed(2), exited("m1", signal=9)], 1),
        ([committed(2), after(1), delivered("m0", 1), KILLED], 0),
        ([TWO, asked("OFFSET_COMMIT", "m0", 2), asked("OFFSET_COMMIT", "m1", 2), KILLED], 1),
        ([committed(2, by="m0"), delivered("m0", 1), KILLED], 0),
    ],
    ids=[
        "by the one that was killed",
        "by it, in the instant of its last word",
        "by it, just after its last word",
        "by one that was not killed",
        "by one, and another was killed",
        "by an operator",
        "by its next incarnation",
        "by nobody knows whom",
        "by nobody knows whom, in the instant of its last word",
        "by nobody knows whom, just after its last word",
        "by nobody knows whom, just after it was killed",
        "by nobody knows whom, long after it was killed",
        "by nobody knows whom, and nobody was killed",
        "by nobody knows whom, and one that never said anything was killed",
        "by nobody knows whom, before its last word",
        "by one of two",
        "by the one that was killed, before its last word",
    ],
)
def test_skipped_is_undecided_after_the_last_word_of_a_member_that_was_killed(
    lines: list[Line | list[Line]], cases: int
) -> None:
    """Record 1 was committed past, and nobody said that it was done."""
    found = finding("skipped", [*NOT_DONE, *lines])
    assert (len(found.instances), sum(found.undecided.values())) == (1 - cases, cases)


@pytest.mark.parametrize(
    ("seen", "sink", "lost"), [([], "http", [0, 1]), ([effect(0)], "http", [1]), ([effect(0)], None, [1])]
)
def test_skipped_is_decided_where_a_sink_would_have_seen_it(
    seen: list[Line], sink: str | None, lost: list[int]
) -> None:
    """One is declared; or none is known of, but it was seen."""
    lines = [assigned("m0"), *seen, committed(2, by="m0"), KILLED]
    assert [one["offset"] for one in judged("skipped", lines, settings=with_settings(sink=sink))] == lost


@pytest.mark.parametrize(
    ("lines", "in_flight"),
    [
        ([committed(2, by="m0"), exited("m0", code=1)], True),
        ([committed(2, by="m0"), exited("m0", code=0)], False),
        ([committed(2, by="m0"), exited("m0", signal=15)], False),
        ([committed(2, by="m0"), exited("m1", code=1)], False),
        ([committed(2, by="m0"), committed(3, by="m0"), exited("m0", code=1)], False),
        ([committed(2, by="m0"), committed(2, by="m0"), exited("m0", code=1)], True),
        ([committed(2, by="m0"), [on(1, line) for line in committed(2, by="m0")], exited("m0", code=1)], True),
        ([committed(2, by="m0"), after(1), committed(2, by="m1"), exited("m0", code=1)], True),
        ([committed(2, by="operator"), exited("m0", code=1)], False),
        ([commit("m0", 2, "fail"), committed(2)], True),
        ([commit("m0", 2, "ok"), commit("m0", 1, "fail"), committed(2)], False),
        ([on(1, commit("m0", 2, "fail")), committed(2)], False),
        ([exited("m0", code=1), started("m0-1"), after(1), committed(2, by="m0")], False),
    ],
    ids=[
        "its last before it crashed",
        "its last before it exited",
        "its last before it was asked to go",
        "another one crashed",
        "not its last",
        "its last, twice",
        "its last on this partition",
        "its last, another one's since",
        "an operator's",
        "it heard that it failed",
        "another one failed",
        "of another partition one failed",
        "its next incarnation's",
    ],
)
def test_skipped_was_in_flight_at_a_crash_or_a_failure(lines: list[Line | list[Line]], *, in_flight: bool) -> None:
    """What the commit covers must not be processed any more under at-most-once."""
    found = judged("skipped", [*NOT_DONE, *lines], partitions=2)
    assert [one["in_flight_at_crash"] for one in found if one["offset"] == 1][:1] == [in_flight]


def test_skipped_is_told_of_each_partition() -> None:
    """With the first commit that covered each record; one that was handled in the other partition is not."""
    there = [on(1, line) for line in (processed("m0", 0), *committed(1), *committed(2))]
    lines = [assigned("m0", 0, 1), processed("m0", 1), committed(1), committed(2), *there]
    found = finding("skipped", lines, partitions=2)
    assert [(one.partition, one.attributes["offset"], one.events) for one in found.instances] == [
        (0, 0, ("observer#1", "offsets#0")),
        (1, 1, ("observer#4", "offsets#3")),
    ]


def test_skipped_and_unseen_are_parted_by_the_position() -> None:
    """Record 0 lies below it, record 1 at it; of another partition nothing is committed."""
    lines = [assigned("m0"), delivered("m0", 0), committed(1), phase("drain"), after(17), delivered("m0", 1)]
    told = [finding(name, lines, partitions=2).instances for name in ("skipped", "unseen")]
    assert [[(one.partition, one.attributes["offset"]) for one in some] for some in told] == [
        [(0, 0)],
        [(0, 1), (1, 0), (1, 1)],
    ]


def test_unseen_counts_what_was_done_in_the_instant_of_the_snapshot() -> None:
    """And not a nanosecond later."""
    begun = [assigned("m0"), phase("drain"), after(17), processed("m0", 0)]
    lines = [*begun, at_once(phase("snapshot")), later(processed("m0", 1), 1)]
    assert judged("unseen", lines, snapshot=False) == [{"offset": 1}]


def again(member: str, *offsets: int) -> list[Line]:
    """It has the partition for as long as it takes to deliver these."""
    return [assigned(member), *(delivered(member, offset) for offset in offsets), revoked(member)]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([*again("m0", 0), *again("m1", 0), *again("m0", 0)], [(0, "m1"), (0, "m0")]),
        ([*again("m0", 0, 1), *again("m1", 1)], [(1, "m1")]),
        ([*again("m0", 0, 0), *again("m1", 0)], [(0, "m1")]),
        ([assigned("m0"), *handled("m0", 0, 0), revoked("m0"), *again("m1", 0)], [(0, "m0"), (0, "m1")]),
        ([*again("m1", 0), *again("m0", 0)], [(0, "m0")]),
        ([delivered("m0", 0), *again("m1", 0)], []),
        ([*again("m1", 0), delivered("m0", 0)], []),
        ([*again("m0", 0), *(on(1, line) for line in again("m1", 0))], []),
    ],
    ids=[
        "twice again",
        "one of two",
        "tried again at first",
        "done twice at first",
        "the other way round",
        "first without an ownership epoch",
        "again without an ownership epoch",
        "in another partition",
    ],
)
def test_redelivered_is_every_delivery_but_the_first(lines: list[Line], told: list[tuple[int, str]]) -> None:
    """Of a record that several ownership epochs were delivered."""
    found = finding("redelivered", lines, partitions=2)
    assert sorted((one.attributes["offset"], one.events[0].split("-")[1]) for one in found.instances) == sorted(told)


def test_redeliveries_are_parted_by_the_floor_of_their_own_possession() -> None:
    """m1 was told to start at 1 and began at 0; m0 at 2, and began at 1."""
    lines = [*again("m0", 0, 1, 2), answered("m1", 1), *again("m1", 0, 1, 2), answered("m0", 2), *again("m0", 1, 2)]
    below, above = (judged(name, lines, records=3) for name in ("illegal-redelivery", "redelivered"))
    assert [(one["offset"], one["floor"]) for one in below] == [(0, 1), (1, 2)]
    assert sorted((one["offset"], one["floor"]) for one in above) == [(1, 1), (2, 1), (2, 2)]
