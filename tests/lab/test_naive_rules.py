"""The naive checker itself, on literal histories: what a consumer prints convicts it, and acquits it only where no
witness could know better. Each rule finds its breach, and is silent on its sound twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import (
    Line,
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
    fault,
    fetched,
    generation,
    gone,
    handled,
    healed,
    history,
    holds,
    log_end,
    lost,
    on,
    own_time,
    owner,
    phase,
    processed,
    rated,
    read_late,
    revoked,
    said,
    waited,
)
from lab.naive.checker import Findings, judge

Lines = list[Line | list[Line]]

SETTINGS = {"events": "jsonl", "session_timeout_s": 3, "sink": None}
WITH_SINK = SETTINGS | {"sink": "http"}
WITH_TOPIC = SETTINGS | {"sink": "topic"}
BUFFERED = SETTINGS | {"stdout": "buffered"}
ALIKE = ["a", "a", "a", "a"]
PLACE = [{"topic": "t", "partition": 0}]


def says(lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> Findings:
    """What the naive checker says of a history."""
    return judge(history(lines, **{"records": 4} | frame), SETTINGS if settings is None else settings)


def found(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> list[Any]:
    """The places (offsets, mostly) of one anomaly."""
    return [place for _, _, place, _ in says(lines, settings, **frame).anomalies[name]]


def told(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> tuple[list[Any], int]:
    """The places of one anomaly, and how many cases were left undecided."""
    judged = says(lines, settings, **frame)
    return [place for _, _, place, _ in judged.anomalies[name]], judged.undecided[name]


def output(record: int, at: int, *, partition: int = 0) -> Line:
    return effect(record, topic="out", partition=partition, offset=at)


# --- what it does not judge ------------------------------------------------------------------------------------------

SAYS_SO_FIRST: Lines = [owner("m0"), synced("m1"), after(1), assigned("m1", 0), *handled("m1", 0), after(2)]


def test_what_is_given_after_a_false_line_is_not_judged() -> None:
    """A member says that it has a partition, and is given it two seconds later: where its ownership epoch opens among
    its lines is nothing that is looked for here. Of a false line alone everything is judged."""
    given = says([*SAYS_SO_FIRST, owner("m1", epoch=2), synced("m1", 0, generation=2), *handled("m1", 1)])
    assert {"redelivered", "split-ownership", "skipped"} <= given.not_judged
    false = says([*SAYS_SO_FIRST, *handled("m1", 1)])
    assert {"redelivered", "split-ownership", "skipped"} & false.not_judged == set()
    assert [place for _, _, place, _ in false.anomalies["split-ownership"]] == [0, 1]


# --- when an output was written --------------------------------------------------------------------------------------

EARLY_WORD: Lines = [assigned("m0"), *handled("m0", 0), commit("m0", 1), committed(1, by="m0")]


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        ([*EARLY_WORD, after(0.7), own_time(output(0, 5), 0)], [1]),
        ([*EARLY_WORD, after(0.7), own_time(output(0, 5), 0.75)], []),
        ([*EARLY_WORD, after(0.3), own_time(output(0, 5), 0)], []),
        ([*EARLY_WORD, after(0.7), output(0, 5)], []),
    ],
    ids=["its broker wrote it late", "it was read late", "within the tolerance", "nobody knows when it was written"],
)
def test_an_output_was_written_when_its_broker_says_so(lines: Lines, ahead: list[int]) -> None:
    """No line stands for the effect where its time is known."""
    assert found("commit-ahead", lines, WITH_TOPIC, records=1) == ahead


def test_in_a_transaction_a_line_stands_for_its_output() -> None:
    """It takes effect with the commit."""
    lines = [*EARLY_WORD[:-2], committed(1, by="m0", producer=7), after(0.7), own_time(output(0, 5), 0)]
    assert found("commit-ahead", lines, WITH_TOPIC | {"progress": "transaction"}, records=1) == []


# --- what nobody gave ------------------------------------------------------------------------------------------------

M1_HAS_IT: Lines = [synced("m0"), synced("m1", 0), owner("m1", idle=["m0"]), after(1)]
FORGED: Lines = [*M1_HAS_IT, assigned("m0"), *handled("m0", 0)]
GIVEN: Lines = [synced("m0", 0), assigned("m0")]
GIVEN_UP: Lines = [*GIVEN, after(1), revoked("m0"), after(1)]


@pytest.mark.parametrize(
    ("lines", "lies"),
    [
        (FORGED, [-1]),
        ([synced("m0", 0), synced("m1"), owner("m1", idle=["m0"]), after(1), assigned("m0")], []),
        ([synced("m0"), owner("m0"), assigned("m0")], []),
        ([beat("m0", []), assigned("m0")], [-1]),
        ([beat("m0", [0]), assigned("m0")], []),
        ([beat("m0", []), holds("m0", 0), assigned("m0")], []),
        ([assigned("m0"), after(0.4), synced("m0", 0)], []),
        ([assigned("m0"), after(0.6), synced("m0", 0)], [-1]),
        ([assigned("m0")], []),
        ([*GIVEN_UP, assigned("m0")], [-1]),
        ([*GIVEN_UP, synced("m0", 0), assigned("m0")], []),
        ([*GIVEN_UP, owner("m0"), assigned("m0")], []),
        ([fault("broker-kill", None), healed(), *FORGED], []),
    ],
    ids=[
        "nobody gave it",
        "a SyncGroup gave it",
        "a group record gave it",
        "a heartbeat assigned nothing",
        "a heartbeat gave it",
        "a member's record gave it",
        "given within the tolerance",
        "given later",
        "no assignment was ever seen",
        "given up, and not given again",
        "given up, and a SyncGroup gave it again",
        "given up, and a group record gave it again",
        "a broker was stopped before",
    ],
)
def test_a_line_opens_only_what_somebody_gave(lines: Lines, lies: list[int]) -> None:
    """By a request log that knows all: the line is a false report."""
    assert found("false-report", lines) == lies


@pytest.mark.parametrize("settings", [SETTINGS | {"protocol": "none"}, SETTINGS])
def test_whoever_assigns_itself_partitions_needs_nobody(settings: dict[str, Any]) -> None:
    """`protocol = "none"` says so; and of an incomplete log nothing is known."""
    assert found("false-report", FORGED, settings, whole="protocol" in settings) == []


def test_what_is_handled_of_a_partition_that_nobody_gave_is_split() -> None:
    """The offsets log gives it to m1; where m0 was given it by then, it is not."""
    assert found("split-ownership", FORGED) == [0]
    assert found("split-ownership", [synced("m0", 0), *M1_HAS_IT[1:], assigned("m0"), *handled("m0", 0)]) == []


def test_where_nobody_owns_the_partition_nothing_is_split() -> None:
    """A false report, and no more."""
    lines = [synced("m0"), owner(), after(1), assigned("m0"), *handled("m0", 0)]
    assert (found("false-report", lines), found("split-ownership", lines)) == ([-1], [])


def test_a_record_under_a_forged_line_is_in_no_possession() -> None:
    """As if the line had not been: it is no redelivery, and work after the member's own revoked callback."""
    lines = [*GIVEN, *handled("m0", 0), *GIVEN_UP[2:], assigned("m0"), delivered("m0", 0)]
    assert (found("redelivered", lines), found("work-after-revoke", lines)) == ([], [0])
    again = [*lines[:-2], synced("m0", 0), *lines[-2:]]
    assert (found("redelivered", again), found("work-after-revoke", again)) == ([0], [])


