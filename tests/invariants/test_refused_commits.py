"""Commits that were refused, and that their member reports as stored: literal histories of at most eight lines."""

from __future__ import annotations

import pytest

from histories import Line, after, asked, commit, committed, finding, on, said, tombstone

REFUSED = asked("OFFSET_COMMIT", "m0", 1, error=22)
OK = commit("m0", 1, "ok")


def lost(lines: list[Line | list[Line]]) -> tuple[list[int], int]:
    """The positions that are lost, and how many are undecided."""
    found = finding("commit-lost", lines, partitions=2)
    return [one.attributes["committed_offset"] for one in found.instances], sum(found.undecided.values())


def test_a_commit_that_was_refused_and_reported_as_stored_is_lost() -> None:
    """The member believes in a position that nobody has: told with the error, and with the answer that refused it."""
    found = finding("commit-lost", [commit("m0", 1), REFUSED, OK])
    assert [(one.attributes, one.events) for one in found.instances] == [
        ({"committed_offset": 1, "by": "own word", "refused_with": 22}, ("consumer-m0-0#2", "requests-b0#2"))
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([REFUSED, committed(1, by="m0"), OK], ([], 0)),
        ([REFUSED, committed(2, by="m0"), OK], ([], 0)),
        ([REFUSED, OK, after(0.4), committed(2, by="m0")], ([], 0)),
        ([REFUSED, OK, after(1), committed(2, by="m0")], ([1], 0)),
        ([REFUSED, OK, after(1), committed(1, by="m0")], ([1], 0)),
        ([committed(2, by="m0"), tombstone(), after(1), REFUSED, OK], ([1], 0)),
        ([committed(1, by="m0"), after(1), REFUSED, OK], ([], 0)),
        ([REFUSED, OK, OK, after(1), REFUSED], ([1], 0)),
    ],
    ids=[
        "asked for again, and granted before the report",
        "a later position was granted before the report",
        "as long after the report as sources differ",
        "long after the report",
        "the same, long after the report",
        "a later position was granted before it was refused",
        "the answer to a first request of the same position",
        "reported twice",
    ],
)
def test_what_was_granted_after_the_refusal_and_before_the_report_is_stored(
    lines: list[Line | list[Line]], found: tuple[list[int], int]
) -> None:
    """That position or one beyond it; what is granted after the report does not make the report true."""
    assert lost(lines) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([REFUSED, committed(1, by="m1"), OK], ([], 0)),
        ([REFUSED, committed(2, by="m1"), OK], ([1], 0)),
        ([REFUSED, OK, after(1), committed(1, by="m1")], ([1], 0)),
        ([REFUSED, committed(2, by="operator"), OK], ([1], 0)),
        ([REFUSED, [on(1, line) for line in committed(2, by="m0")], OK], ([1], 0)),
        ([REFUSED, commit("m1", 1, "ok")], ([1], 0)),
        ([asked("OFFSET_COMMIT", "m1", 1, error=22), OK, after(1), committed(1, by="m1")], ([], 1)),
    ],
    ids=[
        "another member committed the same position before the report",
        "another member committed a later one",
        "another member committed the same one long after the report",
        "an operator committed a later one",
        "it committed a later one elsewhere",
        "another member reports it",
        "another member was refused",
    ],
)
def test_what_others_commit_makes_a_report_true_only_where_it_is_the_same_position(
    lines: list[Line | list[Line]], found: tuple[list[int], int]
) -> None:
    """The position is there, whoever put it there; beyond it only the member's own counts."""
    assert lost(lines) == found


def test_a_later_position_of_nobody_knows_whom_leaves_it_undecided() -> None:
    """The request log does not tell who asked for it: it may have been this member."""
    assert lost([REFUSED, committed(2), OK]) == ([], 1)


def test_a_refusal_after_the_report_is_of_another_request() -> None:
    """It says nothing of the commit that was reported, which is nowhere: lost, and not by that refusal."""
    found = finding("commit-lost", [OK, after(1), REFUSED])
    assert [one.attributes for one in found.instances] == [{"committed_offset": 1, "by": "own word"}]


def test_a_library_that_swallows_every_refusal_is_told_of_each_position() -> None:
    """It works beside the new owner, who is further on: nothing of what it reports was ever stored."""
    lines: list[Line | list[Line]] = [committed(9, by="m1")]
    for value in (1, 2):
        lines += [asked("OFFSET_COMMIT", "m0", value, error=25), commit("m0", value, "ok")]
    assert lost([*lines, said("m0", "lost", entries=[{"topic": "t", "partition": 0}])]) == ([1, 2], 0)
