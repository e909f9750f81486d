"""The last lines of what each member wrote to stderr, and as text to stdout: for the page.

They stand in the run folder's `logs/`, a file for each incarnation (`m1-0.stderr`). What a consumer wrote is bounded
here, to so many lines of so many characters of so many files, and made printable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.history.store import RunFolder
from kafka_trial.report.event_text import bounded

LINES_MAX = 20
LINE_MAX = 400
TAIL_BYTES = 64 * 1024
FILES_MAX = 24
STREAMS = ("stderr", "stdout")


@dataclass(frozen=True)
class MemberLog:
    """The end of one file: its name in the run folder, its size, and its last lines; `cut`: there are more before."""

    file: str
    size_bytes: int
    lines: tuple[str, ...]
    cut: bool


def read_member_logs(folder: RunFolder, gaps: list[str]) -> tuple[MemberLog, ...]:
    """Returns the ends of the members' logs, by member and incarnation; says in `gaps` what is left out."""
    files = list(_files(folder))
    written = [file for file in files if file.stat().st_size]
    if written[FILES_MAX:]:
        gaps.append(f"{FILES_MAX} of {len(written)} logs of members are shown; the others are in logs/")
    shown = set(written[:FILES_MAX])
    return tuple(_end_of(file) for file in files if file in shown or file not in written)


def _files(folder: RunFolder) -> Iterator[Path]:
    """Yields the logs of every incarnation that the history knows."""
    names = [path.stem.removeprefix("consumer-") for path in folder.history.glob("consumer-*.jsonl")]
    for name in sorted(names, key=_in_turn):
        places = (folder.logs / f"{name}.{stream}" for stream in STREAMS)
        yield from (place for place in places if place.is_file())


def _in_turn(name: str) -> tuple[str, int, str]:
    member, _, number = name.rpartition("-")
    return member, int(number) if number.isdecimal() else 0, name


def _end_of(file: Path) -> MemberLog:
    size = file.stat().st_size
    with file.open("rb") as log:
        log.seek(max(0, size - TAIL_BYTES), os.SEEK_SET)
        lines = log.read(TAIL_BYTES).decode(errors="replace").splitlines()
    cut = size > TAIL_BYTES or len(lines) > LINES_MAX
    told = tuple(bounded(line.expandtabs(4), most=LINE_MAX) for line in lines[-LINES_MAX:])
    return MemberLog(f"logs/{file.name}", size, told, cut)