HELD: Lines = [*GIVEN, *handled("m0", 0, 1), after(1)]


@pytest.mark.parametrize(
    ("reason", "back"),
    [
        ([], [0]),
        ([synced("m0", 0)], []),
        ([beat("m0", [0])], []),
        ([owner("m0")], []),
        ([synced("m0")], [0]),
        ([synced("m1", 0)], [0]),
    ],
    ids=["none", "SyncGroup", "heartbeat", "group record", "a SyncGroup without it", "another member's SyncGroup"],
)
def test_a_repeated_line_begins_anew_only_for_a_reason(reason: Lines, back: list[int]) -> None:
    """Else the ownership epoch goes on, and a rewind is one inside it."""
    assert found("nonmonotonic-poll", [*HELD, *reason, assigned("m0"), *handled("m0", 0)]) == back


def test_a_repeated_line_begins_anew_where_the_request_log_has_a_gap() -> None:
    """As ever."""
    assert found("nonmonotonic-poll", [*HELD, assigned("m0"), *handled("m0", 0)], whole=False) == []


# --- names in lines --------------------------------------------------------------------------------------------------


def by(client: str, line: Line) -> Line:
    """The same of a client in m0's process."""
    who = {"client_id": client, "member_id": f"id-{client}", "connection": client}
    return replace(line, fields=line.fields | who)


