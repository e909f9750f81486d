"""Effects beside lines: a sink tells of order and redeliveries, whatever members print; each of at most eight lines."""

from __future__ import annotations

import pytest

from group_lines import heartbeat, synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    finding,
    handled,
    judged,
    later,
    lost,
    owner,
    processed,
    revoked,
    started,
    with_settings,
)

Lines = list[Line | list[Line]]
SINK = with_settings(sink="http", delivery="at-most-once")
SILENT = with_settings(events="none", sink="http", delivery="at-most-once")
TO_TOPIC = with_settings(sink="topic")
SILENT_TO_TOPIC = with_settings(events="none", sink="topic")
ALIKE = ["a"] * 4
GIVEN = [synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9)]  # fetched all that there is
TAKEN: Lines = [owner("m1"), synced("m1", 0)]


def by(member: str, record: int, *, outcome: str = "ok") -> Line:
    """The sink hears of a record from that member."""
    return effect(record, outcome=outcome, member=member)


def output(record: int, at: int) -> Line:
    """A record's output in a topic, at that offset: it names no member."""
    return effect(record, topic="out", partition=0, offset=at)


def reordered(lines: Lines, **frame: object) -> list[tuple[object, ...]]:
    """Returns offset, later offset and same_key of what was reordered; the records lay there before the trial."""
    frame = {"settings": SINK, "records": ALIKE, "old": True} | frame
    found = judged("reordered-key", lines, **frame)
    return [(one["offset"], one["later_offset"], one["same_key"]) for one in found]


def again(name: str, lines: Lines, **frame: object) -> list[int]:
    """Returns the offsets of what was redelivered."""
    return [one["offset"] for one in judged(name, lines, **{"settings": SINK, "records": ALIKE} | frame)]


# --- order -----------------------------------------------------------------------------------------------------------


def test_one_printed_line_does_not_switch_the_sink_off() -> None:
    """The later record reached it first, and of neither a line was printed."""
    assert reordered([assigned("m0"), *handled("m0", 0), by("m0", 0), by("m0", 2), by("m0", 1)]) == [(1, 2, True)]


def test_lines_in_order_do_not_cover_effects_that_are_not() -> None:
    """Printed 0, 1; posted 1, 0."""
    assert reordered([assigned("m0"), *handled("m0", 0, 1), by("m0", 1), by("m0", 0)]) == [(0, 1, True)]


def test_lines_and_effects_in_order_are_no_reordering() -> None:
    """One after the other, by both."""
    lines = [assigned("m0"), delivered("m0", 0), by("m0", 0), processed("m0", 0)]
    assert reordered([*lines, delivered("m0", 1), by("m0", 1), processed("m0", 1)]) == []


