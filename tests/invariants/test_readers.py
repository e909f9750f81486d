"""Readers: literal histories, each of at most eight lines. W is 10 s for these settings."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    fault,
    fetched,
    finding,
    judged,
    not_judged,
    stood_still,
    undecided,
    with_settings,
)

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