STEPS = [("a", assigned("m0")), ("b", said("m0", "ready")), ("a", processed("m0", 1)), ("b", processed("m0", 0))]
A_AND_B = [by(client, line) for client, line in (*STEPS, ("a", said("m0", "ready")))]  # b steps back behind a
BOTH: Lines = [by(client, line) for line in (joined("m0"), synced("m0", 0)) for client in ("a", "b")]
ONE_BY_ONE: Lines = [by(client, line) for client in ("a", "b") for line in (joined("m0"), synced("m0", 0))]


@pytest.mark.parametrize(
    ("members", "whole", "late"), [(BOTH, True, []), (ONE_BY_ONE, True, [0]), (ONE_BY_ONE, False, [])]
)
def test_names_tell_clients_apart_where_several_members_live(members: Lines, *, whole: bool, late: list[int]) -> None:
    """One at a time in the lane: the lines are one client's, whatever they call it."""
    events = history([*members, *A_AND_B], records=ALIKE)
    judged = judge([event for event in events if whole or event.kind != "witness"], SETTINGS)
    assert [place for _, _, place, _ in judged.anomalies["reordered-key"]] == late


NAMELESS: dict[str, Lines] = {
    "reordered-key": [*handled("m0", 0, 1), processed("m0", 1), processed("m0", 0)],
    "nonmonotonic-poll": [*handled("m0", 1), delivered("m0", 0)],
    "poll-skip": [delivered("m0", 0), delivered("m0", 2)],
    "overlapping-handlers": [delivered("m0", 0), delivered("m0", 1), processed("m0", 0), processed("m0", 1)],
    "work-after-revoke": [revoked("m0"), delivered("m0", 0)],
}


@pytest.mark.parametrize("name", NAMELESS)
def test_of_several_members_whose_lines_name_nobody_it_is_undecided_who_spoke(name: str) -> None:
    """Two at once in the process; a single member is found out."""
    lines: Lines = [assigned("m0"), *NAMELESS[name]]
    places, undecided = told(name, [*BOTH, *lines], records=ALIKE)
    assert (places, undecided > 0) == ([], True)
    assert found(name, [*ONE_BY_ONE, *lines], records=ALIKE) != []


def test_whoever_did_it_the_order_of_first_completions_is_judged() -> None:
    """Record 1 was done for the first time before record 0 was."""
    assert found("reordered-key", [*BOTH, assigned("m0"), processed("m0", 1), processed("m0", 0)], records=ALIKE) == [0]


# --- effects beside lines --------------------------------------------------------------------------------------------

ONE_LINE: Lines = [assigned("m0"), delivered("m0", 0)]


@pytest.mark.parametrize(
    ("effects", "settings", "late"),
    [
        ([effect(0), effect(1)], WITH_SINK, []),
        ([effect(1), effect(0)], WITH_SINK, [0]),
        ([effect(0), effect(1), effect(0)], WITH_SINK, []),
        ([output(1, 8), output(0, 7)], WITH_TOPIC, []),
        ([output(0, 8), output(1, 7)], WITH_TOPIC, [0]),
        ([output(0, 8), output(1, 7, partition=1)], WITH_TOPIC, []),
    ],
    ids=["in order", "out of order", "again", "read late", "of a topic", "of two partitions of a topic"],
)
def test_order_is_judged_by_effects_too(effects: Lines, settings: dict[str, Any], late: list[int]) -> None:
    """Though a member printed a line."""
    assert found("reordered-key", [*ONE_LINE, *effects], settings, records=ALIKE) == late


