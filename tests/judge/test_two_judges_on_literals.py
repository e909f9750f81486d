"""Literal histories on which the two judges once differed, or both were wrong: what both say now, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import (
    BEGUN_NS,
    GROUP,
    MS,
    TOPIC,
    WALL_NS,
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
    end_asked,
    exited,
    fault,
    fetched,
    gone,
    handled,
    healed,
    history,
    holds,
    lasting,
    log_end,
    log_start,
    lost,
    measured,
    on,
    own_time,
    owner,
    phase,
    processed,
    read_late,
    revoked,
    sent,
    started,
    taken_back,
)
from histories import said as told
from lab.agreement.sayings import Said, naive_says, vectorised_says
from lab.history_strategies import History

Lines = list[Line | list[Line]]

pytestmark = pytest.mark.lengthy

SETTINGS = {"events": "jsonl", "session_timeout_s": 3, "poll_interval_s": 5, "commit_interval_s": 1}
WITH_SINK = SETTINGS | {"sink": "http"}


def said(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> Said:
    """What both judges say of one anomaly: the same."""
    told = cast("History", SimpleNamespace(events=history(lines, **frame), settings=settings or SETTINGS))
    naive, vectorised = naive_says(told), vectorised_says(told)
    assert naive[name] == vectorised[name]
    return naive[name]


def both(name: str, lines: Lines, settings: dict[str, Any] | None = None, **frame: Any) -> tuple[list[Any], int]:
    """The places of one anomaly, and how many cases are undecided."""
    instances, undecided = said(name, lines, settings, **frame)
    return sorted(place for _, _, place, _ in instances.elements()), undecided


# --- commits that fell ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ways", "asked_earlier"), [(("new", "old"), True), (("old", "new"), False), (("old", "old"), False)]
)
def test_what_was_asked_for_before_is_no_fall_of_its_client(ways: tuple[str, str], *, asked_earlier: bool) -> None:
    """It came over an older connection than the commit that stood above it."""
    begun = [assigned("m0"), owner("m0"), over("old", asked("HEARTBEAT", "m0", 0))]
    pairs = [(way, *committed(value, by="m0")) for value, way in zip((9, 7), ways, strict=True)]
    fell = [line for way, stored, request in pairs for line in (stored, over(way, request))]
    instances, _ = said("commit-regression", [*begun, *fell, *committed(10, by="m0")])
    assert [("asked_earlier", True) in attributes for *_, attributes in instances] == [asked_earlier]


# --- commits ahead ---------------------------------------------------------------------------------------------------

CUT = told("m0", "bad_line", message='{"na', events=1, reason="cut")
DONE_AGAIN: Lines = [after(1), delivered("m1", 0), processed("m1", 0)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([assigned("m0"), delivered("m0", 0), CUT, commit("m0", 1), *DONE_AGAIN], ([], 1)),
        ([assigned("m0"), delivered("m0", 0), CUT, committed(1, by="m0"), *DONE_AGAIN], ([], 1)),
        (
            [*(assigned("m0"), delivered("m0", 0), CUT, committed(1, by="m0"), committed(2, by="m0")), *DONE_AGAIN],
            ([1], 1),
        ),
        (
            [
                *(assigned("m0"), delivered("m0", 0), CUT, committed(1, by="m0")),
                *(after(1), delivered("m1", 1), committed(2, by="m1"), *DONE_AGAIN, processed("m1", 1)),
            ],
            ([1, 2], 0),
        ),
    ],
    ids=["asked for", "in the log", "of a record without any line", "two of them"],
)
def test_a_line_that_nobody_could_read_may_have_been_an_earlier_completion(
    lines: Lines, expected: tuple[list[Any], int]
) -> None:
    """Given a record that is done again after its commit, then the commit is ahead only beyond the lines left over."""
    assert both("commit-ahead", lines) == expected


IN_HAND: Lines = [assigned("m0"), delivered("m0", 0)]
READ_AT_ONCE = measured("m0", 0.005)


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        ([*IN_HAND, commit("m0", 1), after(0.02), effect(0), processed("m0", 0)], [1]),
        ([*IN_HAND, commit("m0", 1), after(0.02), effect(0), commit("m0", 1, "ok")], [1]),
        ([*IN_HAND, commit("m0", 1), effect(0), processed("m0", 0)], []),
        ([*IN_HAND, effect(0), commit("m0", 1), processed("m0", 0)], []),
    ],
    ids=["before its effect", "before its effect, and no line of its end", "within what clocks differ by", "after it"],
)
def test_a_commit_line_before_the_effect_is_ahead_of_it(lines: Lines, ahead: list[int]) -> None:
    """The sink writes down at once: an effect that came between the commit line and the next one came after it."""
    assert both("commit-ahead", [*lines, READ_AT_ONCE], WITH_SINK, records=1) == (ahead, 0)


def test_what_was_done_in_an_ownership_epoch_before_was_done() -> None:
    """It is delivered again, as its commit had not been made; the commit may come before it is done once more."""
    before: Lines = [assigned("m0"), *handled("m0", 0), revoked("m0", 0)]
    again: Lines = [assigned("m0"), delivered("m0", 0), commit("m0", 1), processed("m0", 0)]
    assert both("commit-ahead", [*before, *again], records=1) == ([], 0)
    assert both("commit-ahead", again, records=1) == ([1], 0)


def test_a_commit_before_anybody_was_known_to_own_the_partition_is_open() -> None:
    """It is known who made it; not, who owned the partition there. Where nobody ever did, there is nothing to ask."""
    early: Lines = [committed(1, by="m0"), *handled("m0", 0)]
    assert both("zombie-commit", [*early, owner("m0")], records=1) == ([], 1)
    assert both("zombie-commit", early, records=1) == ([], 0)


# --- losses ----------------------------------------------------------------------------------------------------------

GIVEN: Lines = [owner("m0"), synced("m0", 0), assigned("m0")]
LOST_IN_HAND: Lines = [delivered("m0", 0), lost("m0", 0), processed("m0", 0), READ_AT_ONCE]
FOR_LONG: Lines = [after(1), heartbeat("m0"), after(1), heartbeat("m0")]


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ([*GIVEN, *FOR_LONG, *LOST_IN_HAND], [0]),
        ([*GIVEN, after(2.4), heartbeat("m0"), *LOST_IN_HAND], [0]),
        ([*GIVEN, after(2.6), heartbeat("m0"), *LOST_IN_HAND], []),
        ([*GIVEN, after(1.2), asked("OFFSET_COMMIT", "m0", 0), after(1.4), heartbeat("m0"), *LOST_IN_HAND], []),
        ([*GIVEN, *FOR_LONG, *LOST_IN_HAND, after(0.1), owner("m1", idle=["m0"])], [0]),
        ([*GIVEN, *FOR_LONG, owner("m1", idle=["m0"]), *LOST_IN_HAND], []),
        ([owner("m0"), heartbeat("m0"), assigned("m0"), *FOR_LONG, *LOST_IN_HAND], []),
        ([*GIVEN, *FOR_LONG, heartbeat("m0", error=27), *LOST_IN_HAND], []),
        ([*GIVEN, *FOR_LONG, heartbeat("m0", error=27), synced("m0", 0), *LOST_IN_HAND], [0]),
        ([*GIVEN, *FOR_LONG, asked("OFFSET_COMMIT", "m0", 0, error=16), *LOST_IN_HAND], []),
    ],
    ids=[
        "answered all the time",
        "answered but for less than a session",
        "not answered for a session, less what clocks differ by",
        "answered a commit alone",
        "given to another a moment later",
        "given to another",
        "the log lacks the answer that gave it, and may lack another",
        "closed while its group rebalanced",
        "given it again when its group had rebalanced",
        "refused a commit for now: nobody knows when its client gives up",
    ],
)
def test_a_loss_has_a_reason_by_when_it_is_told(lines: Lines, late: list[int]) -> None:
    """Of a loss that was none, what was in hand had to be finished before: as of what was revoked."""
    assert both("work-after-revoke", lines) == (late, 0)


# --- false reports ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fetches", "refuted"),
    [
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 1)], [1, 1]),
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 2)], []),
    ],
    ids=["it had not fetched it", "it had"],
)
def test_whoever_failed_at_a_record_says_that_it_had_it(fetches: Lines, refuted: list[int]) -> None:
    """`processed … failed` is a line about a record, as one that says done."""
    lines = [assigned("m0"), *fetches, after(1), delivered("m0", 1), processed("m0", 1, outcome="failed")]
    assert both("false-report", lines) == (refuted, 0)


EXPIRED: Lines = [sent(0), sent(1), assigned("m0")]


@pytest.mark.parametrize(
    ("fetches", "ranges"),
    [
        ([fetched("m0", 1, size_bytes=100), fetched("m0", 2)], [0]),
        ([fetched("m0", 0, size_bytes=100), fetched("m0", 2)], []),
    ],
    ids=["it had not fetched it", "it had"],
)
def test_whoever_only_says_that_it_had_a_record_did_not_read_it(fetches: Lines, ranges: list[int]) -> None:
    """Record 0 expired, and a line that no fetch bears out does not make it one that was read."""
    lines = [*EXPIRED, *fetches, after(1), *handled("m0", 0, 1), log_start(1)]
    assert both("overtaken", lines, control={0: None}) == (ranges, 0)


BEGUN_AND_GONE: Lines = [*EXPIRED, assigned("m0"), delivered("m0", 0), log_start(1)]
AGAIN: Lines = [started("m0-1"), assigned("m0-1")]


@pytest.mark.parametrize(
    ("end", "ranges", "undecided"),
    [
        ([], [], 0),
        ([revoked("m0", 0)], [0], 0),
        ([lost("m0", 0)], [0], 0),
        ([exited("m0", code=1), *AGAIN], [0], 0),
        ([exited("m0", signal=9), *AGAIN], [], 1),
        ([revoked("m0", 0), processed("m0", 0)], [], 0),
        ([revoked("m0", 0), assigned("m0"), delivered("m0", 0)], [], 0),
    ],
    ids=["in hand", "revoked", "lost", "crashed", "killed", "done after it was revoked", "in hand again"],
)
def test_what_was_given_back_undone_was_not_read(end: Lines, ranges: list[int], undecided: int) -> None:
    """Nobody commits past record 0, which expired while m0 had it in hand: whoever gets the partition gets record 1."""
    assert both("overtaken", [*BEGUN_AND_GONE, *end], control={0: None}) == (ranges, undecided)


@pytest.mark.parametrize(("checksum", "changed"), [(0, []), (7, [0])], ids=["an empty body", "another body"])
def test_the_value_of_a_record_without_one_is_nothing(checksum: int, changed: list[int]) -> None:
    """Its send has the checksum of an empty body, the control read has none, and finds nothing changed."""
    nothing = {0: {"checksum": None, "json_checksum": None}}
    lines = [sent(0), sent(1), assigned("m0"), *handled("m0", 0, 1), effect(0, checksum=checksum)]
    assert both("corrupt", lines, WITH_SINK | {"body": "value"}, control=nothing) == (changed, 0)


LOOK, GONE, STOPPED, BACK = log_end(2), log_start(1), exited("m0", code=0, asked="stop"), started("m0-1")
DELETED: Lines = [
    Line("nemesis", "injecting", {"fault_no": 0, "fault": "records-deleted", "target": "all: all"}),
    fault("records-deleted", None),
]
AWAY, BLAMED, UNSURE = ([True], 0), ([False], 0), ([], 1)


@pytest.mark.parametrize(
    ("lines", "members", "expected"),
    [
        ([STOPPED, LOOK, GONE, LOOK, BACK], 1, AWAY),
        ([STOPPED, LOOK, GONE], 1, AWAY),
        ([exited("m0", signal=9, asked="kill"), LOOK, GONE, BACK], 1, AWAY),
        ([STOPPED, LOOK, GONE, BACK, assigned("m0-1"), *handled("m0-1", 1), committed(2, by="m0")], 1, AWAY),
        ([LOOK, STOPPED, *DELETED, after(1), BACK, GONE], 1, AWAY),
        ([LOOK, GONE], 1, BLAMED),
        ([LOOK, GONE, LOOK, STOPPED, BACK], 1, BLAMED),
        ([LOOK, *DELETED, STOPPED, after(1), GONE, BACK], 1, BLAMED),
        ([STOPPED, BACK, LOOK, GONE], 1, BLAMED),
        ([STOPPED, LOOK, GONE, BACK], 2, BLAMED),
        ([exited("m0", code=1, asked="no"), LOOK, GONE, BACK], 1, BLAMED),
        ([committed(1, by="m0"), STOPPED, LOOK, GONE, BACK], 1, BLAMED),
        ([STOPPED, committed(1, by="m0"), LOOK, GONE, BACK], 1, BLAMED),
        ([STOPPED, GONE, LOOK, BACK], 1, UNSURE),
        ([STOPPED, LOOK, BACK, GONE], 1, UNSURE),
    ],
    ids=[
        "stopped",
        "stopped for good",
        "killed",
        "committed past when it was back",
        "deleted while away, seen when it was back",
        "running",
        "before it was stopped",
        "deleted before it was stopped, seen while away",
        "after it was back",
        "another member ran",
        "ended by itself",
        "committed past before",
        "committed past when it was stopped",
        "perhaps before it was stopped",
        "perhaps after it was back",
    ],
)
def test_what_expires_while_the_trial_lets_no_member_run_is_not_the_consumers(
    lines: Lines, members: int, expected: tuple[list[bool], int]
) -> None:
    """Record 0 expires unread; only where nobody could have read it any more is it the trial's own doing."""
    found, undecided = said("overtaken", [*EXPIRED, *lines], control={0: None}, members=members)
    assert ([dict(deciding)["while_away"] for *_, deciding in found.elements()], undecided) == expected


