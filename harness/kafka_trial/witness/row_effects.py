"""Effects in a table: which changes of its rows are effects of records, and which only write again what was there.

Pure: changes go in, transaction by transaction, and events come out. What counts is what a transaction leaves behind,
for nobody else sees what lies in between. A new row is an effect of the record that it names; so is a row whose content
has become another. A row that is written anew as it was (an upsert of a record that came again), or deleted and put
back, is none: what came again was absorbed. What cannot be told from a table is named: whether an effect still counts
whose row is gone, and, where nobody says which columns make up an effect, whether a row is another in which only dates
and times have changed. Each row has a number of its own from its first change to its last, whatever stands in it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.witness.pgoutput import Change, Operation, Row

EFFECT, REWRITTEN, REMOVED = "effect", "row_rewritten", "row_removed"


@dataclass(frozen=True)
class RowEvent:
    """What a committed transaction did to the row of one record. `id` is None where the row names no record.

    `number`: which row of the table it was.
    """

    kind: str
    change: Operation
    id: str | None
    row: Row
    number: int


@dataclass
class _Net:
    """What a transaction made of one row so far."""

    before: Row | None
    after: Row | None
    number: int = -1


class RowEffects:
    """Follows the rows of one table. `content`: the columns that make up an effect; empty: all.

    `one_row_each`: each record has a row of its own, which no other record may take over.
    """

    def __init__(self, *, id_column: str, content: Sequence[str] = (), one_row_each: bool = True) -> None:
        self.not_whole = 0  # changes of which nobody knows what was there before
        self.retimed: Counter[str] = Counter()  # columns of time in which alone rows have changed
        self._id_column = id_column
        self._content = tuple(content)
        self._one_row_each = one_row_each
        self._times: frozenset[str] = frozenset()
        self._open: list[_Net] = []
        self._latest: defaultdict[bytes, list[_Net]] = defaultdict(list)  # by the row that each has made
        self._rows: Counter[str] = Counter()  # how many each record has now
        self._removed: defaultdict[str, list[bytes]] = defaultdict(list)  # contents that may be put back
        self._lost: dict[str, None] = {}
        self._numbers: defaultdict[bytes, list[int]] = defaultdict(list)  # by what stands in the rows now
        self._next_number = 0

    def take(self, change: Change) -> None:
        """Takes a change of the transaction that is being read."""
        if not change.whole:
            self.not_whole += 1
            return
        self._times = change.times
        earlier = None if change.old is None else self._latest[_digest(change.old)]
        if earlier:
            net = earlier.pop()
        else:
            self._open.append(net := _Net(before=change.old, after=None))
        net.after = change.new
        if net.after is not None:
            self._latest[_digest(net.after)].append(net)

    def commit(self) -> list[RowEvent]:
        """Returns what the transaction did, in the order in which it first touched its rows."""
        self._number_rows()
        events = [event for net in self._open for event in self._told(net)]
        self._open.clear()
        self._latest.clear()
        return events

    @property
    def lost(self) -> Sequence[str]:
        """The records that had a row, and have none any more, the first first."""
        return [name for name in self._lost if not self._rows[name]]

    def _number_rows(self) -> None:
        """Knows each changed row again by what stood in it; of rows that are alike in all columns any will do."""
        for net in self._open:
            known = [] if net.before is None else self._numbers.pop(_digest(net.before), [])
            if known:
                net.number = known.pop()
                if known and net.before is not None:
                    self._numbers[_digest(net.before)] = known
            else:
                net.number, self._next_number = self._next_number, self._next_number + 1
        for net in self._open:
            if net.after is not None:
                self._numbers[_digest(net.after)].append(net.number)

    def _told(self, net: _Net) -> Iterator[RowEvent]:
        if net.before is None and net.after is not None:
            yield self._inserted(net.after, net.number)
        elif net.before is not None and net.after is None:
            yield self._deleted(net.before, net.number)
        elif net.before is not None and net.after is not None:
            yield self._updated(net.before, net.after, net.number)

    def _inserted(self, row: Row, number: int) -> RowEvent:
        name = self._name(row)
        if name is None:
            return RowEvent(EFFECT, "insert", None, row, number)
        self._rows[name] += 1
        put_back, content = self._removed.get(name, []), self._content_of(row)
        if content not in put_back:
            return RowEvent(EFFECT, "insert", name, row, number)
        put_back.remove(content)
        return RowEvent(REWRITTEN, "insert", name, row, number)

    def _updated(self, before: Row, after: Row, number: int) -> RowEvent:
        name, old_name = self._name(after), self._name(before)
        if name == old_name:
            same = self._content_of(before) == self._content_of(after) or self._only_times(before, after)
            if name is not None:
                self._rows[name] = max(1, self._rows[name])  # the row may have been there before the trial
            return RowEvent(REWRITTEN if same else EFFECT, "update", name, after, number)
        self._leave(old_name, lost=self._one_row_each)
        if name is not None:
            self._rows[name] += 1
        return RowEvent(EFFECT, "update", name, after, number)

    def _only_times(self, before: Row, after: Row) -> bool:
        """Tells whether rows differ in columns of time alone, which may or may not make up an effect, and counts it."""
        changed = {name for name in after if before.get(name) != after[name]}
        only = not self._content and bool(changed) and changed <= self._times
        if only:
            self.retimed.update(changed)
        return only

    def _deleted(self, row: Row, number: int) -> RowEvent:
        name = self._name(row)
        self._leave(name, lost=True)
        if name is not None:
            self._removed[name].append(self._content_of(row))
        return RowEvent(REMOVED, "delete", name, row, number)

    def _leave(self, name: str | None, *, lost: bool) -> None:
        if name is not None and self._rows[name]:
            self._rows[name] -= 1
            if lost:
                self._lost[name] = None

    def _name(self, row: Row) -> str | None:
        value = row.get(self._id_column)
        return None if value is None else value.decode(errors="backslashreplace")

    def _content_of(self, row: Row) -> bytes:
        return _digest({name: row.get(name) for name in self._content} if self._content else row)


def _digest(row: Row) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in row.items():
        size = b"-" if value is None else str(len(value)).encode()
        digest.update(f"{len(name)}:{name}=".encode() + size + b":")
        digest.update(value or b"")
    return digest.digest()
