"""The stream of operations: replayable, distributed as the load says, each part with records of its own."""

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby
from random import Random
from zlib import crc32

import pytest

from kafka_trial.scenario import KEYS, SIZE_BYTES_LIMIT, Burst, Load
from kafka_trial.workload.workload import LoadWorkload, Op, own_headers, payload_for, unreadable

LOAD = Load(opening_burst=20, rate_per_s=10, records_max=2000, key_count=50)


def test_the_same_seed_gives_the_same_operations() -> None:
    """A replay sends the same records; another seed sends others."""
    load = replace(LOAD, size_bytes_max=4096)
    assert (_ops(load, seed=1) == _ops(load, seed=1), _ops(load, seed=1) == _ops(load, seed=2)) == (True, False)


def test_parts_follow_each_other_with_their_dues() -> None:
    """First the opening burst at once, then the planned bursts at their instants, then the steady load at its rate."""
    load = replace(LOAD, opening_burst=2, bursts=(Burst(1.5, 1),), records_max=6)
    assert [(op.id, op.part, op.at_s) for op in _ops(load)] == [
        ("r0000000", "opening-burst", 0.0),
        ("r0000001", "opening-burst", 0.0),
        ("r0000002", "burst", 1.5),
        ("r0000003", "steady", 0.0),
        ("r0000004", "steady", 0.1),
        ("r0000005", "steady", 0.2),
    ]


def test_records_max_bounds_the_whole_workload() -> None:
    """The opening burst counts too, and no id comes twice."""
    assert len({op.id for op in _ops(LOAD)}) == LOAD.records_max


def test_a_part_of_the_steady_load_is_aborted() -> None:
    """About as much as the ratio says, never of the opening burst; without a ratio nothing, and the records stay."""
    aborting = _ops(replace(LOAD, aborted_ratio=0.1))
    aborted = [op for op in aborting if op.aborted]
    assert (150 < len(aborted) < 250, {op.part for op in aborted}) == (True, {"steady"})
    assert [op._replace(aborted=False) for op in aborting][:100] == _ops(LOAD)[:100]


def test_some_records_have_no_value_or_no_key() -> None:
    """About as many as the shares say, each drawn by itself; all else of every record stays as without the shares."""
    drawn = _ops(replace(LOAD, null_values=0.3, null_keys=0.2))
    no_value, no_key = [op for op in drawn if op.null_value], [op for op in drawn if op.key is None]
    assert (500 < len(no_value) < 700, 320 < len(no_key) < 480, len({*no_value} & {*no_key}) > 60) == (True,) * 3
    assert {op.partition for op in no_key} == {0, 1, 2}
    assert [op._replace(null_value=False) for op in drawn if op.key] == [
        plain for op, plain in zip(drawn, _ops(LOAD), strict=True) if op.key
    ]
    assert drawn == _ops(replace(LOAD, null_values=0.3, null_keys=0.2))


def test_some_records_have_a_value_that_nobody_can_decode() -> None:
    """Evenly, from the first few hundred on, so that a small load has some too; all else of every record stays."""
    drawn = _ops(replace(LOAD, unreadable_values=0.004))
    assert [op.n for op in drawn if op.unreadable][:3] == [124, 374, 624]
    assert [op._replace(unreadable=False) for op in drawn] == _ops(LOAD)
    value = unreadable(payload_for(LOAD, seed=1)(drawn[0]))
    assert len(value) == drawn[0].size_bytes
    with pytest.raises(ValueError, match="invalid start byte"):
        value.decode()
    with pytest.raises(ValueError, match="Extra data"):
        json.loads(value.decode(errors="ignore"))


def test_a_hot_key_takes_half() -> None:
    """`hot`: one key takes half of the records, the others share the rest."""
    counts = _key_counts("hot")
    assert (900 < counts[0] < 1100, counts[1] < 50) == (True, True)


