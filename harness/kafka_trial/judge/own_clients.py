"""Own clients: which of several clients in its process each line of a member speaks for, where it says so."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafka_trial.judge.columns import Columns
from kafka_trial.model.kernels import Array
from kafka_trial.model.trial_context import OwnClient

NUMBER = "own_client"  # the column that `take` adds to a block: the client's number, -1 where the line names none
NAMES = ("client_id", "member_id")


@dataclass
class OwnClients:
    """Gathers the clients that lines name; a number is the place in the tuple."""

    _numbers: dict[tuple[int, str, str], int] = field(default_factory=dict)
    _lines: list[tuple[int, int]] = field(default_factory=list)

    def take(self, source: int, columns: Columns, *, own: bool) -> None:
        """Takes the lines of a block, and adds its column of numbers; `own`: the file is a member's."""
        numbers = np.full(len(columns), -1, np.int64)
        for name in NAMES if own else ():
            texts, codes = columns.encoded(name)
            for code, text in enumerate(texts):  # clients, not lines
                rows = np.flatnonzero((codes == code) & (numbers < 0))
                if len(rows) and text:
                    numbers[rows] = self._number((source, name, text), columns["seq"][rows])
        columns.add(NUMBER, numbers)

    def _number(self, key: tuple[int, str, str], seqs: Array) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        first, last = int(seqs.min()), int(seqs.max())
        if number == len(self._lines):
            self._lines.append((first, last))
        before = self._lines[number]
        self._lines[number] = min(before[0], first), max(before[1], last)
        return number

    def all(self) -> tuple[OwnClient, ...]:
        """Returns what is known of each client."""
        known = zip(self._numbers, self._lines, strict=True)
        return tuple(OwnClient(source, name, text, first, last) for (source, name, text), (first, last) in known)
