"""Records that wait longer than claimed: literal histories.

Claimed are five seconds; the group did ten records a second of its opening burst. W is 10 s for these settings.
"""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    BEGUN_NS,
    SECOND_NS,
    WALL_NS,
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    committed,
    fault,
    finding,
    handled,
    healed,
    judged,
    log_end,
    not_judged,
    processed,
    rated,
    revoked,
    stood_still,
    through,
    undecided,
    waited,
    with_settings,
)
from kafka_trial.claim import Claim
from kafka_trial.model.partition import Partitions
from kafka_trial.model.undecided import Undecided
from kafka_trial.verdict.decide import weigh

NAME = "late-record"
CLAIM = Claim("at-least-once", lag_age_max_s=5)
SETTINGS = with_settings(lag_age_max_s=5)
BEGUN = [rated(10.0), assigned("m0")]
BY_FAULT, AT_ONCE = "fault 0 (stall on m0)", "what was sent at once"


def appended(*seconds: float) -> dict[str, Any]:
    """Records that came so many seconds after the first line of the history."""
    walls = [WALL_NS + BEGUN_NS + round(at * SECOND_NS) for at in seconds]
    control = {offset: {"source_wall_ns": wall_ns} for offset, wall_ns in enumerate(walls)}
    return {"records": len(walls), "control": control, "settings": SETTINGS}


def records_dated(timestamp_type: str) -> Line:
    """An audit says whose the times of the records are that it read."""
    read = {"topic": "t", "state": "complete", "count": 1}
    return Line("observer", "control_read", read | {"timestamp_type": timestamp_type})


def excuses(*lines: Line | list[Line], **frame: Any) -> list[tuple[int, int, str | None]]:
    """Returns first offset, last offset and excuse of each finding."""
    return [(one["offset"], one["last_offset"], one.get("excused_by")) for one in judged(NAME, [*lines], **frame)]


def test_a_record_is_handled_in_time() -> None:
    """It waited for four seconds."""
    assert excuses(*BEGUN, after(5), handled("m0", 0), **appended(1)) == []


def test_a_late_record() -> None:
    """It waited for eight seconds."""
    found = finding(NAME, [*BEGUN, after(9), handled("m0", 0)], **appended(1.02))
    wait = {"lasted_ms": 8020, "counted_ms": 8020, "allowed_ms": 5200}
    place = {"offset": 0, "last_offset": 0, "longest_wait_offset": 0, "records": 1, "member": "m0"}
    assert [(one.attributes, one.events) for one in found.instances] == [
        (place | wait, ("observer#1", "consumer-m0-0#3"))
    ]


def test_late_records_that_follow_one_another_are_one_finding() -> None:
    """Of three the first waited longest; the fourth was in time."""
    lines = [*BEGUN, after(11), handled("m0", 0, 1, 2), after(8), handled("m0", 3), after(6), handled("m0", 4)]
    found = judged(NAME, lines, **appended(1, 2, 3, 17, 18))
    assert [(one["offset"], one["last_offset"], one["longest_wait_offset"], one["records"]) for one in found] == [
        (0, 2, 0, 3),
        (4, 4, 4, 1),
    ]


def test_what_still_waits_at_the_snapshot_is_late() -> None:
    """Nobody has handled it, and nobody passed it over."""
    assert excuses(*BEGUN, after(9), **appended(1)) == [(0, 0, None)]


def test_what_was_committed_past_does_not_wait() -> None:
    """Nobody will do it any more, which has a name of its own; while its position stands somebody may."""
    assert excuses(*BEGUN, committed(2), after(19), **appended(1, 0)) == []
    assert excuses(*BEGUN, handled("m0", 1), after(19), **appended(1, 0)) == [(0, 0, None)]
    outside = appended(1, 0) | {"settings": with_settings(lag_age_max_s=5, progress="external")}
    assert excuses(*BEGUN, handled("m0", 1), after(19), **outside) == []


def test_who_had_the_partition_is_named() -> None:
    """m1 had it when the record became too old, and m0 handled it."""
    lines = [*BEGUN, after(1), revoked("m0"), assigned("m1"), after(6), revoked("m1"), assigned("m0"), after(3)]
    assert [one["member"] for one in judged(NAME, [*lines, handled("m0", 0)], **appended(1))] == ["m1"]
    lines = [*BEGUN, after(1), revoked("m0"), after(7), assigned("m0")]
    assert [one.get("member") for one in judged(NAME, [*lines, handled("m0", 0)], **appended(1))] == [None]


