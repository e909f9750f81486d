"""Readers: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import (
    GROUP,
    Line,
    after,
    asked,
    assigned,
    at_once,
    committed,
    effect,
    exited,
    fault,
    fetched,
    finding,
    handled,
    healed,
    judged,
    not_judged,
    on,
    owner,
    phase,
    processed,
    started,
    stood_still,
    undecided,
    with_settings,
)
from kafka_trial.verdict.messages import message

NAME = "rogue-reader"
FIRST = fetched("m0", 0, size_bytes=100)
LAST = fetched("m0", 1, size_bytes=20)


def test_a_reader_that_commits_holds() -> None:
    """It was sent records for twelve seconds, and committed once."""
    assert judged(NAME, [assigned("m0"), FIRST, committed(1, by="m0"), after(12), LAST]) == []


def test_a_reader_that_never_commits_is_told() -> None:
    """With what it was sent, since when, and its first and last fetch."""
    found = finding(NAME, [FIRST, after(12), LAST])
    assert [(one.attributes, one.events) for one in found.instances] == [
        (
            {"member": "m0", "fetched_bytes": 120, "offset": 0, "lasted_ms": 12010},
            ("requests-b0#2", "requests-b0#3"),
        )
    ]


def test_another_members_commits_do_not_explain_it() -> None:
    """The owner commits all the time; who reads beside it is rogue all the same."""
    assert len(judged(NAME, [assigned("m1"), FIRST, committed(1, by="m1"), after(12), LAST])) == 1


def test_a_reader_only_looks_rogue_for_less_than_a_window() -> None:
    """Its commit may have been about to come."""
    assert judged(NAME, [FIRST, after(9), LAST]) == []


def test_asking_without_an_answer_is_no_reading() -> None:
    """A partition at its end is asked for again and again, and nothing is sent."""
    assert judged(NAME, [fetched("m0", 2), after(12), fetched("m0", 2)]) == []


@pytest.mark.parametrize(("member", "told"), [("m0", 0), (None, 0), ("m1", 1)])
def test_a_fault_on_it_excuses_and_one_on_another_does_not(member: str | None, told: int) -> None:
    """Whoever was cut off could not commit."""
    assert len(judged(NAME, [FIRST, fault("stall", member), after(12), LAST])) == told


@pytest.mark.parametrize(
    "line", [stood_still(3), committed(1)], ids=["the machine stood still", "nobody knows by whom"]
)
def test_it_is_undecided(line: Line | list[Line]) -> None:
    """No machine to commit on; or a commit whose committer is unknown."""
    assert undecided(NAME, [FIRST, after(6), line, after(6), LAST]) == 1


def test_it_is_not_judged_without_the_request_log_or_where_progress_is_elsewhere() -> None:
    """What the brokers were asked is all there is to see."""
    assert "offsets" in not_judged(NAME, [FIRST, after(12), LAST], whole=False)
    missing = finding(NAME, [FIRST, after(12), LAST], settings=with_settings(progress="sink")).not_judged
    assert missing is not None
    assert not missing.applies


@pytest.mark.parametrize(("wait_s", "found"), [(9.99, 0), (9.991, 1)], ids=["a window", "longer"])
def test_a_reader_is_rogue_after_more_than_a_window(wait_s: float, found: int) -> None:
    """From its first fetch that was answered bytes to its last one."""
    lines = [fetched("m0", 0), FIRST, after(wait_s), LAST, after(9), fetched("m0", 2)]
    assert len(judged(NAME, lines)) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([committed(1, by="m0"), after(0.47), FIRST], 0),
        ([committed(1, by="m0"), after(0.49), FIRST], 1),
        ([FIRST, on(1, committed(1, by="m0")[0]), on(1, committed(1, by="m0")[1])], 1),
        ([FIRST, committed(1, by="operator")], 1),
        ([FIRST, committed(1, by="m1")], 1),
    ],
    ids=["just before", "long before", "of another partition", "an operator's", "another member's"],
)
def test_a_reader_is_explained_by_its_own_commit_since_it_began(lines: list[Line | list[Line]], found: int) -> None:
    """Give or take half a second."""
    assert len(judged(NAME, [*lines, after(12), LAST], partitions=2)) == found


def by_client(client: str | None, line: Line) -> Line:
    """The same request, by a client of that id, over a connection of its own."""
    return replace(line, fields=line.fields | {"client_id": client, "connection": f"m0-{client}"})


JOINED = by_client("app", Line("requests-b0", "request", {"api": "JOIN_GROUP", "lane": 0, "group": GROUP}))
OTHER_GROUP = Line("requests-b0", "request", {"api": "JOIN_GROUP", "lane": 0, "group": "another"})
COMMITS_TOO = by_client("spare", asked("OFFSET_COMMIT", "m0", 1))


def read_by(*clients: str | None, wait_s: float = 12) -> list[Line | list[Line]]:
    """Each of these clients of m0 reads partition 0 for so long; m0 commits all the while."""
    first, last = ([by_client(client, line) for client in clients] for line in (FIRST, LAST))
    halves = [after(wait_s / 2), *first, after(wait_s / 2)]
    return [assigned("m0"), JOINED, *first, committed(1, by="m0"), *halves, *last, committed(2, by="m0")]


def test_a_second_client_is_told_beside_that_of_the_group() -> None:
    """What the member commits explains the bytes of one of them: the other's are named, with its client id."""
    (one,) = finding(NAME, read_by("app", "spare")).instances
    told = {name: value for name, value in one.attributes.items() if name != "lasted_ms"}
    assert told == {"member": "m0", "client": "spare", "fetched_bytes": 220, "offset": 0}
    assert message(NAME, one).startswith("member m0 (client spare) was sent 220 bytes of partition 0 for 12")


