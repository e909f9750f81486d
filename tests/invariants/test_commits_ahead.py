"""Commits that ran ahead of the work: literal histories, each of at most eight lines."""

from __future__ import annotations

import pytest

from histories import (
    Line,
    after,
    assigned,
    commit,
    committed,
    delivered,
    effect,
    exited,
    finding,
    handled,
    judged,
    on,
    own_time,
    processed,
    revoked,
    undecided,
    with_settings,
)

NAME = "commit-ahead"
M0 = assigned("m0")


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        ([M0, delivered("m0", 0), delivered("m0", 1), commit("m0", 2)], [(2, 1)]),
        ([M0, delivered("m0", 0), delivered("m0", 1), commit("m0", 2), after(1), effect(1)], [(2, 0)]),
        ([M0, delivered("m0", 0), commit("m0", 1), delivered("m0", 1), commit("m0", 2)], [(1, 0), (2, 1)]),
        ([M0, delivered("m0", 0), commit("m0", 1), commit("m0", 1)], [(1, 0)]),
        ([M0, commit("m0", 0), delivered("m0", 0), commit("m0", 1), commit("m0", 0, "ok"), handled("m0", 1)], [(1, 0)]),
        ([M0, handled("m0", 0), commit("m0", 1), delivered("m0", 1), commit("m0", 1)], []),
        ([M0, delivered("m0", 0), delivered("m0", 1), processed("m0", 0), commit("m0", 1)], []),
        ([M0, delivered("m0", 0), M0, commit("m0", 1)], []),
        ([M0, commit("m0", 1), M0, delivered("m0", 0), commit("m0", 1, "ok"), processed("m0", 0)], []),
        ([M0, delivered("m0", 0), commit("m0", 1, "ok"), processed("m0", 0)], [(1, 0)]),
        ([M0, delivered("m0", 0), commit("m0", 1, "fail"), processed("m0", 0)], []),
        ([delivered("m0", 0), commit("m0", 1), processed("m0", 0)], []),
        ([M0, on(1, M0), delivered("m0", 0), on(1, commit("m0", 1)), processed("m0", 0)], []),
        ([M0, delivered("m0", 0), revoked("m0"), assigned("m1"), commit("m1", 1), processed("m0", 0)], []),
    ],
    ids=[
        "of two in hand",
        "of two in hand, and the sink hears of one later",
        "twice",
        "asked for twice",
        "the answer to an earlier one is none of its own",
        "asked for again",
        "done below it",
        "delivered in the ownership epoch before",
        "the answer to one of the ownership epoch before",
        "a file that tells of answers only",
        "refused",
        "without an ownership epoch",
        "another partition",
        "another member",
    ],
)
def test_commit_ahead_by_own_word_is_what_a_possession_asked_for(
    lines: list[Line | list[Line]], ahead: list[tuple[int, int]]
) -> None:
    """Before it had done what it was delivered below it since its last own commit."""
    found = judged(NAME, lines, partitions=2)
    assert [(one["committed_offset"], one["offset"]) for one in found] == ahead