def test_what_waited_before_the_burst_was_done_is_no_wait() -> None:
    """It counts from there."""
    assert excuses(after(9), *BEGUN, after(4), handled("m0", 0), after(9), **appended(1)) == []
    assert excuses(after(9), *BEGUN, after(7), handled("m0", 0), **appended(1)) == [(0, 0, None)]


@pytest.mark.parametrize("tail_s", [8.0, 26.0])
def test_a_fault_explains_a_wait(tail_s: float) -> None:
    """In force for four seconds, and lived down in ten; what gathered meanwhile takes as long again."""
    lines = [*BEGUN, after(2), fault("stall", "m0"), after(4), healed(), after(tail_s + 2), handled("m0", 0)]
    assert excuses(*lines, after(30), **appended(1)) == [(0, 0, BY_FAULT)]


def test_a_fault_explains_a_wait_from_when_it_began_to_be_put_in_force() -> None:
    """A member is ended for a cut that comes ten seconds later."""
    begun = Line("nemesis", "injecting", {"fault_no": 0, "fault": "cut", "target": "role: m0", "member": "m0"})
    lines = [*BEGUN, after(2), begun, after(10), fault("cut", "m0"), after(0.3), handled("m0", 0), healed(), after(60)]
    assert excuses(*lines, **appended(2.5)) == [(0, 0, "fault 0 (cut on m0)")]


def test_a_pass_in_which_no_record_could_be_late_proves_nothing() -> None:
    """A fault explains all but four seconds of the trial."""
    lines = [*BEGUN, after(2), fault("stall", "m0"), after(4), healed(), after(26), handled("m0", 0)]
    assert "faults explain so much of the trial" in not_judged(NAME, lines, **appended(1))


def test_what_its_producer_could_not_append_does_not_wait() -> None:
    """The record bears the time at which it was handed to the client; the observer sees the log end behind it seven
    seconds later."""
    late = [*BEGUN, log_end(0), after(8), log_end(1), after(0.1), handled("m0", 0)]
    assert undecided(NAME, late, **appended(1)) == 1
    soon = [*BEGUN, log_end(0), after(1.5), log_end(1), after(8), handled("m0", 0)]
    assert excuses(*soon, **appended(1)) == [(0, 0, None)]


def test_a_neighbour_explains_no_wait() -> None:
    """Others read from the same brokers: whoever claims an age keeps it beside them."""
    lines = [*BEGUN, after(2), fault("cold-reads", None), after(4), healed(), after(6), handled("m0", 0)]
    assert excuses(*lines, **appended(1)) == [(0, 0, None)]


def test_a_fault_explains_no_more_than_its_time() -> None:
    """Six seconds more than it and W explain, twice."""
    lines = [*BEGUN, after(2), fault("stall", "m0"), after(4), healed(), after(31), handled("m0", 0)]
    assert excuses(*lines, **appended(1)) == [(0, 0, None)]


def test_the_backlog_of_a_fault_takes_time() -> None:
    """A hundred records came while it was in force: the last of them are done after twenty seconds at half the pace."""
    arrivals = [10 + number / 5 for number in range(100)]
    lines = [*BEGUN, after(9), fault("stall", "m0"), after(21), healed(), after(10)]
    for offset in range(100):
        lines += [after(0.18), processed("m0", offset)]
    found = excuses(*lines, **appended(*arrivals))
    assert {excuse for *_, excuse in found} == {BY_FAULT}
    assert found[-1][1] == 99


def test_a_burst_of_the_load_takes_time() -> None:
    """A hundred records at once, among some that come slowly: ten seconds at the group's pace, and it may take twice
    that; then it is late."""
    arrivals = [1.0, *[2.0] * 100, 200.0]
    quick, slow = ([*BEGUN, after(2), processed("m0", 0)] for _ in range(2))
    for offset in range(1, 101):
        quick += [after(0.17), processed("m0", offset)]
        slow += [after(0.4), processed("m0", offset)]
    last = processed("m0", 101)
    assert {excuse for *_, excuse in excuses(*quick, after(182), last, **appended(*arrivals))} == {AT_ONCE}
    late = finding(NAME, [*slow, after(159), last], **appended(*arrivals)).instances[-1].attributes
    assert (late["last_offset"], late.get("excused_by")) == (100, None)


