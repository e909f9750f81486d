"""Connections: over which connection each request came, from when until when each was used, and whose client it was.

One TCP connection is one client's, so it tells the group members of one process apart, and what it goes on after was
heard (`model/response_delivery.py`). Its name is unique within a broker's life; the lane stands beside it all the
same. `slow_answers` says when a broker was so slow that a client may have closed its connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.judge.group_answers import APIS
from kafka_trial.model.kernels import NEVER, NONE, Array
from kafka_trial.model.response_delivery import SLOW_ANSWER_NS
from kafka_trial.model.trial_context import Connection, SlowAnswer

ASKS_FOR_GROUP = dict.fromkeys(APIS, 1)  # what a client asks that is in a group, whichever, or commits
PROMPT = dict.fromkeys(
    ("HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "OFFSETCOMMIT", "TXNOFFSETCOMMIT", "OFFSETFETCH", "FINDCOORDINATOR"), 1
)  # what a broker answers at once, unless it waits for a replica
NUMBER = "connection_no"  # the column that `take` adds to a block: the connection's number, -1 where there is none


def slow_answers(source: int, columns: Columns) -> list[SlowAnswer]:
    """Returns the answers of a block that came so late that a client may have closed its connection."""
    rows = np.flatnonzero(columns.is_kind("request") & (columns.codes("api", PROMPT, fold=True) == 1))
    duration_ns = np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64)
    slow = duration_ns >= SLOW_ANSWER_NS
    rows, took = rows[slow], duration_ns[slow].tolist()
    told = zip(columns["source_wall_ns"][rows].tolist(), columns["time_ns"][rows].tolist(), took, strict=True)
    return [SlowAnswer(source, None if wall == NONE else wall, time, duration) for wall, time, duration in told]


@dataclass
class Connections:
    """Gathers the connections of all request logs; a number is the place in the tuple."""

    _numbers: dict[tuple[int, int, str], int] = field(default_factory=dict)
    _clients: list[str | None] = field(default_factory=list)
    _earliest: list[tuple[int, int]] = field(default_factory=list)
    _latest: list[tuple[int, int]] = field(default_factory=list)
    _fetching: set[int] = field(default_factory=set)
    _grouped: set[int] = field(default_factory=set)
    _consumer_protocol: set[int] = field(default_factory=set)

    def take(self, source: int, columns: Columns) -> None:
        """Takes the requests of a block, and adds its column of numbers."""
        numbers = np.full(len(columns), -1, np.int64)
        names, codes = columns.encoded("connection")
        rows = np.flatnonzero(columns.is_kind("request") & (codes >= 0) & (columns["lane"] != NONE))
        if len(rows):
            numbers[rows] = self._numbered(source, columns, rows, names, codes)
            fetched = numbers[columns.codes("api", {"FETCH": 1}, fold=True) == 1]
            self._fetching |= set(np.unique(fetched[fetched >= 0]).tolist())
            asked = numbers[columns.codes("api", ASKS_FOR_GROUP, fold=True) == 1]
            self._grouped |= set(np.unique(asked[asked >= 0]).tolist())
            beats = numbers[columns.codes("api", {"CONSUMERGROUPHEARTBEAT": 1}, fold=True) == 1]
            self._consumer_protocol |= set(np.unique(beats[beats >= 0]).tolist())
        columns.add(NUMBER, numbers)

    def _numbered(self, source: int, columns: Columns, rows: Array, names: list[str], codes: Array) -> Array:
        pairs = np.stack([columns["lane"][rows], codes[rows]], axis=1)
        different, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        clients = columns.text("client_id", rows[first]).to_pylist()
        duration_ns = np.nan_to_num(columns.reals("duration_ms")[rows] * 1_000_000).astype(np.int64)
        wall_ns = columns["source_wall_ns"][rows]
        earliest, latest = (np.full((len(different), 2), none, np.int64) for none in (NEVER, NONE))
        begun = wall_ns - np.where(wall_ns == NONE, 0, duration_ns), columns["time_ns"][rows] - duration_ns
        for side, values in enumerate(begun):
            np.maximum.at(latest[:, side], which.ravel(), values)
            np.minimum.at(earliest[:, side], which.ravel(), np.where(values == NONE, NEVER, values))
        numbers = [
            self._number((source, lane, names[code]), client, first, last)
            for (lane, code), client, first, last in zip(
                different.tolist(), clients, earliest.tolist(), latest.tolist(), strict=True
            )
        ]
        found: Array = np.array(numbers, np.int64)[which.ravel()]
        return found

    def _number(self, key: tuple[int, int, str], client: str | None, first: list[int], last: list[int]) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._latest):
            self._clients.append(client)
            self._earliest.append((NEVER, NEVER))
            self._latest.append((NONE, NONE))
        (first_wall, first_time), (last_wall, last_time) = self._earliest[number], self._latest[number]
        self._earliest[number] = min(first_wall, first[0]), min(first_time, first[1])
        self._latest[number] = max(last_wall, last[0]), max(last_time, last[1])
        return number

    def all(self) -> tuple[Connection, ...]:
        """Returns what is known of each connection."""
        spans = zip(self._earliest, self._latest, strict=True)
        known = zip(self._numbers.items(), self._clients, spans, strict=True)
        return tuple(
            Connection(
                *key,
                client,
                first_wall_ns=None if first_wall == NEVER else first_wall,
                first_time_ns=first_time,
                last_wall_ns=None if last_wall == NONE else last_wall,
                last_time_ns=last_time,
                fetches=number in self._fetching,
                of_group=number in self._grouped,
                consumer_protocol=number in self._consumer_protocol,
            )
            for (key, number), client, ((first_wall, first_time), (last_wall, last_time)) in known
        )