JUMPED: Lines = [assigned("m0"), *handled("m0", 0, 2), revoked("m0", 0), after(2)]


@pytest.mark.parametrize(("written_before_s", "skipped"), [(1.8, []), (0.0, [1])], ids=["in time", "too late"])
def test_an_output_is_as_old_as_its_broker_says(written_before_s: float, skipped: list[int]) -> None:
    """In a transaction too: it is read when that has ended, and was written while the member had the partition."""
    output = own_time(effect(1, topic="out", partition=0, offset=5), written_before_s)
    in_transactions = SETTINGS | {"progress": "transaction", "sink": "topic"}
    assert both("poll-skip", [*JUMPED, output], in_transactions, records=3) == (skipped, 0)


@pytest.mark.parametrize(
    ("written_before_s", "first"), [(1.0, "effected"), (0.0, "delivered")], ids=["written before", "not"]
)
def test_a_record_that_was_taken_back_is_told_by_what_was_made_of_it_first(written_before_s: float, first: str) -> None:
    """Its output is as old as its broker says, whenever it is read."""
    output = own_time(effect(0, topic="out", partition=0, offset=5), written_before_s)
    lines = [assigned("m0"), taken_back(0), after(2), delivered("m0", 0), output]
    instances, _ = said("aborted-read", lines, SETTINGS | {"progress": "transaction", "sink": "topic"}, records=[])
    assert [dict(attributes) for *_, attributes in instances] == [{"what": first}]


