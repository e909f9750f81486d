"""The histories that are frozen: those that tests write down by hand, and drawn ones, kept as text.

What draws and what writes them may change; these stay, so that two judges are asked the same.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.history.event import Event, from_line, to_line
from kafka_trial.registry import CHECKOUT

FILE: Final = CHECKOUT / "fixtures" / "histories" / "frozen.jsonl.xz"
DIGITS: Final = 12


@dataclass(frozen=True)
class FrozenHistory:
    """One history as text, a line an event, with what its consumer declares (fields of `Settings`)."""

    lines: tuple[str, ...]
    settings: Mapping[str, Any]
    drawn: bool = False

    @property
    def name(self) -> str:
        """What it is called wherever it is told of: it follows from what it holds."""
        digest = hashlib.sha256(orjson.dumps([self.lines, self.settings], option=orjson.OPT_SORT_KEYS)).hexdigest()
        return f"{'drawn' if self.drawn else 'literal'}-{digest[:DIGITS]}"

    def events(self) -> list[Event]:
        """Returns its events."""
        return [from_line(line) for line in self.lines]


def frozen_history(events: Iterable[Event], settings: Mapping[str, Any], *, drawn: bool = False) -> FrozenHistory:
    """Returns a history as it is kept."""
    plain = orjson.loads(orjson.dumps(settings))
    return FrozenHistory(tuple(to_line(event).decode().rstrip("\n") for event in events), plain, drawn)


def write_histories(histories: Iterable[FrozenHistory], file: Path = FILE) -> int:
    """Keeps histories, each once; returns how many there are."""
    kept = {one.name: one for one in histories}
    rows = [{"drawn": one.drawn, "settings": one.settings, "lines": one.lines} for _, one in sorted(kept.items())]
    with lzma.open(file, "wb", preset=9) as out:
        out.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return len(rows)


def read_histories(file: Path = FILE) -> Iterator[FrozenHistory]:
    """Yields the histories that are kept, in the order of their names; none where there is no file."""
    if file.exists():
        with lzma.open(file, "rb") as lines:
            for row in map(orjson.loads, lines):
                yield FrozenHistory(tuple(row["lines"]), row["settings"], row["drawn"])
