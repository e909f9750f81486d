"""The commits that took effect, each with its committer: literal histories, each of at most eight lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from histories import (
    Line,
    aborted,
    after,
    asked,
    assigned,
    at_once,
    batch_of,
    committed,
    ended,
    exited,
    finding,
    gone,
    holds,
    log_end,
    on,
    owner,
    read_late,
    started,
    told,
    tombstone,
    with_settings,
)
from kafka_trial.claim import Claim
from kafka_trial.model.commits import commit_regressions
from kafka_trial.model.commits_log import (
    AMBIGUOUS,
    OPERATOR,
    STRANGER,
    UNKNOWN,
    commits_in_effect,
    committed_at,
    first_covering,
)
from kafka_trial.verdict.decide import rule_of

IN_TRANSACTION = with_settings(progress="transaction", delivery="exactly-once")
ONE = committed(1)[0]


def asks(member: str, value: int = 1, *, error: int = 0) -> Line:
    return asked("OFFSET_COMMIT", member, value, error=error)


def asks_inside(member: str, value: int = 1) -> Line:
    return asked("TXN_OFFSET_COMMIT", member, value)


def test_a_commit_is_told_with_what_stood_before_it() -> None:
    """Up, down and up in one partition; in the other one position, deleted, and a lower one."""
    lines = [committed(2), committed(1), [on(1, line) for line in (*committed(5), tombstone(), *committed(3))]]
    commits = commits_in_effect(batch_of([*lines, committed(2), committed(4)], partitions=2))
    assert told(commits, "slice", "log_offset", "committed_offset", "stretch", "peak", "peak_row", "effect_ns") == [
        (0, 1, 2, 1, None, -1, 10),
        (0, 2, 1, 1, 2, 0, 20),
        (0, 6, 2, 1, 2, 0, 60),
        (0, 7, 4, 1, 2, 0, 70),
        (1, 3, 5, 2, None, -1, 30),
        (1, 5, 3, 3, None, -1, 50),
    ]


@pytest.mark.parametrize(
    ("lines", "committer"),
    [
        ([ONE], UNKNOWN),
        ([ONE, asks("m1")], 1),
        ([asks("m1"), ONE], 1),
        ([ONE, asks("operator")], OPERATOR),
        ([ONE, asks("operator"), asks("m1")], 1),
        ([ONE, asks("m0"), asks("m1")], AMBIGUOUS),
        ([ONE, asks("m0"), asks("m0")], 0),
        ([ONE, asks("m0", error=22), asks("m1")], 1),
        ([ONE, asks("m0", 2), asks("m1")], 1),
        ([ONE, on(1, asks("m0"))], UNKNOWN),
        ([ONE, asks_inside("m0")], UNKNOWN),
        ([ONE, replace(asks("m0"), fields=asks("m0").fields | {"source_wall_ns": None})], UNKNOWN),
        ([ONE, after(5.065), asks("m0")], 0),
        ([ONE, after(5.066), asks("m0")], UNKNOWN),
        ([asks("m0"), after(0.040), ONE], 0),
        ([asks("m0"), after(0.041), ONE], UNKNOWN),
    ],
    ids=[
        "nobody",
        "a member",
        "a member whose answer was sent before",
        "somebody outside the lanes",
        "a member beside somebody outside the lanes",
        "two members",
        "one member twice",
        "one that was not refused",
        "one that asked for this position",
        "another partition",
        "in a transaction",
        "at nobody knows what time",
        "as long before its answer as its request took, the logs differ and its line may be late",
        "longer before its answer",
        "as long after its answer as the logs differ",
        "longer after its answer",
    ],
)
def test_the_committer_is_who_asked_for_this_position_around_its_time(lines: list[Line], committer: int) -> None:
    """A request took 25 ms until its answer was sent; the logs differ by 50 ms at most, unless a line is late."""
    assert commits_in_effect(batch_of(lines, partitions=2))["committer"].tolist() == [committer]


OFF_LANE = asks("operator")
NOBODY = owner(epoch=2)


def bearing(member_id: str, line: Line = OFF_LANE) -> Line:
    """The request bears that member id."""
    return replace(line, fields=line.fields | {"member_id": member_id})


@pytest.mark.parametrize(
    ("lines", "committer"),
    [
        ([owner("m0"), ONE, bearing("id-m0")], 0),
        ([owner("m0"), ONE, bearing("id-m0", asks_inside("operator"))], UNKNOWN),
        ([owner("m0"), ONE, bearing("id-nobody")], STRANGER),
        ([owner("m0"), ONE, OFF_LANE], STRANGER),
        ([owner("m0"), NOBODY, ONE, OFF_LANE], OPERATOR),
        ([holds("m0", 0), ONE, OFF_LANE], STRANGER),
        ([holds("m0", 0), gone("m0"), ONE, OFF_LANE], OPERATOR),
        ([owner("m0"), NOBODY, ONE, bearing("")], OPERATOR),
    ],
    ids=[
        "a member's id",
        "a member's id, in a transaction, and the commit is in none",
        "an id that no lane saw",
        "no id, while the group has members",
        "no id, while the group is empty",
        "no id, while the group has members (KIP-848)",
        "no id, when its last member is gone (KIP-848)",
        "an empty id",
    ],
)
def test_off_the_lanes_the_committer_is_who_bears_the_id(lines: list[Line], committer: int) -> None:
    """Without one it is an operator's, which brokers take from nobody while the group has members."""
    assert commits_in_effect(batch_of(lines))["committer"].tolist() == [committer]


