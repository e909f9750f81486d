"""Records that were passed over: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    delivered,
    effect,
    exited,
    finding,
    handled,
    judged,
    log_start,
    on,
    processed,
    revoked,
    said,
    started,
    undecided,
    with_settings,
)

NAME = "poll-skip"
M0 = assigned("m0")
JUMP = [M0, delivered("m0", 0), delivered("m0", 2)]
KILLED = exited("m0", signal=9)


@pytest.mark.parametrize(
    ("lines", "skips"),
    [
        ([M0, delivered("m0", 0), delivered("m0", 3)], [(1, 0, 3), (2, 0, 3)]),
        ([M0, delivered("m0", 0), delivered("m0", 2), delivered("m0", 4)], [(1, 0, 2), (3, 2, 4)]),
        ([M0, delivered("m0", 2), delivered("m0", 0), delivered("m0", 4)], [(3, 2, 4)]),
        ([M0, delivered("m0", 2)], []),
        ([on(1, M0), delivered("m0", 0), delivered("m0", 2)], []),
        ([M0, delivered("m0", 0), delivered("m0", 2), on(1, assigned("m1")), processed("m1", 1)], [(1, 0, 2)]),
        ([M0, delivered("m0", 0), processed("m0", 1), delivered("m0", 2)], []),
        ([*JUMP, M0, delivered("m0", 1)], [(1, 0, 2)]),
        ([*JUMP, revoked("m0"), processed("m0", 1)], [(1, 0, 2)]),
        ([*JUMP, on(1, delivered("m0", 1))], [(1, 0, 2)]),
        ([M0, delivered("m0", 0), on(1, assigned("m0")), on(1, delivered("m0", 2))], []),
    ],
    ids=[
        "two at once",
        "twice",
        "beyond the highest",
        "before the first one",
        "without an ownership epoch",
        "another member did it",
        "it says that it took it",
        "delivered in its next ownership epoch",
        "taken when it had been revoked",
        "the same offset of another partition",
        "across partitions",
    ],
)
def test_poll_skip_names_the_records_between_two_deliveries(
    lines: list[Line], skips: list[tuple[int, int, int]]
) -> None:
    """Between the highest one so far in its ownership epoch and the next one."""
    found = [one.attributes for one in finding(NAME, lines, records=5, partitions=2).instances]
    assert [(one["offset"], one["previous_offset"], one["next_offset"]) for one in found] == skips


def test_poll_skip_is_told_of_each_partition_with_its_own_records() -> None:
    """Both jumped over record 1; only one of the partitions still holds it."""
    lines = [assigned("m0", 0, 1), *handled("m0", 0, 2), on(1, delivered("m0", 0)), on(1, delivered("m0", 2))]
    found = finding(NAME, lines, records=3, partitions=2, control={1: None})
    assert [(one.partition, one.events) for one in found.instances] == [
        (1, ("consumer-m0-0#6", "consumer-m0-0#7", "observer#4"))
    ]


@pytest.mark.parametrize(
    ("starts", "found", "cases"),
    [([], 2, 0), ([1], 2, 0), ([2], 0, 1), ([3], 0, 0), ([2, 1], 0, 1), ([1, 2], 0, 1), ([0], 2, 0)],
    ids=["none", "up to where it was", "past it", "past all", "past it once", "past it at last", "the beginning"],
)
def test_poll_skip_is_undecided_above_a_log_start_that_overtook_it(starts: list[int], found: int, cases: int) -> None:
    """What lies below the start may have been deleted; what lies above was left out by the reset policy, perhaps."""
    lines = [M0, delivered("m0", 0), *(log_start(start) for start in starts), delivered("m0", 3)]
    told = finding(NAME, lines, records=4)
    assert (len(told.instances), sum(told.undecided.values())) == (found, cases)


def test_poll_skip_is_not_undecided_by_the_log_start_of_another_partition() -> None:
    """That one has lost its beginning."""
    lines = [M0, delivered("m0", 0), on(1, log_start(3)), delivered("m0", 2)]
    assert [one["offset"] for one in judged(NAME, lines, records=4, partitions=2)] == [1]


def test_poll_skip_overtaken_by_a_killed_member_has_one_reason() -> None:
    """It is undecided once, though both would do."""
    lines = [M0, delivered("m0", 0), log_start(2), delivered("m0", 3), KILLED]
    assert undecided(NAME, lines, records=4) == 1


@pytest.mark.parametrize(
    ("ends", "cases"),
    [
        ([after(0.49), KILLED], 1),
        ([after(0.491), KILLED], 0),
        ([exited("m0", code=1)], 0),
        ([exited("m0", signal=15)], 0),
        ([revoked("m0"), KILLED], 0),
        ([said("m0", "stopped"), KILLED], 1),
        ([assigned("m0"), KILLED], 0),
        ([exited("m1", signal=9)], 0),
        ([exited("m0", code=0), started("m0-1"), exited("m0-1", signal=9)], 0),
        ([], 0),
    ],
    ids=[
        "as long before as sources differ",
        "longer before",
        "it exited",
        "it was asked to go",
        "revoked before",
        "stopped before",
        "assigned anew before",
        "another member was killed",
        "its next incarnation was killed",
        "it lives",
    ],
)
def test_poll_skip_is_undecided_in_the_last_half_second_of_a_killed_member(ends: list[Line], cases: int) -> None:
    """That held the partition when it was killed."""
    found = finding(NAME, [*JUMP, *ends], records=3)
    assert (len(found.instances), sum(found.undecided.values())) == (1 - cases, cases)


@pytest.mark.parametrize(
    ("lines", "progress", "skips"),
    [
        ([processed("m1", 1), delivered("m0", 2)], "sink", []),
        ([processed("m1", 1), delivered("m0", 2)], "kafka", [1]),
        ([processed("m1", 1), delivered("m0", 2)], "transaction", [1]),
        ([effect(1), delivered("m0", 2)], "sink", []),
        ([delivered("m1", 1), delivered("m0", 2)], "sink", [1]),
        ([delivered("m0", 2), after(0.49), processed("m1", 1)], "sink", []),
        ([delivered("m0", 2), after(0.491), processed("m1", 1)], "sink", [1]),
        ([processed("m1", 1), delivered("m0", 3)], "sink", [2]),
        ([on(1, processed("m1", 1)), delivered("m0", 2)], "sink", [1]),
    ],
    ids=[
        "done before",
        "done before, and Kafka has its position",
        "done before, and its transactions have its position",
        "an effect before",
        "not done at all",
        "as long after as sources differ",
        "longer after",
        "and one more that nobody had done",
        "done in another partition",
    ],
)
def test_poll_skip_only_looks_broken_where_its_own_store_told_it_to_go_on(
    lines: list[Line], progress: str, skips: list[int]
) -> None:
    """Somebody who had lost the partition untold did the record; the owner looked that up, and went on behind it."""
    settings = with_settings(progress=progress)
    lines = [M0, on(1, assigned("m1")), delivered("m0", 0), *lines]
    found = finding(NAME, lines, records=5, partitions=2, settings=settings)
    assert [one.attributes["offset"] for one in found.instances] == skips
