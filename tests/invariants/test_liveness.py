"""Liveness: literal histories, each of at most eight lines. W is 10 s for these settings, and B 11 s."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    fetched,
    finding,
    handled,
    judged,
    not_judged,
    phase,
    revoked,
    stood_still,
    undecided,
    with_settings,
)
from kafka_trial.invariants.liveness import Timing, convergence_bound_s, stall_window_s

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
        ({"records": 1, "committed_offset": 1, "log_end": 2, "lasted_ms": 13040}, ("offsets#1",))
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
    found = finding("stuck-partition", [*STOPPED, after(11)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 1, "records": 1, "class": "unclassified"}, ("observer#2", "offsets#0"))
    ]


def test_stuck_partition_names_its_class() -> None:
    """Delivered and never done; or nobody holds the partition."""
    in_hand = judged("stuck-partition", [assigned("m0"), delivered("m0", 0), phase("drain"), after(11)])
    nobody = judged("stuck-partition", [assigned("m0"), revoked("m0"), phase("drain"), after(11)])
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
        ([handled("m0", 0), fetched("m0", 0), fetched("m0", 2)], "unclassified"),
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
    assert [one["class"] for one in judged("stuck-partition", [assigned("m0"), *lines, phase("drain"), after(11)])] == [
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
    """Session, poll interval, longest handler, commit, metadata (where partitions were added), twice the backlog."""
    timing = Timing(6.0, 10.0, 1.0, metadata_age_s=5.0, longest_handler_s=2.0, backlog=300, rate_per_s=100.0)
    added = Timing(
        6.0,
        10.0,
        1.0,
        metadata_age_s=5.0,
        longest_handler_s=2.0,
        backlog=300,
        rate_per_s=100.0,
        partitions_added=True,
    )
    assert (convergence_bound_s(timing), convergence_bound_s(added), stall_window_s(timing)) == (25.0, 30.0, 17.0)


def test_the_bound_is_never_under_ten_seconds() -> None:
    """Quick settings do not make a trial unfair; a claim does as it says."""
    quick = Timing(1.0, 1.0, 0.1)
    claimed = Timing(1.0, 1.0, 0.1, converge_within_s=3.0)
    assert (convergence_bound_s(quick), convergence_bound_s(claimed), stall_window_s(quick)) == (10.0, 3.0, 10.0)


def test_late_convergence_leaves_a_false_lag_to_its_own_name() -> None:
    """All is done, and the position stays behind: one partition has one of the three."""
    assert judged("late-convergence", [*DONE, committed(1), phase("drain"), after(20)]) == []
