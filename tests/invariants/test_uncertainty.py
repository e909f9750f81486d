"""A line is as uncertain as its reading was measured to be: that much before it was read it may have been written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from histories import (
    Line,
    after,
    assigned,
    at_once,
    batch_of,
    commit,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    judged,
    lasting,
    measured,
    not_judged,
    on,
    own_time,
    owner,
    phase,
    processed,
    revoked,
    undecided,
    with_settings,
)
from kafka_trial.model.clocks import uncertainty
from kafka_trial.model.kernels import NEVER, NONE
from kafka_trial.model.ownership_epochs import deliveries
from kafka_trial.model.trial_context import Settings, TrialContext

Lines = list[Line | list[Line]]
BUFFERED = with_settings(stdout="buffered")
AHEAD: Lines = [assigned("m0"), delivered("m0", 0), committed(1)]
NOBODY_KNOWS = "it is not known when m0 handled what was committed"
ONE = {"offset": 0, "committed_offset": 1, "seen_by": "offsets log", "by_operator": False}


def ahead(lines: Lines, **frame: Any) -> list[dict[str, Any]]:
    """What is said of commits ahead of the work, with one record."""
    return judged("commit-ahead", lines, records=1, **frame)


# --- commits ---------------------------------------------------------------------------------------------------------


def test_a_commit_tenths_of_a_second_before_the_work_is_ahead() -> None:
    """Lines were read within 30 ms: what was read 90 ms after the commit was said after it."""
    assert ahead([*AHEAD, after(0.08), processed("m0", 0), measured("m0", 0.03)]) == [ONE]


def test_a_commit_just_before_its_work_was_read_is_not_ahead() -> None:
    """The line was read 30 ms after the commit, and may have been written before."""
    assert ahead([*AHEAD, after(0.02), processed("m0", 0), measured("m0", 0.03)]) == []


def test_between_two_stamps_of_the_probe_a_line_waits_longer() -> None:
    """The probe writes every 25 ms: a reader that stood still just after a stamp is measured that much too short."""
    assert ahead([*AHEAD, after(0.1), processed("m0", 0), measured("m0", 0.08)]) == []
    assert ahead([*AHEAD, after(0.12), processed("m0", 0), measured("m0", 0.08)]) == [ONE]


def test_without_a_measure_half_a_second_is_uncertain() -> None:
    """As in histories of earlier versions."""
    assert ahead([*AHEAD, after(0.48), processed("m0", 0)]) == []
    assert ahead([*AHEAD, after(0.5), processed("m0", 0)]) == [ONE]


@pytest.mark.parametrize("at", [-1, 0, 1])
def test_what_was_measured_around_a_line_counts(at: int) -> None:
    """The reader was late by 0.2 s in the second before, at, or after the line."""
    late = [0.2 if place == at else 0.03 for place in (-1, 0, 1)]
    lines = [measured("m0", late[0]), after(0.5), *AHEAD, after(0.1), processed("m0", 0)]
    assert ahead([*lines, after(0.4), measured("m0", late[1]), after(1), measured("m0", late[2])]) == []


def test_what_was_measured_long_before_or_after_does_not_count() -> None:
    """The reader was late by 0.2 s, but seconds away, with other measures in between."""
    lines: Lines = [measured("m0", 0.2), after(1), measured("m0", 0.03), *AHEAD, after(0.1), processed("m0", 0)]
    rest = [measured("m0", 0.03), after(1), measured("m0", 0.03), after(1), measured("m0", 0.2)]
    assert ahead([*lines, *rest]) == [ONE]


def test_another_readers_measure_says_nothing() -> None:
    """Nor does one that came more than three seconds after the line: half a second stays."""
    late: Lines = [*AHEAD, after(0.1), processed("m0", 0)]
    assert ahead([*late, measured("m1", 0.03)]) == []
    assert ahead([*late, measured("m0-1", 0.03)]) == []
    assert ahead([*late, after(3.1), measured("m0", 0.03)]) == []


def test_a_reader_late_by_more_than_half_a_second_leaves_it_undecided() -> None:
    """That is a stall, if only of one reader."""
    late: Lines = [*AHEAD, after(0.7), processed("m0", 0)]
    assert undecided("commit-ahead", [*late, measured("m0", 0.8)], records=1) == 1
    assert ahead([*late, measured("m0", 0.4)]) == [ONE]


def test_a_commit_before_work_that_never_came_is_ahead_however_late_the_reader() -> None:
    """Nothing was read at all."""
    assert ahead([*AHEAD, after(1), measured("m0", 0.4)]) == [ONE]


def test_an_effect_at_the_sink_is_exact() -> None:
    """The sink writes it down before it answers: 30 ms after the commit is after it; clocks may differ by 10 ms."""
    settings = with_settings(sink="http")
    late: Lines = [*AHEAD, after(0.02), effect(0), measured("m0", 0.03)]
    assert ahead(late, settings=settings) == [ONE]
    assert ahead([*AHEAD, effect(0), measured("m0", 0.03)], settings=settings) == []


def test_what_a_witness_reads_out_of_a_topic_is_as_uncertain_as_before() -> None:
    """Nobody measured how long it waited there."""
    late: Lines = [*AHEAD, after(0.4), effect(0), measured("m0", 0.03)]
    assert ahead(late, settings=with_settings(sink="topic")) == []


def test_where_the_wall_clock_was_set_brokers_times_are_uncertain_by_as_much() -> None:
    """It was set 80 ms ahead before a line was read 30 ms after the commit; 70 ms after it, that is late even so."""
    jump, measure = Line("run", "clock", {"late_s": -0.08}), measured("m0", 0.03)
    assert ahead([*AHEAD, jump, after(0.01), processed("m0", 0), measure]) == []
    assert ahead([*AHEAD, jump, after(0.06), processed("m0", 0), measure]) == [ONE]


@pytest.mark.parametrize(
    ("place", "found"), [(0, [ONE]), (1, []), (2, []), (3, []), (4, []), (5, [ONE])], ids=[-3, -2, -1, 1, 2, 3]
)
def test_the_two_clocks_before_a_line_and_the_two_after_it_tell_whether_one_was_set(
    place: int, found: list[dict[str, Any]]
) -> None:
    """The line was read 90 ms after the commit; one pair of clocks a second, of which one is 80 ms behind."""
    clocks: Lines = [Line("run", "clock", {"late_s": 0.08 * (number == place)}, 1000) for number in range(6)]
    late: Lines = [after(1), *AHEAD, after(0.08), processed("m0", 0), measured("m0", 0.03)]
    assert ahead([*clocks[:3], *late, *clocks[3:]]) == found


# --- order between members -------------------------------------------------------------------------------------------


REORDERED: Lines = [assigned("m0"), processed("m0", 1), revoked("m0"), assigned("m1"), after(0.2), processed("m1", 0)]
BESIDE: Lines = [assigned("m0"), delivered("m0", 0), assigned("m1"), delivered("m1", 0), after(0.2)]
BOTH_END: Lines = [processed("m0", 0), processed("m1", 0)]
ZOMBIE: Lines = [assigned("m0"), delivered("m0", 0), owner("m1"), after(0.2), processed("m0", 0)]
CASES = {
    "reordered-key": REORDERED,
    "overlapping-handlers": [*BESIDE, *BOTH_END],
    "zombie-work": ZOMBIE,
}


@pytest.mark.parametrize("name", CASES)
def test_order_between_members_is_as_certain_as_their_readers_are_quick(name: str) -> None:
    """Two tenths of a second: not an order where nothing was measured, nor by a slow reader, but by a quick one."""
    quick, slow = ([measured(reader, late) for reader in ("m0", "m1")] for late in (0.03, 0.3))
    found = [len(finding(name, [*CASES[name], *m], records=["a", "a"]).instances) for m in ([], slow, quick)]
    assert found == [0, 0, 1]


# --- output that is buffered -----------------------------------------------------------------------------------------


def test_lines_of_a_buffer_say_nothing_of_when() -> None:
    """Said a minute after the commit: it may have been printed long before. Nobody can tell: it is not judged."""
    late: Lines = [*AHEAD, after(60), processed("m0", 0), measured("m0", 0.03)]
    assert ahead(late) == [ONE]
    assert NOBODY_KNOWS in not_judged("commit-ahead", late, settings=BUFFERED, records=1)


@pytest.mark.parametrize("settings", [with_settings(stdout="buffered", sink="http"), with_settings()])
def test_where_something_tells_when_it_was_handled_commits_are_judged(settings: Settings) -> None:
    """A sink does; so do lines that are flushed."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), effect(0), committed(1)]
    assert ahead(lines, settings=settings) == []


