"""From events to slice rows: which slice, which order, and what belongs to another trial."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from histories import (
    Line,
    assigned,
    committed,
    delivered,
    effect,
    gave_up,
    handled,
    history,
    holds,
    measured,
    on,
    own_time,
    owner,
    processed,
    rated,
    said,
)
from kafka_trial.history.event import Event, to_line
from kafka_trial.judge.cache import from_plain, to_plain
from kafka_trial.judge.in_memory_history import rows_of_lines
from kafka_trial.judge.trial_context_builder import TrialContextBuilder
from kafka_trial.model.kernels import NEVER
from kafka_trial.model.rows import Kind
from kafka_trial.model.trial_context import Settings


def rows(events: list[Event], *kinds: Kind) -> tuple[list[dict[str, Any]], TrialContextBuilder]:
    """Returns the slice rows of some kinds, and the builder of their context."""
    table, builder = rows_of_lines(map(to_line, events))
    return [row for row in table.to_pylist() if row["kind"] in kinds], builder


def test_an_event_of_several_partitions_is_a_row_in_each_slice() -> None:
    """`assigned` with two partitions concerns two slices."""
    found, builder = rows(history([assigned("m0", 0, 3)]), Kind.ASSIGNED)
    places = list(builder.slices)
    assert [places[row["slice"]] for row in found] == [("t", 0), ("t", 3)]


def test_an_effect_is_joined_to_its_record_by_id() -> None:
    """The sink knows ids only; effects of other ids, and those that failed, are no rows."""
    lines = [effect(1), effect(7), effect(0, outcome="fail")]
    assert [row["offset"] for row in rows(history(lines), Kind.EFFECT)[0]] == [1]


def test_an_effect_at_the_http_sink_names_its_member() -> None:
    """m1 is the second one; of a name that no member has, or of none, nothing is known."""
    lines = [effect(0, member="m1"), effect(1, member="m7"), effect(1)]
    found, builder = rows(history(lines), Kind.EFFECT)
    assert (list(builder.members), [row["who"] for row in found]) == (["m0", "m1"], [1, -1, -1])


def test_an_output_has_its_place_and_the_time_of_its_append() -> None:
    """Appended three seconds before it was read; in an older history nobody says when."""
    output = effect(0, topic="out", partition=2, offset=7)
    (new, old), _ = rows(history([own_time(output, 3), output]), Kind.EFFECT)
    assert [(row["who"], row["place"], row["wall_ns"] > 0) for row in (new, old)] == [(2, 7, True), (2, 7, False)]
    assert old["time_ns"] - new["time_ns"] == 3_010_000_000


def test_other_groups_and_other_topics_are_left_out() -> None:
    """The offsets log and a consumer's lines may speak of more than this trial."""
    stranger = {"group": "another", "topic": "t", "partition": 0, "committed_offset": 9}
    elsewhere = said("m0", "delivered", topic="another", partition=0, offset=9)
    found, builder = rows(
        history([Line("offsets", "committed", stranger), elsewhere, committed(1)]), Kind.COMMITTED, Kind.DELIVERED
    )
    assert ([row["offset"] for row in found], list(builder.slices), builder.defects) == ([1], [("t", 0)], [])


def test_a_kip_848_grant_lasts_until_the_members_next_record() -> None:
    """Topic ids become names; the last assignment record of a member never ends."""
    found, _ = rows(
        history([holds("m0", 0), holds("m1", 1), holds("m0", pending=[0]), holds("m0")]), Kind.ASSIGNMENT_RECORD
    )
    assert sorted((row["place"], row["until"], row["flag"]) for row in found) == [(1, 3, 1), (2, NEVER, 1), (3, 4, 2)]


def test_a_classic_grant_is_open() -> None:
    """Where it ends follows from the next record of its slice, which the kernels see."""
    found, _ = rows(history([owner("m0"), owner("m1")]), Kind.ASSIGNMENT_RECORD)
    assert [(row["place"], row["until"]) for row in found] == [(1, NEVER), (2, NEVER)]


