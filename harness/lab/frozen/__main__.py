"""`python -m lab.frozen`: judges every frozen history again and reports what changed.

python -m lab.frozen                   # 1 where something differs; else the findings are kept as they are now
python -m lab.frozen --accept "WHY"    # adds what differs to the ledger, and keeps the new findings
python -m lab.frozen --gather FILE     # first freezes the histories that tests judged (pytest --gather-histories)
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka_trial.errors import FAIL, PASS, WRONG_INPUT
from lab.agreement.sample import every_kind
from lab.frozen.histories import FILE, FrozenHistory, frozen_history, read_histories, write_histories
from lab.frozen.history_findings import ChangedFinding
from lab.frozen.ledger import (
    FINDINGS_NAME,
    LEDGER_NAME,
    all_changes,
    append_to_ledger,
    findings_of_all,
    merge_shared_changes,
    read_findings,
    write_findings,
)
from lab.repository import git_revision, reports_folder

SEED: Final = 20261128
CLEAN, PER_SIN = 100, 16  # a little over a thousand histories
SHOWN: Final = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares, or accepts, or freezes further histories; 1 where verdicts differ and nobody says why."""
    parser = argparse.ArgumentParser(prog="python -m lab.frozen", description="Is every verdict what it was?")
    parser.add_argument("--accept", metavar="WHY", help="why the new verdicts are right, in Kafka's words")
    parser.add_argument("--gather", type=Path, metavar="FILE", help="freeze these histories too, and drawn ones")
    options = parser.parse_args(arguments)
    if options.accept is not None and not options.accept.strip():
        parser.error("--accept: say why")
    if options.gather is not None:
        gathered = [*read_histories(options.gather)]
        if not gathered:
            print(f"frozen: {options.gather} holds no history: pytest --gather-histories writes it", file=sys.stderr)
            return WRONG_INPUT
        kept = write_histories([*read_histories(), *gathered, *_drawn()])
        print(f"{kept} histories are frozen")
    folder = reports_folder()
    before, after = read_findings(folder / FINDINGS_NAME), findings_of_all(read_histories())
    if not after or before.keys() - after.keys():
        gone = f"{len(before.keys() - after.keys())} histories that were judged before"
        print(f"frozen: {gone if before else 'every history'} is not in {FILE}: take it from git", file=sys.stderr)
        return WRONG_INPUT
    found = list(all_changes(before, after))
    _tell(found, len(after))
    if options.accept:
        date = datetime.now(UTC).date().isoformat()
        append_to_ledger(
            merge_shared_changes(found, len(after)),
            folder / LEDGER_NAME,
            why=options.accept,
            date=date,
            commit=git_revision(),
        )
    if options.accept or not found:
        write_findings(after, folder / FINDINGS_NAME)
        return PASS
    return FAIL


def _drawn() -> Iterator[FrozenHistory]:
    for one in every_kind(clean=CLEAN, per_sin=PER_SIN, seed=SEED):
        yield frozen_history(one.events, one.settings, drawn=True)


def _tell(found: Sequence[ChangedFinding], judged: int) -> None:
    by_kind = Counter((one.anomaly, one.what) for one in found)
    print(f"{judged} histories judged, {len(found)} differences")
    for (anomaly, what), count in by_kind.most_common():
        print(f"  {anomaly}, {what}: {count}")
    for one in found[:SHOWN]:
        print("   ", *(f"{name}: {value}" for name, value in asdict(one).items()), sep="\n      ")


if __name__ == "__main__":
    sys.exit(main())