def test_commit_ahead_by_own_word_is_proved_by_the_record_that_was_done_last() -> None:
    """Both were done since; or one of them never."""
    begun = [M0, delivered("m0", 0), delivered("m0", 1), commit("m0", 2)]
    done = finding(NAME, [*begun, processed("m0", 1), processed("m0", 0)])
    assert [one.events for one in done.instances] == [tuple(f"consumer-m0-0#{seq}" for seq in (2, 4, 6))]
    never = finding(NAME, [*begun, processed("m0", 0)])
    assert [one.events for one in never.instances] == [("consumer-m0-0#3", "consumer-m0-0#4")]


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        ([committed(1), after(0.49), processed("m0", 0)], []),
        ([committed(1), after(0.491), processed("m0", 0)], [(1, 0)]),
        ([committed(1), processed("m0", 1)], [(1, 0)]),
        ([processed("m0", 0), committed(2), after(1), processed("m0", 1)], [(2, 1)]),
        ([committed(2), after(1), processed("m0", 1), processed("m0", 0)], [(2, 0)]),
        ([committed(2), after(1), processed("m0", 0)], [(2, 1)]),
        ([committed(1), after(1), committed(1), after(1), processed("m0", 0)], [(1, 0)]),
        ([committed(2), committed(1), committed(2), after(1), *handled("m0", 0, 1)], [(2, 1)]),
        ([committed(1), committed(2), after(1), *handled("m0", 0, 1)], [(1, 0), (2, 1)]),
        ([committed(1), effect(0)], []),
        ([committed(1), after(1), effect(0)], [(1, 0)]),
        ([[on(1, line) for line in committed(1)], processed("m0", 0)], []),
        ([commit("m0", 1), committed(1), after(1), processed("m0", 0)], [(1, 0)]),
        ([commit("m0", 1), committed(1), after(1), processed("m0", 1)], [(1, 0)]),
    ],
    ids=[
        "done as long after it as sources differ",
        "done longer after it",
        "never done",
        "the second one",
        "the one that was done last",
        "the one that was never done",
        "committed twice",
        "fallen and back",
        "one after the other",
        "its effect just after it",
        "its effect long after it",
        "committed in another partition",
        "asked for by the member and done since",
        "asked for by the member and never done",
    ],
)
def test_commit_ahead_by_the_offsets_log_is_what_raised_the_position_past_a_record(
    lines: list[Line | list[Line]], ahead: list[tuple[int, int]]
) -> None:
    """That was done later than sources differ, or never."""
    found = [one for one in finding(NAME, [M0, *lines], records=2, partitions=2).instances if one.partition == 0]
    told = [(one.attributes["committed_offset"], one.attributes["offset"], one.attributes["seen_by"]) for one in found]
    assert told == [(value, offset, "offsets log") for value, offset in ahead]


def test_commit_ahead_by_the_offsets_log_is_proved_by_record_commit_and_completion() -> None:
    """An operator's is the operator's."""
    lines = [M0, committed(1, by="operator"), after(1), processed("m0", 0), committed(2, by="m0")]
    found = finding(NAME, lines)
    assert [(one.attributes["by_operator"], one.events) for one in found.instances] == [
        (True, ("observer#1", "offsets#0", "consumer-m0-0#2")),
        (False, ("observer#2", "offsets#1")),
    ]


def test_commit_ahead_by_own_word_comes_before_the_offsets_log() -> None:
    """One finding a position, and the exact one of two."""
    lines = [M0, delivered("m0", 0), commit("m0", 1), committed(1), after(1)]
    assert [one["seen_by"] for one in judged(NAME, lines)] == ["own word"]


def test_commit_ahead_is_undecided_once_a_position() -> None:
    """Two that a killed member made after its last word; another one it told of itself, and is found."""
    killed = [committed(1, by="m0"), committed(2, by="m0"), exited("m0", signal=9)]
    assert undecided(NAME, [M0, delivered("m0", 0), *killed]) == 2
    told = finding(NAME, [M0, delivered("m0", 0), commit("m0", 1), *killed])
    assert ([one.attributes["committed_offset"] for one in told.instances], sum(told.undecided.values())) == ([1], 1)


def test_commit_ahead_in_a_transaction_is_of_what_was_never_done() -> None:
    """Of its two records the second has its effect late, the first has none."""
    settings = with_settings(progress="transaction", delivery="exactly-once", sink="topic")
    lines = [committed(2, producer=7), after(2), effect(1)]
    assert [one["offset"] for one in judged(NAME, lines, settings=settings)] == [0]


def test_commit_ahead_is_told_of_each_partition() -> None:
    """The same position in both; the record was done in the first."""
    both = [M0, on(1, M0), *handled("m0", 0), on(1, delivered("m0", 0)), commit("m0", 1), on(1, commit("m0", 1))]
    found = finding(NAME, both, partitions=2)
    assert [(one.partition, one.attributes["offset"]) for one in found.instances] == [(1, 0)]


def test_what_the_sink_had_heard_of_was_done_though_its_line_comes_later() -> None:
    """The effect came 0.6 s before the member asked for the commit, `processed` after it; another came after both."""
    begun = [M0, delivered("m0", 0), effect(0), after(0.6), commit("m0", 1), *committed_by_m0(1), processed("m0", 0)]
    assert judged(NAME, begun, settings=with_settings(sink="http"), records=1) == []
    late = [M0, delivered("m0", 0), commit("m0", 1), *committed_by_m0(1), after(0.6), effect(0), processed("m0", 0)]
    assert [one["committed_offset"] for one in judged(NAME, late, settings=with_settings(sink="http"), records=1)] == [
        1
    ]