# --- order -----------------------------------------------------------------------------------------------------------

LOST_UNTOLD: Lines = [owner("m1"), assigned("m1"), after(1), owner("m0", idle=["m1"]), assigned("m0")]
WOKEN: Lines = [delivered("m1", 0), effect(0), processed("m1", 0), lost("m1")]


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ([delivered("m0", 0), effect(1), effect(0), processed("m0", 0), *handled("m0", 1), after(2), *WOKEN], [0]),
        ([effect(1), *WOKEN, *handled("m0", 0, 1)], []),
    ],
    ids=["made by the new owner, and again by the old one", "made by the old one"],
)
def test_an_effect_is_of_whoever_had_its_record_in_hand(lines: Lines, late: list[int]) -> None:
    """An untold loss excuses what its member did, and not what the next owner did two seconds before."""
    assert both("reordered-key", [*LOST_UNTOLD, *lines], WITH_SINK) == (late, 0)


HAS_ONE: Lines = [delivered("m1", 0), effect(0), processed("m1", 0), delivered("m1", 1)]
TAKEN: Lines = [after(1), owner("m0", idle=["m1"]), assigned("m0"), delivered("m0", 2), effect(2), processed("m0", 2)]


@pytest.mark.parametrize(("seconds", "late"), [(0.4, []), (0.6, [1])], ids=["may be before", "after it"])
def test_an_effect_soon_after_the_member_was_told_may_have_been_before(seconds: float, late: list[int]) -> None:
    """m1 had record 1 in hand when the partition was taken; lines and effects are read half a second apart at most."""
    lines = [owner("m1"), assigned("m1"), *HAS_ONE, *TAKEN, lost("m1", 0), after(seconds), effect(1)]
    assert both("reordered-key", lines, WITH_SINK, records=3) == (late, 0)


TO_TOPIC = SETTINGS | {"sink": "topic"}
SHORTLY: Lines = [owner("m1"), assigned("m1"), fetched("m1", 0, size_bytes=9), owner("m0", idle=["m1"]), assigned("m0")]


def output(record: int, at: int) -> Line:
    """A record's output in a topic, which names no member."""
    return effect(record, topic="out", partition=0, offset=at)


@pytest.mark.parametrize(
    ("told", "late"),
    [(handled("m0", 0, 1), [0]), (handled("m0", 1), []), ([*handled("m0", 1), delivered("m1", 0)], [])],
    ids=["lines tell that another had it", "nobody tells of it", "its own last line does"],
)
def test_what_lines_tell_of_is_not_the_effect_of_whoever_says_nothing(told: Lines, late: list[int]) -> None:
    """m1 had fetched both, and lost the partition untold; it never says that it did anything."""
    lines: Lines = [*SHORTLY, *told, output(1, 7), output(0, 8), lost("m1")]
    assert both("reordered-key", lines, TO_TOPIC, old=True) == (late, 0)


def test_whoever_says_nothing_and_was_not_seen_to_fetch_may_have_had_it() -> None:
    """The brokers log no fetch of anybody: m1 may have had record 0 when it lost the partition untold."""
    untold: Lines = [line for line in SHORTLY if line != SHORTLY[2]]
    lines: Lines = [*untold, *handled("m0", 1), output(1, 7), output(0, 8), lost("m1")]
    assert both("reordered-key", lines, TO_TOPIC, old=True) == ([], 0)


