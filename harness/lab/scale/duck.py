"""The same computation in DuckDB: what a good SQL engine takes for the core of the judge, on the very same files.

`anomalies.sql` finds `skipped`, `unseen`, `redelivered`, `illegal-redelivery`, `nonmonotonic-poll`, `reordered-key`,
`commit-regression`, `commit-ahead`, `commit-past-end` and `lost-write`, by the same rules, and counts them by
partition. It is less than what `check` does, so a ratio to it is against the judge. Of the catalogue it does **not**
compute: `phantom`, `corrupt`, `misplaced`, `overtaken`, `duplicate-effect`, `poll-skip`, `overlapping-handlers`,
`retried`; `false-report`, and so what refuted lines leave undone: it looks at no fetch; `zombie-commit`, `commit-lost`,
`stale-generation`, that is, who committed, and by which right; ownership (`split-ownership`, `orphan-partition`,
`work-after-revoke`, `zombie-work`), and so what an untold loss excuses; liveness, resources and transactions; what a
kill, or a line read late, leaves undecided; tombstones; `commit-ahead` below an earlier position. It names no events as
proof, looks at no file's history defects, and writes neither a verdict nor a report.

`python -m lab.scale.duck FOLDER` prints the counts as a JSON object. DuckDB is a dependency of development.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

SQL = Path(__file__).with_name("anomalies.sql")


def counted(history: Path) -> dict[str, int]:
    """Returns how often each anomaly is found in the files of a history; those never found are left out."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="kafka-trial-duckdb-") as scratch, duckdb.connect(":memory:") as database:
        database.execute("SET temp_directory = ?", [scratch])
        database.execute("SET preserve_insertion_order = false")
        database.execute("SET enable_progress_bar = false")
        rows = database.execute(SQL.read_text(encoding="utf-8").format(history=_quoted(history))).fetchall()
    found: Counter[str] = Counter()
    for anomaly, _, count in rows:
        found[anomaly] += count
    return dict(found)


def _quoted(history: Path) -> str:
    return str(history).replace("'", "''")


def main() -> None:
    """Prints what is found in one run folder."""
    print(json.dumps(counted(Path(sys.argv[1]) / "history"), sort_keys=True))


if __name__ == "__main__":
    main()
