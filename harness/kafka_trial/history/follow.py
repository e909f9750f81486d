"""Reading a history while it is being written: whole new lines since the last look, file by file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka_trial.history.event import Event, from_line


class Follower:
    """Yields the events that were appended to the files matching `pattern` since the last look."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self._folder = folder
        self._pattern = pattern
        self._places: dict[Path, int] = {}

    def new_events(self) -> Iterator[Event]:
        """Yields each new event once; a line still being written waits for the next look."""
        for path in sorted(self._folder.glob(self._pattern)):
            with path.open("rb") as file:
                file.seek(self._places.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._places[path] = self._places.get(path, 0) + len(line)
                    yield from_line(line)