def key_sent(partition: int) -> Lines:
    """The workload sends a record of key k to that partition."""
    about = {"topic": TOPIC, "id": f"r{partition}-0" if partition else "r0", "key": "k"}
    invoke = Line("workload", "send", about | {"outcome": "invoke", "checksum": 1})
    return [invoke, Line("workload", "send", about | {"outcome": "ok", "partition": partition, "offset": 0})]


MORE_PARTITIONS = Line("observer", "topic", {"topic": TOPIC, "topic_id": "T", "partitions": 3})
SENT_TO_BOTH: Lines = [MORE_PARTITIONS, assigned("m0", 0, 1), *key_sent(0), *key_sent(1)]


def posted(partition: int) -> Line:
    """The sink hears of the first record of that partition."""
    return Line("sink", "effect", {"id": f"r{partition}-0" if partition else "r0", "outcome": "ok"})


@pytest.mark.parametrize(
    ("posts", "late"),
    [([posted(0), posted(1)], []), ([posted(1), posted(0)], [0])],
    ids=["in their order", "the later one first"],
)
def test_what_a_sink_heard_of_has_an_order_across_partitions_too(posts: Lines, late: list[int]) -> None:
    """The lines stand in their order; whoever prints them before the effects are made does not hide theirs."""
    lines: Lines = [*SENT_TO_BOTH, *turn(0), *turn(0, partition=1), after(1), *posts]
    frame: dict[str, Any] = {"records": ["k", "k"], "partitions": 2}
    assert both("reordered-across-partitions", lines, WITH_SINK, **frame) == (late, 0)


# --- floors ----------------------------------------------------------------------------------------------------------

DONE_BEFORE: Lines = [assigned("m0"), delivered("m0", 0), effect(0), processed("m0", 0)]
GIVES_IT_UP: Lines = [committed(1, by="m0"), revoked("m0", 0)]
OWN_BEFORE: Lines = [assigned("m1"), after(0.1), committed(1, by="m0"), revoked("m1", 0)]
TOLD_ONE: Lines = [answered("m1", 1), assigned("m1")]


def fetch_of_m1(position: int, took_s: float) -> Line:
    """m1 fetches from there, and waits so long for the answer."""
    return lasting(fetched("m1", position, size_bytes=9), took_s)


@pytest.mark.parametrize(
    ("lines", "below"),
    [
        ([*GIVES_IT_UP, *TOLD_ONE, fetch_of_m1(0, 0.005)], [0]),
        ([*GIVES_IT_UP, *TOLD_ONE, fetch_of_m1(0, 0.015)], [0]),
        ([*GIVES_IT_UP, *TOLD_ONE, fetch_of_m1(1, 0.015)], []),
        ([revoked("m0", 0), *OWN_BEFORE, *TOLD_ONE, fetch_of_m1(0, 0.1), fetch_of_m1(1, 0.005)], []),
    ],
    ids=["below it", "below it, before its line was read", "where it was told to", "asked for in the epoch before"],
)
def test_where_an_ownership_epoch_began_its_first_own_fetch_tells(lines: Lines, below: list[int]) -> None:
    """The lines of its member are read late; what was on its way when the partition was taken is none of its own."""
    again = [*DONE_BEFORE, *lines, effect(0)]
    assert both("illegal-redelivery", again, WITH_SINK) == (below, 0)
    assert both("redelivered", again, WITH_SINK) == ([] if below else [0], 0)


ASKS_AGAIN: Lines = [after(0.1), *committed(0, by="m1"), answered("m1", 0), fetched("m1", 0)]


@pytest.mark.parametrize(("by", "below"), [(processed("m1", 0), [0]), (answered("m1", 1), [])], ids=["begun", "not"])
def test_an_end_is_a_beginning_of_whoever_tells_of_none(by: Line, below: list[int]) -> None:
    """m1 prints ends alone; what it is answered when it has done something is no place where it was told to start."""
    lines = [*DONE_BEFORE, *GIVES_IT_UP, *TOLD_ONE, by, *ASKS_AGAIN, *([] if below else [processed("m1", 0)])]
    assert both("illegal-redelivery", lines, WITH_SINK) == (below, 0)


# --- several clients in one process --------------------------------------------------------------------------------

IN_TRANSACTIONS = SETTINGS | {"progress": "transaction"}
OF_PRODUCER = {"client_id": "producer", "connection": "of-producer"}


def of_client(name: str, line: Line, **who: str) -> Line:
    """The same of that client in m0's process."""
    about = {"client_id": name, "member_id": f"id-{name}", "connection": f"of-{name}"}
    return replace(line, fields=line.fields | about | who)


def taken_by(name: str) -> Lines:
    """The client's producer commits 1 in a transaction, under the member id of its consumer; m0's lane is one."""
    stored, asked_for, marker = committed(1, by="m0", producer=7)
    return [stored, of_client(name, asked_for, **OF_PRODUCER), marker]


TWO_LIVE: Lines = [of_client(name, joined("m0")) for name in ("a", "b", "a", "b")]
A_HAS_IT: Lines = [*TWO_LIVE, owner("a", idle=["b"])]
BOTH_SPEAK: Lines = [of_client(name, commit("m0", 1)) for name in ("a", "b", "a")]


@pytest.mark.parametrize(
    ("lines", "zombies"),
    [
        ([*A_HAS_IT, *taken_by("a")], 0),
        ([*BOTH_SPEAK, *A_HAS_IT, *taken_by("a")], 0),
        ([*BOTH_SPEAK, *A_HAS_IT, *taken_by("b")], 1),
    ],
    ids=["its owner's, by the member id", "its owner's, and lines of both", "another client's of the process"],
)
def test_a_commit_in_a_transaction_is_of_the_member_that_it_names(lines: Lines, zombies: int) -> None:
    """Its connection is the producer's, and so is the client id: TxnOffsetCommit bears the consumer's member id."""
    instances, undecided = said(
        "zombie-commit", [of_client("a", line) for line in handled("m0", 0)] + lines, IN_TRANSACTIONS
    )
    assert (instances.total(), undecided) == (zombies, 0)


LET_IN: Lines = [of_client(name, joined("m0")) for name in ("a", "b")]
OF_A = of_client("a", asked("OFFSET_COMMIT", "m0", 0, took_ms=1))
TWO_IN_HAND: Lines = [delivered("m0", 0), delivered("m0", 1), processed("m0", 0), processed("m0", 1)]


