"""The page of case 1, `docs/cases/1.md`: the story, plots, and tables made of the rows and of nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from kafka_trial.cluster.versions import oldest_first
from kafka_trial.errors import PASS
from kafka_trial.model.head_of_line import WAIT_NS_MIN
from lab.cases.blocking_turns import (
    ARRIVALS,
    BLOCKED,
    CASE,
    CURE,
    DRAWN,
    HOT_RUN,
    REAL_TIME,
    ROWS_NAME,
    SCALE,
    TWO_KEYS,
    BlockingTurnsRow,
    cells,
    read_rows,
)
from lab.cases.blocking_turns_plots import KNOBS, LAG_PLOT, draw_knob, draw_lags, plot_name
from lab.cases.plots import shown
from lab.cases.timelines import TimelineRow, newest_timeline
from lab.repository import reports_folder

PAGE_NAME: Final = "1.md"
HEAD: Final = Path(__file__).with_name("blocking_turns.md")
LATITUDE: Final = 0.25  # within which prediction and measurement agree
COUNTED_S: Final = WAIT_NS_MIN / 1e9  # shorter waits are none, for the rule
RAISES: Final = {"records per fetch": True, "timeout, s": False, "empty partitions": False}  # the rate, if it grows
CLAIMED_S: Final = 15.0  # `converge_within_s` of every consumer here
WINDOW_S: Final = 19.0  # W of every consumer here but in real time: session, poll interval and commit interval


def write_page() -> int:
    """Writes the page of the rows there are, with its plots."""
    reports = reports_folder()
    folder = reports.parent / "docs" / "cases"
    folder.mkdir(exist_ok=True)
    rows = read_rows(reports / ROWS_NAME)
    curves = [row for cell in DRAWN if (row := newest_timeline(CASE, cell)) is not None]
    grid = _grid(newest(rows))
    for knob in KNOBS if grid else ():
        draw_knob(knob, grid)
    if curves:
        draw_lags(curves)
    (folder / PAGE_NAME).write_text(page(rows, curves))
    return PASS


def newest(rows: Sequence[BlockingTurnsRow]) -> list[BlockingTurnsRow]:
    """Returns the last row of each cell, of those that were measured by what measured last."""
    own = {row.cell: row for row in rows if row.digest == rows[-1].digest}
    return [own[name] for name in sorted(own)]


def page(rows: Sequence[BlockingTurnsRow], curves: Sequence[TimelineRow] = ()) -> str:
    """Returns the page of the newest rows, and of the lag over time of the trials that are drawn."""
    own = newest(rows)
    grid = _grid(own)
    parts = [HEAD.read_text(), _rates(grid), _cures(own), _drains(own, curves), _others(own), _verdicts(own)]
    return "\n".join([*(part for part in parts if part), _measured(own), *_missing(own)])


def _grid(rows: Sequence[BlockingTurnsRow]) -> list[BlockingTurnsRow]:
    """Returns the rows of the three knobs, in their order."""
    own = [row for row in rows if _is(row, HOT_RUN) and row.in_turns and row.knobs.empty_partitions]
    return sorted(own, key=lambda row: [knob(row.knobs) for knob in KNOBS.values()])


def _is(row: BlockingTurnsRow, scenario: str) -> bool:
    return row.cell.startswith(f"{scenario}/")


def _rates(grid: Sequence[BlockingTurnsRow]) -> str:
    if not grid:
        return ""
    table = [[*KNOBS, "predicted, records/s", "measured", "ratio", "by its commits", "fetches", "verdict", BLOCKED]]
    table += [
        [*(f"{knob(row.knobs):g}" for knob in KNOBS.values()), *_compared(row), row.verdict, str(row.blocked)]
        for row in grid
    ]
    plots = [shown(plot_name(knob), f"Rate over {knob}: lines are predicted, points measured") for knob in KNOBS]
    said = [_worst(grid), *_longer(grid), *_directions(grid), *_timeouts(grid)]
    return "\n".join(["## The rate over three knobs", "", *plots, "", *_table(table), "", *said, ""])


def _compared(row: BlockingTurnsRow) -> list[str]:
    figures = row.figures
    return [
        _number(row.predicted_per_s),
        _number(figures.rate_per_s),
        _number(row.ratio),
        _number(figures.committed_per_s),
        str(figures.fetches),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _worst(grid: Sequence[BlockingTurnsRow]) -> str:
    """How far from the prediction the farthest is, and which are beyond what was promised."""
    compared = [row for row in grid if row.ratio is not None]
    if not compared:
        return "No cell could be compared with its prediction."
    worst = max(compared, key=_distance)
    beyond = [row.cell for row in compared if _distance(row) > LATITUDE]
    without = [row.cell for row in grid if row.ratio is None]
    said = f"{len(compared)} settings compared; the worst ratio of measured to predicted is {worst.ratio:.2f}"
    said += f" (`{worst.cell}`). "
    said += f"Beyond {LATITUDE:.0%}: {_listed(beyond)}." if beyond else f"None is beyond {LATITUDE:.0%}."
    return said + (f" Without a rate: {_listed(without)}." if without else "")


def _distance(row: BlockingTurnsRow) -> float:
    return abs((row.ratio or 0.0) - 1)


def _listed(cells: Iterable[str]) -> str:
    return ", ".join(f"`{cell}`" for cell in cells)


def _timeouts(grid: Sequence[BlockingTurnsRow]) -> list[str]:
    """What a tenth of the timeout does to one record a fetch, for each number of empty partitions."""
    said = []
    for empty in sorted({row.knobs.empty_partitions for row in grid}):
        own = [row for row in grid if row.knobs.records_per_fetch == 1 and row.knobs.empty_partitions == empty]
        rates = [row.figures.rate_per_s for row in own if row.ratio is not None]
        if len(rates) == 2 and all(rates):
            fast, slow = (rate or 0.0 for rate in rates)
            said.append(f"{fast / slow:.1f} times with {empty} empty")
    if not said:
        return []
    return ["", f"A tenth of the timeout (10 s → 1 s, here 1 s → 0.1 s), one record a fetch: {', '.join(said)}."]


def _longer(grid: Sequence[BlockingTurnsRow]) -> list[str]:
    """How much longer than predicted a turn took that brought records, by how many it brought."""
    took_s = defaultdict[int, list[float]](list)
    for row in grid:
        if row.ratio is not None and row.predicted_per_s is not None:
            size = row.knobs.records_per_fetch
            took_s[size].append(size / _rate(row) - size / row.predicted_per_s)
    told = [f"{median(own):.2f} s with {size}" for size, own in sorted(took_s.items())]
    if not told:
        return []
    said = f"A whole round took longer than predicted by {', '.join(told)} records of 0.8 MB a fetch (medians)"
    return ["", f"{said}: the formula leaves out the way of the bytes."]


def _directions(grid: Sequence[BlockingTurnsRow]) -> list[str]:
    """Of the pairs of settings that differ in one knob alone, by one step: in how many the rate moved as it should."""
    said, wrong = [], []
    for moved, raises in RAISES.items():
        steps = list(_steps(grid, moved))
        right = [more for less, more in steps if (_rate(more) > _rate(less)) == raises]
        wrong += [f"`{less.cell}` → `{more.cell}`" for less, more in steps if more not in right]
        name, does = moved.split(",")[0], "raises" if raises else "lowers"
        said.append(f"{name} {does} it in {len(right)} of {len(steps)} steps")
    told = f"What growth of each knob alone does to the rate: {'; '.join(said)}."
    return ["", told + (f" Not in: {', '.join(wrong)}." if wrong else "")]


def _steps(grid: Sequence[BlockingTurnsRow], moved: str) -> Iterator[tuple[BlockingTurnsRow, BlockingTurnsRow]]:
    """Yields the rows with a rate that are neighbours in one knob, and alike in the others."""
    groups = defaultdict[tuple[float, ...], list[BlockingTurnsRow]](list)
    for row in grid:
        if row.ratio is not None:
            groups[tuple(knob(row.knobs) for name, knob in KNOBS.items() if name != moved)].append(row)
    for own in groups.values():
        yield from pairwise(sorted(own, key=lambda row: KNOBS[moved](row.knobs)))


def _rate(row: BlockingTurnsRow) -> float:
    return row.figures.rate_per_s or 0.0


def _cures(rows: Sequence[BlockingTurnsRow]) -> str:
    """What each change alone comes to, from one record a fetch, the long timeout and the most empty partitions on."""
    cells = {
        "as it was: one record a fetch, 1 s, four empty partitions": "1-record-1000ms/10-for-2",
        "fewer partitions a member: one empty one": "1-record-1000ms/4-for-2",
        "a tenth of the timeout": "1-record-100ms/10-for-2",
        "a fetch of 5 records": "5-records-1000ms/10-for-2",
        "a fetch of 20 records": "20-records-1000ms/10-for-2",
        "one poll for all partitions, still one record a fetch": f"{CURE}/10-for-2",
    }
    found = {row.cell: row for row in rows}
    own = {what: found[f"{HOT_RUN}/{cell}"] for what, cell in cells.items() if f"{HOT_RUN}/{cell}" in found}
    if not own:
        return ""
    table = [["change", "records/s", "run drained in, s", "verdict", BLOCKED]]
    for what, row in own.items():
        figures = row.figures
        table.append([what, _number(figures.rate_per_s), _number(figures.drain_s), row.verdict, str(row.blocked)])
    said = "Each change alone. `-` in the third column: not drained when the trial ended."
    return "\n".join(["## Which change helps how much", "", said, "", *_table(table), ""])


def _drains(rows: Sequence[BlockingTurnsRow], curves: Sequence[TimelineRow]) -> str:
    """How long a backlog takes while more arrives, and the lag over time."""
    own = {row.cell: row for row in rows if _is(row, ARRIVALS)}
    own = {name: own[name] for name in DRAWN if name in own}
    if not own:
        return ""
    table = [["consumer", "drained in, s", "predicted, s", "verdict", BLOCKED]]
    for name, row in own.items():
        drained, predicted = _number(row.figures.drain_s), _number(row.predicted_drain_s)
        table.append([f"`{name.split('/')[1]}`", drained, predicted, row.verdict, str(row.blocked)])
    lines = ["## The time to drain, while more arrives", "", _arrive(list(own.values())), "", *_table(table), ""]
    if curves:
        lines += [shown(LAG_PLOT, "Lag of the hot partition over time: in turns, and by one poll"), ""]
    return "\n".join(lines)


def _arrive(rows: Sequence[BlockingTurnsRow]) -> str:
    arrivals = f"{rows[0].knobs.arrivals_per_s:g} more a second"
    said = f"A backlog of 15 records, and {arrivals}: three quarters of the slow rate."
    times = {row.knobs.timeout_s: row.figures.drain_s for row in rows if row.in_turns}
    slow, fast = times.get(1.0), times.get(0.1)
    if not slow or not fast:
        return said
    return f"{said} With a tenth of the timeout it is drained {slow / fast:.0f} times sooner."


def _others(rows: Sequence[BlockingTurnsRow]) -> str:
    told = {TWO_KEYS: _two_keys, f"{HOT_RUN}/1-record-1000ms/3-for-6": _idle_members, REAL_TIME: _real_time}
    lines = [say(row) for cell, say in told.items() for row in rows if row.cell.startswith(cell)]
    return "\n".join(["## And also", "", *lines, ""]) if lines else ""


def _two_keys(row: BlockingTurnsRow) -> str:
    waits = ", ".join(f"{key} {seconds:.1f} s" for key, seconds in row.figures.waited_s.items())
    return (
        f"- Two hot keys in one partition (`{row.cell}`): {_number(row.figures.rate_per_s)} records a second for both "
        f"together, predicted {_number(row.predicted_per_s)} for one partition. Median wait of a key's records: "
        f"{waits or '-'}: whoever comes second waits for the whole run before it. Verdict: {row.verdict}."
    )


def _idle_members(row: BlockingTurnsRow) -> str:
    return (
        f"- Three partitions for six members (`{row.cell}`): nobody has an empty partition, three have none at all, "
        f"which is no fault of theirs. The run was drained in {_number(row.figures.drain_s)} s; verdict: {row.verdict}."
    )


def _real_time(row: BlockingTurnsRow) -> str:
    return (
        f"- In real time, 12 partitions for 6 members and ten seconds of waiting (`{row.cell}`): "
        f"{_rate_in_words(row.figures.rate_per_s)}, predicted {_rate_in_words(row.predicted_per_s)} "
        f"(ratio {_number(row.ratio)}); verdict: {row.verdict}, `{BLOCKED}` {row.blocked}. The other waits are "
        f"1/{SCALE} of these."
    )


def _rate_in_words(rate_per_s: float | None) -> str:
    return "no rate" if not rate_per_s else f"one record in {1 / rate_per_s:.2f} s"


def _verdicts(rows: Sequence[BlockingTurnsRow]) -> str:
    """In which trials the blocking was found, and in which it was not, and what they say instead."""
    in_turns = [row for row in rows if row.in_turns and row.knobs.empty_partitions]
    found = [row for row in in_turns if row.blocked]
    others = [row for row in rows if row not in in_turns]
    falsely = [row for row in others if row.blocked]
    if not rows:
        return ""
    lines = [
        f"`{BLOCKED}` was found in {len(found)} of the {len(in_turns)} trials that ask in turn and have an empty "
        f"partition, and in {len(falsely)} of the {len(others)} others."
    ]
    if found:
        lines += ["", f"From `{found[0].cell}`: {found[0].told}."]
    without = [row for row in in_turns if not row.blocked]
    if without:
        lines += [
            "",
            "It was not found in:",
            "",
            *(f"- `{row.cell}` ({row.verdict}): {_because(row)}." for row in without),
        ]
    return "\n".join(["## What the verdicts say", "", *lines, ""])


def _because(row: BlockingTurnsRow) -> str:
    """Why blocking was not found, as far as its rule tells."""
    wait_s = row.knobs.empty_partitions * row.knobs.timeout_s
    if row.figures.drain_s is not None and row.figures.drain_s <= CLAIMED_S:
        return f"drained in {row.figures.drain_s:.1f} s, and {CLAIMED_S:g} s are claimed"
    if wait_s < COUNTED_S:
        return f"its turns wait for {wait_s:.1f} s, and only waits of {COUNTED_S:g} s count"
    if row.figures.drain_s is not None and row.figures.drain_s < WINDOW_S:
        return f"drained in {row.figures.drain_s:.1f} s, and a lag is looked at from {WINDOW_S:g} s on"
    return "; ".join([reason for reason in row.reasons if BLOCKED in reason] or row.reasons) or "not known why"


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + " --- |" * (head.count("|") - 1), *rest]


def _missing(rows: Sequence[BlockingTurnsRow]) -> list[str]:
    """What there is a cell for, and no row of today."""
    missing = [cell.name for cell in cells() if cell.name not in {row.cell for row in rows}]
    return [f"Not measured yet, `make cases` goes on with it: {_listed(missing)}.\n"] if missing and rows else []


def _measured(rows: Sequence[BlockingTurnsRow]) -> str:
    if not rows:
        return "Nothing was measured yet.\n"
    commits = ", ".join(dict.fromkeys(row.commit for row in rows))
    versions = ", ".join(oldest_first({row.kafka for row in rows if row.kafka}))
    return (
        f"{len(rows)} trials on Kafka {versions}, measured at {commits}; waits are 1/{SCALE} of the case's but for "
        f"`{REAL_TIME}`. Made by `make cases` of the rows in `reports/{ROWS_NAME}` and of the timelines in "
        "`reports/case_timelines.jsonl`, and of nothing else.\n"
    )
