"""Liveness: literal histories, each of at most eight lines. W is 10 s for these settings, and B 11 s."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import cast

import pytest

from group_lines import synced
from histories import (
    TOPIC,
    Line,
    after,
    asked,
    assigned,
    at_once,
    committed,
    delivered,
    exited,
    fault,
    fetched,
    finding,
    handled,
    history,
    judged,
    judgement,
    lost,
    not_judged,
    on,
    owner,
    phase,
    processed,
    rated,
    revoked,
    stood_still,
    undecided,
    waited,
    with_settings,
)
from kafka_trial.consumers.spec import KafkaSettings, ProgressPlace
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.drain_backlog import DrainBacklog
from kafka_trial.model.liveness_bounds import Timing, convergence_bound_s, stall_window_s, timing_of
from kafka_trial.model.trial_context import Settings
from lab.agreement.sayings import naive_says, vectorised_says
from lab.history_strategies import History
from lab.naive.checker import judge

B_OF_ONE_LEFT = (
    "B = 11.0 s (a session expiry of 3 s: 3.0 s, a rebalance: 5.0 s, the commit interval: 1.0 s, "
    "twice a backlog of 1 at 1/s: 2.0 s; at least 10 s)"
)
W_OF_ALL = (
    "W = 10.0 s (a session expiry of 3 s, the longest time between two movements: 0.0 s, the commit interval: 1.0 s; "
    "at least 10 s)"
)
GIVES_UP = with_settings(delivery="at-most-once", progress="sink")
LIVENESS = ("false-lag", "stuck-partition", "late-convergence")
DONE = [assigned("m0"), handled("m0", 0, 1)]


@pytest.mark.parametrize("name", LIVENESS)
def test_it_holds(name: str) -> None:
    """All handled, all committed, well before the snapshot."""
    assert judged(name, [*DONE, committed(2), phase("drain"), after(11)]) == []


@pytest.mark.parametrize("name", LIVENESS)
def test_it_is_not_judged_before_the_snapshot(name: str) -> None:
    """The trial ended before it could be looked at."""
    assert "snapshot" in not_judged(name, [*DONE, phase("drain"), after(11)], snapshot=False)


@pytest.mark.parametrize("name", LIVENESS)
def test_it_is_not_judged_without_records(name: str) -> None:
    """An empty topic converges from the start, and shows nothing."""
    assert not_judged(name, [assigned("m0"), phase("drain"), after(11)], records=0) == "there are no records"


def test_false_lag_is_broken() -> None:
    """Both records are done, and the committed offset stays at 1; a backward commit is the cause."""
    found = finding("false-lag", [*DONE, committed(2), committed(1), phase("drain"), after(13)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"records": 1, "committed_offset": 1, "log_end": 2, "lasted_ms": 13040, "within": B_OF_ONE_LEFT},
            ("offsets#1",),
        )
    ]


def test_false_lag_is_undecided_where_the_drain_was_short() -> None:
    """The commit may have been about to come."""
    assert undecided("false-lag", [*DONE, committed(1), phase("drain"), after(9)]) == 1


def test_false_lag_only_looks_broken_where_work_is_left() -> None:
    """A lag that is one: record 1 is not done."""
    assert judged("false-lag", [assigned("m0"), handled("m0", 0), committed(1), phase("drain"), after(11)]) == []


def test_false_lag_does_not_apply_where_progress_is_elsewhere() -> None:
    """Kafka's committed offset means nothing for a consumer that keeps its own."""
    settings = with_settings(progress="sink")
    missing = finding("false-lag", [*DONE, phase("drain"), after(11)], settings=settings).not_judged
    assert missing is not None
    assert not missing.applies


STOPPED = [assigned("m0"), handled("m0", 0), committed(1), phase("drain")]


def test_stuck_partition_is_broken() -> None:
    """Record 1 is left, and for eleven seconds nothing moved."""
    found = finding("stuck-partition", [*STOPPED, after(20)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "records": 1, "within": W_OF_ALL, "class": "unclassified"}, ("observer#2", "offsets#0"))
    ]


def test_stuck_partition_names_its_class() -> None:
    """Delivered and never done; or nobody holds the partition."""
    in_hand = judged("stuck-partition", [assigned("m0"), delivered("m0", 0), phase("drain"), after(20)])
    nobody = judged("stuck-partition", [assigned("m0"), revoked("m0"), phase("drain"), after(20)])
    assert [one["class"] for one in (*in_hand, *nobody)] == ["delivered-not-committed", "unassigned"]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([fetched("m0", None, complete=True)], "assigned-not-fetched"),
        ([fetched("m0", 0, complete=True), fetched("m0", None, complete=True)], "assigned-not-fetched"),
        ([fetched("m0", 0, size_bytes=90)], "fetched-not-delivered"),
        ([handled("m0", 0), fetched("m0", 0, size_bytes=90), fetched("m0", 2)], "fetched-not-delivered"),
        ([committed(2), committed(0)], "committed-not-delivered"),
        ([], "unclassified"),
        ([fetched("m1", None, complete=True)], "unclassified"),
        ([fetched("m0", 0, complete=True), fetched("m0", None)], "unclassified"),
        ([handled("m0", 0), fetched("m0", 0, size_bytes=90)], "unclassified"),
        ([fetched("m0", 2)], "unclassified"),
        ([handled("m1", 0), fetched("m0", 0), fetched("m0", 2)], "unclassified"),
    ],
    ids=[
        "never fetched",
        "fetched no longer",
        "answered",
        "answered and passed",
        "committed and fallen back",
        "nobody saw a fetch",
        "another member fetches",
        "left out of a list that is not complete",
        "answered, not passed",
        "begun behind it",
        "asked for, not answered, and passed",
    ],
)
def test_stuck_partition_is_classed_by_what_was_seen(lines: list[Line | list[Line]], name: str) -> None:
    """Assigned, and no record delivered: the request log and the offsets log tell how far the first one came."""
    assert [one["class"] for one in judged("stuck-partition", [assigned("m0"), *lines, phase("drain"), after(20)])] == [
        name
    ]