@pytest.mark.parametrize(
    ("lines", "overlap", "undecided"),
    [
        (LET_IN, [1], 0),
        ([*LET_IN, OF_A], [], 1),
        ([*LET_IN, of_client("a", heartbeat("m0"))], [], 1),
        ([*LET_IN, of_client("a", asked("OFFSET_COMMIT", "m0", 0, error=22))], [1], 0),
        ([*LET_IN, of_client("a", left("m0"))], [1], 0),
        ([LET_IN[0], after(1), read_late(OF_A, 0.5), lasting(of_client("b", joined("m0")), 0.3)], [1], 0),
    ],
    ids=[
        *("one after the other", "the first one commits", "the first one is in the group", "its commit is refused"),
        *("its goodbye comes late", "its commit came late, and was before"),
    ],
)
def test_two_live_in_a_process_while_the_first_one_is_granted_anything(
    lines: Lines, overlap: list[int], undecided: int
) -> None:
    """A commit is as good as a join. One at a time, the lines are of one, and two records in hand are one's."""
    assert both("overlapping-handlers", [assigned("m0"), *lines, *TWO_IN_HAND]) == (overlap, undecided)


@pytest.mark.parametrize(
    ("fetch", "split", "undecided"),
    [(fetched("m0", 1, size_bytes=9), [], 1), (of_client("a", fetched("m0", 1, size_bytes=9)), [1], 0)],
    ids=["over a connection of nobody", "over that of whoever was told"],
)
def test_of_several_in_a_process_a_fetch_is_of_whoever_has_its_connection(
    fetch: Line, split: list[int], undecided: int
) -> None:
    """a is told that m1 has the partition; record 1 is fetched two seconds later, by it or by b, and delivered."""
    begun: Lines = [*A_HAS_IT, of_client("a", synced("m0", 0)), of_client("b", synced("m0")), assigned("m0")]
    told: Lines = [owner("m1", idle=["a", "b"]), after(0.1), of_client("a", heartbeat("m0", error=25)), after(2)]
    assert both("split-ownership", [*begun, *told, fetch, after(1), delivered("m0", 1)]) == (split, undecided)


# --- what was in flight ----------------------------------------------------------------------------------------------

AT_MOST_ONCE = SETTINGS | {"delivery": "at-most-once"}


def over(connection: str, line: Line) -> Line:
    """A request over that connection."""
    return replace(line, fields=line.fields | {"connection": connection})


STORED, REQUEST = committed(2, by="m0")
ACCEPTED: Lines = [STORED, over("c1", REQUEST), after(1)]
REFUSED = over("c2", asked("OFFSET_COMMIT", "m0", 2, error=25))
SAYS_SO = commit("m0", 2, "fail")
ANOTHER_BROKERS = replace(over("c1", REFUSED), source="requests-b1")


@pytest.mark.parametrize(
    ("lines", "in_flight"),
    [
        ([*ACCEPTED, REFUSED, SAYS_SO], True),
        ([*ACCEPTED, ANOTHER_BROKERS, SAYS_SO], True),
        ([*ACCEPTED, after(62), REFUSED, SAYS_SO], False),
        ([*ACCEPTED, SAYS_SO, exited("m0"), started("m0-1"), REFUSED], False),
    ],
    ids=["asked again", "asked another broker", "when no client waits any more", "by another process"],
)
def test_a_refusal_on_another_connection_is_of_the_same_commit(lines: Lines, *, in_flight: bool) -> None:
    """A client waits only so long for an answer before it asks again, and another process knows of none."""
    instances, undecided = said("skipped", [assigned("m0"), *handled("m0", 0), *lines], AT_MOST_ONCE)
    assert [dict(one[3])["in_flight_at_crash"] for one in instances] == [in_flight]
    assert undecided == 0


# --- convergence -----------------------------------------------------------------------------------------------------

LEFT_ONE: Lines = [assigned("m0"), *handled("m0", 0), committed(1, by="m0"), after(12), phase("drain")]


@pytest.mark.parametrize(
    ("drain_s", "within_s", "late", "undecided"),
    [(5, 3, 1, 0), (5, 30, 0, 1), (20, 3, 0, 0)],
    ids=["it is late", "it has time yet", "it is stuck"],
)
def test_what_is_not_known_to_be_stuck_may_be_late(drain_s: float, within_s: float, late: int, undecided: int) -> None:
    """Nothing has moved for long; but in the drain for less than the window after which anything is stuck."""
    settings = SETTINGS | {"converge_within_s": within_s}
    instances, left_open = said("late-convergence", [*LEFT_ONE, after(drain_s)], settings)
    assert (instances.total(), left_open) == (late, undecided)


# --- blocked by what is empty ----------------------------------------------------------------------------------------

THERE: Lines = [assigned("m0", 0, 1), log_end(12), fetched("m0", 0, size_bytes=9)]
IN_TRANSACTION = {"lane": 0, "producer_id": 7, "producer_epoch": 1, "error": 0, "duration_ms": 1.0}


def turn(offset: int, *, work_s: float = 0.01, partition: int = 0) -> list[Line]:
    """One record of the partition, so long in hand."""
    return [
        delivered("m0", offset, partition=partition),
        after(work_s),
        processed("m0", offset, partition=partition),
    ]


def txn_request(api: str, *, took_s: float = 0.001, error: int = 0) -> Line:
    """A request of the member's producer of transactions."""
    return Line("requests-b0", "request", IN_TRANSACTION | {"api": api, "duration_ms": took_s * 1000, "error": error})


def by_turns(*between: Line | list[Line], seconds: float = 1.99) -> Lines:
    """Eight records of partition 0: after so long, and what comes in between, the next one."""
    return [[after(seconds), *_flat(between), *turn(offset)] for offset in range(8)]


def _flat(lines: Sequence[Line | list[Line]]) -> list[Line]:
    return [one for line in lines for one in ([line] if isinstance(line, Line) else line)]


CONCURRENT = [line for _ in range(19) for line in (after(0.09), txn_request("ADD_PARTITIONS_TO_TXN", error=51))]


