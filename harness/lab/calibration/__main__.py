"""`python -m lab.calibration`: what `make calibrate` runs.

Example: `python -m lab.calibration --times 5 --minutes 60`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lab.calibration.campaign import calibrate, write_page
from lab.calibration.suite_seconds import add_seconds
from lab.repository import exit_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries what is missing and writes the page; 1 where a row contradicts what its consumer must show."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.calibration", description="Tries every consumer on its suites several times; resumable."
    )
    parser.add_argument("--times", type=int, default=5, help="how often each pair (default 5)")
    parser.add_argument("--minutes", type=float, help="stop beginning new trials after this long")
    parser.add_argument("--only", nargs="+", action="extend", metavar="CONSUMER", help="only these consumers")
    parser.add_argument("--suites", nargs="+", action="extend", metavar="SUITE", help="only on these suites")
    parser.add_argument("--sinning", action="store_true", help="only what is to be found: each sin, switched on")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="trials at once (default: as many as cores)")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in an order drawn at random from this seed")
    parser.add_argument("--store", action="store_true", help="keep a right history of each sin and twin in fixtures/")
    parser.add_argument(
        "--page", action="store_true", help="only write the page, and the table of the wheel, again from the rows"
    )
    parser.add_argument(
        "--seconds", nargs="+", metavar="FOLDER", help="only add how long the trials below took, then write as --page"
    )
    options = parser.parse_args(arguments)
    if options.seconds:
        return exit_status("calibration", lambda: add_seconds(options.seconds) or write_page())
    if options.page:
        return exit_status("calibration", write_page)
    return exit_status(
        "calibration",
        lambda: calibrate(
            times=options.times,
            minutes=options.minutes,
            only=options.only,
            suites=options.suites,
            sinning=options.sinning,
            side_by_side=options.side_by_side,
            store=options.store,
            shuffle=options.shuffle,
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
