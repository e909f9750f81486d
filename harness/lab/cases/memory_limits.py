"""Case 4, under a limit of memory: who has what preflight predicts, and 30 %, lives; who has half of it does not.

On some rungs of the ladder a member takes what the ladder's probe takes (`large_records.drained_bytes`), once with room
for its idle base and `ROOM` of the prediction, and once for `HALF`. Of librdkafka it is the limit of a control group,
beyond which the kernel kills; of Java that of its heap (-Xmx), for what is predicted in it, which ends in an
OutOfMemoryError.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from kafka_trial.cluster.user_cache import run_tool
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import StartError
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
from kafka_trial.report.row_files import append_row, rows_in
from lab.cases import large_records
from lab.cases.large_records import TOLERANCE, MemoryCell, ProbePlace, drained_bytes, predicted, probe_command
from lab.cases.memory_group import memory_group
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "memory_limits.jsonl"
SIZES: Final = ("1kB", "1MB", "10MB")
LEVELS: Final = {LIBRDKAFKA: ("default", "small"), JAVA: ("default", "one-record")}
ROOM, HALF = 1 + TOLERANCE, 0.5  # of the prediction, over the idle base
SHARES: Final = (ROOM, HALF)
OUTSIDE: Final = "outside of the heap"  # preflight's name for what -Xmx does not bound
# Large arrays go to the old generation: it has nine tenths of the heap.
JVM: Final = (*(word for word in large_records.JVM if not word.startswith("-Xmx")), "-XX:NewRatio=8")
EXITS_OUT_OF_MEMORY: Final = 3  # of -XX:+ExitOnOutOfMemoryError
SURVIVES, OOM_KILLED, HEAP_FULL, NOT_TOLD = "lives", "oom-killed", "OutOfMemoryError", "not told"
ENDS: Final = {LIBRDKAFKA: OOM_KILLED, JAVA: HEAP_FULL}


@dataclass(frozen=True)
class LimitCell:
    """One member under a limit: a rung of the ladder, and which share of its prediction it has over its idle base."""

    rung: MemoryCell
    share: float

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"limit/{self.rung.name}/{self.share:.0%}"

    @property
    def expected(self) -> str:
        """What becomes of it where the prediction holds."""
        return SURVIVES if self.share >= ROOM else ENDS[self.rung.library]


@dataclass(frozen=True)
class LimitRow:
    """What became of a member, sizes in bytes. `predicted_bytes`: over its idle base, of what the limit bounds;
    `peak_bytes`: the most that its control group had; `kernel_kills`: how many of it the kernel killed for want of
    memory; `said`: its last words where it did not live."""

    cell: str
    library: str
    share: float
    predicted_bytes: int
    base_bytes: int
    limit_bytes: int
    peak_bytes: int
    kernel_kills: int
    status: int
    outcome: str
    expected: str
    said: str = ""
    kafka: str = DEFAULT_VERSION
    digest: str = ""
    commit: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it lived or died as the prediction has it, and of its memory."""
        return self.outcome == self.expected


def limit_cells() -> Iterator[LimitCell]:
    """Yields every cell, the smallest records first."""
    for size in SIZES:
        for library, levels in LEVELS.items():
            yield from (LimitCell(MemoryCell(size, library, level), share) for level in levels for share in SHARES)


def bounded_bytes(rung: MemoryCell) -> int:
    """Returns what is predicted of the memory that the limit bounds: all of it, or what of Java is in the heap."""
    said = predicted(rung)
    return said.process_bytes - sum(held.size_bytes for held in said.held if held.part == OUTSIDE)


def outcome_of(status: int, kernel_kills: int, said: str, *, taken_all: bool) -> str:
    """Tells what became of a member: only who took all that was asked for lives, only the kernel counts its kills."""
    if status == 0 and taken_all and not kernel_kills:
        return SURVIVES
    if status == -9 and kernel_kills:
        return OOM_KILLED
    return HEAP_FULL if status == EXITS_OUT_OF_MEMORY and HEAP_FULL in said else NOT_TOLD


@cache
def digest() -> str:
    """Returns what a row is made by: the ladder's, this module, and the control group's."""
    files = [Path(__file__), Path(__file__).with_name("memory_group.py")]
    parts = [large_records.digest().encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def measure_missing(cells: Sequence[LimitCell], *, until_s: float | None, say: Callable[[str], object]) -> None:
    """Tries what has no row of today yet, one after the other, and appends its rows; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {row.cell for row in read_rows(file) if row.digest == digest()}
    todo = [cell for cell in cells if cell.name not in done]
    if not todo:
        return
    bases: dict[str, int] = {}
    with large_records.probe_bench() as place_of:
        for number, cell in enumerate(todo, start=1):
            if until_s is not None and time.monotonic() > until_s:
                return
            place = place_of(cell.rung)
            if cell.rung.library not in bases:
                bases[cell.rung.library] = min(_idle_bytes(cell.rung, place) for _ in range(2))
            row = _tried(cell, place, bases[cell.rung.library])
            append_row(file, row)
            say(f"{number}/{len(todo)} {cell.name}: {row.outcome}, {row.limit_bytes} bytes {row.said[-200:]}")


def read_rows(file: Path) -> list[LimitRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, lambda table: LimitRow(**table))


def _idle_bytes(rung: MemoryCell, place: ProbePlace) -> int:
    """Returns what an idle member takes: the most of its control group, or of Java what is left in its heap.

    Of a first run the group also has the pages of the files that it read first: so it is asked twice, the least counts.
    """
    with memory_group() as group:
        status, said = run_tool("idle memory probe", group.command(probe_command(rung, place, idle=True)))
        measured = _measured(said)
        if status or measured is None:
            raise StartError(f"the idle member of {rung.library} ended with {status}: {said[-300:]}")
        return group.peak_bytes if rung.library == LIBRDKAFKA else int(measured["base_bytes"])


def _tried(cell: LimitCell, place: ProbePlace, base_bytes: int) -> LimitRow:
    limit_bytes = base_bytes + int(cell.share * bounded_bytes(cell.rung))
    jvm = (*JVM, f"-Xms{limit_bytes // 1024}k", f"-Xmx{limit_bytes // 1024}k", "-XX:+ExitOnOutOfMemoryError")
    with memory_group() as group:
        if cell.rung.library == LIBRDKAFKA:
            group.limit(limit_bytes)
        status, said = run_tool("memory probe", group.command(probe_command(cell.rung, place, jvm=jvm)))
        measured = _measured(said)
        taken_all = measured is not None and measured["taken"] >= drained_bytes(cell.rung)
        outcome = outcome_of(status, group.kills, said, taken_all=taken_all)
        return LimitRow(
            cell=cell.name,
            library=cell.rung.library,
            share=cell.share,
            predicted_bytes=bounded_bytes(cell.rung),
            base_bytes=base_bytes,
            limit_bytes=limit_bytes,
            peak_bytes=group.peak_bytes,
            kernel_kills=group.kills,
            status=status,
            outcome=outcome,
            expected=cell.expected,
            said="" if outcome == SURVIVES else said.strip()[-300:],
            digest=digest(),
            commit=git_revision(),
        )


def _measured(said: str) -> dict[str, Any] | None:
    """Returns the line of figures that a probe ends with; None where it did not come so far."""
    lines = [line for line in said.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None