@pytest.mark.parametrize(
    ("between", "seconds", "blocked"),
    [
        ([], 1.99, [1]),
        ([lasting(end_asked("commit"), 1.9)], 1.99, []),
        ([lasting(end_asked("commit", error=51), 1.9)], 1.99, []),
        ([lasting(end_asked("commit", by="m1"), 1.9)], 1.99, [1]),
        ([txn_request("ADD_OFFSETS_TO_TXN", took_s=1.9)], 1.99, []),
        ([txn_request("ADD_PARTITIONS_TO_TXN", took_s=1.9)], 1.99, []),
        ([asked("TXN_OFFSET_COMMIT", "m0", 1, took_ms=1900)], 1.99, []),
        ([on(1, asked("OFFSET_COMMIT", "m0", 1, took_ms=1900))], 1.99, []),
        ([asked("OFFSET_FETCH", "m0", 1, took_ms=1900)], 1.99, []),
        ([asked("HEARTBEAT", "m0", 1, took_ms=1900)], 1.99, [1]),
        ([asked("OFFSET_COMMIT", "m0", 1, took_ms=900), asked("OFFSET_COMMIT", "m0", 1, took_ms=900)], 1.98, [1]),
        ([asked("OFFSET_COMMIT", "m0", 1, took_ms=4900)], 1.99, []),
        ([CONCURRENT], 0.1, []),
    ],
    ids=[
        *("nothing is asked", "the end of a transaction", "a refused end", "another member's", "offsets are added"),
        *("partitions are added", "an offset in it", "a commit of another partition", "a position is fetched"),
        *("a heartbeat is not waited for", "at once, not one after the other", "begun before the wait"),
        "the last transaction has not ended yet",
    ],
)
def test_what_a_broker_takes_to_answer_is_not_the_members_waiting(
    between: Lines, seconds: float, blocked: list[int]
) -> None:
    """But for its fetches and heartbeats; time in which several answers are awaited counts once."""
    lines = [*THERE, *by_turns(*between, seconds=seconds)]
    assert both("head-of-line-blocking", lines, records=12, old=True) == (blocked, 0)


@pytest.mark.parametrize(
    ("first", "blocked"),
    [
        ([delivered("m0", 0), effect(0)], [1]),
        ([delivered("m0", 0), effect(0), processed("m0", 0)], [1]),
        ([delivered("m0", 0)], []),
        ([effect(0), delivered("m0", 0)], []),
    ],
    ids=["it had its effect", "its end is told", "nobody knows", "its effect was before"],
)
def test_a_line_that_was_left_out_holds_no_record_for_good(first: Lines, blocked: list[int]) -> None:
    """Record 0 is never said to be done; where the sink has heard of it, its member has it no longer in hand."""
    rest: Lines = [[after(1.99), *turn(offset)[:2], effect(offset), turn(offset)[2]] for offset in range(1, 9)]
    lines = [*THERE, *first, *rest]
    assert both("head-of-line-blocking", lines, WITH_SINK, records=12, old=True) == (blocked, 0)


def worked_beside(work_s: float) -> tuple[Lines, dict[int, dict[str, Any]]]:
    """Ten records of partition 1 lay there; before each the member does one of partition 0, which has just come.

    Returns the lines, and what the control read says of those of partition 0.
    """
    asks = fetched("m0", 0, size_bytes=9)
    lines: Lines = [assigned("m0", 0, 1), on(1, log_end(12)), asks, on(1, asks)]
    now_ns, control = BEGUN_NS + 40 * MS, {}
    for offset in range(10):
        lines += [[after(1.2 - work_s), *turn(offset, work_s=work_s), *turn(offset, partition=1)]]
        control[offset] = {"source_wall_ns": WALL_NS + now_ns + round((1.2 - work_s) * 1000) * MS}
        now_ns += 1250 * MS
    return lines, control


@pytest.mark.parametrize(("work_s", "blocked"), [(0.9, []), (0.2, [1])], ids=["at work", "not for long"])
def test_who_works_on_another_partition_is_not_blocked(work_s: float, blocked: list[int]) -> None:
    """No record of partition 0 lies there for a second, but most of the time the member has one of them in hand."""
    lines, control = worked_beside(work_s)
    assert both("head-of-line-blocking", lines, records=10, partitions=2, old=True, control=control) == (blocked, 0)


@pytest.mark.parametrize(("seconds", "blocked"), [(0.5, []), (0.7, [1])], ids=["as long as a fetch may", "longer"])
def test_one_fetch_of_the_empty_ones_may_be_waited_for(seconds: float, blocked: list[int]) -> None:
    """A broker keeps a fetch of empty partitions for fetch.max.wait.ms, 500 by default, and clients ask it one at a
    time: what is asked for next comes after it."""
    lines = [
        [after(seconds), lasting(fetched("m0", offset, size_bytes=9), 0.005), *turn(offset)] for offset in range(24)
    ]
    lines = [assigned("m0", 0, 1), log_end(24), *lines]
    assert both("head-of-line-blocking", lines, records=24, old=True) == (blocked, 0)


# --- the order of a connection's requests ----------------------------------------------------------------------------

# A broker stamps whole milliseconds and knows durations more exactly: the second one seems to begin 0.3 ms earlier.
ONE_AFTER_THE_OTHER: Lines = [
    lasting(fetched("m0", 0, size_bytes=100), 0.0001),
    at_once(lasting(fetched("m0", 2), 0.0004)),
]


@pytest.mark.parametrize("name", ["false-report", "skipped", "commit-ahead"])
def test_fetches_of_one_connection_began_in_the_order_of_their_lines(name: str) -> None:
    """Given a fetch that brought records 0 and 1, and one right after it, then both were fetched."""
    sought: Lines = [after(1), fetched("m0", 1), after(1), *handled("m0", 0, 1), commit("m0", 2), committed(2, by="m0")]
    assert both(name, [assigned("m0"), *ONE_AFTER_THE_OTHER, *sought]) == ([], 0)


# --- readers ---------------------------------------------------------------------------------------------------------

READS: Lines = [fetched("m0", 0, size_bytes=100), after(12), fetched("m0", 1, size_bytes=20)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([owner("m0"), *READS, owner("m1")], 0),
        ([owner("m0"), *READS, exited("m0", code=0)], 0),
        ([owner("m0"), *READS, effect(0), owner("m1")], 0),
        ([owner("m0"), READS[0], effect(0), *READS[1:], owner("m1")], 1),
        ([owner("m0"), *READS], 1),
        ([owner("m0"), owner("m1"), after(1), *READS, exited("m0", code=0)], 1),
    ],
    ids=["lost", "stopped", "handled just before", "handled long before", "still its own", "read after"],
)
def test_an_owner_that_loses_what_it_had_fetched_ahead_is_no_rogue(lines: Lines, found: int) -> None:
    """Given fetches for longer than a window without a commit, then only who never came to handle them is excused."""
    instances, _ = said("rogue-reader", [started("m1"), *lines], WITH_SINK)
    assert instances.total() == found


