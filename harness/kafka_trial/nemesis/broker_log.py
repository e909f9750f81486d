"""A broker's own request log as a witness of one request: whether that broker answered it, and when."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from kafka_trial.witness.request_lines import Line, LineError, answered_ns, parse_line

CLOCKS_NS: Final = 50_000_000  # the log counts milliseconds of the wall clock, the toxics those of CLOCK_MONOTONIC


def when_answered(
    log: Path, *, lane: int, api: int, correlation_id: int, seen_ns: int, hit_ns: int, from_byte: int = 0
) -> list[int]:
    """Returns when the request was logged as answered, in nanoseconds of CLOCK_MONOTONIC; empty: the log lacks it.

    A client may count its correlation ids anew on each connection. So a line counts only from `seen_ns` on, when the
    request came, and where its connection had one before `hit_ns`, when it was cut: a client that comes back has a
    connection of its own. The log is read from `from_byte` on, or its beginning.
    """
    own_key = f'"requestApiKey":{api},'.encode()
    own_id = f'"correlationId":{correlation_id},'.encode()
    own_lane = f'"listener":"LANE{lane}"'.encode()
    found: list[Line] = []
    earlier: set[bytes] = set()
    to_monotonic_ns = time.monotonic_ns() - time.time_ns()
    with log.open("rb") as file:
        file.seek(max(0, from_byte))
        read = file.read()
    for raw in read.splitlines():
        if own_lane not in raw:
            continue
        at_ns = answered_ns(raw)
        if at_ns is not None and at_ns + to_monotonic_ns < hit_ns:
            earlier.add(_connection(raw))
        if own_key in raw and own_id in raw:
            try:
                found.append(parse_line(raw))
            except LineError:  # the last line, still being written: it is read again
                continue
    return sorted(
        line.source_wall_ns + to_monotonic_ns
        for line in found
        if line.correlation_id == correlation_id
        and line.connection.encode() in earlier
        and line.source_wall_ns + to_monotonic_ns >= seen_ns - CLOCKS_NS
    )


def _connection(raw: bytes) -> bytes:
    _, _, rest = raw.partition(b'"connection":"')
    return rest.partition(b'"')[0]