def committed_by_m0(value: int) -> list[Line]:
    lines = committed(value, by="m0")
    return lines if isinstance(lines, list) else [lines]


def test_a_line_stands_for_no_effect_that_the_sink_heard_of_later() -> None:
    """It asked in time and says that it had done it; the sink, which writes down at once, heard of it 30 s later."""
    lines = [M0, *handled("m0", 0), commit("m0", 1), *committed_by_m0(1), after(30), effect(0)]
    found = judged(NAME, lines, settings=with_settings(sink="http"), records=1)
    assert [one["committed_offset"] for one in found] == [1]


# --- an output topic whose broker says when it appended ------------------------------------------------------------

TO_TOPIC = with_settings(sink="topic")


def output(record: int, *, read_s: float = 0.0, appended: bool = True, at: int = 7) -> Line:
    """A record's output in a topic, read so long after its broker appended it (and says so)."""
    line = effect(record, topic="out", partition=0, offset=at)
    return own_time(line, read_s) if appended else line


def told_early(*then: Line | list[Line]) -> list[Line | list[Line]]:
    """m0 says that it has done record 0, asks for its commit, and the commit takes effect."""
    return [M0, *handled("m0", 0), commit("m0", 1), *committed(1, by="m0"), *then]


@pytest.mark.parametrize(("seconds", "ahead"), [(0.55, [1]), (0.4, [])])
def test_a_line_stands_for_no_output_whose_broker_says_when_it_came(seconds: float, ahead: list[int]) -> None:
    """Appended half a second or more after the durable commit, whatever was printed before it."""
    found = judged(NAME, told_early(after(seconds), output(0)), settings=TO_TOPIC, records=1)
    assert [one["committed_offset"] for one in found] == ahead


def test_an_output_counts_from_its_append_however_late_it_was_read() -> None:
    """Read three seconds after the commit, and appended before it: no line of its member is needed."""
    lines = [M0, *committed(1, by="m0"), after(3), output(0, read_s=3.1)]
    assert judged(NAME, lines, settings=TO_TOPIC, records=1) == []


def test_a_row_counts_from_its_commit_in_the_database_however_late_it_was_read() -> None:
    """As an output does from its append; half a second after the commit of the position it is too late."""
    table = with_settings(sink="postgres")
    lines = [M0, *committed(1, by="m0"), after(3)]
    assert judged(NAME, [*lines, own_time(effect(0), 3.1)], settings=table, records=1) == []
    late = judged(NAME, [*lines, own_time(effect(0), 2.0)], settings=table, records=1)
    assert [one["committed_offset"] for one in late] == [1]


def test_a_line_stands_for_an_output_of_which_nobody_says_when_it_came() -> None:
    """An older history: it may have been read late."""
    assert judged(NAME, told_early(after(3), output(0, appended=False)), settings=TO_TOPIC, records=1) == []


def test_a_line_stands_for_an_output_in_a_transaction() -> None:
    """Positions may be handed in before the outputs: both take effect at once."""
    settings = with_settings(sink="topic", progress="transaction", delivery="exactly-once")
    assert judged(NAME, told_early(after(3), output(0)), settings=settings, records=1) == []


def test_an_output_is_not_later_than_it_was_read() -> None:
    """The broker's clock is ahead by two seconds: what was read before the commit was there before it."""
    lines = [M0, output(0, read_s=-2), after(0.1), *committed(1, by="m0")]
    assert judged(NAME, lines, settings=TO_TOPIC, records=1) == []


def test_of_two_outputs_of_a_record_the_first_one_counts() -> None:
    """It was appended before the commit, the other one long after it."""
    lines = [M0, output(0), *committed(1, by="m0"), after(3), output(0, at=8)]
    assert judged(NAME, lines, settings=TO_TOPIC, records=1) == []


def test_what_leaves_no_output_is_done_when_its_member_says_so() -> None:
    """It was discarded, and the next record's output comes in time."""
    lines = [M0, delivered("m0", 0), processed("m0", 0, outcome="discarded"), commit("m0", 1), *committed(1, by="m0")]
    assert judged(NAME, [*lines, output(1)], settings=TO_TOPIC, records=2) == []