def test_what_comes_faster_than_the_group_works_decides_nothing() -> None:
    """Twenty a second, and it does ten: its lag grows all the while."""
    arrivals = [1 + number / 20 for number in range(300)]
    lines = [*BEGUN, after(1)]
    for offset in range(300):
        lines += [after(0.09), processed("m0", offset)]
    found = finding(NAME, lines, **appended(*arrivals))
    assert (found.instances, [*found.undecided]) == ((), [Undecided.LOAD_TOO_FAST])
    found = finding(NAME, [*lines, waited(30.0, 28.0)], **appended(*arrivals))
    assert (found.instances, [*found.undecided]) == ((), [Undecided.NO_PROCESSOR])


def test_who_keeps_up_was_not_sent_too_much() -> None:
    """One a second of the burst, then two a second for a minute, of which sixty are done every half minute: most are
    late. Of the first sixty alone only the first are for certain, as nobody saw it keep up by then."""
    arrivals = [1 + number / 2 for number in range(120)]
    first, second = ([at_once(processed("m0", offset)) for offset in range(at, at + 60)] for at in (0, 60))
    begun = [rated(1.0), assigned("m0"), after(31), *first]

    def late(lines: list[Line], *arrivals: float) -> tuple[list[Any], list[Any]]:
        found = finding(NAME, lines, **appended(*arrivals))
        places = [(one.attributes["offset"], one.attributes["last_offset"]) for one in found.instances]
        return places, [*found.undecided]

    unsure = [Undecided.HANDLED_WHEN, Undecided.LOAD_TOO_FAST]
    assert late([*begun, after(30), *second, after(2)], *arrivals, 62) == ([(0, 44), (60, 102)], unsure)
    assert late(begun, *arrivals[:60]) == ([(0, 14)], unsure)


@pytest.mark.parametrize("line", [stood_still(4), waited(4.0, 5.0)], ids=["stood still", "had no processor"])
def test_a_machine_that_had_no_time_decides_nothing(line: Line) -> None:
    """The wait would be within the claim without it, and another is not."""
    assert undecided(NAME, [*BEGUN, after(6), line, after(3), handled("m0", 0)], **appended(1)) == 1
    assert excuses(*BEGUN, after(20), line, after(3), handled("m0", 0), **appended(1)) == [(0, 0, None)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (after(0), Undecided.HANDLED_WHEN),
        (stood_still(2), Undecided.HANDLED_WHEN),
        (stood_still(4), Undecided.DELAYED),
        (waited(4.0, 5.0), Undecided.NO_PROCESSOR),
    ],
    ids=["idle", "stood still too briefly", "stood still", "had no processor"],
)
def test_a_machine_that_had_no_time_is_named_where_it_explains_the_longest_wait(line: Line, reason: str) -> None:
    """Nobody knows when the record was handled, and without the machine's wait it would be in time by any bound."""
    frame = appended(1) | {"settings": with_settings(lag_age_max_s=5, stdout="buffered")}
    assert [*finding(NAME, [*BEGUN, after(6), line, after(3), handled("m0", 0)], **frame).undecided] == [reason]


def test_lines_out_of_a_buffer_decide_nothing() -> None:
    """Nobody knows when it was handled, nor whether it was where no line has come yet."""
    frame = appended(1) | {"settings": with_settings(lag_age_max_s=5, stdout="buffered")}
    assert undecided(NAME, [*BEGUN, after(9), handled("m0", 0)], **frame) == 1
    assert undecided(NAME, [*BEGUN, after(9)], **frame) == 1


@pytest.mark.parametrize(("wait_s", "found"), [(6.0, []), (9.0, [(0, 0, None)])])
def test_of_a_silent_consumer_commits_tell(wait_s: float, found: list[Any]) -> None:
    """It may have handled the record a commit interval before."""
    frame = appended(1) | {"settings": with_settings(lag_age_max_s=5, events="none")}
    assert excuses(rated(10.0), after(wait_s), committed(1), **frame) == found


@pytest.mark.parametrize(("wait_s", "found"), [(6.5, []), (9.0, [(0, 1, None)])])
def test_an_audit_goes_by_commits(wait_s: float, found: list[Any]) -> None:
    """Where brokers date records. Of the second nothing is said, and no burst or fault excuses anybody."""
    lines = [records_dated("LogAppendTime"), after(wait_s), committed(1)]
    assert excuses(*lines, **appended(1, 1), members=0) == found


