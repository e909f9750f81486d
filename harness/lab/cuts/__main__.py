"""`python -m lab.cuts`: what `make cuts` runs. Example: `python -m lab.cuts --minutes 60`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lab.cuts.campaign import REFERENCES, try_all, try_sins, write_page
from lab.repository import exit_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries what is missing of every reference's matrix and writes the page; 1 where a cell failed."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.cuts", description="Cuts references of several libraries at every place; resumable."
    )
    parser.add_argument("--minutes", type=float, help="stop beginning new trials after this long")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="trials at once (default: as many as cores)")
    parser.add_argument("--only", nargs="+", default=REFERENCES, metavar="CONSUMER", help="only these consumers")
    parser.add_argument("--page", action="store_true", help="only write the page again from the rows")
    parser.add_argument("--sins", action="store_true", help="try the sins that only cuts find on every suite instead")
    options = parser.parse_args(arguments)
    if options.page:
        return exit_status("cuts", write_page)
    if options.sins:
        return exit_status("cuts", lambda: try_sins(minutes=options.minutes, side_by_side=options.side_by_side))
    return exit_status(
        "cuts", lambda: try_all(options.only, minutes=options.minutes, side_by_side=options.side_by_side)
    )


if __name__ == "__main__":
    sys.exit(main())