def test_stuck_partition_only_looks_broken_while_it_moves() -> None:
    """Something was delivered three seconds ago: slow, not stuck."""
    assert judged("stuck-partition", [*STOPPED, after(9), delivered("m0", 1), after(3)]) == []


def test_stuck_partition_is_undecided_in_a_short_drain() -> None:
    """Nothing moved for long, but the faults were healed only four seconds ago."""
    lines = [assigned("m0"), handled("m0", 0), committed(1), after(8), phase("drain"), after(4)]
    assert undecided("stuck-partition", lines) == 1


def test_stuck_partition_is_undecided_where_the_machine_stood_still() -> None:
    """A scheduling gap of a second is over a quarter of the session timeout."""
    assert undecided("stuck-partition", [*STOPPED, after(6), stood_still(1), after(6)]) == 1


def commits(count: int, took_ms: float) -> list[Line]:
    """So many commits of position 1, and how long the broker took for each."""
    return [at_once(asked("OFFSET_COMMIT", "m0", 1, took_ms=took_ms)) for _ in range(count)]


def found_and_left_open(name: str, lines: list[Line | list[Line]], **frame: object) -> tuple[int, int]:
    """How many are violations, and how many undecided."""
    found = finding(name, lines, **frame)
    return len(found.instances), sum(found.undecided.values())


CALM = [
    Line("run", "calibrated", {"rate": 1.0}),
    *STOPPED[:-1],
    *commits(20, 4.0),
    phase("drain"),
]  # B: 11 s, 2 a record


@pytest.mark.parametrize(
    ("in_drain", "after_s", "found"),
    [
        (commits(20, 4.0), 13.0, "violation"),
        (commits(20, 7.9), 13.0, "violation"),
        (commits(20, 12.0), 13.0, "undecided"),
        (commits(20, 12.0), 17.0, "violation"),
        (commits(19, 12.0), 13.0, "violation"),
        (commits(15, 4.0) + commits(14, 12.0), 13.0, "violation"),
        ([], 13.0, "violation"),
    ],
    ids=["as fast", "hardly slower", "slower", "too late for that", "few commits", "few slow ones", "no commits"],
)
@pytest.mark.parametrize("done", [[handled("m0", 1), committed(2)], []], ids=["converged", "never"])
def test_a_machine_that_is_slower_in_the_drain_leaves_open_what_is_late_by_no_more(
    in_drain: list[Line], after_s: float, found: str, done: list[Line | list[Line]]
) -> None:
    """Thrice as slow: four seconds more than B for the record that is left."""
    moving = [at_once(delivered("m0", 1))]  # it is late, not stuck
    lines = [*CALM, *in_drain, after(after_s), *done, *moving]
    assert found_and_left_open("late-convergence", lines) == ((1, 0) if found == "violation" else (0, 1))


@pytest.mark.parametrize(
    ("calm_ms", "drain_ms", "settings"),
    [(0.3, 3.0, {}), (4.0, 8.9, {}), (4.0, 12.0, {"converge_within_s": 11.0})],
    ids=["faster than anybody measures", "hardly slower", "a claim of its own"],
)
def test_a_bound_is_not_stretched(calm_ms: float, drain_ms: float, settings: dict[str, float]) -> None:
    """A commit takes less than five milliseconds longer; or the team says what it needs."""
    calm = [Line("run", "calibrated", {"rate": 1.0}), *STOPPED[:-1], *commits(20, calm_ms), phase("drain")]
    lines = [*calm, *commits(20, drain_ms), after(13), at_once(delivered("m0", 1))]
    assert found_and_left_open("late-convergence", lines, settings=with_settings(**settings)) == (1, 0)


BUSY = [phase("steady"), waited(0.1, 1.0), Line("run", "calibrated", {"rate": 1.0}), *STOPPED]  # a tenth of the time