def test_a_record_that_both_show_is_one_finding() -> None:
    """Printed and posted in the same wrong order."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), by("m0", 1), processed("m0", 1), by("m0", 0)]
    assert reordered([*lines, processed("m0", 0)]) == [(0, 1, True)]


def test_an_effect_that_shows_more_than_a_line_counts() -> None:
    """By lines 0 came after 1, of another key; by its effect after 2, of its own."""
    lines = [assigned("m0"), delivered("m0", 0), delivered("m0", 1), processed("m0", 1), processed("m0", 0)]
    assert reordered([*lines, *handled("m0", 2), by("m0", 2), by("m0", 0)], records=["a", "b", "a"]) == [(0, 2, True)]


def test_workers_that_keep_the_order_of_keys_post_in_any_order() -> None:
    """0 and 2 are of one key, 1 of another: none is of the same key."""
    lines = [assigned("m0"), *handled("m0", 0, 1, 2), by("m0", 1), by("m0", 0), by("m0", 2)]
    assert reordered(lines, records=["a", "b", "a"]) == [(0, 1, False)]


def test_a_post_that_is_tried_again_is_no_reordering() -> None:
    """Nobody told m0 that it had arrived."""
    assert reordered([assigned("m0"), *handled("m0", 0), by("m0", 0, outcome="info"), by("m0", 0), by("m0", 1)]) == []


def test_a_rewind_is_no_reordering_of_effects() -> None:
    """m1 begins again where it was told to: first effects count."""
    lines = [assigned("m0"), by("m0", 0), by("m0", 1), revoked("m0"), assigned("m1"), *handled("m1", 0), by("m1", 0)]
    assert reordered([*lines, by("m1", 1)]) == []


def test_an_effect_whose_id_is_of_two_records_tells_no_order() -> None:
    """The log holds 0 once more behind 1 (its producer had sent it again): of which of the two it was nobody knows."""
    lines: Lines = [assigned("m0"), *handled("m0", 0, 1), by("m0", 0), by("m0", 1), *handled("m0", 2), by("m0", 0)]
    twice = {"records": ALIKE[:3], "control": {2: {"id": "r0"}}}
    assert reordered(lines, **twice) == again("redelivered", lines, **twice) == []


def test_states_of_a_table_are_in_the_order_of_lines() -> None:
    """A table may be told of its keys in any order: as before."""
    lines = [assigned("m0"), *handled("m0", 0, 1), by("m0", 1), by("m0", 0)]
    assert reordered(lines, settings=with_settings(sink="http", effects="state")) == []


# --- what was lost untold ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [[], [revoked("m0")]], ids=["still open", "told by its callback"])
def test_what_a_frozen_member_finishes_is_no_reordering(end: Lines) -> None:
    """m0 has 1 in hand when m1 gets the partition and goes on at 2; m0 wakes."""
    lines: Lines = [assigned("m0"), delivered("m0", 1), owner("m1"), assigned("m1"), *handled("m1", 2), by("m1", 2)]
    assert reordered([*lines, *end, by("m0", 1), processed("m0", 1)]) == []


def test_what_a_member_posts_after_its_callback_is_not_excused() -> None:
    """Nothing was in its hand when it was told, 1.6 s before."""
    lines: Lines = [assigned("m0"), owner("m1"), revoked("m0"), assigned("m1"), *handled("m1", 2), by("m1", 2)]
    assert reordered([*lines, after(1.6), *handled("m0", 0), by("m0", 1)]) == [(0, 2, True), (1, 2, True)]


KILLED = exited("m0", signal=9, asked="kill")
WOKE: Lines = [assigned("m0"), *handled("m0", 0), delivered("m0", 1), owner("m1"), assigned("m1"), *handled("m1", 2)]


@pytest.mark.parametrize(
    ("end", "late"),
    [
        ([lost("m0"), after(1.6), by("m0", 1), KILLED], []),
        ([lost("m0"), after(1.6), by("m0", 1), exited("m0", code=1, asked="no")], []),
        ([lost("m0"), after(1.6), by("m0", 1), exited("m0", code=0, asked="stop")], [1]),
        ([lost("m0"), after(1.6), by("m0", 1), delivered("m0", 3), KILLED], [1]),
        ([revoked("m0"), after(1.6), by("m0", 1), KILLED], [1]),
        ([lost("m0"), KILLED, after(1.6), started("m0-1"), by("m0", 1)], [1]),
        ([lost("m0"), KILLED, later(by("m0", 1), 500_000_000)], []),
        ([lost("m0"), KILLED, later(by("m0", 1), 500_000_001)], [1]),
        ([lost("m0"), after(1.6), by("m0", 0), KILLED], [0]),
    ],
    ids=[
        "killed",
        "crashed",
        "stopped",
        "went on",
        "revoked",
        "after its death",
        "as long after as sources differ",
        "longer after",
        "had not in hand",
    ],
)
def test_what_it_had_in_hand_when_it_was_lost_it_may_finish_and_go_down(end: Lines, late: list[int]) -> None:
    """It posts 1, and goes down before it can print that."""
    assert reordered([*WOKE, by("m1", 2), *end]) == [(offset, 2, True) for offset in late]


def test_what_it_fetched_though_told_is_not_excused_by_its_death() -> None:
    """Its heartbeat was refused; it fetched 2, began it, posted it, and was killed."""
    begun: Lines = [fetched("m0", 0), assigned("m0"), *handled("m0", 0), owner("m1"), assigned("m1"), *handled("m1", 3)]
    told: Lines = [by("m1", 3), heartbeat("m0", error=25), after(1.2), fetched("m0", 2), delivered("m0", 2)]
    assert reordered([*begun, *told, lost("m0"), after(1.6), by("m0", 2), KILLED]) == [(2, 3, True)]


def test_a_window_is_that_of_the_member_that_made_the_effect() -> None:
    """m0 lost the partition untold; it is m1 that posts 2 before 1."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), owner("m1"), assigned("m1"), by("m1", 2), by("m1", 1)]
    assert reordered(lines) == [(1, 2, True)]


