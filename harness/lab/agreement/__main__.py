"""`python -m lab.agreement`: what `make calibrate` asks before it begins with trials."""

from __future__ import annotations

import argparse
import hashlib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from kafka_trial.registry import CHECKOUT
from kafka_trial.report.row_files import append_row
from lab.agreement.rows import Row, counting, page, read_rows, row_of
from lab.agreement.sample import every_kind
from lab.agreement.sayings import both_say
from lab.calibration.campaign import source_digest
from lab.naive.checker import ANOMALIES
from lab.repository import git_revision

LAB = Path(__file__).parent.parent
REPORTS = CHECKOUT / "reports"
ROWS, PAGE = REPORTS / "agreement.jsonl", REPORTS / "agreement.md"
CLEAN, PER_SIN = 60, 12  # a minute or two; each further seed adds to the page
SEED_BITS = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks both judges of histories of a fresh seed, writes the page; 1 where they differ on what counts."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.agreement", description="Do both judges say the same of fresh histories?"
    )
    parser.add_argument("--seed", type=int, help="that of a row, to see it again (default: a fresh one)")
    parser.add_argument("--per-sin", type=int, default=PER_SIN, help=f"histories of each deviation (default {PER_SIN})")
    parser.add_argument("--clean", type=int, default=CLEAN, help=f"histories without one (default {CLEAN})")
    parser.add_argument("--page", action="store_true", help="only write the page again from the rows")
    options = parser.parse_args(arguments)
    if not options.page:
        seed = secrets.randbits(SEED_BITS) if options.seed is None else options.seed
        row = try_seed(seed, clean=options.clean, per_sin=options.per_sin)
        append_row(ROWS, row)
        print(f"agreement: {row.histories} histories of seed {seed}: the judges differ on {sum(row.differ.values())}")
        for name, told in row.shortest.items():
            print(f"  {name}: {told}")
    return write_page()


def try_seed(seed: int, *, clean: int, per_sin: int) -> Row:
    """Returns what both judges say of the histories of a seed."""
    sayings = both_say(every_kind(clean=clean, per_sin=per_sin, seed=seed))
    digests = {"source_digest": source_digest(), "checker_digest": checker_digest()}
    return row_of(sayings, seed=seed, clean=clean, per_sin=per_sin, commit=git_revision(), **digests)


def write_page() -> int:
    """Writes the page from the rows; 1 where the judges of the last row differ on a history."""
    rows = read_rows(ROWS)
    PAGE.write_text(page(rows, ANOMALIES))
    return int(any(row.differ for row in counting(rows)))


def checker_digest() -> str:
    """Returns a digest of the naive checker and of what draws its histories."""
    files = (*sorted((LAB / "naive").glob("*.py")), LAB / "history_strategies.py", LAB / "agreement" / "sayings.py")
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
