"""Calibration: every consumer on its suites, several times; the harness itself is on trial here.

Each attempt is one line of `reports/calibration.jsonl`, appended and never rewritten: a stopped calibration goes on
where it stopped. The page `reports/calibration.md` is generated from the rows and from nothing else.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import FAIL, PASS, InputError, StartError, unknown_name
from kafka_trial.fixture_header import fixture_header
from kafka_trial.narrator import Narrator
from kafka_trial.session import Session

ROWS = "calibration.jsonl"
PAGE = "calibration.md"
COLUMNS = [
    "consumer",
    "scenario",
    "must be",
    "pass",
    "fail",
    "unknown",
    "as it must be",
    "violations",
    "unknown because",
]


@dataclass(frozen=True)
class Attempt:
    """One trial of the grid: what was asked."""

    consumer: str
    scenario: str
    kafka_version: str
    seed: int


@dataclass(frozen=True)
class Row:
    """One attempt with what came out; a line of the rows file."""

    attempt: Attempt
    verdict: str
    violations: tuple[str, ...]
    reasons: tuple[str, ...]
    faults_bit: tuple[bool, ...]
    source_digest: str
    commit: str


def calibrate(*, times: int, minutes: float | None, only: Sequence[str] | None) -> int:
    """Runs what is missing of the grid, then writes the page; stops beginning trials after `minutes`."""
    reports = _reports()
    done = {row.attempt for row in read_rows(reports / ROWS) if row.source_digest == source_digest()}
    todo = [attempt for attempt in grid(times=times, only=only) if attempt not in done]
    deadline = None if minutes is None else time.monotonic() + minutes * 60
    with Narrator() as narrator, Session(narrator=Narrator(quiet=True)) as session:
        for number, attempt in enumerate(todo, 1):
            if deadline is not None and time.monotonic() > deadline:
                narrator.say(f"time is up: {len(todo) - number + 1} of {len(todo)} trials still to run")
                break
            row = _tried(session, attempt)
            _append(reports / ROWS, row)
            narrator.say(
                f"{number}/{len(todo)} {attempt.consumer} on {attempt.scenario}: "
                f"{row.verdict} {', '.join(row.violations)}"
            )
    return write_page()


def grid(*, times: int, only: Sequence[str] | None) -> Iterator[Attempt]:
    """Yields every attempt: sound consumers on every scenario, each sin on the suite its header names.

    Raises:
        InputError: `only` names a consumer that does not exist.
    """
    names = registry.consumers()
    for name in only or ():
        if name not in names:
            raise InputError("--only", unknown_name("consumer", name, names))
    for seed in range(1, times + 1):
        for name, file in names.items():
            if only and name not in only:
                continue
            for scenario in _scenarios_for(name, file):
                yield Attempt(name, scenario, DEFAULT_VERSION, seed)


def write_page() -> int:
    """Writes the page from the rows; 1 when a row contradicts what its consumer must show."""
    reports = _reports()
    rows = read_rows(reports / ROWS)
    (reports / PAGE).write_text(page(rows))
    return PASS if all(as_expected(row) for row in rows) else FAIL


def page(rows: Sequence[Row]) -> str:
    """Returns the page as Markdown: a line per consumer and scenario."""
    commits = sorted({row.commit for row in rows})
    lines = [
        "# Calibration",
        "",
        f"{len(rows)} trials, measured at {', '.join(commits) or 'no commit yet'}. Generated from `{ROWS}`.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{' --- |' * len(COLUMNS)}",
    ]
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.attempt.consumer, row.attempt.scenario].append(row)
    return "\n".join([*lines, *(_line(key, group) for key, group in sorted(grouped.items())), ""])


def as_expected(row: Row) -> bool:
    """Tells whether a row shows what its consumer must: a sin exactly its anomalies, a sound one none."""
    expected = expected_violations(row.attempt.consumer)
    if expected is None:
        return row.verdict == "pass"
    return row.verdict == "fail" and set(row.violations) == expected


def expected_violations(consumer: str) -> set[str] | None:
    """Returns the anomalies a faulty consumer's header promises; None for a sound one."""
    file = registry.consumers().get(consumer)
    if file is None or registry.reference_folder() in file.parents:
        return None
    return set(fixture_header(file.parent / "main.py").anomalies)


def read_rows(path: Path) -> list[Row]:
    """Returns every row of a rows file, oldest first; none when there is no file."""
    if not path.exists():
        return []
    return [_row(orjson.loads(line)) for line in path.read_bytes().splitlines() if line]


def source_digest() -> str:
    """Returns a digest of the harness's source, so that rows of another source are not taken for this one's."""
    digest = hashlib.sha256()
    for file in sorted(registry.PACKAGE.rglob("*.py")):
        digest.update(file.relative_to(registry.PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _scenarios_for(name: str, file: Path) -> Iterable[str]:
    if registry.reference_folder() in file.parents:
        return registry.scenarios()
    return [fixture_header(file.parent / "main.py").suite]


def _tried(session: Session, attempt: Attempt) -> Row:
    try:
        trialed = session.try_one(
            registry.find_scenario(attempt.scenario),
            registry.find_consumer(attempt.consumer),
            kafka_version=attempt.kafka_version,
            seed=attempt.seed,
        )
    except StartError as error:
        return Row(attempt, "not begun", (), (str(error),), (), source_digest(), commit())
    verdict = trialed.verdict
    return Row(
        attempt,
        verdict.verdict,
        tuple(sorted({violation.anomaly for violation in verdict.violations})),
        tuple(verdict.reasons),
        tuple(fault.bit for fault in verdict.faults),
        source_digest(),
        commit(),
    )


def commit() -> str:
    """Returns the short commit of the checkout, with + when it has uncommitted changes; `-` outside a checkout."""
    asked = ["git", "-C", str(registry.CHECKOUT), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "-"


def _append(path: Path, row: Row) -> None:
    with path.open("ab") as file:
        file.write(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS))


def _row(table: dict) -> Row:  # type: ignore[type-arg]
    lists = {name: tuple(table[name]) for name in ("violations", "reasons", "faults_bit")}
    return Row(**(table | lists | {"attempt": Attempt(**table["attempt"])}))


def _line(key: tuple[str, str], rows: Sequence[Row]) -> str:
    verdicts = Counter(row.verdict for row in rows)
    expected = expected_violations(key[0])
    must = "pass" if expected is None else "fail: " + ", ".join(sorted(expected))
    seen = Counter(name for row in rows for name in row.violations)
    reasons = sorted({reason for row in rows if row.verdict not in ("pass", "fail") for reason in row.reasons})
    cells = [
        *key,
        must,
        *(str(verdicts[name]) for name in ("pass", "fail")),
        str(len(rows) - verdicts["pass"] - verdicts["fail"]),
        f"{sum(map(as_expected, rows))}/{len(rows)}",
        ", ".join(f"{name} {count}" for name, count in sorted(seen.items())),
        "; ".join(reasons),
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _reports() -> Path:
    folder = registry.CHECKOUT / "reports"
    if not folder.is_dir():
        raise InputError(
            "calibrate", "works in a checkout of Kafka Trial only (its zoo is not shipped): clone it first"
        )
    return folder