def test_a_silent_member_finishes_what_it_had_fetched() -> None:
    """It was frozen with 1 and 2 in hand, and goes on with them though its heartbeat tells it of the loss."""
    lines: Lines = [*GIVEN, *TAKEN, by("m1", 3), heartbeat("m0", error=25), after(2), by("m0", 1), by("m0", 2)]
    assert reordered(lines, settings=SILENT) == []


def test_a_silent_member_finishes_it_after_it_has_joined_again() -> None:
    """Its client joined behind its back, and was given nothing."""
    lines: Lines = [*GIVEN, *TAKEN, by("m1", 3), synced("m0"), after(2), by("m0", 1), by("m0", 2)]
    assert reordered(lines, settings=SILENT) == []


def test_a_silent_member_is_not_excused_for_what_it_fetched_though_told() -> None:
    """A second and more after it was told it fetches from 2 on."""
    told: Lines = [heartbeat("m0", error=25), after(1.2), fetched("m0", 2, size_bytes=9)]
    assert reordered([*GIVEN, *TAKEN, by("m1", 3), *told, by("m0", 2)], settings=SILENT) == [(2, 3, True)]


def test_a_silent_member_that_lost_nothing_is_not_excused() -> None:
    """m1 has the partition, m0 had lost it: m1 posts in the wrong order."""
    assert reordered([*GIVEN, *TAKEN, by("m1", 3), by("m1", 1)], settings=SILENT) == [(1, 3, True)]


def test_a_silent_member_cannot_have_had_what_came_after_its_last_fetch() -> None:
    """The records were written only then (in this history, at its end)."""
    lines: Lines = [*GIVEN, *TAKEN, by("m1", 3), synced("m0"), after(2), by("m0", 1)]
    assert reordered(lines, settings=SILENT, old=False) == [(1, 3, True)]


def test_in_a_topic_the_output_of_whoever_was_frozen_is_excused() -> None:
    """It names no member: m0 had fetched it, and lost the partition untold."""
    lines: Lines = [*GIVEN, *TAKEN, output(3, 7), synced("m0"), output(1, 8)]
    assert reordered(lines, settings=SILENT_TO_TOPIC) == []


def test_in_a_topic_whoever_is_still_frozen_cannot_have_had_what_came_after_its_last_fetch() -> None:
    """The records were written only then (in this history, at its end): it is m1 that writes in the wrong order."""
    lines: Lines = [*GIVEN, *TAKEN, after(1), output(3, 7), output(1, 8)]
    assert reordered(lines, settings=SILENT_TO_TOPIC, old=False) == [(1, 3, True)]
    stopped: Lines = [*GIVEN, *TAKEN, fault("broker-kill", None), output(3, 7), output(1, 8)]
    assert reordered(stopped, settings=SILENT_TO_TOPIC, old=False) == []