@pytest.mark.parametrize(
    ("in_drain", "found"),
    [
        ([], "violation"),
        ([waited(1.3, 13)], "violation"),
        ([waited(2.6, 13)], "violation"),
        ([waited(5.0, 13)], "undecided"),
        ([waited(2.5, 13, brokers_s=2.5)], "undecided"),
        ([waited(1.0, 1)] * 3, "undecided"),
    ],
    ids=["not told", "as before", "too late for that", "busier", "it and brokers", "by the second"],
)
@pytest.mark.parametrize("done", [[handled("m0", 1), committed(2)], []], ids=["converged", "never"])
def test_a_machine_that_is_busier_in_the_drain_leaves_open_what_is_late_by_no_more(
    in_drain: list[Line], found: str, done: list[Line | list[Line]]
) -> None:
    """The group waits for a processor, for longer than while its rate was measured: two seconds more than B matter."""
    moving = [at_once(delivered("m0", 1))]  # it is late, not stuck
    lines = [*BUSY, after(13), *in_drain, *done, *moving]
    assert found_and_left_open("late-convergence", lines) == ((1, 0) if found == "violation" else (0, 1))


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        ([Line("run", "calibrated", {"rate": 1.0}), *STOPPED], {}),
        ([phase("steady"), *STOPPED], {}),
        (BUSY, {"converge_within_s": 11.0}),
    ],
    ids=["not told before", "no rate", "a claim of its own"],
)
def test_a_bound_is_not_stretched_for_a_busy_machine(
    lines: list[Line | list[Line]], settings: dict[str, float]
) -> None:
    """Nobody knows how busy it was before; or the team says what it needs."""
    busy = [*lines, after(13), waited(13, 13), at_once(delivered("m0", 1))]
    assert found_and_left_open("late-convergence", busy, settings=with_settings(**settings)) == (1, 0)


def test_a_busy_machine_explains_only_a_group_at_work() -> None:
    """Nothing has moved for longer than W: it is stuck, however long it waited for a processor."""
    assert found_and_left_open("stuck-partition", [*BUSY, after(13), waited(13, 13)]) == (1, 0)


def test_commits_of_others_do_not_make_a_machine_slow() -> None:
    """An operator's."""
    slow = [at_once(asked("OFFSET_COMMIT", "operator", 1, took_ms=50.0)) for _ in range(30)]
    lines = [*CALM, *slow, after(13), at_once(delivered("m0", 1))]
    assert found_and_left_open("late-convergence", lines) == (1, 0)


@pytest.mark.parametrize("name", ["stuck-partition", "unseen"])
@pytest.mark.parametrize("moves", [[on(1, delivered("m0", 1))], []], ids=["at work", "still"])
def test_a_slow_machine_explains_only_a_group_at_work(name: str, moves: list[Line]) -> None:
    """Partition 0 has been still for longer than W and B: undecided while partition 1 is worked at."""
    rate: list[Line | list[Line]] = [Line("run", "calibrated", {"rate": 1.0})]
    held: list[Line | list[Line]] = [*rate, assigned("m0", 0, 1), *commits(20, 4.0), phase("drain")]
    slow = [*held, *commits(20, 20.0), after(20), *moves, after(1)]
    of_0 = [one.attributes for one in finding(name, slow, partitions=2).instances if one.partition == 0]
    assert (bool(of_0), bool(finding(name, slow, partitions=2).undecided)) == (not moves, bool(moves))


def test_late_convergence_is_broken() -> None:
    """The last record was done thirteen seconds after the drain had begun."""
    lines = [*STOPPED, after(13), handled("m0", 1), committed(2), after(1)]
    assert [(one["bound_s"], one["converged_after_s"]) for one in judged("late-convergence", lines)] == [(11.01, 13.03)]


def test_late_convergence_never_came() -> None:
    """Still at work at the snapshot, long after the bound: neither stuck nor a false lag."""
    lines = [*STOPPED, after(11), delivered("m0", 1)]
    assert [(one["records"], "converged_after_s" in one) for one in judged("late-convergence", lines)] == [(1, False)]


def test_late_convergence_only_looks_broken_within_the_claimed_bound() -> None:
    """The team claims thirty seconds."""
    lines = [*STOPPED, after(13), handled("m0", 1), committed(2), after(1)]
    assert judged("late-convergence", lines, settings=with_settings(converge_within_s=30.0)) == []


def test_late_convergence_leaves_a_stuck_partition_to_its_own_name() -> None:
    """One partition has one of the three."""
    assert judged("late-convergence", [*STOPPED, after(20)]) == []


def test_late_convergence_is_undecided_in_a_short_drain() -> None:
    """Not converged, but the bound had not passed."""
    assert undecided("late-convergence", [*STOPPED, after(5), delivered("m0", 1)]) == 1


def test_late_convergence_forgives_what_was_skipped() -> None:
    """Record 0 was never handled and committed past: lost, not late."""
    lines = [assigned("m0"), handled("m0", 1), committed(2), phase("drain"), after(20)]
    assert judged("late-convergence", lines) == []


def test_the_bound_is_the_sum_of_its_terms() -> None:
    """Session, poll interval, longest handler, commit, noticing of partitions that came, twice the backlog."""
    timing = Timing(6.0, 10.0, 1.0, longest_handler_s=2.0, backlog=DrainBacklog(300, 100.0))
    added = replace(timing, noticing_s=5.0)
    assert (convergence_bound_s(timing), convergence_bound_s(added), stall_window_s(timing)) == (25.0, 30.0, 17.0)