def test_a_buffer_that_holds_the_requests_for_commits_is_judged() -> None:
    """The order inside it is exact; m1, which asks for none, is not asked about: it commits nothing."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), commit("m0", 1), committed(1, by="m0")]
    assert ahead([*lines, delivered("m1", 1)], settings=BUFFERED) == []
    late = [*lines, delivered("m1", 1), *committed(1, by="m1")]
    assert "when m1 handled" in not_judged("commit-ahead", late, settings=BUFFERED, records=1)


def test_what_no_line_says_was_not_handled_buffer_or_no() -> None:
    """The process ended by itself, and its buffer came."""
    lines: Lines = [assigned("m0"), delivered("m0", 0), committed(1), after(1), exited("m0"), measured("m0", 0.03)]
    found = finding("commit-ahead", lines, settings=BUFFERED, records=1)
    assert [dict(one.attributes) for one in found.instances] == [ONE]
    assert [NOBODY_KNOWS in reason for reason in found.undecided] == [True]


def test_a_killed_member_takes_its_buffer_with_it() -> None:
    """It may have printed that it handled the record: the last line read does not tell when its buffer began."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), committed(1, by="m0"), delivered("m0", 1)]
    lines += [committed(2, by="m0"), lasting(delivered("m0", 1), 0), exited("m0", signal=9)]
    assert NOBODY_KNOWS in not_judged("commit-ahead", lines, settings=BUFFERED)
    assert judged("commit-ahead", lines) == [ONE | {"offset": 1, "committed_offset": 2}]