def test_in_transactions_what_is_committed_is_done() -> None:
    """Processed at once, committed eight seconds later."""
    frame = appended(1) | {"settings": with_settings(lag_age_max_s=5, progress="transaction")}
    lines = [*BEGUN, after(1), handled("m0", 0), after(8), committed(1, by="m0", producer=7)]
    assert excuses(*lines, **frame) == [(0, 0, None)]


def test_what_is_not_in_the_log_any_more_took_its_time() -> None:
    """A hundred came at once, and only the last of them is left: it was done after as many as fit into ten seconds."""
    frame = appended(*[1.0] * 100, 200.0)
    frame["control"] |= dict.fromkeys(range(1, 99))
    lines = [*BEGUN, handled("m0", 0), after(11), processed("m0", 99), after(189), processed("m0", 100)]
    assert excuses(*lines, **frame) == [(99, 99, AT_ONCE)]


@pytest.mark.parametrize(
    ("changes", "late"),
    [({}, True), ({"handler": "batch"}, False), ({"progress": "transaction"}, False)],
    ids=["one by one", "batch", "transaction"],
)
def test_a_batch_is_done_when_its_last_record_is(changes: dict[str, Any], late: bool) -> None:
    """Thirty records at once, all told after five seconds and a half: one by one the first would be late; nobody knows
    which are of one batch, or transaction."""
    frame = appended(*[1.0] * 30, 200.0) | {"settings": with_settings(lag_age_max_s=2, **changes)}
    lines = [*BEGUN, after(6), *(at_once(processed("m0", offset)) for offset in range(30))]
    lines += [committed(30, by="m0", producer=7), after(194), processed("m0", 30)]
    found = finding(NAME, [*lines, committed(31, by="m0", producer=7)], **frame)
    certain = any(one.attributes.get("excused_by") is None for one in found.instances)
    assert (certain, Undecided.IN_A_BATCH in found.undecided) == (late, not late)


def test_a_partition_that_is_judged_alone_has_its_own_pace() -> None:
    """Large trials are judged in parts: fifty a second are done of partition 0, ninety of this one."""
    work = [at_once(processed("m0", offset, partition=1)) for offset in range(30)]
    lines = [rated(100.0, 10, 90), assigned("m0"), after(6), *work]
    frame = {"records": 30, "partitions": 2, "old": True, "settings": with_settings(lag_age_max_s=2)}
    both = batch_of(lines, **frame)
    rows = both._as_read
    alone = Partitions(rows.take(rows["slice"] == 1), both.trial_context, both.keys, both.makers)
    found = both.late_records.take(both.late_records.slice == 1)
    assert len(found)
    assert alone.late_records.allowed_ns.tolist() == found.allowed_ns.tolist()


@pytest.mark.parametrize(
    ("changes", "lines", "reason"),
    [
        ({"members": 0}, [], "an audit does not know when records came"),
        ({"members": 0}, [records_dated("CreateTime")], "an audit does not know when records came"),
        ({}, [through("t-retry")], "records wait in topics"),
    ],
    ids=["an audit", "dated by producers", "records are handed on"],
)
def test_it_is_not_judged_where_waits_are_not_known(changes: dict[str, Any], lines: list[Line], reason: str) -> None:
    """Neither when they began, nor where they ended."""
    begun = [rated(10.0)] if changes else BEGUN
    assert reason in not_judged(NAME, [*begun, *lines, after(9), committed(1)], **appended(1), **changes)


def test_it_is_not_judged_without_a_claim_or_a_pace() -> None:
    """Nothing is too old, or nobody knows what a fault explains."""
    late = [after(9), handled("m0", 0)]
    assert not_judged(NAME, [*BEGUN, *late]) == "no limit to the age of records is claimed"
    assert "opening burst" in not_judged(NAME, [assigned("m0"), *late], **appended(1))


@pytest.mark.parametrize(("excused_by", "weight"), [(None, "violation"), (BY_FAULT, "tolerated")])
def test_its_weight(excused_by: str | None, weight: str) -> None:
    """What nothing explains breaks the claim, and no other claim."""
    one = {} if excused_by is None else {"excused_by": excused_by}
    assert weigh(CLAIM, NAME, one)[0] == weight
    assert weigh(Claim("at-least-once"), NAME, one)[0] == "tolerated"