@pytest.mark.parametrize(
    ("came", "protocol", "age_s", "noticing_s"),
    [
        ({}, "classic", 2.0, 0.0),
        ({"partitions_added": True}, "classic", 2.0, 2.0),
        ({"partitions_added": True}, "consumer", 2.0, 2.0),
        ({"topics_added": True}, "classic", 2.0, 2.0),
        ({"topics_added": True}, "consumer", 2.0, 20.0),
        ({"topics_added": True}, "consumer", 300.0, 300.0),
    ],
)
def test_partitions_that_came_are_noticed_in_time(
    came: dict[str, bool], protocol: str, age_s: float, noticing_s: float
) -> None:
    """As clients declare; a coordinator of KIP-848 resolves patterns again every ten seconds at most."""
    assert timing_of(Settings(protocol=protocol, metadata_age_s=age_s), **came).noticing_s == noticing_s


def test_the_bound_is_never_under_ten_seconds() -> None:
    """Quick settings do not make a trial unfair; a claim does as it says."""
    quick = Timing(1.0, 1.0, 0.1)
    claimed = Timing(1.0, 1.0, 0.1, converge_within_s=3.0)
    assert (convergence_bound_s(quick), convergence_bound_s(claimed), stall_window_s(quick)) == (10.0, 3.0, 10.0)


def test_late_convergence_leaves_a_false_lag_to_its_own_name() -> None:
    """All is done, and the position stays behind: one partition has one of the three."""
    assert judged("late-convergence", [*DONE, committed(1), phase("drain"), after(20)]) == []


@pytest.mark.parametrize(("took_s", "found"), [(14.4, 0), (15.6, 1)])
def test_a_partition_may_take_as_long_as_its_own_backlog(took_s: float, found: int) -> None:
    """Six records are left of one of two partitions, which had half of a burst at 4/s: B is 9 + 2 × 6 / 2 = 15 s, and
    not the 12 s that both would take together."""
    all_six = [*handled("m0", *range(6)), *committed(6)]
    before = [assigned("m0", 0, 1), rated(4.0, 1, 1), *(on(1, line) for line in all_six), after(1)]
    lines = [*before, phase("drain"), after(took_s), *all_six, after(1)]
    assert len(judged("late-convergence", lines, records=6, partitions=2)) == found


QUICK = with_settings(converge_within_s=1.0)  # a bound that is shorter than the window


@pytest.mark.parametrize(("more_ms", "found"), [(0, 0), (10, 1)])
def test_stuck_partition_is_broken_from_one_moment_after_the_window(more_ms: int, found: int) -> None:
    """The position rose exactly ten seconds before the snapshot, or ten milliseconds earlier."""
    lines = [assigned("m0"), handled("m0", 0), phase("drain"), committed(1), after(9.99 + more_ms / 1000)]
    assert len(judged("stuck-partition", lines, settings=QUICK)) == found


def test_stuck_partition_is_broken_once_the_drain_lasted_for_the_window() -> None:
    """Exactly ten seconds; ten milliseconds less leave it undecided."""
    long_still = [*STOPPED[:-1], after(3), phase("drain")]
    assert len(judged("stuck-partition", [*long_still, after(9.99)], settings=QUICK)) == 1
    assert undecided("stuck-partition", [*long_still, after(9.98)], settings=QUICK) == 1


@pytest.mark.parametrize(("seconds", "found"), [(13, (0, 1)), (29.98, (0, 1)), (29.99, (1, 0))])
def test_stuck_partition_is_undecided_within_the_claimed_bound(seconds: float, found: tuple[int, int]) -> None:
    """The team claims thirty seconds, and its handlers may last so long: a drain that was shorter shows nothing."""
    one = finding("stuck-partition", [*STOPPED, after(seconds)], settings=with_settings(converge_within_s=30.0))
    assert (one.count, sum(one.undecided.values())) == found


def test_where_no_rate_was_measured_what_is_left_buys_no_time() -> None:
    """W is ten seconds, and so is B without the record that is left."""
    assert len(judged("stuck-partition", [*STOPPED, after(10.5)])) == 1


@pytest.mark.parametrize(("at_work", "found"), [(True, (0, 1)), (False, (1, 0))])
def test_nothing_is_stuck_while_a_backlog_that_is_worked_at_may_take_longer(
    at_work: bool, found: tuple[int, int]
) -> None:
    """Two records at 0.5/s count as 1/s, and twice of that: B is 13 s, and W 10 s; the other partition moves or not."""
    slow = [Line("run", "calibrated", {"rate": 0.5}), *STOPPED[:-1], after(3), phase("drain"), after(8)]
    one = finding("stuck-partition", [*slow, *([on(1, delivered("m0", 0))] * at_work), after(2.9)], partitions=2)
    of_0 = [instance for instance in one.instances if instance.partition == 0]
    assert (len(of_0), min(1, sum(one.undecided.values()))) == found


