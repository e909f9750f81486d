"""Who only says that it has a partition, which the group's log never gave it, excuses nobody who has it."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from group_lines import synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    delivered,
    effect,
    fault,
    fetched,
    healed,
    history,
    owner,
    processed,
    with_settings,
)
from kafka_trial.judge.judge import judge_events
from lab.naive.checker import judge

Lines = list[Line | list[Line]]
RULES = ("redelivered", "illegal-redelivery", "nonmonotonic-poll", "retried", "poll-skip")
SINK = with_settings(sink="http")
GIVEN: Lines = [owner("m0"), synced("m0", 0), assigned("m0")]
FETCHES = [fetched("m1", 0, size_bytes=9)]


def found(lines: Lines) -> dict[str, list[int]]:
    """Returns the offset of what each rule finds, and sees that both judges find it."""
    events = history(lines, records=3)
    told, naive = judge_events(events, SINK).findings, judge(events, asdict(SINK))
    cases = {name: [one.attributes["offset"] for one in told[name].instances] for name in RULES}
    assert {name: sorted(one[2] for one in naive.anomalies[name]) for name in RULES} == cases
    return {name: some for name, some in cases.items() if some}


def left_undecided(lines: Lines) -> dict[str, int]:
    """Returns how many cases of each rule are undecided, as both judges say."""
    events = history(lines, records=3)
    told, naive = judge_events(events, SINK).findings, judge(events, asdict(SINK))
    cases = {name: sum(told[name].undecided.values()) for name in RULES if told[name].undecided}
    assert {name: naive.undecided[name] for name in RULES if naive.undecided[name]} == cases
    return cases


def below_the_floor(*meanwhile: Line) -> Lines:
    """m0 is told to start at 1, begins to fetch at 0, and record 0 has its effect again."""
    begun = [answered("m0", 1), fetched("m0", 0, size_bytes=9), effect(0), effect(1)]
    return [*GIVEN, *begun, *meanwhile, after(2), effect(0), fetched("m0", 2)]


def test_what_is_done_again_while_another_one_claims_the_partition_is_its_owners() -> None:
    """m1 never fetched it."""
    assert found(below_the_floor()) == {"illegal-redelivery": [0]}
    assert found(below_the_floor(assigned("m1"))) == {"illegal-redelivery": [0]}


@pytest.mark.parametrize(
    ("claim", "false"),
    [
        ([assigned("m1"), *FETCHES], True),
        ([assigned("m1"), owner("m1", epoch=2)], False),
        ([assigned("m1"), owner("m9", epoch=2)], False),
        ([fault("broker-kill", None), healed(), assigned("m1")], True),
    ],
    ids=["it fetched", "it was given it", "nobody knows to whom", "a request may be missing"],
)
def test_who_may_have_had_the_record_may_have_done_it_again(claim: Lines, *, false: bool) -> None:
    """Whose effect it was nobody knows: a false claim acquits no owner."""
    lines = [line for line in claim if isinstance(line, Line)]
    assert found(below_the_floor(*lines)) == {"redelivered": [0]}
    assert left_undecided(below_the_floor(*lines)) == ({"illegal-redelivery": 1} if false else {})


def tried_again(*meanwhile: Line) -> Lines:
    """m0 has records 0 and 1 in hand, and begins 0 again when both had their effects."""
    begun = [fetched("m0", 0, size_bytes=9), delivered("m0", 0), delivered("m0", 1), *meanwhile, after(2)]
    return [*GIVEN, *begun, effect(0), effect(1), after(2), delivered("m0", 0), processed("m0", 0), processed("m0", 1)]


def test_effects_while_another_one_claims_the_partition_are_of_its_owners_work() -> None:
    """What is begun again when a later record had its effect is no retry."""
    again = {"nonmonotonic-poll": [0], "redelivered": [0]}
    assert found(tried_again()) == again
    assert found(tried_again(assigned("m1"))) == again
    assert found(tried_again(assigned("m1"), *FETCHES)) == {"retried": [0]}
    assert left_undecided(tried_again(assigned("m1"), *FETCHES)) == {"redelivered": 1, "nonmonotonic-poll": 1}
    assert left_undecided(tried_again(assigned("m1"), owner("m1", epoch=2), *FETCHES)) == {}


def passed_over(*meanwhile: Line, by: str | None) -> Lines:
    """m0 passes over record 1, which has its effect by a member, or by one that is not named."""
    begun = [fetched("m0", 0, size_bytes=9), delivered("m0", 0), processed("m0", 0), delivered("m0", 2)]
    named = {} if by is None else {"member": by}
    return [*GIVEN, *begun, *meanwhile, after(1), effect(1, **named), effect(0), effect(2), processed("m0", 2)]


def test_a_record_that_another_member_took_was_passed_over_by_its_owner() -> None:
    """m1, which was never given the partition, fetches it and does record 1."""
    skipped = {"poll-skip": [1]}
    assert found(passed_over(*FETCHES, by="m1")) == skipped
    assert found(passed_over(assigned("m1"), *FETCHES, by="m1")) == skipped


@pytest.mark.parametrize(
    ("meanwhile", "by"),
    [
        (FETCHES, "m0"),
        (FETCHES, None),
        ([], "m1"),
        ([owner("m1", epoch=2), *FETCHES], "m1"),
        ([owner("m9", epoch=2), *FETCHES], "m1"),
    ],
    ids=["its own", "nobody's", "handed over to it", "it was given it", "nobody knows to whom"],
)
def test_an_effect_that_may_be_the_owners_shows_that_its_line_was_lost(meanwhile: list[Line], by: str | None) -> None:
    """Or m0 may have handed the record over."""
    assert "poll-skip" not in found(passed_over(*meanwhile, by=by))
