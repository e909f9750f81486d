"""The page of case 0, `docs/cases/0.md`: the story, and tables made of the rows and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.errors import PASS
from lab.cases.plots import plot, shown
from lab.cases.stuck_partition import CASE, CURES, DRAWN, PROVOCATIONS, ROWS_NAME, SWEPT, StuckPartitionRow, read_rows
from lab.cases.timelines import TimelineRow, draw_timeline, newest_timeline
from lab.repository import reports_folder

PAGE_NAME: Final = "0.md"
SWEEP_PLOT: Final = "0-partitions-for-each-consumer"
SWEPT_MEMBERS: Final = 3
HEAD: Final = Path(__file__).with_name("stuck_partition.md")
STORIES: Final = {
    "frozen": "the process stands still (SIGSTOP) for longer than its session",
    "stalled": "its network stands still for longer than its session",
    "long-order": "the order takes longer than the poll interval while another thread polls, and a member leaves",
    "rejoins": "members come and go, and the member joins again with the order in hand",
    "parallel": "no rebalance; one of four workers is slow, and the others commit later orders of its partition",
}
CURED_BY: Final = {
    "none": "none (range)",
    "guard-before-processing": "guard before processing",
    "guard-before-commit": "guard before the commit",
    "both-guards": "both guards",
    "hand-over": "both, and gives back only what is finished",
    "sticky": "sticky assignor (eager, kafka-python)",
    "cooperative-sticky": "cooperative-sticky assignor",
    "consumer-protocol": "consumer protocol (KIP-848)",
    "one-at-a-time": "one order at a time, in the poll loop",
}


def write_page() -> int:
    """Writes the page of the rows there are."""
    reports = reports_folder()
    folder = reports.parent / "docs" / "cases"
    folder.mkdir(exist_ok=True)
    curves = [row for cell in DRAWN if (row := newest_timeline(CASE, cell)) is not None]
    for row in curves:
        draw_timeline(row, _plot_name(row))
    rows = read_rows(reports / ROWS_NAME)
    if swept := [row for row in _newest(rows) if row.swept]:
        _draw_sweep(swept)
    (folder / PAGE_NAME).write_text(page(rows, curves))
    return PASS


def page(rows: Sequence[StuckPartitionRow], curves: Sequence[TimelineRow] = ()) -> str:
    """Returns the page of the newest rows, and of what one partition went through in the trials that are drawn."""
    newest = _newest(rows)
    grid = [row for row in newest if not row.swept]
    swept = [row for row in newest if row.swept]
    parts = [HEAD.read_text(), _provocations(), *([_curves(curves)] if curves else []), _cures(grid), _costs(grid)]
    if swept:
        parts.append(_sweep(swept))
    return "\n".join([*parts, _measured(newest)])


def _newest(rows: Sequence[StuckPartitionRow]) -> list[StuckPartitionRow]:
    return [row for row in rows if row.digest == rows[-1].digest] if rows else []


def _provocations() -> str:
    lines = [f"- `{name}`: {STORIES[name]}." for name in PROVOCATIONS]
    return "\n".join([*lines, ""])


def _curves(curves: Sequence[TimelineRow]) -> str:
    """What one partition went through, without a cure and with one."""
    lines = ["## What the operator sees", ""]
    for row in curves:
        provocation, cure = row.cell.split("/")
        says = f"`{provocation}`, {CURED_BY[cure]}: the verdict is *{row.verdict}*"
        plotted = shown(_plot_name(row), f"lag, age and commits of one partition: {provocation}, {CURED_BY[cure]}")
        lines += [f"{says} (seed {row.seed}, measured at {row.commit}).", "", plotted, ""]
    return "\n".join(lines)


def _plot_name(row: TimelineRow) -> str:
    return f"{CASE}-{row.cell.replace('/', '-')}"


def _cures(rows: Sequence[StuckPartitionRow]) -> str:
    """How many trials ended with a false lag, of those that can say anything."""
    table = [["cure", *PROVOCATIONS]]
    table += [
        [CURED_BY[cure], *(_stuck([row for row in rows if _of(row, cure, name)]) for name in PROVOCATIONS)]
        for cure in CURES
    ]
    said = (
        "Trials that ended with a false lag, of those tried. In brackets: in how many more the committed offset fell "
        "(`commit-regression`) and was raised again by a later commit. `-`: not tried, or it can say nothing."
    )
    return "\n".join(["## Which cure stops which provocation", "", said, "", *_table(table), "", *_told(rows)])


def _told(rows: Sequence[StuckPartitionRow]) -> list[str]:
    """The words in which the first of them is told: how far, and for how long."""
    for row in rows:
        if row.stuck and row.told:
            return [f"`{row.provocation}`, {CURED_BY[row.cure]}, seed {row.seed}: *{row.false_lag}*.", ""]
    return []


def _of(row: StuckPartitionRow, cure: str, provocation: str) -> bool:
    return row.cure == cure and row.provocation == provocation


def _stuck(rows: Sequence[StuckPartitionRow]) -> str:
    told = [row for row in rows if row.told]
    if not told:
        return "-"
    stuck = sum(row.stuck for row in told)
    fell = sum(bool(row.counts.get("commit-regression")) and not row.stuck for row in told)
    return f"{stuck} of {len(told)}" + (f" ({fell})" if fell else "")


def _costs(rows: Sequence[StuckPartitionRow]) -> str:
    """What rebalances moved, and what was worked on twice, by cure; without the provocation that has no rebalance."""
    columns: dict[str, Callable[[Sequence[StuckPartitionRow]], str]] = {
        "partitions moved per rebalance": lambda own: _ratio(own, "moved", "rebalances"),
        "handled twice": lambda own: f"{mean(row.done_twice for row in own):.0f}",
        "seconds of handlers spent on them": lambda own: f"{mean(row.wasted_s for row in own):.1f}",
        "of the processor": lambda own: f"{mean(row.wasted_cpu_s for row in own):.2f}",
        "worked on after it was revoked": lambda own: _found(own, "work-after-revoke"),
        "pass": lambda own: f"{sum(row.verdict == 'pass' for row in own)} of {len(own)}",
    }
    table = [["cure", *columns]]
    for cure in CURES:
        own = [row for row in rows if row.cure == cure and row.told and row.rebalances]
        table.append([CURED_BY[cure], *(figure(own) if own else "-" for figure in columns.values())])
    said = "Means over the trials that had a rebalance; each order computes for 2 ms, and waits for its effect."
    return "\n".join(["## What it costs", "", said, "", *_table(table), ""])


def _ratio(rows: Sequence[StuckPartitionRow], above: str, below: str) -> str:
    return f"{sum(getattr(row, above) for row in rows) / sum(getattr(row, below) for row in rows):.1f}"


def _found(rows: Sequence[StuckPartitionRow], anomaly: str) -> str:
    return f"{sum(bool(row.counts.get(anomaly)) for row in rows)} of {len(rows)}"


def _sweep(rows: Sequence[StuckPartitionRow]) -> str:
    """How many partitions were left with a false lag, by how many a consumer has."""
    counts = _sizes(rows)
    head = [f"{count / SWEPT_MEMBERS:g} for each consumer ({count})" for count in counts]
    table = [["cure", *head]]
    for cure in dict.fromkeys(row.cure for row in rows):
        own = [row for row in rows if row.cure == cure]
        table.append(
            [CURED_BY[cure], *(_stuck_partitions([row for row in own if row.partitions == n]) for n in counts)]
        )
    said = (
        f"Three members, and more or fewer partitions for each; provocation `{SWEPT}`. How many partitions each trial "
        "left with a false lag: the more a consumer has, the more it holds when it is frozen, and the more stand."
    )
    plotted = shown(SWEEP_PLOT, "Partitions with a false lag over partitions for each consumer")
    return "\n".join(["## Partitions for each consumer", "", said, "", *_table(table), "", plotted, ""])


def _stuck_partitions(rows: Sequence[StuckPartitionRow]) -> str:
    told = [row for row in rows if row.told]
    return ", ".join(str(row.counts["false-lag"]) for row in told) or "-"


def _draw_sweep(rows: Sequence[StuckPartitionRow]) -> None:
    with plot(SWEEP_PLOT) as axes:
        for cure in dict.fromkeys(row.cure for row in rows):
            own = [row for row in rows if row.cure == cure and row.told]
            by_size = {size: [row.counts["false-lag"] for row in own if row.partitions == size] for size in _sizes(own)}
            each = [size / SWEPT_MEMBERS for size in by_size]
            axes.plot(each, [mean(found) for found in by_size.values()], "o-", label=CURED_BY[cure], linewidth=1)
        axes.set_xlabel("partitions for each consumer")
        axes.set_ylabel("partitions with a false lag")
        axes.legend()


def _sizes(rows: Sequence[StuckPartitionRow]) -> list[int]:
    return sorted({row.partitions for row in rows})


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + " --- |" * (head.count("|") - 1), *rest]


def _measured(rows: Sequence[StuckPartitionRow]) -> str:
    commits = ", ".join(dict.fromkeys(row.commit for row in rows))
    seeds = ", ".join(str(seed) for seed in sorted({row.seed for row in rows}))
    versions = ", ".join(oldest_first({row.kafka for row in rows if row.kafka}))
    untold = sum(not row.told for row in rows)
    return (
        f"{len(rows)} trials on Kafka {versions}, seeds {seeds}, measured at {commits}; {untold} of them say nothing: "
        "unknown, or a fault without effect. Made by `make cases` of the rows in "
        "`reports/stuck_partition.jsonl`, and of nothing else.\n"
    )