def test_nothing_is_stuck_inside_the_bound_that_the_team_claims() -> None:
    """It stood still for twenty seconds of the thirty that it may take."""
    settings = with_settings(converge_within_s=30.0)
    assert undecided("stuck-partition", [*STOPPED, after(20)], settings=settings) == 1


def test_late_convergence_is_broken_from_the_bound_and_the_tolerance_on() -> None:
    """Committed 11.51 s after the drain had begun, or ten milliseconds later."""
    done = [handled("m0", 1), committed(2), after(1)]
    assert judged("late-convergence", [*STOPPED, after(11.48), *done]) == []
    assert [one["converged_after_s"] for one in judged("late-convergence", [*STOPPED, after(11.49), *done])] == [11.52]


def test_late_convergence_is_overdue_once_the_drain_lasted_for_the_bound() -> None:
    """Exactly 11.01 s; ten milliseconds less leave it undecided."""
    assert len(judged("late-convergence", [*STOPPED, after(10.99), delivered("m0", 1)])) == 1
    assert undecided("late-convergence", [*STOPPED, after(10.98), delivered("m0", 1)]) == 1


def test_false_lag_is_broken_once_the_drain_lasted_for_the_bound() -> None:
    """Exactly 11.01 s; ten milliseconds less leave it undecided."""
    lagging = [*DONE, committed(1), phase("drain")]
    assert len(judged("false-lag", [*lagging, after(11)])) == 1
    assert undecided("false-lag", [*lagging, after(10.99)]) == 1


LATE = [handled("m0", 1), committed(2)]
BROKEN: dict[str, tuple[list[Line | list[Line]], list[Line | list[Line]]]] = {
    "false-lag": ([*DONE, committed(1), phase("drain")], []),
    "stuck-partition": (STOPPED, []),
    "late-convergence": (STOPPED, LATE),
}


@pytest.mark.parametrize("name", LIVENESS)
@pytest.mark.parametrize(
    "still",
    [[stood_still(0.75)], [stood_still(0.5), stood_still(0.5)]],
    ids=["exactly a quarter", "half a second twice"],
)
def test_a_stall_of_a_quarter_of_the_session_excuses_nothing(name: str, still: list[Line]) -> None:
    """Only more than that does, at one time."""
    before, late = BROKEN[name]
    assert len(judged(name, [*before, after(6), *still, after(7), *late])) == 1


@pytest.mark.parametrize("name", LIVENESS)
def test_one_long_stall_among_short_ones_excuses(name: str) -> None:
    """The longest counts."""
    before, late = BROKEN[name]
    still = [stood_still(0.3), stood_still(0.751), stood_still(0.3)]
    assert undecided(name, [*before, after(6), *still, after(7), *late]) == 1


@pytest.mark.parametrize("name", LIVENESS)
def test_a_stall_at_another_time_excuses_nothing(name: str) -> None:
    """It was over when the drain began, or began after the snapshot."""
    before, late = BROKEN[name]
    assert len(judged(name, [stood_still(2), after(1), *before, after(13), *late])) == 1
    lines = [*before, after(13), *late, phase("snapshot"), after(2), stood_still(1.9)]
    assert len(judged(name, lines, snapshot=False)) == 1


@pytest.mark.parametrize("name", LIVENESS)
def test_a_stall_that_reaches_into_the_time_excuses(name: str) -> None:
    """It was over in the very instant in which the drain began, or began just before the snapshot."""
    before, late = BROKEN[name]
    early = [*before[:-1], stood_still(2), at_once(phase("drain")), after(13), *late]
    ended = [*before, after(13), *late, phase("snapshot"), after(1), stood_still(1.01)]
    if name != "stuck-partition":  # its time begins ten seconds before the snapshot
        assert undecided(name, early) == 1
    assert undecided(name, ended, snapshot=False) == 1


@pytest.mark.parametrize(
    ("lines", "bound_s"),
    [
        ([assigned("m0"), phase("drain"), after(1)], 17.0),
        ([*DONE, committed(2), phase("drain"), after(1)], 13.01),
        ([*DONE, phase("drain"), on(1, delivered("m0", 0)), after(5), on(1, processed("m0", 0))], 17.01),
        ([*DONE, on(1, delivered("m0", 0)), after(5), on(1, processed("m0", 0)), phase("drain"), after(1)], 22.01),
        ([*DONE, Line("run", "calibrated", {"rate": 8.0}), phase("drain"), after(1)], 10.01),
        ([*DONE, Line("run", "calibrated", {"rate": 0.5}), phase("drain"), after(1)], 17.01),
        ([*DONE, committed(2), rated(2.0, 7, 1), phase("drain"), after(1)], 13.01),
        ([*DONE, committed(2), rated(2.0, 1, 7), phase("drain"), after(1)], 9.01 + 2 * 2 / (2.0 * 7 / 8)),
        ([*DONE, committed(2), rated(3.0, 1, 0, 1), phase("drain"), after(1)], 9.01 + 2 * 2 / (3.0 / 2)),
        ([*DONE, committed(2), rated(1.0, 1, 1), phase("drain"), after(1)], 13.01),
        ([*DONE, rated(2.0, 1, 1), phase("drain"), after(1)], 13.01),
        ([*DONE, phase("steady"), after(1)], 10.0),
        ([*DONE, phase("heal"), after(1)], 17.01),
    ],
    ids=[
        "nothing done",
        "one done",
        "a handler of five seconds in the drain",
        "a handler of five seconds before it",
        "a rate",
        "a rate too low",
        "a small share of the burst: as the mean",
        "a large share of the burst",
        "no share of the burst: as the mean",
        "a share of less than one a second",
        "all partitions alike",
        "no drain",
        "only healed",
    ],
)
def test_the_bound_grows_with_what_was_left_in_all_partitions(lines: list[Line | list[Line]], bound_s: float) -> None:
    """Nine seconds of settings, the longest handler of all, and two seconds for each record that was left."""
    assert judgement(lines, partitions=2).bounds_s == {"converge": pytest.approx(bound_s), "stuck": 10.0}


