"""`python -m lab.cases`: what `make cases` runs. Example: `python -m lab.cases --case 0 --minutes 60`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from kafka_trial.errors import PASS, InputError, unknown_name
from kafka_trial.trial.console import Console
from lab.cases import (
    blocking_turns,
    blocking_turns_page,
    cold_neighbours,
    cold_neighbours_page,
    fail_overs,
    large_record_cures,
    large_records,
    large_records_page,
    memory_limits,
    refusing_hops,
    stuck_partition,
    stuck_partition_page,
    timestamp_guards,
)
from lab.cases.crash_campaign import try_again, try_missing
from lab.cases.crash_matrix import Cell, cells
from lab.cases.crash_page import write_page
from lab.cases.timestamp_guards import GUARDS
from lab.repository import exit_status

STUCK_PARTITION, BLOCKING_TURNS, CRASHES, COLD_NEIGHBOURS, LARGE_RECORDS = CASES = (
    *(0, 1, 2),
    cold_neighbours.CASE,
    large_records.CASE,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries what is missing and writes the pages; 1 where a verdict does not agree with what was delivered."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.cases", description="Measures the cases that docs/cases tells of; resumable."
    )
    parser.add_argument("--case", type=int, nargs="+", choices=CASES, default=list(CASES), help="only these cases")
    parser.add_argument("--minutes", type=float, help="stop beginning new trials after this long")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="trials at once (default: one)")
    parser.add_argument("--only", nargs="+", default=(), metavar="CELL", help="only cells whose names begin so")
    parser.add_argument("--page", action="store_true", help="only write the pages again from the rows")
    parser.add_argument("--again", metavar="CELL", help="try one cell of case 2 again, with its report; writes no row")
    parser.add_argument("--seed", type=int, default=1, help="of --again (default 1)")
    options = parser.parse_args(arguments)
    if options.again:
        return exit_status("cases", lambda: _again(options.again, options.seed))
    return exit_status("cases", lambda: _all(options))


def _all(options: argparse.Namespace) -> int:
    until_s = None if options.minutes is None else time.monotonic() + options.minutes * 60
    tries = {
        STUCK_PARTITION: (_try_stuck, stuck_partition_page.write_page),
        BLOCKING_TURNS: (_try_blocking, blocking_turns_page.write_page),
        CRASHES: (_try_crashes, write_page),
        COLD_NEIGHBOURS: (_try_fleet, cold_neighbours_page.write_page),
        LARGE_RECORDS: (_try_large, large_records_page.write_page),
    }
    statuses = [PASS]
    for case in options.case:
        try_case, write = tries[case]
        if not options.page:
            with Console() as console:
                try_case(options, until_s, console)
        statuses.append(write())
    return max(statuses)


def _try_stuck(options: argparse.Namespace, until_s: float | None, console: Console) -> None:
    every = [*stuck_partition.grid(), *stuck_partition.sweep()]
    wanted = [cell for cell in every if not options.only or cell.name.startswith(tuple(options.only))]
    stuck_partition.try_missing(wanted, until_s=until_s, side_by_side=options.side_by_side, say=console.say)


def _try_fleet(options: argparse.Namespace, until_s: float | None, console: Console) -> None:
    if not options.only or "neighbours".startswith(tuple(options.only)):
        cold_neighbours.try_missing(until_s=until_s, say=console.say)
    if not options.only or "fail-overs".startswith(tuple(options.only)):
        fail_overs.try_missing(until_s=until_s, say=console.say)


def _try_blocking(options: argparse.Namespace, until_s: float | None, console: Console) -> None:
    every = blocking_turns.cells()
    wanted = [cell for cell in every if not options.only or cell.name.startswith(tuple(options.only))]
    blocking_turns.try_missing(wanted, until_s=until_s, side_by_side=options.side_by_side, say=console.say)


def _try_crashes(options: argparse.Namespace, until_s: float | None, console: Console) -> None:
    wanted = list(cells(options.only))
    if wanted:
        try_missing(wanted, until_s=until_s, side_by_side=options.side_by_side, say=console.say)
    guards = [guard for guard in GUARDS if not options.only or guard.name.startswith(tuple(options.only))]
    timestamp_guards.try_missing(guards, until_s=until_s, say=console.say)


def _try_large(options: argparse.Namespace, until_s: float | None, console: Console) -> None:
    begins = tuple(options.only) or ("",)
    hops = [cell for cell in refusing_hops.CELLS if cell.hop.startswith(begins)]
    refusing_hops.find_missing(hops, until_s=until_s, say=console.say)
    cells = [cell for cell in large_records.ladder() if cell.name.startswith(begins)]
    large_records.measure_missing(cells, until_s=until_s, say=console.say)
    limits = [cell for cell in memory_limits.limit_cells() if cell.name.startswith(begins)]
    memory_limits.measure_missing(limits, until_s=until_s, say=console.say)
    cures = [cell for cell in large_record_cures.CELLS if cell.name.startswith(begins)]
    large_record_cures.try_missing(cures, until_s=until_s, say=console.say)


def _again(name: str, seed: int) -> int:
    print(try_again(_cell(name), seed))
    return PASS


def _cell(name: str) -> Cell:
    known = {cell.name: cell for cell in cells()}
    if name not in known:
        raise InputError("--again", unknown_name("cell", name, known))
    return known[name]


if __name__ == "__main__":
    sys.exit(main())
