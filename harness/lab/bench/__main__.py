"""`python -m lab.bench`: what `make bench` runs. Example: `python -m lab.bench check --runs 5`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kafka_trial.errors import PASS
from lab.bench.measurements import NAMES, measure
from lab.repository import exit_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is named, prints and keeps the figures, and writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.bench", description="Measures: minimum, median, maximum, and ratios within one run."
    )
    parser.add_argument("what", nargs="*", help="which measurements (default: all; --list names them)")
    parser.add_argument("--list", action="store_true", help="name the measurements and stop")
    parser.add_argument("--runs", type=int, help="how often each (default 3, of scale 7 rounds)")
    parser.add_argument("--huge", action="store_true", help="scale: 10^8 events too, which need 45 GB of disk")
    parser.add_argument("--events-max", type=int, metavar="N", help="scale: no histories of more than so many events")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(NAMES))
        return PASS
    return exit_status(
        "bench",
        lambda: measure(options.what, runs=options.runs, huge=options.huge, events_max=options.events_max),
    )


if __name__ == "__main__":
    sys.exit(main())
