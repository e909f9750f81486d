"""The page of case 4, `docs/cases/4.md`: the story, plots and tables, made of the rows and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.errors import FAIL, PASS
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
from lab.cases import large_record_cures, large_records, memory_limits, refusing_hops
from lab.cases.large_record_cures import CureRow, Drained
from lab.cases.large_records import (
    AGREES,
    CASE,
    LADDER,
    LEVELS,
    LIBRARIES,
    NOT_MEASURED,
    OFF,
    PLAIN,
    PREFETCH,
    TOLERANCE,
    TOO_SMALL,
    ZEROS,
    MemoryRow,
)
from lab.cases.memory_limits import HALF, ROOM, LimitRow, bounded_bytes, limit_cells
from lab.cases.plots import plot, shown
from lab.cases.refusing_hops import HopRow
from lab.repository import reports_folder

PAGE_NAME: Final = "4.md"
HEAD: Final = Path(__file__).with_name("large_records.md")
PLOT: Final = "4-memory"
MB: Final = 1_000_000
SIZES_OF_CURES: Final = ("1MB", "10MB")  # on which records are compressed too
WITH_SMALL: Final = {cell.name for cell in large_record_cures.CELLS if cell.samples}
MARKERS: Final = {LIBRDKAFKA: "o", JAVA: "s"}
CONTENTS: Final = {PLAIN: "not compressed", large_records.TEXT: "gzip, text", ZEROS: "gzip, zeros: a bomb"}


def write_page() -> int:
    """Writes page and plot of the rows there are; 1 where memory, an end under a limit or a hop is not as predicted."""
    memory, limits, cures, hops = stored_rows()
    folder = reports_folder().parent / "docs" / "cases"
    folder.mkdir(exist_ok=True)
    _draw(memory)
    (folder / PAGE_NAME).write_text(page(memory, limits, cures, hops))
    agree = [*(row.verdict != OFF for row in memory), *(row.agrees for row in limits), *(row.agrees for row in hops)]
    return PASS if all(agree) else FAIL


def stored_rows() -> tuple[list[MemoryRow], list[LimitRow], list[CureRow], list[HopRow]]:
    """Returns the rows that stand on the page, as `page` takes them."""
    reports = reports_folder()
    return (
        _newest_memory(large_records.read_rows(reports / large_records.ROWS_NAME)),
        _newest_limits(memory_limits.read_rows(reports / memory_limits.ROWS_NAME)),
        _newest_cures(large_record_cures.read_rows(reports / large_record_cures.ROWS_NAME)),
        _newest_hops(refusing_hops.read_rows(reports / refusing_hops.ROWS_NAME)),
    )


def page(
    memory: Sequence[MemoryRow], limits: Sequence[LimitRow], cures: Sequence[CureRow], hops: Sequence[HopRow]
) -> str:
    """Returns the page of the rows."""
    ladder = [row for row in memory if row.content == PLAIN]
    parts = [HEAD.read_text(), _summary(ladder), *(_of_library(ladder, library) for library in LIBRARIES)]
    parts += [_limits(limits), _cures(memory), _elsewhere(cures), _hops(hops), _measured(memory, limits, cures, hops)]
    return "\n".join(parts)


def _newest_memory(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Returns a row of each cell whose prediction is still that of today, in the order of the ladder.

    Of its rows those of the newest probe count, and of these the one that held most: predicted is the worst, and one
    run need not come to it.
    """
    shown_rows = []
    for cell in large_records.ladder():
        today = large_records.predicted(cell).process_bytes
        own = [row for row in rows if (row.cell, row.predicted_bytes) == (cell.name, today)]
        own = [row for row in own if row.verdict != NOT_MEASURED]
        shown_rows += sorted((row for row in own if row.digest == own[-1].digest), key=lambda row: row.held_bytes)[-1:]
    return shown_rows


def _newest_limits(rows: Sequence[LimitRow]) -> list[LimitRow]:
    """Returns the newest row of each cell whose prediction is still that of today, in the order of the ladder."""
    named = {row.cell: row for row in rows}
    cells = [cell for cell in limit_cells() if cell.name in named]
    return [named[cell.name] for cell in cells if named[cell.name].predicted_bytes == bounded_bytes(cell.rung)]


def _newest_cures(rows: Sequence[CureRow]) -> list[CureRow]:
    newest = {row.cell: row for row in rows}
    return [newest[cell.name] for cell in large_record_cures.CELLS if cell.name in newest]