def test_in_a_transaction_off_the_lanes_the_id_alone_tells_the_committer() -> None:
    """Without one brokers take it from anybody, at any time."""
    for member_id, committer in (("id-m0", 0), (None, STRANGER)):
        asks = asks_inside("operator") if member_id is None else bearing(member_id, asks_inside("operator"))
        lines = [NOBODY, *committed(1, producer=7), asks]
        assert commits_in_effect(batch_of(lines, settings=IN_TRANSACTION))["committer"].tolist() == [committer]


@pytest.mark.parametrize(
    ("lines", "weight"),
    [
        ([owner("m0"), ONE, bearing("id-m0")], "violation"),
        ([owner("m0"), ONE, OFF_LANE], "undecided"),
        ([owner("m0"), NOBODY, ONE, OFF_LANE], "tolerated"),
    ],
    ids=["a member", "nobody knows", "an operator"],
)
@pytest.mark.parametrize("name", ["skipped", "commit-ahead", "commit-past-end"])
def test_what_a_commit_skips_is_held_against_its_committer(name: str, lines: list[Line], weight: str) -> None:
    """And against nobody, where nobody knows whose it is."""
    (found,) = finding(name, [*lines, log_end(0)], records=1).instances
    rule = rule_of(name)
    assert rule is not None
    assert rule.excuse(Claim("at-least-once"), found.attributes)[0] == weight


def test_the_committer_in_a_transaction_asked_in_a_transaction() -> None:
    """m1 asked for the same position outside of it."""
    lines = [*committed(1, producer=7, by="m0"), asks("m1")]
    commits = commits_in_effect(batch_of(lines, settings=IN_TRANSACTION))
    assert told(commits, "committer", "in_transaction", "effect_ns", "log_offset") == [(0, 1, 30, 1)]


def test_a_commit_is_of_the_incarnation_that_had_begun_last() -> None:
    """m0 before it went, and in the instant in which it was started again; before it began nobody was there."""
    first = committed(1, by="m0")
    again = [exited("m0"), after(1), started("m0-1"), at_once(committed(2)[0]), asks("m0", 2)]
    assert told(commits_in_effect(batch_of([*first, *again, committed(3)])), "committer", "incarnation") == [
        (0, 0),
        (0, 1),
        (-1, -1),
    ]