def test_what_lines_and_effects_show_is_one_finding_a_record() -> None:
    """Both tell that 1 came first."""
    lines = [assigned("m0"), processed("m0", 1), effect(1), processed("m0", 0), effect(0)]
    assert found("reordered-key", lines, WITH_SINK, records=ALIKE) == [0]


FROZEN: Lines = [assigned("m0"), delivered("m0", 0), owner("m1"), assigned("m1"), *handled("m1", 1), effect(1)]


def test_a_late_effect_of_a_frozen_member_is_excused() -> None:
    """It finishes what it holds; without the loss it is late."""
    woke = [after(1), effect(0, member="m0"), processed("m0", 0)]
    assert found("reordered-key", [*FROZEN, *woke], WITH_SINK, records=ALIKE) == []
    kept = [line for line in FROZEN if line.kind != "group"]  # type: ignore[union-attr]
    assert found("reordered-key", [*kept, *woke], WITH_SINK, records=ALIKE) == [0]


KILLED = exited("m0", signal=9, asked="kill")


@pytest.mark.parametrize(
    ("end", "late"),
    [
        ([lost("m0"), after(1.6), effect(0, member="m0"), KILLED], []),
        ([lost("m0"), after(1.6), effect(0, member="m0"), exited("m0", code=1, asked="no")], []),
        ([lost("m0"), after(1.6), effect(0, member="m0"), exited("m0", code=0, asked="stop")], [0]),
        ([lost("m0"), after(1.6), effect(0, member="m0"), delivered("m0", 3), KILLED], [0]),
        ([revoked("m0"), after(1.6), effect(0, member="m0"), KILLED], [0]),
        ([lost("m0"), KILLED, after(1.6), effect(0, member="m0")], [0]),
    ],
    ids=["killed", "crashed", "stopped", "went on", "revoked", "after its death"],
)
def test_what_a_frozen_member_had_in_hand_may_be_the_last_of_it(end: Lines, late: list[int]) -> None:
    """It posts the record, and goes down before it can print that."""
    assert found("reordered-key", [*FROZEN, *end], WITH_SINK, records=ALIKE) == late


def test_a_silent_member_may_finish_late_what_it_had_fetched() -> None:
    """By the logs m0 lost the partition untold; where it was told before it fetched, it may not."""
    begun = [synced("m0", 0), owner("m0", idle=["m1"]), fetched("m0", 0, size_bytes=9)]
    taken = [owner("m1", idle=["m0"]), fetched("m1", 1, size_bytes=9), effect(1, member="m1"), after(1)]
    late = effect(0, member="m0")
    silent = WITH_SINK | {"events": "none"}
    assert found("reordered-key", [*begun, *taken, late], silent, records=ALIKE) == []
    assert found("reordered-key", [*taken, late], silent, records=ALIKE) == [0]


def test_further_effects_beyond_the_lines_are_redeliveries() -> None:
    """One finding each, and none of a handling that lines tell of."""
    assert found("redelivered", [*ONE_LINE, effect(0), effect(0), effect(0)], WITH_SINK) == [0, 0]
    twice = [*GIVEN, *handled("m0", 0), effect(0), revoked("m0"), synced("m0", 0), assigned("m0"), *handled("m0", 0)]
    assert found("redelivered", [*twice, effect(0)], WITH_SINK) == [0]
    assert found("redelivered", [*ONE_LINE, effect(0), effect(1)], WITH_SINK) == []


@pytest.mark.parametrize(("fetched_from", "illegal"), [(0, [0]), (1, [])])
def test_a_further_effect_below_the_floor_is_illegal(fetched_from: int, illegal: list[int]) -> None:
    """m1 was answered 1, and asked for records from 0 on."""
    first = [assigned("m0"), *handled("m0", 0), effect(0), revoked("m0"), committed(1, by="m0"), answered("m1", 1)]
    lines = [*first, assigned("m1"), fetched("m1", fetched_from, size_bytes=9), effect(0)]
    assert found("illegal-redelivery", lines, WITH_SINK) == illegal


# --- in flight at a crash --------------------------------------------------------------------------------------------

CRASH = exited("m0", signal=9)