def _newest_hops(rows: Sequence[HopRow]) -> list[HopRow]:
    return [*{row.hop: row for row in rows if row.digest == rows[-1].digest}.values()]


def _draw(rows: Sequence[MemoryRow]) -> None:
    """Draws what was held over what was predicted, with the band of the tolerance."""
    told = [row for row in rows if row.verdict in (AGREES, OFF)]
    with plot(PLOT, figsize=(6.0, 4.0)) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        edges = [min((row.predicted_bytes for row in told), default=MB) / MB / 1.5]
        edges.append(max((row.predicted_bytes for row in told), default=MB) / MB * 1.5)
        low, high = ([edge * (1 + sign * TOLERANCE) for edge in edges] for sign in (-1, 1))
        axes.fill_between(edges, low, high, color="0.9", label=f"within {TOLERANCE:.0%}")
        axes.plot(edges, edges, color="0.6", linewidth=1)
        for library, marker in MARKERS.items():
            own = [row for row in told if row.library == library]
            points = [row.predicted_bytes / MB for row in own], [row.held_bytes / MB for row in own]
            axes.plot(*points, marker, fillstyle="none", label=library)
        axes.set_xlabel("predicted, MB over the idle base")
        axes.set_ylabel("measured, MB over the idle base")
        axes.legend(loc="upper left")


def _summary(rows: Sequence[MemoryRow]) -> str:
    told = [row for row in rows if row.verdict in (AGREES, OFF)]
    agree = sum(row.verdict == AGREES for row in told)
    said = f"Predicted and measured memory of {len(told)} measurements; {agree} agree"
    worst = "Predicted is the worst; of cells that were measured several times the run that held most counts."
    return "\n".join(["## Predicted and measured", "", shown(PLOT, said), "", f"{said}. {worst}", ""])


def _of_library(rows: Sequence[MemoryRow], library: str) -> str:
    """Of one library: measured ÷ predicted, by the size of records and what it fetches ahead."""
    table = [["records", *(f"`{level}`" for level in LEVELS[library])]]
    for size in LADDER:
        named = {row.prefetch: row for row in rows if row.cell.startswith(f"{size}/{library}/")}
        table.append([size, *(_told(named.get(level)) for level in LEVELS[library])])
    settings = "; ".join(f"`{level}`: {_settings(library, level)}" for level in LEVELS[library])
    said = f"MB measured / predicted. {settings}."
    return "\n".join([f"### {library}", "", said, "", *_table(table), ""])


def _settings(library: str, level: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in PREFETCH[library][level].items()) or "none set"


def _told(row: MemoryRow | None) -> str:
    if row is None or row.verdict == NOT_MEASURED:
        return "-"
    figures = f"{row.held_bytes / MB:.1f} / {row.predicted_bytes / MB:.1f}"
    return figures + {AGREES: "", OFF: " **off**", TOO_SMALL: f" ({TOO_SMALL})"}[row.verdict]


def _limits(rows: Sequence[LimitRow]) -> str:
    """What became of members under a limit of memory."""
    table = [["records", "of", "settings", "predicted, MB", "idle base, MB", f"with {ROOM:.0%}", f"with {HALF:.0%}"]]
    for first in [row for row in rows if row.share == ROOM]:
        _, size, library, level, _ = first.cell.split("/")
        rung = first.cell.rpartition("/")[0]
        ends = [next((row for row in rows if row.cell == f"{rung}/{share:.0%}"), None) for share in (ROOM, HALF)]
        figures = [f"{first.predicted_bytes / MB:.1f}", f"{first.base_bytes / MB:.1f}"]
        table.append([size, library, _settings(library, level), *figures, *map(_ended, ends)])
    agree = sum(row.agrees for row in rows)
    said = (
        f"The same members under a limit: their idle base, and {ROOM:.0%} of what is predicted, or {HALF:.0%}. "
        "Of librdkafka it is the limit of a control group, beyond which the kernel kills (`oom-killed`, by the group's "
        "own count of kills, and status -9); of Java that of the heap (`-Xmx`), where predicted is what is in it. Who "
        "lives has taken as much as was asked of it. "
        f"In brackets: the limit in MB. {agree} of {len(rows)} ended as predicted."
    )
    return "\n".join(["## Under a limit of memory", "", said, "", *_table(table), ""])


def _ended(row: LimitRow | None) -> str:
    if row is None:
        return "-"
    return f"{row.outcome} ({row.limit_bytes / MB:.1f})" + ("" if row.agrees else f" **off**: {row.expected} expected")