def test_in_a_topic_the_output_of_a_member_that_tells_of_it_is_not_excused() -> None:
    """m0 lost the partition untold, and it is m1 that says that it had 1."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), owner("m1"), assigned("m1"), *handled("m1", 2, 1)]
    told = reordered([*lines, output(2, 7), output(1, 8)], settings=TO_TOPIC)
    assert told == [(1, 2, True)]
    quiet: Lines = [assigned("m0"), *handled("m0", 0), owner("m1"), assigned("m1"), *handled("m1", 1, 2)]
    assert reordered([*quiet, output(2, 7), output(1, 8)], settings=TO_TOPIC) == [(1, 2, True)]


# --- redeliveries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "offsets"),
    [
        ([*handled("m0", 0), by("m0", 0)], []),
        ([*handled("m0", 0), by("m0", 0), by("m0", 0)], [0]),
        ([*handled("m0", 0), by("m0", 0), by("m0", 0), by("m0", 0)], [0, 0]),
        ([*handled("m0", 0), by("m0", 0), *handled("m0", 0), by("m0", 0)], [0]),
        ([*handled("m0", 0), *handled("m0", 1), by("m0", 2), by("m0", 2)], [2]),
        ([*handled("m0", 0), by("m0", 0, outcome="info"), by("m0", 0)], []),
        ([*handled("m0", 0), by("m0", 0, outcome="fail"), by("m0", 0)], []),
        ([*handled("m0", 0), by("m0", 0), by("m1", 0)], [0]),
        ([*handled("m0", 0), *handled("m0", 0), by("m1", 0), by("m1", 0)], [0, 0]),
        ([*handled("m0", 0), by("m1", 0)], []),
    ],
    ids=[
        "told once, done once",
        "told once, done twice",
        "told once, done three times",
        "told twice, done twice",
        "told of others only",
        "nobody told it",
        "refused",
        "done by another one too",
        "told by another one",
        "told by one, done by another",
    ],
)
def test_further_effects_beyond_what_lines_tell_are_redeliveries(lines: Lines, offsets: list[int]) -> None:
    """One finding each, and none for a handling that a line tells of."""
    assert again("redelivered", [assigned("m0"), *lines]) == offsets


def test_outputs_that_name_no_member_are_told_of_by_any() -> None:
    """m0 and m1 say that they had the record, and it is there twice; a third one is one too many."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), revoked("m0"), assigned("m1"), *handled("m1", 0)]
    assert again("redelivered", [*lines, output(0, 7), output(0, 8)], settings=TO_TOPIC) == [0]
    assert again("redelivered", [*lines, output(0, 7), output(0, 8), output(0, 9)], settings=TO_TOPIC) == [0, 0]


TOLD_ONE: Lines = [assigned("m0"), *handled("m0", 0), by("m0", 0), revoked("m0"), answered("m1", 1), assigned("m1")]


def test_a_further_effect_below_the_floor_of_its_member_is_illegal() -> None:
    """m1 never had the partition before, and was told to begin at 1."""
    assert again("illegal-redelivery", [*TOLD_ONE, by("m1", 0)]) == [0]
    assert again("redelivered", [*TOLD_ONE, by("m1", 0)]) == []


def test_a_further_effect_of_the_member_before_is_not_the_new_ones() -> None:
    """It is m0 that posts again what it had."""
    assert again("illegal-redelivery", [*TOLD_ONE, by("m0", 0)]) == []
    assert again("redelivered", [*TOLD_ONE, by("m0", 0)]) == [0]


def test_a_further_effect_of_a_member_that_had_the_partition_before_is_not_illegal() -> None:
    """m0 may have had it since then: nobody saw what it fetches."""
    lines: Lines = [*TOLD_ONE, revoked("m1"), answered("m0", 1), assigned("m0")]
    assert again("illegal-redelivery", [*lines, by("m0", 0)]) == []


def test_a_further_effect_is_proved_by_the_possession_of_its_member() -> None:
    """Somebody whose process was never said to start is given the next partition: that is nothing to m1's."""
    lines: Lines = [assigned("m1"), *handled("m1", 0), by("m1", 0), assigned("m0-1", 1), by("m1", 0)]
    found = finding("redelivered", lines, settings=SINK, records=ALIKE, partitions=2)
    assert [one.events for one in found.instances] == [("sink#1", "consumer-m1-0#1")]


def test_states_of_a_table_are_done_again_as_lines_tell() -> None:
    """A table is told of a key as often as it pleases."""
    lines: Lines = [assigned("m0"), *handled("m0", 0), by("m0", 0), by("m0", 0)]
    assert again("redelivered", lines, settings=with_settings(sink="http", effects="state")) == []
