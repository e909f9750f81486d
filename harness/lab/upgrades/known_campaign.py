"""Plays the known differences, one play after the other, by the command; each attempt is a row."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka_trial.errors import UnjudgeableError
from kafka_trial.report.row_files import append_row, rows_in
from lab.repository import git_revision, reports_folder
from lab.upgrades.campaign import RUNS, TRIES, by_command, digest, write_page
from lab.upgrades.known import (
    KnownPath,
    KnownRow,
    fixtures_digest,
    is_answered,
    known_from_table,
    known_plays,
    known_row,
    row_without_record,
)
from lab.upgrades.known_page import KNOWN_ROWS_NAME
from lab.upgrades.plays import Play

KNOWN_RUNS: Final = RUNS / "known"


def play_known(*, minutes: float | None) -> int:
    """Plays what is missing of the known differences, then writes the page; 1 as `write_page`."""
    file = reports_folder() / KNOWN_ROWS_NAME
    until_s = None if minutes is None else time.monotonic() + minutes * 60
    for path, play in missing_known(read_known(file), known_digest()):
        if until_s is not None and time.monotonic() > until_s:
            print(f"time is up before {play}", flush=True)
            break
        out = KNOWN_RUNS / f"{play.folder}-{path.control or 'refused'}"
        try:
            record, seconds = by_command(play, out, until=path.until)
        except UnjudgeableError as error:
            append_row(file, row_without_record(path, play, str(error), digest=known_digest(), commit=git_revision()))
            print(f"{play}: {error}", flush=True)
            continue
        row = known_row(path, play, record, seconds=seconds, digest=known_digest(), commit=git_revision())
        append_row(file, row)
        if not any((*row.found.values(), row.control)):
            shutil.rmtree(out)
        print(f"{play}: {said_of(row)}, {seconds:.0f} s", flush=True)
    return write_page()


def read_known(file: Path) -> list[KnownRow]:
    """Returns every row, oldest first; none where there is no file.

    Raises:
        InputError: a line is no row.
    """
    return rows_in(file, known_from_table)


def known_digest() -> str:
    """Returns the digest of the code that makes and judges histories, and of the fixtures."""
    return f"{digest()}-{fixtures_digest()}"


def missing_known(rows: Sequence[KnownRow], digest: str) -> list[tuple[KnownPath, Play]]:
    """Returns the plays without an answer of this code: first those without any, then those whose newest is wrong."""
    own = [row for row in rows if row.digest == digest]
    tried = Counter(row.play for row in own)
    answered = {row.play for row in own if is_answered(row)}
    right = {row.play: not any((*row.found.values(), row.control)) for row in rows if is_answered(row)}  # the newest
    left = [(path, play) for path, play in known_plays() if play not in answered and tried[play] < TRIES]
    return sorted(left, key=lambda one: (one[1] in right, right.get(one[1], False)))


def said_of(row: KnownRow) -> str:
    """Returns a line on a play: how many were found, and each that was not."""
    lacking = [f"not found: {name} ({said})" for name, said in row.found.items() if said]
    lacking += [f"and the control: {row.control}"] if row.control else []
    return "; ".join([f"{sum(not said for said in row.found.values())} of {len(row.found)} found", *lacking])
