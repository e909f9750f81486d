"""What PostgreSQL says of committed changes, decoded: the messages of its plugin `pgoutput`, protocol version 1.

Logical decoding hands out whole transactions in the order of their commits, and of a transaction that was rolled back
nothing. Only decodes; what the changes mean is said in `sink_table.py`. Source: PostgreSQL, "Logical Replication
Message Formats" and "Streaming Replication Protocol". Numbers are big-endian; times are microseconds since 2000.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

EPOCH_S: Final = 946_684_800  # 2000-01-01T00:00:00Z in seconds since 1970

BYTEA: Final = 17  # the number of its type
TIMES: Final = frozenset({1082, 1083, 1114, 1184, 1266})  # date, time, timestamp, and the two with a zone

Row = Mapping[str, bytes | None]
Operation = Literal["insert", "update", "delete"]
OPERATIONS: Final[Mapping[bytes, Operation]] = {b"I": "insert", b"U": "update", b"D": "delete"}
UNCHANGED: Final = object()  # a large value that an update left as it was: it stands in the old row


@dataclass(frozen=True, slots=True)
class Received:
    """One message of the stream: what it holds (None: only a sign of life), and up to where the log was read."""

    payload: bytes | None
    position: int
    wants_answer: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction has ended; `end` is the place in the log after it, `wall_ns` when it was committed."""

    place: int
    end: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is from now on: the names of its columns in order, and the numbers of their types."""

    number: int
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one row. Values are text, as PostgreSQL prints them, those of bytea their bytes; NULL is None.

    `old` is there whole if the table logs whole rows (REPLICA IDENTITY FULL), else with its key alone, or not at all.
    `times`: the columns that hold dates and times.
    """

    operation: Operation
    old: Row | None
    new: Row | None
    whole: bool = True
    times: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Truncated:
    """All rows of some tables were removed at once."""


Message = Commit | Relation | Change | Truncated | None


class UndecodableError(Exception):
    """A message is none that this protocol version knows."""


def received(data: bytes) -> Received:
    """Returns one message of the replication stream.

    Raises:
        UndecodableError: it is neither data nor a sign of life.
    """
    if data[:1] == b"w":
        start, _, _ = struct.unpack_from(">QQQ", data, 1)
        return Received(data[25:], start)
    if data[:1] == b"k":
        end, _, wants_answer = struct.unpack_from(">QQB", data, 1)
        return Received(None, end, bool(wants_answer))
    raise UndecodableError(f"a message of the replication stream begins with {data[:1]!r}")


def status(position: int, *, wants_answer: bool) -> bytes:
    """Returns our answer: all up to `position` was taken. `wants_answer`: the server is to say how far it has read."""
    return struct.pack(">cQQQQB", b"r", position, position, position, 0, wants_answer)


class Decoder:
    """Decodes the payloads of one stream in their order: later ones rest on the relations told before."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}

    def decode(self, payload: bytes) -> Message:
        """Returns what one payload says; None where it says nothing of rows.

        Raises:
            UndecodableError: it is cut short, or of a kind or a table that was never told of.
        """
        try:
            return self._decode(payload)
        except (struct.error, KeyError, IndexError, ValueError) as error:
            raise UndecodableError(f"a message of pgoutput cannot be decoded: {error!r}") from error

    def _decode(self, payload: bytes) -> Message:
        kind, reader = payload[:1], _Reader(payload, 1)
        if kind in (b"B", b"O", b"Y", b"M"):  # begin, origin, type, message
            return None
        if kind == b"C":
            _, place, end, time_us = reader.take(">BQQQ")
            return Commit(place, end, (EPOCH_S * 1_000_000 + time_us) * 1_000)
        if kind == b"R":
            relation = reader.relation()
            self._relations[relation.number] = relation
            return relation
        return Truncated() if kind == b"T" else self._change(OPERATIONS[kind], reader)

    def _change(self, operation: Operation, reader: _Reader) -> Change:
        relation = self._relations[reader.take(">I")[0]]
        rows: dict[bytes, list[Any]] = {}
        while not reader.ended:
            (which,) = reader.take(">c")
            rows[which] = reader.values()
        old, new = rows.get(b"O", rows.get(b"K")), rows.get(b"N")
        if old is not None and new is not None:
            new = [before if value is UNCHANGED else value for before, value in zip(old, new, strict=True)]
        whole = operation == "insert" or b"O" in rows
        times = frozenset(name for name, kind in relation.columns if kind in TIMES)
        return Change(operation, _row(relation, old), _row(relation, new), whole, times)


def _row(relation: Relation, values: list[Any] | None) -> Row | None:
    if values is None:
        return None
    columns = zip(relation.columns, values, strict=True)
    return {name: _plain(kind, value) for (name, kind), value in columns if value is not UNCHANGED}


def _plain(kind: int, value: bytes | None) -> bytes | None:
    if kind != BYTEA or value is None or not value.startswith(b"\\x"):
        return value
    return bytes.fromhex(value[2:].decode())


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    @property
    def ended(self) -> bool:
        return self._at >= len(self._data)

    def take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def relation(self) -> Relation:
        (number,) = self.take(">I")
        self.text()
        self.text()
        _, count = self.take(">BH")
        return Relation(number, tuple(self._column() for _ in range(count)))

    def _column(self) -> tuple[str, int]:
        self.take(">B")
        name = self.text()
        kind, _ = self.take(">II")
        return name, kind

    def values(self) -> list[Any]:
        (count,) = self.take(">H")
        return [self._value() for _ in range(count)]

    def _value(self) -> Any:
        (form,) = self.take(">c")
        if form == b"n":
            return None
        if form == b"u":
            return UNCHANGED
        if form != b"t":
            raise ValueError(f"unknown form of a value: {form!r}")
        (size,) = self.take(">I")
        value = self._data[self._at : self._at + size]
        if len(value) != size:
            raise IndexError(f"a value of {size} bytes is cut short")
        self._at += size
        return value
