"""What a record holds: the bytes of an operation's value, the same for the same seed, and cheap to make.

JSON: `{"id", "n", "key", "pad"}`, padded to the wanted size. Bytes: the id, a zero byte, and padding. The id always
travels in the header `kt-id` too. Padding is cut from one pool made at the start; where the load asks for compression
it is text that compresses about tenfold, else text that hardly does.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from random import Random

import orjson

from kafka_trial.scenario import Load
from kafka_trial.workload.workload import Op

ID_HEADER = "kt-id"
SLACK = 4096  # the pool is this much longer than the longest value, so that neighbours differ
STRIDE = 1009  # coprime to SLACK: successive records start at different places of the pool


def payload_for(load: Load, *, seed: int) -> Callable[[Op], bytes]:
    """Returns the function that makes the value of an operation under this load and seed."""
    pool = _pool(load.size_bytes_max + SLACK, seed=seed, compressible=load.compression != "none")
    return _bytes_payload(pool.encode()) if load.format == "bytes" else _json_payload(pool)


def _json_payload(pool: str) -> Callable[[Op], bytes]:
    def value(op: Op) -> bytes:
        head = f'{{"id":"{op.id}","n":{op.n},"key":{json_text(op.key)},"pad":"'
        start = op.n * STRIDE % SLACK
        return f'{head}{pool[start : start + max(0, op.size_bytes - len(head) - 2)]}"}}'.encode()

    return value


def _bytes_payload(pool: bytes) -> Callable[[Op], bytes]:
    def value(op: Op) -> bytes:
        head = op.id.encode() + b"\0"
        start = op.n * STRIDE % SLACK
        return head + pool[start : start + max(0, op.size_bytes - len(head))]

    return value


@lru_cache(maxsize=1 << 16)
def json_text(text: str | None) -> str:
    """Returns `text` as a JSON value in ASCII or UTF-8, quotes included."""
    return orjson.dumps(text).decode()


def _pool(size: int, *, seed: int, compressible: bool) -> str:
    rng = Random(f"payload {seed}")
    if compressible:
        words = [base64.b64encode(rng.randbytes(6)).decode() for _ in range(64)]
        return " ".join(rng.choices(words, k=size // 9 + 1))[:size].ljust(size)
    return base64.b64encode(rng.randbytes(size * 3 // 4 + 3)).decode()[:size]
