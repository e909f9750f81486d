"""Plays what is missing of the matrix of upgrades, one after the other, by the command; each attempt is a row."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM
from typing import Any, Final

import orjson

from kafka_trial.errors import FAIL, PASS, UnjudgeableError, WaitTimeout
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.upgrade.outcome import GO, NOT_KNOWN
from lab.calibration.source_digests import judging_digest, making_digest, upgrading_digest
from lab.repository import git_revision, reports_folder
from lab.upgrades.known import KnownRow, known_from_table
from lab.upgrades.known_page import KNOWN_ROWS_NAME, known_lines
from lab.upgrades.page import PAGE_NAME, page_of
from lab.upgrades.plays import ROWS_NAME, Play, Row, plays, read_rows, row_of, row_without_record

RUNS: Final = Path("trial-runs") / "upgrades"
TRIES: Final = 2  # of a play that is unknown
PLAY_WITHIN_S = 3600.0  # a slow machine takes half of it; whoever stands still takes the bound of each drain
ENDS_WITHIN_S = 60.0  # from SIGTERM on


def play_all(*, minutes: float | None, only: Sequence[str] = ()) -> int:
    """Plays what is missing, then writes the page; 1 where a newest row is no go. `only`: of these versions before."""
    rows_file = reports_folder() / ROWS_NAME
    until_s = None if minutes is None else time.monotonic() + minutes * 60
    for play in missing(read_rows(rows_file), digest()):
        if only and play.before not in only:
            continue
        if until_s is not None and time.monotonic() > until_s:
            print(f"time is up before {play}", flush=True)
            break
        row = play_one(play)
        append_row(rows_file, row)
        print(f"{play}: {row.outcome}, {row.seconds:.0f} s", flush=True)
    return write_page()


def digest() -> str:
    """Returns the digest of the code that plays upgrades, and makes and judges histories."""
    return f"{making_digest()}-{judging_digest()}-{upgrading_digest()}"


def missing(rows: Sequence[Row], digest: str) -> list[Play]:
    """Returns the plays without an answer of this code: never played, or unknown and to be tried again. Those that were
    no go last time, or never played, come first, each pair once before one is played again: the page is whole, and what
    is wrong on it looked at, before it is measured anew."""
    own = [row for row in rows if row.digest == digest]
    tried = Counter(row.play for row in own)
    answered = {row.play for row in own if row.outcome != NOT_KNOWN}
    last = {row.play: row.outcome for row in rows}
    left = [play for play in plays() if play not in answered and tried[play] < TRIES]
    return sorted(left, key=lambda play: (last.get(play) == GO, play.seed))


def play_one(play: Play) -> Row:
    """Plays an upgrade; its run folders stay unless all is a go. Without a record it is unknown."""
    out, commit = RUNS / play.folder, git_revision()
    try:
        record, seconds = by_command(play, out, side_by_side=play.side_by_side)
    except UnjudgeableError as error:
        return row_without_record(play, str(error), digest=digest(), commit=commit)
    row = row_of(play, record, seconds=seconds, digest=digest(), commit=commit)
    if row.outcome == GO:
        shutil.rmtree(out)
    return row


def by_command(
    play: Play, out: Path, *, side_by_side: int | None = None, within_s: float = PLAY_WITHIN_S, until: str = ""
) -> tuple[Mapping[str, Any], float]:
    """Plays an upgrade by the command, with all consumers on one cluster or at most `side_by_side`; returns its record,
    and how many seconds all of it took. After `within_s`, or when the stage `until` is judged, it is ended by SIGTERM:
    its record says what was not played.

    Raises:
        UnjudgeableError: it left no record; with its last words.
    """
    shutil.rmtree(out, ignore_errors=True)
    words = ["upgrade", "--from", play.before, "--to", play.after, "--shape", play.shape]
    words += ["--consumer", *play.consumers, "--seed", str(play.seed), "--out", str(out)]
    words += ["--side-by-side", str(side_by_side or len(play.consumers)), "--add-partitions", str(play.added)]
    began_s = time.monotonic()
    with tempfile.NamedTemporaryFile() as said, ChildProcesses("upgrades") as child_processes:
        command = [sys.executable, "-m", "kafka_trial", *words]
        child = child_processes.spawn("upgrade", command, stdout=said, stderr=said)
        told = Path(said.name)
        with suppress(WaitTimeout):
            wait_until(
                lambda: not child.alive or (until and f"\n{until}, " in told.read_text()),  # its outcomes
                within_s=within_s,
                what=f"{play} to be played",
                every_s=0.5,
            )
        child.signal(SIGTERM, group=False)
        status = child.wait(within_s=ENDS_WITHIN_S)
        last_words = told.read_text()[-500:]
    seconds = time.monotonic() - began_s
    try:
        return orjson.loads((out / UPGRADE).read_bytes()), seconds
    except OSError as error:
        raise UnjudgeableError(f"{play} left no record, status {status}: {last_words}") from error


def write_page() -> int:
    """Writes the page of the newest row of each play; 1 where one of them is no go."""
    folder = reports_folder()
    rows = read_rows(folder / ROWS_NAME)
    known = rows_in(folder / KNOWN_ROWS_NAME, known_from_table)
    (folder / PAGE_NAME).write_text(whole_page(rows, known))
    newest = {row.play: row for row in rows}.values()
    return PASS if all(row.outcome == GO for row in newest) else FAIL


def whole_page(rows: Sequence[Row], known: Sequence[KnownRow]) -> str:
    """Returns the page: the matrix, then the known differences."""
    return "\n".join([page_of(rows), *known_lines(known)])