@pytest.mark.parametrize(
    ("lines", "in_flight"),
    [
        ([fetched("m0", 0, size_bytes=9)], True),
        ([fetched("m0", 0, size_bytes=9), fetched("m0", 1)], False),
        ([fetched("m0", 0, size_bytes=9), fetched("m0", 1), fault("broker-kill", None)], True),
    ],
    ids=["it may have been brought", "it was not", "nobody can tell"],
)
def test_only_what_was_fetched_is_in_flight(lines: Lines, *, in_flight: bool) -> None:
    """m0 commits 2, handles 0, and is killed."""
    story = [assigned("m0"), *lines, committed(2, by="m0"), *handled("m0", 0), after(1), CRASH]
    skipped = says(story, WITH_SINK | {"delivery": "at-most-once", "no_effect": ["done"]}, records=2)
    places = [(found[2], dict(found[3])["in_flight_at_crash"]) for found in skipped.anomalies["skipped"]]
    assert places == [(1, in_flight)]


@pytest.mark.parametrize(("late_s", "in_flight"), [(6.0, True), (7.0, False)])
def test_what_a_broker_stamped_after_the_crash_may_have_been_fetched_before(late_s: float, *, in_flight: bool) -> None:
    """m0 commits 1, and is killed a second later; the stamp of its fetch is up to five seconds late after that."""
    story = [assigned("m0"), read_late(fetched("m0", 0, size_bytes=9), -late_s), committed(1, by="m0"), after(1), CRASH]
    skipped = says(story, WITH_SINK | {"delivery": "at-most-once"}, records=1)
    assert [dict(found[3])["in_flight_at_crash"] for found in skipped.anomalies["skipped"]] == [in_flight]


def on_connection(line: Line, name: str) -> Line:
    return replace(line, fields=line.fields | {"connection": name})


@pytest.mark.parametrize(
    ("refused_on", "member", "in_flight"),
    [("c2", "m0", True), ("c1", "m0", False), ("c2", "m1", False), (None, "m0", False)],
    ids=["elsewhere", "on the same connection", "another member", "nobody"],
)
def test_who_asks_again_elsewhere_and_is_refused_has_not_heard(
    refused_on: str | None, member: str, *, in_flight: bool
) -> None:
    """m0 commits 2 on c1, asks for it again, is refused, and leaves record 1."""
    stored, request = committed(2, by="m0")
    again = [on_connection(asked("OFFSET_COMMIT", member, 2, error=25), refused_on)] if refused_on else []
    story = [assigned("m0"), *handled("m0", 0), commit("m0", 2), after(1), stored, on_connection(request, "c1"), *again]
    skipped = says([*story, after(1), commit("m0", 2, "fail")], SETTINGS | {"delivery": "at-most-once"}, records=2)
    assert [dict(found[3])["in_flight_at_crash"] for found in skipped.anomalies["skipped"]] == [in_flight]


# --- overlap across files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before_s", "after_s", "overlaps"),
    [(1, 0.6, [1]), (1, 0.3, []), (0.3, 1, [])],
    ids=["inside", "at its end", "at its begin"],
)
def test_a_short_handler_inside_a_long_one_is_an_overlap(before_s: float, after_s: float, overlaps: list[int]) -> None:
    """However short: m1's lies inside m0's for certain where that lasts longer around it than lines wait."""
    lines = [assigned("m0"), delivered("m0", 0), after(before_s), *handled("m1", 1), after(after_s)]
    assert found("overlapping-handlers", [*lines, processed("m0", 0)]) == overlaps


# --- buffered lines --------------------------------------------------------------------------------------------------

COMMITS: Lines = [assigned("m0"), *handled("m0", 0), committed(1, by="m0")]


@pytest.mark.parametrize(
    ("lines", "settings", "named"),
    [
        (COMMITS, BUFFERED, True),
        (COMMITS, SETTINGS, False),
        (COMMITS, BUFFERED | {"sink": "http"}, False),
        ([*COMMITS[:-1], commit("m0", 1), committed(1, by="m0")], BUFFERED, False),
        ([own_time(line, 0) if isinstance(line, Line) else line for line in COMMITS], BUFFERED, False),
        (COMMITS[:-1], BUFFERED, False),
    ],
    ids=["blind", "flushed", "with a sink", "asks by its word", "tells the time", "commits nothing"],
)
def test_what_a_buffer_hides_of_commits_is_named(lines: Lines, settings: dict[str, Any], *, named: bool) -> None:
    """Of what was handled in time nobody can tell whether it was before the commit."""
    assert ("commit-ahead" in says(lines, settings, records=1).in_part) is named


