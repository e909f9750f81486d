"""Consumers that print nothing: what a sink and the brokers show of their order, redeliveries and end."""

from __future__ import annotations

import pytest

from group_lines import synced
from histories import (
    Line,
    after,
    answered,
    assigned,
    committed,
    effect,
    fetched,
    finding,
    handled,
    judged,
    not_judged,
    phase,
    rewritten,
    with_settings,
)

SINK = with_settings(events="none", sink="http")
TABLE = with_settings(events="none", sink="postgres")
TOPIC_SINK = with_settings(events="none", sink="topic")
NOTHING = with_settings(events="none", sink="none", delivery="unclaimed")
ALIKE = ["a", "a", "a"]
M0 = [synced("m0", 0), answered("m0", 0), fetched("m0", 0, size_bytes=9)]


def to_topic(record: int, at: int, *, partition: int = 0) -> Line:
    """A record's output in a topic, at that offset."""
    return effect(record, topic="out", partition=partition, offset=at)


def test_effects_in_order_are_no_reordering() -> None:
    """One after the other."""
    assert judged("reordered-key", [*M0, effect(0), effect(1)], records=ALIKE[:2], settings=SINK) == []


def test_the_first_effects_of_a_key_tell_its_order() -> None:
    """The later record reached the sink first."""
    found = judged("reordered-key", [*M0, effect(1), effect(0)], records=ALIKE[:2], settings=SINK)
    assert [(one["offset"], one["later_offset"], one["same_key"]) for one in found] == [(0, 1, True)]


def test_effects_of_other_keys_are_not_of_the_same_key() -> None:
    """Order is claimed per key, or of the partition: the claim decides."""
    found = judged("reordered-key", [*M0, effect(1), effect(0)], records=["a", "b"], settings=SINK)
    assert [one["same_key"] for one in found] == [False]


def test_a_redelivery_is_no_reordering_of_effects() -> None:
    """Only the first effect of each record counts."""
    lines = [*M0, effect(0), effect(1), effect(0), effect(1)]
    assert judged("reordered-key", lines, records=ALIKE[:2], settings=SINK) == []


def test_in_an_output_topic_its_own_offsets_tell_the_order() -> None:
    """However late, or in which turn, they were read."""
    lines = [*M0, to_topic(1, 8), to_topic(0, 7)]
    assert judged("reordered-key", lines, records=ALIKE[:2], settings=TOPIC_SINK) == []
    swapped = [*M0, to_topic(0, 8), to_topic(1, 7)]
    assert len(judged("reordered-key", swapped, records=ALIKE[:2], settings=TOPIC_SINK)) == 1


def test_between_partitions_of_an_output_topic_there_is_no_order() -> None:
    """They are read side by side."""
    lines = [*M0, to_topic(1, 7), to_topic(0, 9, partition=1)]
    assert judged("reordered-key", lines, records=ALIKE[:2], settings=TOPIC_SINK) == []


def test_a_further_effect_is_a_redelivery() -> None:
    """At the floor or above: legal under at-least-once."""
    lines = [*M0, effect(0), synced("m0"), synced("m1", 0), answered("m1", 0), fetched("m1", 0, size_bytes=9)]
    found = judged("redelivered", [*lines, effect(0)], settings=SINK)
    assert [(one["offset"], one["floor"]) for one in found] == [(0, 0)]
    assert judged("illegal-redelivery", [*lines, effect(0)], settings=SINK) == []


def test_a_further_effect_below_the_floor_is_illegal() -> None:
    """m1 was answered 1, and asked for records from 0 on."""
    lines = [*M0, effect(0), synced("m0"), synced("m1", 0), answered("m1", 1), fetched("m1", 0, size_bytes=9)]
    found = judged("illegal-redelivery", [*lines, effect(0)], settings=SINK)
    assert [(one["offset"], one["floor"]) for one in found] == [(0, 1)]