def by_client(client: str, line: Line) -> Line:
    return replace(line, fields=line.fields | {"client_id": client, "connection": f"m0-{client}"})


JOIN = Line("requests-b0", "request", {"api": "JOIN_GROUP", "lane": 0, "group": GROUP})
ITS_COMMIT = asked("OFFSET_COMMIT", "m0", 1)


@pytest.mark.parametrize(
    ("clients", "lines", "found"),
    [
        (["app", "spare"], [], 1),
        (["app", "spare", "third"], [], 2),
        (["app"], [], 0),
        (["spare"], [], 0),
        (["app", "spare"], [by_client("spare", ITS_COMMIT)], 0),
        (["app", "spare"], [by_client("spare", on(1, ITS_COMMIT))], 0),
        (["app", "spare"], [by_client("spare", JOIN)], 0),
        (["app", "spare"], [by_client("spare", replace(JOIN, fields=JOIN.fields | {"group": "another"}))], 0),
        (["app", "spare"], [by_client("spare", replace(JOIN, fields=JOIN.fields | {"lane": 1}))], 1),
        (
            ["app", "spare"],
            [by_client("spare", replace(JOIN, fields=JOIN.fields | {"api": "HEARTBEAT", "error": 25}))],
            0,
        ),
        (["app", "spare"], [after(30), *(by_client(one, line) for one in ("app", "spare") for line in READS[:1])], 1),
    ],
    ids=[
        *("beside", "two beside", "alone", "nobody beside", "commits", "commits elsewhere", "joins"),
        *("joins another group", "another member's joins", "was refused", "and later once more"),
    ],
)
def test_a_client_outside_the_group_is_told_beside_one_in_it(clients: list[str], lines: Lines, found: int) -> None:
    """Given a member that commits what it reads, then what a further client of its reads is explained by no commit."""
    first, last = ([by_client(client, line) for client in clients] for line in (READS[0], READS[2]))
    begun = [by_client("app", JOIN), *first, *committed(1, by="m0"), after(6), *first, after(6), *last]
    about = [*begun, *committed(2, by="m0"), *lines]
    instances, _ = said("rogue-reader", about, WITH_SINK, partitions=2)
    assert instances.total() == found


# --- stuck partitions ------------------------------------------------------------------------------------------------

BYTES = fetched("m0", 0, size_bytes=90)
REFUSED = fetched("m0", 0, error=1)
COORDINATOR_ONLY = Line("requests-b0", "request", {"api": "HEARTBEAT", "lane": 0, "connection": "m0"})


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([assigned("m0"), BYTES, REFUSED], "fetch-refused"),
        ([assigned("m0"), REFUSED, fetched("m0", 0)], "unclassified"),
        ([assigned("m0"), COORDINATOR_ONLY], "assigned-not-fetched"),
        ([REFUSED, after(1), assigned("m0")], "assigned-not-fetched"),
        ([assigned("m0"), fetched("m0", 2), BYTES, BYTES, BYTES], "fetched-undecodable"),
        ([assigned("m0"), BYTES, BYTES, fetched("m0", 2), BYTES], "fetched-not-delivered"),
        ([assigned("m0"), BYTES, BYTES, BYTES, fetched("m0", 2)], "fetched-not-delivered"),
    ],
    ids=["refused", "goes on", "never", "refused before", "again and again", "not in a row", "behind it"],
)
def test_a_stuck_partition_is_classed_by_its_owners_last_fetches(lines: Lines, name: str) -> None:
    """Given an owner that was delivered nothing, then the class is what the request log shows of its fetches."""
    instances, undecided = said("stuck-partition", [*lines, phase("drain"), after(25)])
    assert ([dict(deciding)["class"] for *_, deciding in instances], undecided) == ([name], 0)


@pytest.mark.parametrize(("wait_s", "found"), [(5, 0), (20, 1)])
def test_an_effect_of_a_record_that_was_deleted_since_is_movement(wait_s: float, found: int) -> None:
    """Given record 0, handled in the drain and deleted before the log was read, then its partition had moved."""
    done: Lines = [sent(0), log_start(0), assigned("m0"), phase("drain"), after(20), effect(0), after(wait_s)]
    assert len(both("stuck-partition", [*done, log_start(1)], WITH_SINK, control={0: None})[0]) == found


# --- sessions that a fault cost --------------------------------------------------------------------------------------


def killed(member: str, number: int, again: Line) -> Lines:
    return [fault("kill", member, number=number), after(2), again, healed(number)]


@pytest.mark.parametrize(
    ("instance_id", "error", "found"),
    [(None, 0, 0), ("one", 82, 0), ("one", 0, 1)],
    ids=["of no instance id", "refused", "taken over"],
)
def test_a_static_member_that_is_back_within_its_session_has_cost_none(
    instance_id: str | None, error: int, found: int
) -> None:
    """Given two kills and seven rebalances a minute later, then two sessions in series explain them, or none does."""
    asks = [joined(name, session_timeout_ms=45_000, rebalance_timeout_ms=300_000) for name in ("m0", "m1")]
    again = [replace(one, fields=one.fields | {"instance_id": instance_id, "error": error}) for one in asks]
    kills: Lines = [killed("m0", 0, again[0]), after(9), killed("m1", 1, again[1]), after(60)]
    bumps: Lines = [line for number in range(2, 9) for line in (owner("m0", epoch=number), after(1))]
    instances, _ = said("rebalance-storm", [*asks, assigned("m0"), owner("m0"), *kills, *bumps])
    assert instances.total() == found


# --- clients that are moved ------------------------------------------------------------------------------------------

GOES_OVER = Line("offsets", "group_tombstone", {"group": "g", "record_type": 2})


def again(line: Line) -> Line:
    """The same of the member id that its member has after its move."""
    return replace(line, fields=line.fields | {"member_id": f"{line.fields['member_id']}-again"})