def test_what_was_never_handled_is_found_behind_a_buffer() -> None:
    """Record 1 is in no line."""
    assert found("commit-ahead", [*COMMITS[:-1], committed(2, by="m0")], BUFFERED, records=2) == [2]


# --- told by its own clock -------------------------------------------------------------------------------------------

GONE_ON: Lines = [heartbeat("m0"), fetched("m0", 0, size_bytes=9), assigned("m0"), delivered("m0", 0), owner("m1")]


@pytest.mark.parametrize(
    ("lines", "split"),
    [
        ([after(3.6)], [2]),
        ([after(2.9)], []),
        ([after(1), heartbeat("m0", error=27), after(2.6)], []),
        ([after(1), heartbeat("m1", error=27), after(2.6)], [2]),
        ([after(2.6), joined("m0", took_ms=2_000), after(1)], []),
        ([after(1), fault("stall", "m0"), healed(), after(2.6)], []),
        ([after(1), fault("broker-kill", None), after(2.6)], []),
    ],
    ids=["two sessions", "less", "it asked", "another asked", "in a join", "its network was held", "a broker was down"],
)
def test_who_asks_its_group_nothing_more_is_told_by_its_own_clock(lines: Lines, split: list[int]) -> None:
    """Its heartbeats have stopped, and it goes on fetching."""
    works = [fetched("m0", 2, size_bytes=9), after(1), delivered("m0", 2)]
    gone_on = [*GONE_ON, after(5), fetched("m0", 1), *lines, *works]
    assert found("split-ownership", gone_on) == split
    assert found("split-ownership", gone_on, whole=False) == []


# --- a machine that is slower ----------------------------------------------------------------------------------------


def commits(count: int, took_ms: float) -> Lines:
    return [at_once(asked("OFFSET_COMMIT", "m0", 1, took_ms=took_ms)) for _ in range(count)]


CALM: Lines = [Line("run", "calibrated", {"rate": 1.0}), assigned("m0"), *handled("m0", 0), *commits(20, 4.0)]


@pytest.mark.parametrize(
    ("in_drain", "after_s", "late"),
    [
        (commits(20, 4.0), 13.0, True),
        (commits(20, 7.9), 13.0, True),
        (commits(20, 12.0), 13.0, False),
        (commits(20, 12.0), 18.0, True),
        (commits(19, 12.0), 13.0, True),
    ],
    ids=["as fast", "hardly slower", "slower", "too late for that", "few commits"],
)
def test_what_is_late_by_no_more_than_the_machine_was_slower_is_left_open(
    in_drain: Lines, after_s: float, *, late: bool
) -> None:
    """Thrice as slow: four seconds more than B for the record that is left."""
    lines = [*CALM, phase("drain"), *in_drain, after(after_s), at_once(delivered("m0", 1))]
    assert told("late-convergence", lines, records=2) == ([-1] * late, 1 - late)
    assert told("late-convergence", lines, SETTINGS | {"converge_within_s": 11.0}, records=2) == ([-1], 0)


BUSY: Lines = [phase("steady"), waited(0.1, 1.0), Line("run", "calibrated", {"rate": 1.0}), *CALM[1:4]]


@pytest.mark.parametrize(
    ("sample", "late"),
    [(waited(1.3, 13), True), (waited(5.0, 13), False), (waited(2.0, 13, brokers_s=3.0), False)],
    ids=["as before", "busier", "it and brokers"],
)
def test_what_is_late_by_no_more_than_the_machine_was_busier_is_left_open(sample: Line, *, late: bool) -> None:
    """A tenth of the time was waited for a processor before; two seconds more than B matter."""
    lines = [*BUSY, phase("drain"), after(13), sample, at_once(delivered("m0", 1))]
    assert told("late-convergence", lines, records=2) == ([-1] * late, 1 - late)
    assert told("late-convergence", lines, SETTINGS | {"converge_within_s": 11.0}, records=2) == ([-1], 0)