def test_a_further_effect_of_the_member_that_lost_the_partition_is_not_the_new_ones() -> None:
    """m1 began where it was told to: what came twice was in m0's hand."""
    lines = [*M0, effect(0), synced("m1", 0), answered("m1", 1), fetched("m1", 1, size_bytes=9), effect(0)]
    assert judged("illegal-redelivery", lines, settings=SINK) == []


def test_a_member_below_its_floor_beside_another_one_is_not_blamed_for_its_effects() -> None:
    """m0 still has the partition by all that anybody knows: the further effect may be its own."""
    lines = [*M0, effect(0), synced("m1", 0), answered("m1", 1), fetched("m1", 0, size_bytes=9), effect(0)]
    assert judged("illegal-redelivery", lines, settings=SINK) == []


@pytest.mark.parametrize("name", ["nonmonotonic-poll", "poll-skip", "overlapping-handlers", "work-after-revoke"])
def test_what_no_sink_can_show_does_not_keep_the_claim_open(name: str) -> None:
    """Where the sink shows the work, another anomaly decides what is claimed."""
    missing = finding(name, [*M0, effect(0)], settings=SINK).not_judged
    assert missing is not None
    assert not missing.applies


@pytest.mark.parametrize("name", ["reordered-key", "redelivered", "nonmonotonic-poll", "overlapping-handlers"])
def test_order_is_not_acquitted_where_no_effect_was_seen(name: str) -> None:
    """Nothing was looked at."""
    missing = finding(name, M0, settings=SINK).not_judged
    assert missing is not None
    assert missing.applies


def test_without_a_sink_the_reason_names_the_lines_that_would_cure_it() -> None:
    """Two lines of TOML."""
    told = not_judged("skipped", M0, settings=NOTHING)
    assert 'sink = "http" under [evidence]' in told
    assert 'SINK_URL = "{sink_url}" under [env]' in told


ABSORBING: list[Line | list[Line]] = [*M0, effect(0), rewritten(0), effect(1)]


def test_what_leaves_a_table_as_it_was_is_no_further_effect() -> None:
    """The record had its effect once, and in its turn."""
    for name in ("duplicate-effect", "skipped", "unseen", "reordered-key"):
        assert judged(name, [*ABSORBING, phase("snapshot")], records=ALIKE[:2], settings=TABLE) == []


@pytest.mark.parametrize(("name", "open_claim"), [("redelivered", True), ("illegal-redelivery", False)])
def test_what_was_done_again_without_a_trace_is_not_judged(name: str, open_claim: bool) -> None:
    """A claim of at most once stays open by that; at least once is judged by what the table holds."""
    missing = finding(name, ABSORBING, records=ALIKE[:2], settings=TABLE).not_judged
    assert missing is not None
    assert (missing.applies, "may leave its table unchanged" in missing.because) == (open_claim, True)


def test_what_changed_its_row_again_was_done_again() -> None:
    """That much can be seen, and stands; by lines all of it can."""
    again = [synced("m0"), synced("m1", 0), answered("m1", 0), fetched("m1", 0, size_bytes=9), effect(0)]
    found = finding("redelivered", [*M0, effect(0), *again], settings=TABLE)
    assert [one.attributes["offset"] for one in found.instances] == [0]
    spoken = with_settings(sink="postgres")
    assert judged("redelivered", [assigned("m0"), *handled("m0", 0), rewritten(0)], settings=spoken) == []


def test_without_a_sink_the_commits_tell_of_the_end() -> None:
    """A silent group that committed all is done; one that stands still is stuck."""
    done: list[Line | list[Line]] = [*M0, phase("drain"), committed(2, by="m0"), after(13)]
    assert judged("stuck-partition", done, settings=NOTHING) == judged("late-convergence", done, settings=NOTHING) == []
    stuck: list[Line | list[Line]] = [*M0, committed(1, by="m0"), phase("drain"), after(30)]
    assert len(judged("stuck-partition", stuck, settings=NOTHING)) == 1
