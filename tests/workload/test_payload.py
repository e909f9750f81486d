"""The bytes of a value: of the wanted size, the same for the same seed, and with the record's identity inside."""

import json
import zlib
from dataclasses import replace

import pytest

from kafka_trial.scenario import SIZE_BYTES_LIMIT, Load
from kafka_trial.workload.workload import Op, payload_for

LOAD = Load()
OP = Op("r0000042", 42, "k7", None, 1024, 0.0, "steady")


def test_json_carries_the_identity() -> None:
    """A consumer finds id, number and key in the value."""
    body = json.loads(payload_for(LOAD, seed=1)(OP))
    body.pop("pad")
    assert body == {"id": "r0000042", "n": 42, "key": "k7"}


def test_a_key_is_escaped() -> None:
    """A workload of somebody else's may use any text as key; null where there is none."""
    value = payload_for(LOAD, seed=1)
    keys = [json.loads(value(OP._replace(key=key)))["key"] for key in ('a"b\\', "ключ", None)]
    assert keys == ['a"b\\', "ключ", None]


def test_bytes_begin_with_the_id() -> None:
    """Raw values are no JSON; the id stands before the first zero byte."""
    assert payload_for(replace(LOAD, format="bytes"), seed=1)(OP).partition(b"\0")[0] == b"r0000042"


@pytest.mark.parametrize("form", ["json", "bytes"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_values_have_the_wanted_size(form: str, compression: str) -> None:
    """From the least size a scenario may ask for to the largest."""
    value = payload_for(replace(LOAD, format=form, compression=compression, size_bytes_max=SIZE_BYTES_LIMIT), seed=1)
    sizes = [64, 100, 1024, 1 << 20, SIZE_BYTES_LIMIT]
    assert [len(value(OP._replace(size_bytes=size, n=9_999_999, id="r9999999"))) for size in sizes] == sizes


def test_the_seed_decides_the_bytes() -> None:
    """Same seed, same bytes; another seed or another record, others."""
    first, again, other = payload_for(LOAD, seed=1), payload_for(LOAD, seed=1), payload_for(LOAD, seed=2)
    pads = [json.loads(value(op))["pad"] for value, op in ((first, OP), (again, OP), (other, OP), (first, _next()))]
    assert [pad == pads[0] for pad in pads] == [True, True, False, False]


def test_padding_compresses_only_where_compression_is_asked() -> None:
    """Otherwise a compressed load would be one of a few bytes, or no compression would be at work."""
    ratios = [
        len(zlib.compress(payload_for(replace(LOAD, compression=kind, size_bytes_max=65536), seed=1)(large))) / 65536
        for large in (OP._replace(size_bytes=65536),)
        for kind in ("none", "gzip")
    ]
    assert ratios[0] > 0.7 > 0.25 > ratios[1]


def _next() -> Op:
    return OP._replace(n=43)