@pytest.mark.parametrize(
    ("lines", "owned"),
    [
        ([owner("m0")], 1),
        ([owner("m1")], 0),
        ([], -1),
        ([owner("m7")], -1),
        ([owner("m0"), owner("m7")], -1),
        ([owner("m0"), owner()], 1),
        ([owner("m1"), owner()], 0),
        ([owner("m0", "m1")], 1),
        ([owner("m0"), owner("m1")], 0),
        ([holds("m0", 0), holds("m0")], 1),
        ([holds("m0", 0), holds("m0"), holds("m1", 0)], 0),
        ([holds("m0", 0), holds("m0"), holds("m1", 0), holds("m1")], 0),
        ([holds("m0", 0), holds("m0", pending=[0])], 1),
        ([holds("m0", 0), holds("m1", 1)], 1),
        ([holds("m1", 0), holds("m0", 1)], 0),
        ([holds("m0", 0), holds("m1", 0), holds("m1")], 1),
        ([holds("m0", 0), owner("m1")], 0),
        ([owner("m1"), holds("m0", 0)], 1),
        ([holds("m7", 0), holds("m0", 1)], -1),
        ([on(1, owner("m0"))], -1),
    ],
    ids=[
        "its own",
        "another's",
        "nobody ever told",
        "an id that was seen on no lane",
        "from it to an unknown one",
        "given to nobody since",
        "another's and given to nobody since",
        "given to both",
        "given to another",
        "released",
        "released and given to another",
        "the last one to release it",
        "being given up",
        "another partition given to another",
        "another partition given to it",
        "held by both and released by the other",
        "taken over by the classic protocol",
        "taken over by KIP-848",
        "unknown and another partition",
        "another partition only",
    ],
)
def test_the_place_of_a_commit_in_the_log_tells_whether_its_member_owned_the_partition(
    lines: list[Line], owned: int
) -> None:
    """1: it did; 0: others did; -1: nobody knows. What is written after the commit does not count."""
    later = [owner("m0") if owned == 0 else owner("m1")]
    commits = commits_in_effect(batch_of([*lines, *committed(1, by="m0"), *later], partitions=2))
    assert commits["owned"].tolist() == [owned]


def test_what_was_given_to_nobody_is_its_last_owners_in_every_partition() -> None:
    """Released by m0 here and by m1 there; then taken by the other, twice over."""
    here = [holds("m0", 0), holds("m1", 1), holds("m0"), holds("m1")]
    first = [*committed(1, by="m0"), *(on(1, line) for line in committed(1, by="m1"))]
    swapped = [holds("m1", 0), holds("m0", 1), holds("m1"), holds("m0")]
    lines = [*here, *first, *swapped, *committed(2, by="m0"), *(on(1, line) for line in committed(2, by="m1"))]
    assert told(commits_in_effect(batch_of(lines, partitions=2)), "slice", "committed_offset", "owned") == [
        (0, 1, 1),
        (0, 2, 0),
        (1, 1, 1),
        (1, 2, 0),
    ]


def test_an_unknown_owner_of_one_partition_is_no_owner_of_another() -> None:
    """m1 commits in the first partition, which is m0's; whose the second one is nobody knows."""
    lines = [owner("m0"), on(1, owner("m7")), *committed(1, by="m1")]
    assert commits_in_effect(batch_of(lines, partitions=2))["owned"].tolist() == [0]


def test_two_owners_that_let_go_in_one_record_both_stay() -> None:
    """A classic record gave it to both, and the next to nobody."""
    lines = [owner("m0", "m1"), owner(), *committed(1, by="m0"), after(1), *committed(2, by="m1")]
    assert commits_in_effect(batch_of(lines))["owned"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ([committed(1, producer=7)], [1]),
        ([committed(1, producer=7, pending=True)], []),
        ([committed(1, producer=7, pending=True), ended("abort", None)], []),
        ([committed(1, producer=7, pending=True), ended("commit", None, producer=8)], []),
        ([aborted(1), committed(2)], [2]),
        ([committed(1, producer=7, pending=True), committed(2, producer=7)], [2]),
        ([committed(1, producer=7, pending=True), committed(2), ended("commit", None)], [2]),
        ([committed(1, producer=7), committed(2), committed(3, producer=7)], [1, 2, 3]),
        ([committed(1, producer=7, pending=True), tombstone(), ended("commit", None)], []),
    ],
    ids=[
        "taken",
        "pending",
        "aborted by its marker",
        "another producer's marker",
        "aborted",
        "two of one transaction",
        "a later record took effect before",
        "in and out of transactions",
        "deleted before it was taken",
    ],
)
def test_a_commit_in_a_transaction_takes_effect_at_its_marker(
    lines: list[Line | list[Line]], values: list[int]
) -> None:
    """If no later record of the partition took effect before."""
    assert commits_in_effect(batch_of(lines, settings=IN_TRANSACTION))["committed_offset"].tolist() == values


