"""The bound of a translated start: by the pairs that MirrorMaker keeps, and by how often it looks."""

from __future__ import annotations

import struct
from pathlib import Path

import orjson
import pytest

from kafka_trial.mirror.offset_translation import CommittedPosition, OffsetSync, OffsetSyncStore, earliest_start
from kafka_trial.witness.offset_syncs import decoded


def _kept(*offsets: int) -> OffsetSyncStore:
    kept = OffsetSyncStore()
    for offset in offsets:
        kept.take(OffsetSync(0, offset, offset + 1000))
    return kept


def test_a_position_is_translated_by_the_last_kept_pair_below_it() -> None:
    """To the pair itself, else to the record after it; below the first pair there is none."""
    kept = _kept(100, 201, 302)
    assert [kept.translated(offset) for offset in (99, 100, 150, 302, 350)] == [None, 100, 101, 302, 303]


def test_pairs_are_kept_as_mirror_maker_keeps_them() -> None:
    """Asked of its own OffsetSyncStore (connect-mirror 4.3.1): after so many more pairs, the source's position to which
    it translates another one; the last pairs begin a topic that was made anew."""
    kept = OffsetSyncStore()
    for told in orjson.loads((Path(__file__).parent / "offset_sync_store.json").read_bytes()):
        for offset in told["pairs"]:
            kept.take(OffsetSync(0, offset, offset + 1000))
        assert [[position, kept.translated(position)] for position, _ in told["translated"]] == told["translated"]


def test_a_topic_that_was_made_anew_has_no_earlier_pairs() -> None:
    """An offset that goes back: what was known is of another log."""
    assert _kept(0, 500, 20).translated(300) == 21


def test_a_group_begins_at_least_where_a_whole_round_must_have_found_it() -> None:
    """Commits of the last moments may be missed; those before a whole round and the writing of it are not."""
    pairs = [OffsetSync(0, 0, 1000), OffsetSync(1_000, 1000, 2000), OffsetSync(10_000, 1010, 2010)]
    positions = [CommittedPosition(2_000, 1000), CommittedPosition(11_000, 1010)]
    starts = [
        earliest_start(pairs, positions, left_ms=left_ms, every_s=1.0) for left_ms in (5_000, 12_000, 16_900, 17_000)
    ]
    assert starts == [None, 1000, 1000, 1010]


def test_a_group_that_stood_still_begins_where_it_was_translated() -> None:
    """However much later it leaves."""
    pairs = [OffsetSync(0, 0, 1000), OffsetSync(1000, 128, 1128)]
    assert earliest_start(pairs, [CommittedPosition(1500, 200)], left_ms=60_000, every_s=1.0) == 129


def test_a_record_of_the_topic_of_pairs_is_read() -> None:
    """As KIP-382 lays it out; anything else is refused."""
    key = struct.pack(">h", 6) + b"orders" + struct.pack(">i", 3)
    told = {"topic": "orders", "partition": 3, "upstream": 7, "downstream": 1007}
    assert decoded(key, struct.pack(">qq", 7, 1007)) == told
    with pytest.raises(ValueError, match="no offset sync"):
        decoded(b"\0", b"")