def moved(member: str, number: int, *between: Line | list[Line]) -> Lines:
    """A member stops and leaves; its next process is of the successor."""
    by = fault("move-client", member, number=number, acts_as="restart")
    return [by, left(member), exited(member, code=0, asked="stop"), *between, started(f"{member}-1"), after(1)]


# m1 is the first to go, in a classic group that becomes one of KIP-848; m0 speaks as it did until it goes.
MIXED: Lines = [
    *(joined("m0"), joined("m1"), owner("m0", idle=["m1"]), synced("m0", 0), assigned("m0")),
    *(handled("m0", 0), commit("m0", 1), committed(1, by="m0", epoch=1)),
    *(phase("faults"), moved("m1", 0, GOES_OVER, holds("m0", 0)), again(beat("m1", [], epoch=0))),
    *(again(holds("m1", epoch=2)), heartbeat("m0", error=27), joined("m0", generation=2), holds("m0", 0, epoch=2)),
    *(synced("m0", 0, generation=2), healed(0), handled("m0", 1), commit("m0", 2), committed(2, by="m0", epoch=2)),
]
ALL_MOVED: Lines = [
    *(revoked("m0"), moved("m0", 1, gone("m0")), again(beat("m1", [0], epoch=2)), again(holds("m1", 0, epoch=3))),
    *(assigned("m1-1"), again(beat("m0", [], epoch=0)), again(holds("m0", epoch=4)), healed(1)),
    *(handled("m1-1", 2, 3), commit("m1-1", 4), committed(4), phase("drain")),
]
GOES_ON: Lines = [revoked("m0"), again(holds("m1", 0, epoch=3)), assigned("m1-1"), after(2), *handled("m0", 2)]


def found_by_both(lines: Lines) -> set[str]:
    told = cast("History", SimpleNamespace(events=history(lines), settings=SETTINGS))
    naive, vectorised = naive_says(told), vectorised_says(told)
    assert {name: instances for name, (instances, _) in naive.items()} == {name: vectorised[name][0] for name in naive}
    return {name for name, (instances, _) in naive.items() if instances}


def test_a_group_that_goes_over_member_by_member_does_nothing_wrong() -> None:
    """Both protocols in one group, its partitions in records of either, a generation that becomes a member's epoch."""
    assert found_by_both([*MIXED, *ALL_MOVED]) == set()


def test_in_a_group_of_both_protocols_work_after_a_revocation_is_found() -> None:
    """The partition is the successor's, whose protocol is another."""
    assert found_by_both([*MIXED, *GOES_ON]) == {"split-ownership", "work-after-revoke"}


# --- batches, and handlers that outlive their revocation ------------------------------------------------------------

BATCHES = SETTINGS | {"handler": "batch"}


def at_work(partition: int, words: str) -> Lines:
    """Lines of m0 on a partition: of each word the first letter (given, done, failed, up) and the record."""
    outcomes = {"d": "done", "f": "failed", "u": "dead-lettered"}
    return [
        delivered("m0", int(word[1]), partition=partition)
        if word[0] == "g"
        else processed("m0", int(word[1]), partition=partition, outcome=outcomes[word[0]])
        for word in words.split()
    ]


POLLED = [*at_work(0, "g0 g1"), *at_work(1, "g0"), *at_work(0, "d0 d1")]


@pytest.mark.parametrize(
    ("lines", "again", "late"),
    [
        (at_work(0, "g0 g1 d0 d1 f1 u0 u1"), [], []),
        (at_work(0, "g0 g1 d0 d1 u0 u1"), [0, 1], [0]),
        (at_work(0, "g0 g1 d0 d1 f1 u0 d1"), [0, 1], [0]),
        (at_work(0, "g0 g1 d0 d1 f1 u0 u1 g0 g1 d0 d1"), [0, 1], [0]),
        (at_work(0, "g0 g1 d0 d1 f1 g0 d0 g1 d1"), [], []),
        (at_work(0, "g0 g1 f0 u0 g0 g1 d0 d1"), [], []),
        (at_work(0, "g0 f0 g0 d0 g1 g0 d0 d1"), [0], []),
        ([*POLLED, *at_work(1, "f0"), *POLLED, *at_work(1, "d0")], [], []),
        ([*POLLED, *POLLED, *at_work(1, "d0")], [0, 1], [0]),
        ([*POLLED, *at_work(1, "d0"), *POLLED, *at_work(1, "d0")], [0, 0, 1], [0]),
        ([*POLLED, *at_work(1, "f0"), committed(2), after(2), *POLLED, *at_work(1, "d0")], [0, 1], [0]),
        ([*POLLED, *at_work(0, "g0 g1 d0 d1"), *at_work(1, "f0")], [0, 1], [0]),
    ],
    ids=[
        "given up",
        "given up though nothing failed",
        "not all given up",
        "given up, and handed out again",
        "in parts",
        "given up in part, and handed out again",
        "the next batch steps back",
        "another partition's record failed",
        "another partition's record has no end",
        "nothing failed",
        "committed past",
        "it failed later",
    ],
)
def test_attempts_at_batches(lines: Lines, again: list[int], late: list[int]) -> None:
    """A batch that failed may be tried again, and given up, as a whole."""
    frame: dict[str, Any] = {"records": 2, "partitions": 2}
    lines = [assigned("m0", 0, 1), *lines]
    assert both("redelivered", lines, BATCHES, **frame) == (again, 0)
    assert both("reordered-key", lines, BATCHES, **frame) == (late, 0)


@pytest.mark.parametrize(
    ("meanwhile", "late"),
    [
        ([owner("m1", idle=["m0"], epoch=2), after(1), assigned("m1"), handled("m1", 0), revoked("m1")], [0]),
        ([], []),
    ],
    ids=["others had it", "it was given back at once"],
)
def test_a_handler_outlives_its_revocation(meanwhile: Lines, late: list[int]) -> None:
    """And ends when its member has the partition again."""
    begun = [owner("m0", idle=["m1"]), assigned("m0"), delivered("m0", 0), revoked("m0")]
    back = [after(1), owner("m0", idle=["m1"], epoch=3), after(1), assigned("m0"), processed("m0", 0)]
    assert both("work-after-revoke", [*begun, *meanwhile, *back], records=1) == (late, 0)