def test_a_commit_in_a_transaction_is_as_old_as_its_marker() -> None:
    """Written at 10 ms, taken at 1030 ms; in another partition, and outside of any, both at 20 ms."""
    written = [committed(1, producer=7, pending=True), [on(1, line) for line in committed(1)]]
    commits = commits_in_effect(
        batch_of([*written, after(1), ended("commit", None)], settings=IN_TRANSACTION, partitions=2)
    )
    assert told(commits, "slice", "log_offset", "effect_log_offset", "effect_ns") == [(0, 1, 3, 1030), (1, 2, 2, 20)]


def test_the_first_commit_that_covers_a_record() -> None:
    """The first beyond it, though the position fell since; in each partition its own."""
    lines = [committed(2), committed(1), [on(1, line) for line in committed(1)], committed(3)]
    batch = batch_of(lines, partitions=2)
    slices, offsets = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 0, 1])
    assert first_covering(batch, slices, offsets).tolist() == [0, 0, 2, -1, 3, -1]


def test_the_position_that_stood_at_a_time() -> None:
    """In two partitions: before, between and after the commits, and where one was deleted."""
    lines = [committed(2), [on(1, line) for line in (*committed(1), *committed(3))], tombstone()]
    batch = batch_of(lines, partitions=3)
    none = -(2**63)
    at = [102_080_000_000 + ms * 1_000_000 for ms in (9, 10, 20, 30, 40)]
    assert [committed_at(batch, at_ns).tolist() for at_ns in at] == [
        [none, none, none],
        [2, none, none],
        [2, 1, none],
        [2, 3, none],
        [none, 3, none],
    ]
    assert committed_at(batch, None).tolist() == [none, 3, none]


@pytest.mark.parametrize(
    ("values", "episodes"),
    [
        ([1, 2, 2, 3], []),
        ([3, 2], [(1, -1)]),
        ([3, 2, 1, 2, 3], [(1, 4)]),
        ([3, 2, 4], [(1, 2)]),
        ([3, 2, 3, 1, 3], [(1, 2), (3, 4)]),
        ([3, 0, 3, 2, 1], [(1, 2), (3, -1)]),
    ],
)
def test_a_position_has_fallen_until_it_is_back_where_it_was(
    values: list[int], episodes: list[tuple[int, int]]
) -> None:
    """One episode each; another partition beside it, which falls and stays so, has its own."""
    here = [line for value in values for line in committed(value)]
    there = [on(1, line) for value in (9, 8) for line in committed(value)]
    fallen = commit_regressions(batch_of([*here, *there], partitions=2))
    assert told(fallen, "slice", "fell_row", "recovered_row") == [
        *((0, first, back) for first, back in episodes),
        (1, len(values) + 1, -1),
    ]


def test_a_fall_ends_with_the_position_itself() -> None:
    """It was deleted, and a higher one is no return."""
    lines = [committed(2), committed(1), tombstone(), committed(3), assigned("m0")]
    assert told(commit_regressions(batch_of(lines)), "fell_row", "recovered_row") == [(1, -1)]


def test_a_commit_is_as_old_as_the_broker_says() -> None:
    """Read seconds after it was written: outside of a transaction its own time counts, inside its marker's."""
    inside = committed(2, producer=7, pending=True)
    lines = [read_late(ONE, 5), inside[0], read_late(ended("commit", None), 3)]
    commits = commits_in_effect(batch_of(lines, settings=IN_TRANSACTION))
    assert told(commits, "committed_offset", "effect_ns") == [(1, -4990), (2, -2970)]


def test_a_request_is_as_old_as_the_broker_says() -> None:
    """Both were read long after they were written, one longer than the other."""
    commits = commits_in_effect(batch_of([read_late(ONE, 5), after(2), read_late(asks("m1"), 7)]))
    assert told(commits, "committer", "incarnation") == [(1, -1)]