@pytest.mark.parametrize(("burst", "after_s", "late"), [((1, 1), 10.7, False), ((1, 1), 11.6, True), ((), 10.7, True)])
def test_a_partition_may_take_as_long_as_its_own_backlog(burst: tuple[int, ...], after_s: float, *, late: bool) -> None:
    """Eight records of one of two partitions, which had half of a burst at 4/s: B is 3 + 2 × 8 / 2 = 11 s."""
    everything = [*handled("m0", *range(8)), *committed(8)]
    before: Lines = [assigned("m0", 0, 1), rated(4.0, *burst), *(on(1, line) for line in everything), after(1)]
    lines = [*before, phase("drain"), after(after_s), *everything, after(1)]
    assert told("late-convergence", lines, records=8, partitions=2) == ([-1] * late, 0)


# --- losses ----------------------------------------------------------------------------------------------------------

BEGUN: Lines = [synced("m0", 0), owner("m0"), assigned("m0"), delivered("m0", 0)]
AFTERWARDS: Lines = [lost("m0"), processed("m0", 0)]


@pytest.mark.parametrize(
    "reason",
    [
        [heartbeat("m0", error=25)],
        [left("m0")],
        [after(3)],
        [fault("pause", "m0"), healed()],
        [fault("stall", "m0")],
        [owner("m1", idle=["m0"])],
        [gone("m0")],
        [heartbeat("m0", error=27)],
    ],
    ids=[
        *("fenced", "left", "silent for a session", "paused", "stalled", "given to others", "membership ended"),
        "closed in a rebalance",
    ],
)
def test_a_loss_that_can_be_one_is_believed(reason: Lines) -> None:
    """The record in hand may be finished."""
    assert found("work-after-revoke", [*BEGUN, *reason, *AFTERWARDS]) == []


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        [heartbeat("m1", error=25)],
        [heartbeat("m0", error=27), synced("m0", 0)],
        [after(2), heartbeat("m0"), after(2)],
        [fault("pause", "m1")],
        [generation(2)],
    ],
    ids=["nothing", "another one is fenced", "a rebalance", "heard meanwhile", "another one is paused", "a generation"],
)
def test_a_loss_that_cannot_be_one_is_a_revocation(nothing: Lines) -> None:
    """Its handler in hand works on after the callback."""
    assert found("work-after-revoke", [*BEGUN, *nothing, *AFTERWARDS]) == [0]


def test_a_loss_is_believed_where_the_request_log_has_a_gap() -> None:
    """Nobody can tell."""
    assert found("work-after-revoke", [*BEGUN, *AFTERWARDS], whole=False) == []


# --- own word of a refused commit ------------------------------------------------------------------------------------

REFUSED = asked("OFFSET_COMMIT", "m0", 1, error=22)
TAKEN: Lines = [assigned("m0"), fetched("m0", 0, size_bytes=9), owner("m1"), after(1)]
BEGINS: Lines = [after(1), *handled("m0", 1)]


def refused(position: int) -> Lines:
    return [asked("OFFSET_COMMIT", "m0", position, error=22), commit("m0", position, "fail")]


@pytest.mark.parametrize(
    ("lines", "split"),
    [
        ([*TAKEN, *refused(1), *BEGINS], ([], 0)),
        ([*TAKEN, *refused(2), *BEGINS], ([1], 0)),
        ([*TAKEN, delivered("m0", 1), *refused(2), after(1), processed("m0", 1)], ([], 0)),
        ([*TAKEN, *refused(1), after(1), fetched("m0", 1, size_bytes=9), *BEGINS], ([1], 0)),
        ([TAKEN[0], *TAKEN[2:], *refused(1), *BEGINS], ([], 1)),
        ([TAKEN[0], *TAKEN[2:], *refused(2), *BEGINS], ([1], 0)),
        ([*TAKEN, commit("m0", 2, "fail"), *BEGINS], ([], 0)),
        ([*TAKEN, *refused(1), *refused(2), *BEGINS], ([1], 0)),
        ([TAKEN[0], committed(2, by="m0"), *TAKEN[1:], *refused(3), *BEGINS], ([], 0)),
    ],
    ids=[
        "fetched before",
        "covered by the refused commit",
        "in hand",
        "fetched after",
        "nobody saw what it fetched",
        "covered, whatever it fetched",
        "not refused by a broker",
        "refused behind, then ahead",
        "covered by an earlier commit too",
    ],
)
def test_whoever_says_that_it_was_refused_may_finish_what_it_had(lines: Lines, split: tuple[list[int], int]) -> None:
    """What it had fetched before; not what the refused commit covered and it begins all the same."""
    assert told("split-ownership", lines) == split


