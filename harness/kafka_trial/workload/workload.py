"""What is sent: a seeded stream of operations, one for each record, and the bytes of each.

A workload is replayable: the same seed gives the same keys, sizes, values and dues, record by record. Each part
(opening burst, bursts, steady load) has its own run of record numbers, so that the n-th record of a part is the same
record however long the other parts lasted. The producer turns operations into sends.

A JSON value is `{"id", "n", "key", "pad"}`, with an `entity` where the record names one, padded to the wanted size; a
bytes value is the id, a zero byte, and padding. (A team may have values of its own: `payload.py`.) The id is always
in the header `kt-id` too, the entity in `kt-entity`. Padding is cut from one pool made at the start; where the load
asks for compression it is text that compresses about tenfold, else text that hardly does.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from itertools import accumulate, islice, repeat
from random import Random
from typing import NamedTuple, TypeVar

import orjson

from kafka_trial.scenario import Load

OPENING_BURST, STEADY, BURST = "opening-burst", "steady", "burst"
DRAW = 1024  # random choices are drawn this many at a time: five times cheaper than one by one
ZIPF_EXPONENT = 1.1
RUN_RECORDS = (200, 300)  # how many records of one key follow one another, at least and at most
T = TypeVar("T")


@dataclass(frozen=True)
class TopicLoad:
    """The load of one topic; the ids of its records begin with `id_prefix`, if that is not empty.

    `later_partitions`: of a topic that is not there yet, how many it will have; its load begins when it has come.
    """

    topic: str
    load: Load
    id_prefix: str = ""
    later_partitions: int | None = None


class Op(NamedTuple):  # a frozen dataclass costs four times as much to make, at up to 50,000 a second
    """One record to be sent: `at_s` is when it is due, relative to the start of its part's phase.

    `id` is made of letters, digits, dots and dashes; `key` None: sent without a key; `partition` None: by the key;
    `aborted`: in a transaction that is taken back; `entity`: which one it is of, where it says so without a key;
    `null_value`: sent without a value; `unreadable`: with one that nobody can decode; `topic`: the index of
    its topic.
    """

    id: str
    n: int
    key: str | None
    partition: int | None
    size_bytes: int
    at_s: float
    part: str
    aborted: bool = False
    entity: str | None = None
    null_value: bool = False
    unreadable: bool = False
    topic: int = 0


PARTS_IN_ORDER = (OPENING_BURST, BURST, STEADY)


def all_ops(topic_loads: Sequence[TopicLoad], *, partitions: Sequence[int], seed: int) -> Iterator[Op]:
    """Yields the operations on all topics that are there: by part of the load, then by due time. The records of a topic
    do not depend on the other topics."""
    there = [topic for topic, one in enumerate(topic_loads) if one.later_partitions is None]
    of_topics = [topic_ops(topic_loads, topic, partitions=partitions[topic], seed=seed) for topic in there]
    yield from merge(*of_topics, key=_turn) if len(of_topics) > 1 else of_topics[0]


def topic_ops(topic_loads: Sequence[TopicLoad], topic: int, *, partitions: int, seed: int) -> Iterator[Op]:
    """Yields the operations on one topic, by its place among all."""
    one = topic_loads[topic]
    ops = LoadWorkload(one.load, partitions=partitions).ops(Random(f"workload {seed} {one.id_prefix}".rstrip()))
    if not one.id_prefix:
        return ops
    return (op._replace(topic=topic, id=f"{one.id_prefix}.{op.id}") for op in ops)


def _turn(op: Op) -> tuple[int, float]:
    return PARTS_IN_ORDER.index(op.part), op.at_s


class LoadWorkload:
    """The workload of a scenario's `Load`, on a topic of `partitions` partitions: first the opening burst, then the
    planned bursts, then the steady load by due time.

    Records without a key get a partition from the seed, those of one entity too; otherwise the client would choose by
    chance. Which records lack a key or a value follows from draws of their own; which values cannot be read, from the
    numbers of the records. All other records are the same as in a load without any of these.
    """

    def __init__(self, load: Load, *, partitions: int) -> None:
        self.load = load
        self.partitions = partitions

    def ops(self, rng: Random) -> Iterator[Op]:
        """Yields at most `records_max` operations; all randomness comes from `rng`."""
        keys, sizes, ratio = _keys(self.load, rng), _sizes(self.load, rng), self.load.aborted_ratio
        places = repeat(None) if self.load.keyed else _drawn(rng, range(self.partitions))
        odd = any((self.load.null_values, self.load.null_keys, self.load.unreadable_values))
        odds = _beside(rng) if odd else None
        rows = zip(_dues(self.load), keys, sizes, places, strict=False)
        for n, ((part, at_s), key, size_bytes, partition) in enumerate(islice(rows, self.load.records_max)):
            aborted = part == STEADY and ratio > 0 and rng.random() < ratio
            named = (None, key) if self.load.entities else (key, None)
            op = Op(f"r{n:07d}", n, named[0], partition, size_bytes, at_s, part, aborted, named[1])
            yield op if odds is None else self._made_odd(op, odds)

    def _made_odd(self, op: Op, rng: Random) -> Op:
        """Returns the operation without its key or its value, or with an unreadable one, as often as the load asks."""
        no_value, no_key, place = rng.random(), rng.random(), rng.randrange(self.partitions)
        if no_key < self.load.null_keys:
            op = op._replace(key=None, partition=place)
        share = self.load.unreadable_values  # evenly: a small load has some, too
        unreadable = int((op.n + 1) * share + 0.5) > int(op.n * share + 0.5)
        return op._replace(null_value=no_value < self.load.null_values, unreadable=unreadable)


def _beside(rng: Random) -> Random:
    """Returns another source of randomness that follows from this one and takes nothing from it."""
    copy = Random()
    copy.setstate(rng.getstate())
    return Random(f"nulls {copy.random()}")


def _dues(load: Load) -> Iterator[tuple[str, float]]:
    yield from repeat((OPENING_BURST, 0.0), load.opening_burst)
    for burst in load.bursts:
        yield from repeat((BURST, burst.at_s), burst.records)
    yield from ((STEADY, number / load.rate_per_s) for number in range(load.records_max))


def _keys(load: Load, rng: Random) -> Iterator[str | None]:
    if not load.keyed and not load.entities:
        return repeat(None)
    names = [f"k{number}" for number in range(load.key_count)]
    if load.keys == "runs":
        return _runs(rng, names)
    return _drawn(rng, names, list(accumulate(_weights(load.keys, load.key_count))))


def _runs(rng: Random, names: Sequence[str]) -> Iterator[str]:
    """Yields bursts of hot keys: every key once, in some order, then one of them so many times in a row; and again."""
    while True:
        yield from rng.sample(names, len(names))
        yield from repeat(rng.choice(names), rng.randint(*RUN_RECORDS))


def _weights(keys: str, count: int) -> list[float]:
    """How often each key comes: equally, by Zipf's law, or half of all records on the first."""
    if keys == "zipf":
        return [1 / rank**ZIPF_EXPONENT for rank in range(1, count + 1)]
    if keys == "hot":
        return [float(max(1, count - 1)), *repeat(1.0, count - 1)]
    return [1.0] * count


