"""`python -m lab.upgrades [known]`: what `make upgrade-matrix` runs. Example: `python -m lab.upgrades --minutes 60`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lab.repository import exit_status
from lab.upgrades.campaign import play_all, write_page
from lab.upgrades.known_campaign import play_known


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays what is missing of the matrix and writes the page; 1 where a play is no go."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.upgrades", description="Plays upgrades between pairs of versions; resumable."
    )
    parser.add_argument("what", nargs="?", choices=("matrix", "known"), default="matrix", help="default: %(default)s")
    parser.add_argument("--minutes", type=float, help="stop beginning new plays after this long")
    parser.add_argument("--only", nargs="+", default=[], metavar="VERSION", help="only from these versions")
    parser.add_argument("--page", action="store_true", help="only write the page again from the rows")
    options = parser.parse_args(arguments)
    if options.page:
        return exit_status("upgrades", write_page)
    if options.what == "known":
        return exit_status("upgrades", lambda: play_known(minutes=options.minutes))
    return exit_status("upgrades", lambda: play_all(minutes=options.minutes, only=options.only))


if __name__ == "__main__":
    sys.exit(main())