@pytest.mark.parametrize(
    "lines",
    [
        read_by("app"),
        read_by("spare"),  # whoever is in the group fetches nothing: its commits are for this one
        read_by("app", None),
        read_by("app", "spare", wait_s=9),
        [by_client("app", FIRST), by_client("app", LAST), after(1), *read_by("spare")],
        [*read_by("app", "spare"), COMMITS_TOO],
    ],
    ids=[
        "one",
        "another one commits",
        "without a name",
        "for less than a window",
        "one after the other",
        "commits too",
    ],
)
def test_another_client_is_explained(lines: list[Line | list[Line]]) -> None:
    """Where commits may be of what it read, or nobody knows whose it is."""
    assert judged(NAME, lines) == []


def test_readers_are_told_by_partition_and_member() -> None:
    """m0 reads both partitions, m1 the second; m1 commits there."""
    there = [on(1, FIRST), on(1, fetched("m1", 0, size_bytes=7))]
    late = [on(1, LAST), on(1, fetched("m1", 4, size_bytes=7)), *(on(1, line) for line in committed(5, by="m1"))]
    found = finding(NAME, [FIRST, *there, after(12), LAST, *late], partitions=2)
    told = [
        (one.partition, one.attributes["member"], one.attributes["fetched_bytes"], one.events)
        for one in found.instances
    ]
    assert told == [
        (0, "m0", 120, ("requests-b0#2", "requests-b0#5")),
        (1, "m0", 120, ("requests-b0#3", "requests-b0#6")),
    ]


def test_a_reader_of_an_unknown_lane_is_nobodys() -> None:
    """It is not known whether it belongs to the group."""
    assert judged(NAME, [fetched("m7", 0, size_bytes=9), after(12), fetched("m7", 1, size_bytes=9)]) == []


@pytest.mark.parametrize(("again", "found"), [([], 0), ([at_once(phase("snapshot"))], 1), ([phase("snapshot")], 1)])
def test_a_reader_is_judged_up_to_the_snapshot(again: list[Line], found: int) -> None:
    """What it is sent, or commits, after it does not count; what comes in that instant does."""
    begun = [FIRST, after(12)]
    lines = [*begun, LAST, *again, committed(1, by="m0")] if again else [*begun, phase("snapshot"), LAST]
    assert len(judged(NAME, lines, snapshot=False)) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([fault("stall", "m0"), healed(), after(9), FIRST, after(12), LAST], 0),
        ([fault("stall", "m0"), healed(), after(11), FIRST, after(12), LAST], 1),
        ([FIRST, after(12), LAST, fault("stall", "m0")], 1),
        ([FIRST, after(12), fault("stall", "m0"), at_once(LAST)], 0),
        ([fault("stall", "m9"), FIRST, after(12), LAST], 1),
        ([fault("stall", "m0"), fault("stall", "m1", number=1), FIRST, after(12), LAST], 0),
    ],
    ids=[
        "healed just before",
        "healed long before",
        "begun after it",
        "begun in the instant of the last fetch",
        "on somebody unknown",
        "on it and on another",
    ],
)
def test_a_fault_excuses_a_reader_in_force_and_a_window_after(lines: list[Line], found: int) -> None:
    """A fault on it, or on nobody in particular."""
    assert len(judged(NAME, lines)) == found


OWNS = owner("m0")
IS_LOST = owner("m1")
IS_STOPPED = exited("m0", code=0)
READS = [FIRST, after(12), LAST]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([OWNS, *READS, IS_LOST], 0),
        ([OWNS, *READS, IS_STOPPED], 0),
        ([OWNS, *READS, IS_LOST, handled("m1", 0), committed(1, by="m1")], 0),
        ([OWNS, *READS], 1),
        ([*READS, OWNS, IS_LOST], 1),
        ([OWNS, IS_LOST, after(1), *READS, IS_STOPPED], 1),
        ([OWNS, *READS, processed("m0", 0), IS_LOST], 0),
        ([OWNS, FIRST, processed("m0", 0), after(12), LAST, IS_LOST], 1),
        ([OWNS, FIRST, effect(0), after(12), LAST, IS_STOPPED], 1),
        ([OWNS, FIRST, IS_LOST, after(1), *READS], 1),
        ([OWNS, FIRST, after(6), IS_LOST, after(1), OWNS, after(6), LAST, IS_STOPPED], 0),
        ([IS_STOPPED, *READS, OWNS], 1),
    ],
    ids=[
        "lost",
        "stopped",
        "handled by the next owner",
        "still its own",
        "read before",
        "read after",
        "handled just before",
        "handled by a line, and not committed for long",
        "handled by an effect, and not committed for long",
        "goes on after the loss",
        "twice the owner",
        "never was",
    ],
)
def test_an_owner_that_loses_what_it_had_fetched_ahead_is_no_rogue(lines: list[Line | list[Line]], found: int) -> None:
    """It worked on another partition, and lost this one, or was stopped, before it had begun here."""
    whole = [started("m1"), *(line for one in lines for line in (one if isinstance(one, list) else [one]))]
    assert len(judged(NAME, whole, settings=with_settings(sink="http"))) == found