def test_a_consumer_that_declares_nothing_is_judged_by_what_the_harness_starts_it_with() -> None:
    """The defaults of consumer.toml."""
    kafka, progress = KafkaSettings(), ProgressPlace()
    assert Settings() == Settings(
        protocol=kafka.protocol,
        session_timeout_s=kafka.session_timeout_s,
        poll_interval_s=kafka.poll_interval_s,
        metadata_age_s=kafka.metadata_age_s,
        commit_interval_s=progress.interval_s,
        progress=progress.kind,
    )


@pytest.mark.parametrize(
    ("timing", "bound_s"),
    [
        (Timing(6.0, 10.0, 1.0, protocol="none", longest_handler_s=5.0), 12.0),
        (Timing(6.0, 10.0, 1.0, protocol="consumer", longest_handler_s=5.0), 22.0),
        (Timing(6.0, 3.0, 1.0, backlog=DrainBacklog(3)), 16.0),
        (Timing(6.0, 3.0, 1.0, backlog=DrainBacklog(3, 0.0)), 16.0),
        (Timing(6.0, 3.0, 1.0, backlog=DrainBacklog(3, 1.5)), 14.0),
        (Timing(6.0, 3.0, 1.0, backlog=DrainBacklog(300), converge_within_s=0.5), 0.5),
        (Timing(6.0, 10.0, 1.0, noticing_s=3.0), 20.0),
    ],
)
def test_the_terms_of_the_bound(timing: Timing, bound_s: float) -> None:
    """Without a group nobody waits for a rebalance; a rate below one record a second counts as one."""
    assert convergence_bound_s(timing) == bound_s


def test_liveness_is_told_of_each_partition() -> None:
    """Of four, the first is done, the second stuck, the third lags falsely, and the fourth is late."""
    all_four = assigned("m0", 0, 1, 2, 3)
    done = [on(number, line) for number in (0, 2) for line in handled("m0", 0, 1)]
    ended = [committed(2)[0], on(2, committed(1)[0]), phase("drain"), after(30), on(3, delivered("m0", 0))]
    judged_ = judgement([all_four, *done, *ended], partitions=4)
    assert {name: [one.partition for one in judged_.findings[name].instances] for name in LIVENESS} == {
        "false-lag": [2],
        "stuck-partition": [1],
        "late-convergence": [3],
    }


@pytest.mark.parametrize("since", [committed(2), committed(0), [*committed(2), *committed(1)]], ids=str)
def test_a_false_lag_is_proved_by_what_was_committed_at_the_snapshot(since: list[Line]) -> None:
    """It stood at 1 then, and had never fallen."""
    lines = [*DONE, committed(1), phase("drain"), after(13), phase("snapshot"), *since]
    found = finding("false-lag", lines, snapshot=False)
    assert [one.events for one in found.instances] == [("offsets#0",)]


def test_a_false_lag_is_proved_by_a_fall_that_was_made_good_after_the_snapshot() -> None:
    """Then it stood."""
    lines = [*DONE, committed(2), committed(1), phase("drain"), after(13), phase("snapshot"), committed(2)]
    found = finding("false-lag", lines, snapshot=False)
    assert [one.events for one in found.instances] == [("offsets#1",)]


def test_the_bound_holds_the_metadata_age_where_partitions_were_added() -> None:
    """A member learns of them when its metadata is that old; they were there in time."""
    added = Line("observer", "topic", {"topic": TOPIC, "topic_id": "T", "partitions": 2, "cleanup_policy": "delete"})
    lines = [*STOPPED, after(13), handled("m0", 1), committed(2), after(1)]
    settings = with_settings(metadata_age_s=1.0)
    bounds = [judged("late-convergence", told, settings=settings)[0]["bound_s"] for told in (lines, [added, *lines])]
    assert bounds == [11.01, 12.01]