def _cures(rows: Sequence[MemoryRow]) -> str:
    """What the cures leave of the memory that large records take, and what compression does to it."""
    table = [["records", "of", "settings", "what is in them", "ratio", "MB measured / predicted", "idle base, MB"]]
    for row in rows:
        size = row.cell.partition("/")[0]
        if size in SIZES_OF_CURES or row.prefetch not in LEVELS[row.library]:
            about = [f"{row.ratio:.0f}" if row.content != PLAIN else "-", _told(row), f"{row.base_bytes / MB:.0f}"]
            table.append([size, row.library, _settings(row.library, row.prefetch), CONTENTS[row.content], *about])
    said = (
        "A smaller prefetch is the cure that costs nothing but round trips. Compression by itself is none: the limits "
        "of a fetch count what is compressed, so that a response may bring as many more records, and what is held is "
        "decompressed. A bomb passes even a limit of 64 kB a partition."
    )
    return "\n".join(["## Cures", "", said, "", *_table(table), ""])


def _elsewhere(rows: Sequence[CureRow]) -> str:
    """A claim check, and a topic of their own for large records, each beside the same consumer without it."""
    table = [["trial", "verdict", "found", "records", "most memory, MB", "drained in, s", "its small records in, s"]]
    for row in rows:
        told = row.drained
        figures = (
            ["-"] * 4 if told is None else [f"{told.records}", f"{told.peak_bytes / MB:.0f}", *_seconds(told, row.cell)]
        )
        table.append([row.cell, row.verdict, ", ".join([*row.violations, *row.reasons]) or "-", *figures])
    said = (
        "The same orders and default settings; each claims at least once, in order, with 75 MB. `claim-check`: "
        "a record names a document of 1 MB, which is read from a folder, beside `payload-in-kafka`, where it is the "
        "record. `one-topic`: of five records one has 1 MB, the others 1 kB; then small and large ones in a topic and "
        "with a consumer of their own. Work takes 50 ms a megabyte. What two topics cost: a key whose records are now "
        "small, now large, has no order between them, and a trial of one topic does not judge that. Memory is sampled "
        "once a second: a peak between samples is not seen."
    )
    return "\n".join(["## Payload elsewhere, topics apart", "", said, "", *_table(table), ""])


def _seconds(told: Drained, cell: str) -> list[str]:
    """How long the backlog took, and its small records, which a reference is not counted as."""
    small_s = told.small_s if cell in WITH_SMALL else None
    return ["-" if taken_s is None else f"{taken_s:.1f}" for taken_s in (told.drain_s, small_s)]


def _hops(rows: Sequence[HopRow]) -> str:
    """Around each limit: what passes, what is refused, and by whom."""
    table = [["hop", "by", "passes", "refused from", "above", "refused by it, as preflight says"]]
    for row in rows:
        above = row.refused_bytes - row.passes_bytes
        agrees = "yes" if row.agrees else f"**no**: {row.refused_by or row.said}"
        table.append([row.hop, row.library, f"{row.passes_bytes}", f"{row.refused_bytes}", f"{above}", agrees])
    said = (
        "The largest record, in bytes, that `preflight` lets through was sent (and read), and the smallest above it "
        "that was refused was looked for. Where a request or a response is compared, its size is an upper bound, "
        "and some more bytes pass."
    )
    return "\n".join(["## The record just over each hop", "", said, "", *_table(table), ""])


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + " --- |" * (head.count("|") - 1), *rest]


def _measured(
    memory: Sequence[MemoryRow], limits: Sequence[LimitRow], cures: Sequence[CureRow], hops: Sequence[HopRow]
) -> str:
    rows: list[MemoryRow | LimitRow | CureRow | HopRow] = [*memory, *limits, *cures, *hops]
    commits = ", ".join(dict.fromkeys(row.commit for row in rows))
    versions = ", ".join(oldest_first({row.kafka for row in rows}))
    files = [large_records.ROWS_NAME, memory_limits.ROWS_NAME, large_record_cures.ROWS_NAME, refusing_hops.ROWS_NAME]
    return (
        f"{len(memory)} measurements of memory, {len(limits)} members under a limit, {len(cures)} trials (seed "
        f"{large_record_cures.SEED}) and {len(hops)} hops on Kafka {versions}, measured at {commits}. Made by `make "
        f"cases ARGS='--case {CASE}'` of the rows in `reports/`: {', '.join(f'`{name}`' for name in files)}; and of "
        f"nothing else.\n"
    )
