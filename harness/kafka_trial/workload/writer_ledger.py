"""What Kafka has promised to the writers beside an upgrade, and which promises a reader finds broken.

The id of a record says what it belongs to: `17-3` is a record of transaction 17, `42` is send 42. Of a committed
transaction a reader of committed records finds every record once, of an aborted one none, and of one whose end nobody
knows all or none. An acknowledged send of an idempotent producer is there once; one whose fate nobody knows once at
most (KIP-98). A breach that was told before is not told again: it is of an earlier stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

COMMITTED, ABORTED, OPEN, INFO, OK = "committed", "aborted", "open", "info", "ok"
NOT_WHOLE, TAKEN_BACK, IN_PART, TWICE = "not whole", "taken back", "in part", "twice"
GONE, SENT_TWICE, STRANGE = "gone", "sent twice", "strange"
MESSAGES: Final = {  # by kind of breach: what is said before the first of them are named
    NOT_WHOLE: "of committed transactions not every record can be read",
    TAKEN_BACK: "records of aborted transactions are read as committed",
    IN_PART: "of transactions whose end nobody knows a part is read as committed",
    TWICE: "records of transactions are there more than once",
    GONE: "acknowledged records of an idempotent producer are gone",
    SENT_TWICE: "records of an idempotent producer are there more than once",
    STRANGE: "there are records that nobody wrote",
}
NAMED_MAX: Final = 3


@dataclass
class Transaction:
    """One transaction: how many records it had, and how it ended: committed, aborted, or info (nobody knows)."""

    number: int
    records: int = 0
    outcome: str = OPEN

    def ids(self) -> list[str]:
        return [f"{self.number}-{index}" for index in range(self.records)]


@dataclass
class Ledger:
    """All transactions, and what became of each send: ok, or info."""

    transactions: list[Transaction] = field(default_factory=list)
    sends: list[str] = field(default_factory=list)
    _told: set[tuple[str, str]] = field(default_factory=set)

    @property
    def committed(self) -> int:
        return sum(one.outcome == COMMITTED for one in self.transactions)

    def counts(self) -> dict[str, int]:
        """Returns how many transactions ended how, and how many sends were acknowledged."""
        ends = Counter(one.outcome for one in self.transactions)
        return dict(sorted(ends.items())) | {"acknowledged": self.sends.count(OK), "sent": len(self.sends)}

    def new_breaches(self, transactions: Mapping[str, int], sends: Mapping[str, int]) -> list[str]:
        """Returns what is not as promised and was not told before, as messages; how often each record was read, by id.

        Read are the topic of the transactions and that of the sends, to their ends, while nothing was written.
        """
        by_kind: dict[str, list[str]] = {}
        for kind, which, example in [*self._of_transactions(transactions), *self._of_sends(sends)]:
            if (kind, which) not in self._told:
                self._told.add((kind, which))
                by_kind.setdefault(kind, []).append(example)
        return [_message(kind, examples) for kind, examples in by_kind.items()]

    def _of_transactions(self, read: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
        left = Counter(read)
        for one in self.transactions:
            ids = one.ids()
            there = [name for name in ids if left[name]]
            told = f"transaction {one.number} ({len(there)} of {len(ids)} records)"
            if one.outcome == COMMITTED and len(there) < len(ids):
                yield NOT_WHOLE, str(one.number), told
            elif one.outcome == ABORTED and there:
                yield TAKEN_BACK, str(one.number), told
            elif one.outcome == INFO and 0 < len(there) < len(ids):
                yield IN_PART, str(one.number), told
            if any(left[name] > 1 for name in ids):
                yield TWICE, str(one.number), f"transaction {one.number}"
            for name in ids:
                left.pop(name, None)
        yield from ((STRANGE, name, name) for name in sorted(left) if left[name])

    def _of_sends(self, read: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
        for number, outcome in enumerate(self.sends):
            times = read.get(str(number), 0)
            if outcome == OK and not times:
                yield GONE, str(number), f"send {number}"
            elif times > 1:
                yield SENT_TWICE, str(number), f"send {number} ({times} times)"
        known = {str(number) for number in range(len(self.sends))}
        yield from ((STRANGE, name, name) for name in sorted(read.keys() - known))


def _message(kind: str, examples: list[str]) -> str:
    more = len(examples) - NAMED_MAX
    return f"{MESSAGES[kind]}: {', '.join(examples[:NAMED_MAX])}" + (f" and {more} more" if more > 0 else "")