def test_who_stores_its_position_before_the_work_leaves_what_another_had_begun() -> None:
    """At most once, with progress in a table of its own: m0 is killed with record 1, and m1 goes on behind it."""
    begun = [assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0), delivered("m0", 1)]
    killed = [fault("kill", "m0"), exited("m0", signal=9), after(4), assigned("m1")]
    goes_on = [*begun, *killed, fetched("m1", 2, size_bytes=9), *handled("m1", 2), fetched("m1", 3)]
    drained = [phase("drain"), after(15)]
    assert judged("stuck-partition", [*goes_on, *drained], settings=GIVES_UP, records=3) == []
    others = with_settings(progress="sink")
    found = judged("stuck-partition", [*goes_on, *drained], settings=others, records=3)
    assert [one["offset"] for one in found] == [1]
    stops = [*begun, *killed, fetched("m1", 1, size_bytes=9), fetched("m1", 3)]
    found = judged("stuck-partition", [*stops, *drained], settings=GIVES_UP, records=3)
    assert [one["offset"] for one in found] == [1]


def test_what_a_member_gives_up_begins_anew_when_it_has_given_the_partition_back() -> None:
    """It had the partition before, and began lower; a fetch that was refused shows no beginning."""
    held = [assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0), delivered("m0", 1), lost("m0")]
    again = [after(4), assigned("m0"), fetched("m0", 2), phase("drain"), after(15)]
    assert judged("stuck-partition", [*held, *again], settings=GIVES_UP) == []
    kept = [one for one in (*held, *again) if one.kind not in ("lost", "assigned")]
    assert len(judged("stuck-partition", [assigned("m0"), *kept], settings=GIVES_UP)) == 1
    refused = [after(4), assigned("m0"), fetched("m0", 2, error=1), fetched("m0", 1), phase("drain"), after(15)]
    assert len(judged("stuck-partition", [*held, *refused], settings=GIVES_UP)) == 1


def test_only_who_has_the_partition_gives_up_what_lies_below() -> None:
    """m0 stands still before record 1; m1, which does not have the partition, looks at the end of the log."""
    stuck = [assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0), fetched("m0", 1)]
    looks = [fetched("m1", 3), fetched("m1", 3)]
    found = judged("stuck-partition", [*stuck, *looks, phase("drain"), after(15)], settings=GIVES_UP, records=3)
    assert [one["offset"] for one in found] == [1]


def standing_still(*others: Line | list[Line]) -> list[int | None]:
    """m0, to which the group gave the partition, was brought record 1 and stands still before it, and both judges see
    what others do."""
    given = [owner("m0"), synced("m0", 0), assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0)]
    brought = fetched("m0", 1, size_bytes=9)
    events = history([*given, brought, *others, phase("drain"), after(15)], records=3)
    told = judge_events(events, GIVES_UP).findings["stuck-partition"]
    stuck = [one.attributes["offset"] for one in told.instances]
    assert [one[2] for one in judge(events, asdict(GIVES_UP)).anomalies["stuck-partition"]] == stuck
    return stuck


def test_who_only_says_that_it_has_the_partition_gives_nothing_up() -> None:
    """m1 is not in the group, and begins to fetch behind what m0 left."""
    claims = [assigned("m1"), fetched("m1", 3), fetched("m1", 3)]
    assert standing_still(*claims) == [1]
    assert standing_still(synced("m1", 1), *claims) == [1]
    assert standing_still(*claims, owner("m1", epoch=2), synced("m1", 0)) == []  # it was given it, and said so early
    assert standing_still(*claims, owner("m9", epoch=2)) == []  # nobody knows who m9 is


def test_who_takes_the_partition_without_a_right_gives_nothing_up() -> None:
    """m1 fetches it, and handles the last record."""
    takes = [fetched("m1", 2, size_bytes=9), *handled("m1", 2), fetched("m1", 3)]
    assert standing_still(*takes) == [1]
    assert standing_still(synced("m1", 1), assigned("m1", 1), *takes) == [1]
    assert standing_still(owner("m1", epoch=2), synced("m1", 0), assigned("m1"), *takes) == []


@pytest.mark.parametrize(
    "then",
    [
        [revoked("m1")],
        [lost("m1"), after(0.2)],
        [revoked("m1"), assigned("m1")],
        [revoked("m1"), assigned("m2")],
        [revoked("m1"), exited("m1")],
    ],
    ids=["rebalancing", "lost", "again", "another's", "it has ended"],
)
def test_what_was_given_up_stays_so_when_the_partition_goes_on(then: list[Line]) -> None:
    """Nobody has it now, or who has it now has not fetched yet: m1 began behind record 1, and nobody takes that up."""
    begun = [assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0), delivered("m0", 1)]
    killed = [fault("kill", "m0"), exited("m0", signal=9), after(4), assigned("m1"), fetched("m1", 2)]
    lines = [*begun, *killed, *then, phase("drain"), after(15)]
    assert judged("stuck-partition", lines, settings=GIVES_UP) == []


# --- progress outside of Kafka: what a client fetches before it is told where to start ------------------------------

TAKEN = [assigned("m0"), fetched("m0", 0, size_bytes=9), *handled("m0", 0, 1), delivered("m0", 2)]
TAKEN_OVER = [*TAKEN, fault("kill", "m0"), exited("m0", signal=9), after(4), assigned("m1")]
DRAINED = [phase("drain"), after(15)]


