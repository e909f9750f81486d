"""`python -m lab.mutation`: what `make mutate` runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lab.mutation.campaign import try_all, write_page


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries mutants until all are tried or time is up, writes the page; 1 where a listed equivalent was killed."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.mutation", description="Plants bugs in the checker; do the tests notice?"
    )
    parser.add_argument("--minutes", type=float, help="begin no further mutant after this long")
    parser.add_argument("--only", action="append", metavar="MODULE", help="only mutants of these modules")
    parser.add_argument("--again", action="store_true", help="try survivors again, even where no test has changed")
    parser.add_argument("--survivors", action="store_true", help="only those that were tried and not noticed")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="mutants at once (default: as many as cores)")
    parser.add_argument("--page", action="store_true", help="only write the page again from the rows")
    options = parser.parse_args(arguments)
    if not options.page:
        try_all(
            minutes=options.minutes,
            only=options.only,
            again=options.again,
            survivors=options.survivors,
            side_by_side=options.side_by_side,
        )
    return write_page()


if __name__ == "__main__":
    sys.exit(main())
