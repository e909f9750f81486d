"""Liveness of commits: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from histories import (
    SECOND_NS,
    Line,
    after,
    assigned,
    at_once,
    committed,
    fault,
    finding,
    handled,
    judged,
    not_judged,
    on,
    phase,
    processed,
    revoked,
    stood_still,
    undecided,
    with_settings,
)
from kafka_trial.history.consequences import consequences_in
from kafka_trial.model.progress import machine_stalled, under_fault
from kafka_trial.model.trial_context import Settings, TrialContext, Window

NAME = "uncommitted-progress"
BEGUN = [assigned("m0"), handled("m0", 0, 1)]


def test_progress_is_committed() -> None:
    """Both records are done, and committed nine seconds later."""
    assert judged(NAME, [*BEGUN, after(9), committed(2)]) == []


def test_uncommitted_progress_is_broken() -> None:
    """Both records are done, and for twelve seconds nothing is committed; then all is."""
    found = finding(NAME, [*BEGUN, after(12), committed(2)])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"offset": 0, "records": 2, "committed_offset": 2, "lasted_ms": 12030}, ("consumer-m0-0#3", "offsets#0"))
    ]


def test_uncommitted_progress_leaves_the_end_to_false_lag() -> None:
    """Never committed, and all is done: what stands at the snapshot has its own name."""
    lines = [*BEGUN, phase("drain"), after(17)]
    assert (judged(NAME, lines), len(judged("false-lag", lines))) == ([], 1)


def test_uncommitted_progress_only_looks_broken_behind_an_undone_record() -> None:
    """Record 1 is done, record 0 not yet: nothing may be committed."""
    lines = [assigned("m0"), processed("m0", 1), after(12), processed("m0", 0), committed(2)]
    assert judged(NAME, lines) == []


def test_uncommitted_progress_only_looks_broken_where_the_partition_moved() -> None:
    """Given up after five seconds: its next owner does the records again."""
    lines = [*BEGUN, after(5), revoked("m0"), assigned("m1"), handled("m1", 0, 1), after(7), committed(2)]
    assert judged(NAME, lines) == []


@pytest.mark.parametrize("line", [fault("stall", "m0"), fault("broker-kill", None)])
def test_uncommitted_progress_only_looks_broken_under_a_fault(line: Line) -> None:
    """Nobody could commit while it was in force."""
    assert judged(NAME, [*BEGUN, line, after(12), committed(2)]) == []


def test_uncommitted_progress_is_undecided_where_the_machine_stood_still() -> None:
    """A second is over a quarter of the session timeout."""
    assert undecided(NAME, [*BEGUN, after(6), stood_still(1), after(6), committed(2)]) == 1


def test_uncommitted_progress_is_not_judged_without_records_or_where_progress_is_elsewhere() -> None:
    """Nothing to commit; or nothing that a commit would mean."""
    because = "the consumer reported no delivered record"
    assert not_judged(NAME, [assigned("m0"), after(12)], records=0) == because
    missing = finding(NAME, BEGUN, settings=with_settings(progress="sink")).not_judged
    assert missing is not None
    assert not missing.applies


@pytest.mark.parametrize(("wait_s", "found"), [(10.48, 0), (10.481, 1)], ids=["just in time", "too late"])
def test_uncommitted_progress_is_told_after_the_window_and_the_tolerance(wait_s: float, found: int) -> None:
    """The commit took effect exactly ten and a half seconds after record 0 was done, or a millisecond later."""
    lines = [assigned("m0"), processed("m0", 0), after(wait_s + 0.01), committed(1)]
    assert len(judged(NAME, lines)) == found


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([*BEGUN, after(12), committed(1), committed(2)], [(0, 1, 1), (1, 1, 2)]),
        ([*BEGUN, after(12), committed(1), after(1), committed(2)], [(0, 1, 1), (1, 1, 2)]),
        ([*BEGUN, committed(1), after(12), committed(2)], [(1, 1, 2)]),
        ([BEGUN[0], processed("m0", 1), after(12), processed("m0", 0), after(12), committed(2)], [(0, 2, 2)]),
        ([BEGUN[0], processed("m0", 0), after(12), processed("m0", 1), committed(2)], [(0, 1, 2)]),
        ([BEGUN[0], processed("m0", 0), after(12), committed(2), processed("m0", 1)], [(0, 1, 2)]),
        ([processed("m0", 0), processed("m0", 1), after(12), committed(2)], []),
        ([*BEGUN, after(12), phase("snapshot"), committed(2)], []),
        ([*BEGUN, after(12), committed(2), at_once(phase("snapshot"))], [(0, 2, 2)]),
        ([processed("m1", 0), BEGUN[0], after(12), committed(2)], []),
        ([BEGUN[0], processed("m1", 0), after(12), committed(1)], [(0, 1, 1)]),
    ],
    ids=[
        "by two commits",
        "by two commits apart",
        "of the second record",
        "since the first of them was done",
        "of what was done",
        "committed past what was not done",
        "nobody held it",
        "not by the snapshot",
        "in the instant of the snapshot",
        "done before it was assigned",
        "done by another member",
    ],
)
def test_uncommitted_progress_is_one_finding_a_commit(
    lines: list[Line | list[Line]], told: list[tuple[int, int, int]]
) -> None:
    """With the first of the records that waited for it, and how many they were."""
    found = judged(NAME, lines, snapshot=not any(isinstance(one, Line) and "phase" in one.fields for one in lines))
    assert [(one["offset"], one["records"], one["committed_offset"]) for one in found] == told


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ([after(9.99), revoked("m0")], 1),
        ([after(9.98), revoked("m0")], 0),
        ([after(9.99), assigned("m0")], 1),
        ([after(9.98), assigned("m0")], 0),
        ([after(9.98), assigned("m1")], 0),
        ([on(1, assigned("m1")), on(1, revoked("m1")), after(9)], 1),
    ],
    ids=[
        "given up when it was due",
        "given up before",
        "assigned anew when it was due",
        "assigned anew before",
        "another one's before",
        "another partition's hands",
    ],
)
def test_uncommitted_progress_is_told_where_the_partition_stayed_until_it_was_due(end: list[Line], found: int) -> None:
    """Ten seconds after record 0 was done."""
    lines = [assigned("m0"), processed("m0", 0), *end, after(3), committed(1)]
    assert len(judged(NAME, lines, partitions=2)) == found


def test_uncommitted_progress_is_told_of_each_partition() -> None:
    """The first was committed in time, the second and the third were not."""
    done = [on(number, processed("m0", 0)) for number in (0, 1, 2)]
    commits = [on(number, line) for number in (2, 1) for line in committed(1)]
    found = finding(NAME, [assigned("m0", 0, 1, 2), *done, committed(1), after(12), *commits], partitions=3)
    assert [(one.partition, one.events) for one in found.instances] == [
        (1, ("consumer-m0-0#3", "offsets#2")),
        (2, ("consumer-m0-0#4", "offsets#1")),
    ]


@pytest.mark.parametrize(
    ("span", "touched"), [((0, 9), False), ((0, 10), True), ((15, 15), True), ((25, 30), True), ((26, 30), False)]
)
def test_a_fault_touches_what_it_is_in_force_in_and_a_window_after(span: tuple[int, int], *, touched: bool) -> None:
    """In force from 10 to 20, and a window of 5; one that is never healed touches all that comes."""
    does = consequences_in({"fault": "stall"})
    window = Window(number=0, fault="stall", target="", member=None, injected_ns=10, healed_ns=20, consequences=does)
    since, until = (np.array([at]) for at in span)
    assert under_fault(TrialContext(windows=(window,)), since, until, 5).tolist() == [touched]
    lasting = replace(window, healed_ns=None)
    assert under_fault(TrialContext(windows=(lasting,)), since, until, 5).tolist() == [span[1] >= 10]
    assert under_fault(TrialContext(windows=(lasting, window)), since, until, 5).tolist() == [span[1] >= 10]


@pytest.mark.parametrize(
    ("span", "delay", "still"),
    [
        ((10, 20), 1.0, False),
        ((10, 20), 1.1, True),
        ((30, 40), 5.0, True),
        ((31, 40), 5.0, False),
        ((10, 25), 5.0, True),
        ((10, 24), 5.0, False),
        ((0, 50), 5.0, True),
    ],
)
def test_the_machine_stood_still_in_a_stretch_that_the_delay_reaches_into(
    span: tuple[int, int], delay: float, *, still: bool
) -> None:
    """It woke at 30 s; a delay counts from a quarter of a session of four seconds on."""
    at = 20 if delay < 2 else 30
    about = TrialContext(
        delays=((at * SECOND_NS, int(delay * SECOND_NS)), (99 * SECOND_NS, 1)),
        settings=Settings(session_timeout_s=4.0),
    )
    since, until = (np.array([seconds * SECOND_NS]) for seconds in span)
    assert machine_stalled(about, since, until).tolist() == [still]
