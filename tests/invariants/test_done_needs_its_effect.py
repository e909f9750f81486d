"""Done needs its effect: where a sink is declared, what it never heard of was not done, whatever was printed."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    committed,
    delivered,
    effect,
    exited,
    handled,
    judged,
    phase,
    processed,
    with_settings,
)

SINK = with_settings(sink="http")
SAID = [assigned("m0"), handled("m0", 0, 1)]
ONE_HEARD = [*SAID, effect(0), committed(2)]


def lost(lines: list[Line | list[Line]], **declared: object) -> list[int]:
    """Returns the offsets that were committed past, and not done."""
    keys = declared.pop("records", 2)
    settings = with_settings(**{"sink": "http"} | declared)
    return [one["offset"] for one in judged("skipped", lines, settings=settings, records=keys)]


def test_said_done_and_never_heard_of_is_skipped() -> None:
    """It swallowed the failure of its post, said done and committed."""
    assert lost([*SAID, effect(0), committed(2)]) == [1]


def test_said_done_and_heard_of_is_done() -> None:
    """Whoever posted it, and whenever before the end."""
    assert lost([*SAID, effect(0), effect(1), committed(2)]) == []


def test_heard_of_and_never_said_is_done() -> None:
    """Its line was lost: the effect is there."""
    assert lost([assigned("m0"), delivered("m0", 0), effect(0), delivered("m0", 1), effect(1), committed(2)]) == []


def test_said_done_and_never_heard_of_is_unseen_where_nothing_was_committed() -> None:
    """As if it had never been delivered."""
    lines = [*SAID, effect(0), phase("drain"), after(20)]
    assert [one["offset"] for one in judged("unseen", lines, settings=SINK)] == [1]


@pytest.mark.parametrize(
    ("outcome", "no_effect", "skipped"),
    [
        ("done", ("discarded", "dead-lettered"), [1]),
        ("discarded", ("discarded", "dead-lettered"), []),
        ("dead-lettered", ("discarded", "dead-lettered"), []),
        ("done", ("done", "discarded"), []),
        ("dead-lettered", ("discarded",), [1]),
        ("discarded", (), [1]),
    ],
)
def test_the_spec_says_which_outcomes_leave_no_effect(
    outcome: str, no_effect: tuple[str, ...], skipped: list[int]
) -> None:
    """By default what was discarded, and what went to the dead letters."""
    lines = [assigned("m0"), processed("m0", 0), effect(0), processed("m0", 1, outcome=outcome), committed(2)]
    assert lost(lines, no_effect=no_effect) == skipped


def test_without_a_sink_its_own_word_is_all_there_is() -> None:
    """Nobody could know better."""
    assert lost([*SAID, committed(2)], sink="none") == []


@pytest.mark.parametrize(("outcome", "skipped"), [("ok", []), ("info", []), ("fail", [1])])
def test_what_nobody_knows_of_may_have_had_its_effect(outcome: str, skipped: list[int]) -> None:
    """The sink wrote it down and gave no answer (info): it is there; refused (fail), it is not."""
    assert lost([*SAID, effect(0), effect(1, outcome=outcome), committed(2)]) == skipped


KEYED = ("a", "a", "b")


@pytest.mark.parametrize(
    ("effects", "heard", "skipped"),
    [
        ("state", [1, 2], []),
        ("record", [1, 2], [0]),
        ("state", [0, 2], [1]),
        ("state", [0, 1], [2]),
    ],
    ids=["a later one of its key", "each record has its own", "an earlier one of its key", "of other keys only"],
)
def test_of_a_table_a_later_state_of_its_key_is_enough(effects: str, heard: list[int], skipped: list[int]) -> None:
    """What was written over need not be heard of."""
    lines = [assigned("m0"), handled("m0", 0, 1, 2), *map(effect, heard), committed(3)]
    assert lost(lines, effects=effects, records=KEYED) == skipped


def test_a_state_that_came_after_the_commit_came_too_late() -> None:
    """A crash before it would have lost the key's last state."""
    lines = [assigned("m0"), handled("m0", 0), *committed(1, by="m0"), after(1), effect(1)]
    settings = with_settings(sink="http", effects="state")
    assert [one["offset"] for one in judged("commit-ahead", lines, settings=settings, records=("a", "a"))] == [0]


def test_an_effect_before_its_line_stands_for_itself() -> None:
    """Committed between the effect and the line of its end: nothing was committed ahead."""
    lines = [assigned("m0"), delivered("m0", 0), effect(0), *committed(1, by="m0")]
    assert judged("commit-ahead", [*lines, after(1), processed("m0", 0)], settings=SINK) == []


def test_a_line_before_its_effect_does_not() -> None:
    """Said done, committed, and posted a second later: a crash in between would have lost it."""
    lines = [assigned("m0"), *handled("m0", 0), *committed(1, by="m0"), after(1), effect(0)]
    assert [one["offset"] for one in judged("commit-ahead", lines, settings=SINK)] == [0]


def test_the_last_act_of_a_killed_member_is_told_by_its_sink() -> None:
    """It could not print the end of record 1; the sink had heard of it."""
    lines = [assigned("m0"), *handled("m0", 0), effect(0), effect(1), committed(2, by="m0"), exited("m0", signal=9)]
    assert lost(lines) == []


def test_a_record_whose_line_was_lost_was_taken() -> None:
    """The sink heard of record 1 while its member had the partition: it was not passed over."""
    lines = [assigned("m0"), *handled("m0", 0), effect(1), *handled("m0", 2)]
    assert judged("poll-skip", lines, settings=SINK, records=3) == []


def test_a_record_that_others_had_done_before_was_passed_over() -> None:
    """Its effect is older than the ownership epoch: of this member nobody knows that it took it."""
    lines = [effect(1), after(1), assigned("m0"), *handled("m0", 0), *handled("m0", 2)]
    assert [one["offset"] for one in judged("poll-skip", lines, settings=SINK, records=3)] == [1]
