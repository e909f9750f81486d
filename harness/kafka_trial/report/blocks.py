"""A history's files in blocks of lines, each with the stretch of time it covers.

A report shows some dozens of events out of millions. The files are read through once, every line; where the events
near a moment are looked for afterwards, only the blocks that may hold them are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from kafka_trial.history.event import Event, fields_of, from_line

BLOCK_LINES = 512


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file, by their bytes, and the earliest and the latest `time_ns` of the events on them."""

    file: Path
    at: int
    size: int
    first_ns: int
    last_ns: int

    def events(self) -> Iterator[Event]:
        """Yields the events of the block; lines that are none are left out."""
        with self.file.open("rb") as file:
            file.seek(self.at)
            lines = BytesIO(file.read(self.size))
        for line in lines:
            with suppress(ValueError):  # counted when the file was read through
                yield from_line(line)


def read_through(
    file: Path, damaged: Counter[str], *, block_lines: int = BLOCK_LINES
) -> Iterator[tuple[Block, list[Mapping[str, Any]]]]:
    """Yields a file's blocks with the fields of their events; `damaged` counts its lines that are no events."""
    at = 0
    with file.open("rb") as all_lines:
        while lines := list(islice(all_lines, block_lines)):
            events: list[Mapping[str, Any]] = []
            for line in lines:
                try:
                    events.append(fields_of(line))
                except ValueError:
                    damaged[file.name] += 1
            size = sum(map(len, lines))
            if events:
                times = [event["time_ns"] for event in events]
                yield Block(file, at, size, min(times), max(times)), events
            at += size