def left_to_do(*lines: Line | list[Line], settings: Settings = GIVES_UP) -> list[int]:
    """The first record of a stuck partition of five, as both judges name it."""
    return offsets_of("stuck-partition", *lines, *DRAINED, settings=settings)


def offsets_of(name: str, *lines: Line | list[Line], settings: Settings = GIVES_UP) -> list[int]:
    """The records of an anomaly, of a partition of five, as both judges name them."""
    names = ("session_timeout_s", "poll_interval_s", "commit_interval_s", "delivery", "progress")
    told = {name: getattr(settings, name) for name in names}
    one = cast("History", SimpleNamespace(events=history(lines, records=5), settings=told))
    assert naive_says(one)[name] == vectorised_says(one)[name]
    return [found["offset"] for found in judged(name, lines, settings=settings, records=5)]


@pytest.mark.parametrize("first", [0, 5], ids=["earliest", "latest"])
def test_a_fetch_before_the_seek_is_no_start(first: int) -> None:
    """m0 was killed with record 2, whose position it had stored; m1's client fetches as its policy says, then seeks."""
    goes_on = [fetched("m1", first, size_bytes=9), fetched("m1", 3, size_bytes=9), *handled("m1", 3, 4)]
    assert left_to_do(*TAKEN_OVER, *goes_on, fetched("m1", 5)) == []
    assert left_to_do(*TAKEN_OVER, *goes_on, fetched("m1", 5), settings=with_settings(progress="sink")) == [2]


def test_a_member_that_has_nothing_to_do_starts_where_it_sought() -> None:
    """All but record 2 is done when m1 takes over: it fetches from the log start, seeks to the end, and waits there."""
    all_done = [*TAKEN, fetched("m0", 5), *handled("m0", 3, 4), *TAKEN_OVER[len(TAKEN) :]]
    assert left_to_do(*all_done, fetched("m1", 0, size_bytes=9), fetched("m1", 5)) == []
    assert left_to_do(*all_done, fetched("m1", 0, size_bytes=9)) == [2]


def test_who_seeks_past_what_nobody_was_brought_gives_nothing_up() -> None:
    """m0 had been brought three records, as its next fetch shows: no position behind record 3 was stored."""
    sought = [fetched("m1", 0, size_bytes=9), fetched("m1", 4, size_bytes=9), *handled("m1", 4), fetched("m1", 5)]
    assert left_to_do(*TAKEN, fetched("m0", 3), *TAKEN_OVER[len(TAKEN) :], *sought) == [3]
    assert left_to_do(*TAKEN, fetched("m0", 3), *TAKEN_OVER[len(TAKEN) :], *sought[1:]) == [3]
    assert left_to_do(*TAKEN, fetched("m0", 4), *TAKEN_OVER[len(TAKEN) :], *sought) == []


def test_a_fetch_from_the_end_acquits_nobody_that_stands_still() -> None:
    """m1 fetches at the end as its policy says, and then before record 2, where it hangs."""
    assert left_to_do(*TAKEN_OVER, fetched("m1", 5), fetched("m1", 2)) == [2]
    assert left_to_do(*TAKEN_OVER, fetched("m1", 2, size_bytes=9), fetched("m1", 5)) == [2]


SET_ASIDE = [fetched("m1", 0, size_bytes=9), delivered("m1", 0), processed("m1", 0, outcome="discarded")]


def test_what_was_begun_under_at_most_once_is_jumped_over() -> None:
    """m1 sets record 0 aside and seeks behind record 2, whose position m0 had stored; nobody had begun record 3."""
    assert offsets_of("poll-skip", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 3, 4)) == []
    assert offsets_of("poll-skip", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 4)) == [3]
    others = with_settings(progress="sink")
    assert offsets_of("poll-skip", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 3, 4), settings=others) == [2]
    in_kafka = with_settings(delivery="at-most-once")
    assert offsets_of("poll-skip", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 3, 4), settings=in_kafka) == [1, 2]


def test_what_a_member_sets_aside_before_it_seeks_is_not_delivered_again() -> None:
    """Its own store says that record 0 is done; whoever does it again is told of."""
    assert offsets_of("redelivered", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 3)) == []
    assert offsets_of("redelivered", *TAKEN_OVER, *handled("m1", 0), *handled("m1", 3)) == [0]
    assert offsets_of("redelivered", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 1, 3)) == [1]
    in_kafka = with_settings(delivery="at-most-once")
    assert offsets_of("redelivered", *TAKEN_OVER, *SET_ASIDE, *handled("m1", 3), settings=in_kafka) == [0]


def test_a_record_that_was_set_aside_is_delivered_first_when_it_is_done() -> None:
    """m1 is given record 4 by its reset policy, sets it aside, seeks back, and comes to it in turn."""
    early = [delivered("m1", 4), processed("m1", 4, outcome="discarded")]
    assert offsets_of("redelivered", *TAKEN_OVER, *early, *handled("m1", 3, 4)) == []