def test_an_event_without_a_place_is_named() -> None:
    """A delivery without an offset cannot be judged, and is not dropped in silence."""
    builder = rows(history([said("m0", "delivered", topic="t", partition=0)]))[1]
    assert builder.defects == ["consumer-m0-0: 1 events lack topic, partition or position (first: #1)"]


def test_times_of_a_members_file_never_run_backwards() -> None:
    """Its order is exact: a line that was stamped earlier counts as not earlier."""
    events = history([delivered("m0", 0), processed("m0", 0)])
    late = next(place for place, event in enumerate(events) if event.kind == "processed")
    wrong = Event(**{**{name: getattr(events[late], name) for name in Event.__slots__}, "time_ns": 5})
    found, _ = rows([*events[:late], wrong, *events[late + 1 :]], Kind.DELIVERED, Kind.PROCESSED)
    assert found[0]["time_ns"] == found[1]["time_ns"]


def test_a_topic_created_anew_is_beyond_this_judge() -> None:
    """Slices are told apart by name: two lives of one name make the history unfit, and it says so."""
    again = Line("observer", "topic", {"topic": "t", "topic_id": "U", "partitions": 1})
    assert "created anew" in " ".join(rows(history([again]))[1].defects)


def test_circumstances_survive_the_cache() -> None:
    """What is written as JSON is read back as it was."""
    lines = [rated(4.0, 3, 1), assigned("m0"), owner("m0"), committed(1, by="m0"), delivered("m0", 0)]
    trial_context = rows(history(lines))[1].trial_context(Settings())
    assert dict(trial_context.lanes) == {0: 0, 1: 1}
    assert dict(trial_context.opening_burst) == {0: 3, -2: 1}  # by slice; nothing else is told of partition 1
    assert from_plain(orjson.loads(orjson.dumps(to_plain(trial_context)))) == trial_context


def test_what_was_measured_of_readers_survives_the_cache() -> None:
    """So do the files that tell their own times, and the times that cannot be."""
    lines = [own_time(delivered("m0", 0), 0.01), own_time(processed("m1", 0), -9), measured("m0", 0.03)]
    _, builder = rows(history(lines))
    known = builder.trial_context(Settings())
    assert [(reader, delay_ns) for reader, _, delay_ns in known.readings] == [("consumer-m0-0", 30_000_000)]
    assert ([known.sources[source] for source in known.timed], len(known.false_times)) == (["consumer-m0-0"], 1)
    assert from_plain(orjson.loads(orjson.dumps(to_plain(known), option=orjson.OPT_NON_STR_KEYS))) == known


@pytest.mark.parametrize("size_bytes", [200, 1 << 20], ids=["a line a block", "one block"])
def test_what_was_aborted_is_known_of_all_partitions(size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the producers that hand positions in; and so it is read
    from the cache."""
    monkeypatch.setattr("kafka_trial.judge.lines.SPLIT_BYTES", size_bytes)
    batch = [*handled("m0", 0), delivered("m0", 1), delivered("m0", 0, partition=3), processed("m0", 1)]
    lines = [*batch, processed("m0", 0, partition=3, outcome="failed"), gave_up("m0"), gave_up("m0", 0, 3)]
    handed_in = [*committed(1, by="m0", producer=7), *(on(3, line) for line in committed(2, by="m0", producer=7))]
    _, builder = rows(history([*lines, *handed_in]))
    known = builder.trial_context(Settings())
    assert [[known.slices[place] for place in one.slices] for one in known.aborts] == [[], [("t", 0), ("t", 3)]]
    (producer,) = known.position_producers
    assert (producer.lane, producer.producer_id, len(producer.together)) == (0, 7, 2)
    assert from_plain(orjson.loads(orjson.dumps(to_plain(known)))) == known