def test_the_order_inside_a_buffer_is_exact() -> None:
    """It says itself that it asked for the commit before the work."""
    lines: Lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), processed("m0", 0), committed(1)]
    assert ahead(lines, settings=BUFFERED) == [ONE | {"seen_by": "own word"}]


def test_lines_of_a_buffer_that_tell_their_time_give_an_order() -> None:
    """Handled 0.1 s after the commit, or 0.1 s before; read a second later."""
    done = own_time(processed("m0", 0), 0.9)
    begun: Lines = [own_time(assigned("m0"), 0), own_time(delivered("m0", 0), 0)]
    late: Lines = [*begun, committed(1), after(0.99), done]
    assert ahead([*late, measured("m0", 0.03)], settings=BUFFERED) == [ONE]
    early = own_time(processed("m0", 0), 1.1)
    lines: Lines = [*begun, after(0.2), committed(1), after(0.99), early]
    assert ahead([*lines, measured("m0", 0.03)], settings=BUFFERED) == []


def test_one_line_without_a_time_leaves_the_file_without_an_order() -> None:
    """The other says when it was."""
    late: Lines = [assigned("m0"), delivered("m0", 0), committed(1), after(0.99), own_time(processed("m0", 0), 0.9)]
    assert NOBODY_KNOWS in not_judged("commit-ahead", late, settings=BUFFERED, records=1)


def test_a_line_that_was_flushed_is_no_older_than_its_reading_allows() -> None:
    """It says that it had been handled before the commit; the pipe was read within 30 ms."""
    begun: Lines = [own_time(assigned("m0"), 0), own_time(delivered("m0", 0), 0), after(0.3), committed(1)]
    assert ahead([*begun, after(0.08), own_time(processed("m0", 0), 0.2), measured("m0", 0.03)]) == [ONE]
    assert ahead([*begun, after(0.02), own_time(processed("m0", 0), 0.2), measured("m0", 0.03)]) == []


@pytest.mark.parametrize("seconds", [-0.02, 5])
def test_a_time_that_cannot_be_is_not_used_and_counted(seconds: float) -> None:
    """After the line was read, or long before the lines that were read before it."""
    lines: Lines = [*AHEAD, after(0.99), own_time(processed("m0", 0), seconds), measured("m0", 0.03)]
    found = batch_of(lines, records=1, settings=BUFFERED).trial_context
    told = [(found.sources[source], count, first) for source, count, first in found.false_times]
    assert (told, found.timed) == ([("consumer-m0-0", 1, 3)], ())