@pytest.mark.parametrize(
    ("lines", "split"),
    [
        ([*TAKEN, asked("OFFSET_COMMIT", "m0", 2, error=22), *BEGINS], [1]),
        ([*TAKEN, asked("OFFSET_COMMIT", "m0", 2, error=27), *BEGINS], []),
        ([*TAKEN, REFUSED, *BEGINS], []),
        ([*TAKEN, *BEGINS, asked("OFFSET_COMMIT", "m0", 2, error=22)], []),
        ([*TAKEN, asked("OFFSET_COMMIT", "m1", 2, error=22), *BEGINS], []),
        ([TAKEN[0], committed(2, by="m0"), *TAKEN[1:], asked("OFFSET_COMMIT", "m0", 3, error=22), *BEGINS], []),
        ([*TAKEN, asked("OFFSET_COMMIT", "m0", 2, error=22), after(1), processed("m0", 1)], []),
    ],
    ids=["covered", "to be retried", "not covered", "afterwards", "another's", "its own before", "it tells ends only"],
)
def test_whoever_claims_at_most_once_waits_for_the_answer(lines: Lines, split: list[int]) -> None:
    """It prints nothing of its commits; under another claim the answer may reach a background thread."""
    assert found("split-ownership", lines, SETTINGS | {"delivery": "at-most-once"}) == split
    assert found("split-ownership", lines, SETTINGS | {"delivery": "at-least-once"}) == []


def test_what_it_may_finish_is_zombie_work_and_excused() -> None:
    """As before its word: m1 did the later record first."""
    lines = [*TAKEN, *handled("m1", 2), *refused(1), *BEGINS]
    assert found("zombie-work", lines) == [1, 1]
    assert found("reordered-key", lines, records=ALIKE) == []
    assert found("reordered-key", [*TAKEN, *handled("m1", 2), *refused(2), *BEGINS], records=ALIKE) == [1]


# --- blocked by what is empty ------------------------------------------------------------------------------------

THERE: Lines = [assigned("m0", 0, 1), log_end(8), fetched("m0", 0, size_bytes=9)]


def by_turns(seconds: float, *, work_s: float = 0.01) -> Lines:
    """Seven records of partition 0, each so long after the one before, and so long in hand."""
    return [[after(seconds), delivered("m0", one), after(work_s), processed("m0", one)] for one in range(7)]


@pytest.mark.parametrize(
    ("lines", "frame", "blocked"),
    [
        ([*THERE, *by_turns(2)], {}, [1]),
        ([*THERE, *by_turns(0.1)], {}, []),
        ([*THERE, *by_turns(0.1, work_s=2)], {}, []),
        ([*THERE, *by_turns(2)], {"partitions": 2}, []),
        ([assigned("m0"), *THERE[1:], *by_turns(2)], {}, []),
        ([*THERE[:2], *by_turns(2)], {}, []),
        ([*THERE, fault("broker-kill", None), *by_turns(2)], {}, []),
    ],
    ids=["broken", "quick", "slow handler", "the other lags", "no other", "nobody saw a fetch", "under a fault"],
)
def test_whoever_has_nothing_else_to_do_is_blocked(lines: Lines, frame: dict[str, Any], blocked: list[int]) -> None:
    """For twelve seconds a record lies there, and its member holds none most of the time."""
    assert found("head-of-line-blocking", lines, **{"records": 8, "old": True} | frame) == blocked