def _sizes(load: Load, rng: Random) -> Iterator[int]:
    least, most = load.size_bytes_min, load.size_bytes_max
    return repeat(least) if least == most else _drawn(rng, range(least, most + 1))


def _drawn(rng: Random, choices: Sequence[T], cumulative: Sequence[float] | None = None) -> Iterator[T]:
    while True:
        yield from rng.choices(choices, cum_weights=cumulative, k=DRAW)


ID_HEADER, ENTITY_HEADER = "kt-id", "kt-entity"
Headers = list[tuple[str, bytes]]
SLACK = 4096  # the pool is this much longer than the longest value, so that neighbours differ
STRIDE = 1009  # coprime to SLACK: successive records start at different places of the pool


def own_headers(op: Op) -> Headers:
    """Returns the header that every record has, and that which names its entity, if it has one."""
    of_entity = [] if op.entity is None else [(ENTITY_HEADER, op.entity.encode())]
    return [(ID_HEADER, op.id.encode()), *of_entity]


def payload_for(load: Load, *, seed: int) -> Callable[[Op], bytes]:
    """Returns the function that makes the value of an operation under this load and seed."""
    pool = padding_pool(load, seed=seed)
    return _bytes_payload(pool.encode()) if load.format == "bytes" else _json_payload(pool)


def _json_payload(pool: str) -> Callable[[Op], bytes]:
    def value(op: Op) -> bytes:
        entity = "" if op.entity is None else f'"entity":{json_text(op.entity)},'
        head = f'{{"id":"{op.id}","n":{op.n},"key":{json_text(op.key)},{entity}"pad":"'
        start = op.n * STRIDE % SLACK
        return f'{head}{pool[start : start + max(0, op.size_bytes - len(head) - 2)]}"}}'.encode()

    return value


def _bytes_payload(pool: bytes) -> Callable[[Op], bytes]:
    def value(op: Op) -> bytes:
        head = op.id.encode() + b"\0"
        start = op.n * STRIDE % SLACK
        return head + pool[start : start + max(0, op.size_bytes - len(head))]

    return value


def unreadable(value: bytes) -> bytes:
    """Returns as many bytes that nobody can decode: 0xff never begins a text in UTF-8, and what follows is no JSON."""
    return b"\xff" + value[1:]


@lru_cache(maxsize=1 << 16)
def json_text(text: str | None) -> str:
    """Returns `text` as a JSON value in ASCII or UTF-8, quotes included."""
    return orjson.dumps(text).decode()


def padding_pool(load: Load, *, seed: int) -> str:
    """Returns the text that padding is cut from: ASCII, longer than the longest value, harmless inside JSON and XML."""
    rng, size = Random(f"payload {seed}"), load.size_bytes_max + SLACK
    if load.compression != "none":
        words = [base64.b64encode(rng.randbytes(6)).decode() for _ in range(64)]
        return " ".join(rng.choices(words, k=size // 9 + 1))[:size].ljust(size)
    return base64.b64encode(rng.randbytes(size * 3 // 4 + 3)).decode()[:size]