def test_times_that_step_back_a_little_are_taken_in_their_order() -> None:
    """Two threads print: 0.1 s back is nothing, 0.6 s is no clock."""
    lines: Lines = [own_time(assigned("m0"), 0), after(2)]
    lines += [own_time(delivered("m0", 0), 0.1), own_time(delivered("m0", 1), 0.21)]
    first, second = deliveries(batch_of(lines, settings=BUFFERED))["time_ns"].tolist()
    assert first == second
    about = batch_of([*lines, own_time(processed("m0", 0), 0.75)]).trial_context
    assert (len(about.false_times), about.timed) == (1, ())


def test_work_may_be_older_than_the_reading_of_the_line_before_it() -> None:
    """`assigned` and `delivered` come out of one buffer: the work may have been done before either was read."""
    lines: Lines = [after(1), assigned("m0"), at_once(delivered("m0", 1)), at_once(processed("m0", 1))]
    assert [one["offset"] for one in judged("skipped", [*lines, committed(2)], settings=BUFFERED)] == [0]


def test_what_comes_out_of_a_buffer_after_the_snapshot_may_have_been_handled_before() -> None:
    """The last lines of a buffered consumer are read when it stops."""
    lines: Lines = [phase("drain"), assigned("m0"), *handled("m0", 0), after(30), phase("snapshot")]
    lines += [delivered("m0", 1), at_once(processed("m0", 1)), exited("m0")]
    assert judged("unseen", lines, snapshot=False, settings=BUFFERED) == []
    assert [one["offset"] for one in judged("unseen", lines, snapshot=False)] == [1]


def test_nobody_knows_where_a_buffered_possession_had_to_begin() -> None:
    """Its `assigned` is read after a commit that came later than it: no redelivery is illegal by that."""
    lines: Lines = [assigned("m0"), *handled("m0", 0, 1), revoked("m0"), after(1), committed(1), after(1)]
    lines += [committed(2), after(1), assigned("m1"), delivered("m1", 1)]
    assert judged("illegal-redelivery", lines, settings=BUFFERED) == []
    assert len(judged("illegal-redelivery", lines)) == 1


def test_a_restart_out_of_a_buffer_is_not_known_to_lie_in_a_fall() -> None:
    """Its `assigned` may have been printed before."""
    lines: Lines = [owner("m0"), assigned("m0"), *handled("m0", 0, 1), committed(2, by="m0"), after(1)]
    lines += [committed(1, by="m0"), assigned("m1"), after(1), committed(2)]
    inside = [
        [one.attributes["restart_inside"] for one in finding("commit-regression", lines, settings=settings).instances]
        for settings in (BUFFERED, with_settings())
    ]
    assert inside == [[False], [True]]


# --- the kernel ------------------------------------------------------------------------------------------------------


def test_uncertainty_is_looked_up_by_reader_and_time() -> None:
    """What never was keeps half a second; -1 is nobody's."""
    second = 1_000_000_000
    readings = (("consumer-m0-0", 10 * second, 30_000_000), ("consumer-m0-0", 11 * second, 100_000_000))
    about = TrialContext(sources=("run", "consumer-m0-0"), readings=readings, clocks=((0, 0),))
    times = np.array([9.5, 10.5, 11.5, 6, 9.5, 9.5]) * second
    found = uncertainty(about, np.array([1, 1, 1, 1, 0, -1]), times.astype(np.int64))
    assert (found // 1_000_000).tolist() == [135, 135, 500, 500, 500, 500]
    assert (uncertainty(about, np.array([1, 1]), np.array([NEVER, NONE])) <= 500_000_000).all()


def test_other_partitions_have_the_same_reader() -> None:
    """The order is found in every partition alike."""
    lines: Lines = [assigned("m0", 0, 1), on(1, delivered("m0", 0)), committed(1), after(0.1), processed("m0", 0)]
    assert ahead([*lines, measured("m0", 0.03)], partitions=2) == [ONE]
