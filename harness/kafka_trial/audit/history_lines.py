"""The lines of an audit's history that its own rules read again: of some kinds, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_trial.history.event import Event, from_line


def events_of(history: Path, source: str, kinds: Iterable[str]) -> Iterator[Event]:
    """Yields the readable events of some kinds; damaged lines are the judge's to name."""
    path, wanted = history / f"{source}.jsonl", [f'"kind":"{kind}"'.encode() for kind in kinds]
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if any(kind in line for kind in wanted):
                try:
                    yield from_line(line)
                except (ValueError, TypeError):
                    continue