def test_zipf_keys_fall_off() -> None:
    """`zipf`: the second key comes about half as often as the first, the tenth far less."""
    first, second, *_, tenth = _key_counts("zipf")[:10]
    assert first > 1.5 * second > 3 * tenth


def test_uniform_keys_are_level() -> None:
    """`uniform`: every key comes, none more than twice its share of 40."""
    counts = _key_counts("uniform")
    assert (len(counts), max(counts) < 80) == (50, True)


def test_runs_are_bursts_of_one_key() -> None:
    """`runs`: every key once, then 200 to 300 records of one; only the last run is cut off."""
    ops = _ops(replace(LOAD, keys="runs"))
    assert len({op.key for op in ops[:50]}) == 50
    sizes = [len(list(run)) for _, run in groupby(ops, key=lambda op: op.key)]
    long = [size for size in sizes if size > 2]
    assert {1} <= {size for size in sizes if size not in long} <= {1, 2}
    assert {*long[:-1]} <= set(range(200, 303))
    assert len({*long[:-1]}) > 3


@pytest.mark.parametrize(
    ("keys", "digest"),
    [("uniform", "fed9718c"), ("zipf", "6f2ec95a"), ("hot", "28dde7bd"), ("runs", "5334a725")],
)
def test_the_draws_of_a_seed_stay(keys: str, digest: str) -> None:
    """Stored trials are replayed by their seed: its keys and sizes are the same in every version."""
    ops = _ops(replace(LOAD, keys=keys, size_bytes_max=5000))
    assert f"{crc32(repr([(op.key, op.size_bytes) for op in ops]).encode()):08x}" == digest


def test_sizes_cover_their_range() -> None:
    """Sizes lie in the range, up to 10 MB, and use both of its halves."""
    sizes = [op.size_bytes for op in _ops(replace(LOAD, size_bytes_min=64, size_bytes_max=SIZE_BYTES_LIMIT))]
    assert 64 <= min(sizes) < SIZE_BYTES_LIMIT / 10 < SIZE_BYTES_LIMIT * 0.9 < max(sizes) <= SIZE_BYTES_LIMIT


def test_records_without_a_key_get_a_partition_from_the_seed() -> None:
    """Left to the client, where they go would be chance and no replay would repeat it."""
    ops = _ops(replace(LOAD, keyed=False))
    assert ({op.key for op in ops}, {op.partition for op in ops}) == ({None}, {0, 1, 2})


def test_records_without_a_key_may_name_their_entity() -> None:
    """In a header and in our JSON; drawn as the key would be, and on any partition. Others have no such word."""
    ops, keyed = _ops(replace(LOAD, keyed=False, entities=True)), _ops(LOAD)
    assert {op.key for op in ops} == {None}
    assert {op.entity for op in ops} == {op.key for op in keyed}
    assert {op.partition for op in ops if op.entity == "k0"} == {0, 1, 2}
    value = json.loads(payload_for(LOAD, seed=1)(ops[0]))
    assert (value["entity"], own_headers(ops[0])[1:]) == (ops[0].entity, [("kt-entity", ops[0].entity.encode())])
    assert "entity" not in json.loads(payload_for(LOAD, seed=1)(keyed[0]))


def test_records_with_a_key_are_placed_by_it() -> None:
    """A partition of their own would tear a key apart when partitions are added."""
    assert {op.partition for op in _ops(LOAD)} == {None}


def test_one_key_is_enough_for_every_distribution() -> None:
    """A single key has no others to share with."""
    loads = [replace(LOAD, keys=keys, key_count=1) for keys in KEYS]
    assert {key for load in loads for key, _ in groupby(_ops(load), key=lambda op: op.key)} == {"k0"}


def _ops(load: Load, *, seed: int = 1) -> list[Op]:
    return list(LoadWorkload(load, partitions=3).ops(Random(seed)))


def _key_counts(keys: str) -> list[int]:
    return [count for _, count in Counter(op.key for op in _ops(replace(LOAD, keys=keys))).most_common()]
