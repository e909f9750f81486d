"""What a calibration is about, as values: the grid of attempts, the rows that tell what came out, and their page.

`calibrate.py` runs the grid. A row holds everything the page needs, so that the page can be made again from the rows
alone, whatever became of the consumers since.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import comb
from pathlib import Path
from typing import Any

import orjson

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import InputError, unknown_name
from kafka_trial.fixture_header import FixtureHeader, fixture_header
from kafka_trial.question import make_question
from kafka_trial.quiet import for_silence_alone, levels_of, shown_at
from kafka_trial.session import Asked

ROWS_NAME = "calibration.jsonl"
NOT_BEGUN = "not begun"  # stands for the verdict where there was no trial; tried again when calibrate goes on
QUIET_SCENARIOS = ("control", "member-killed", "rebalance-storm")  # enough to see a sound silent consumer accused
SWITCHES: Mapping[bool | None, str] = {None: "", True: " (sin on)", False: " (sin off)"}


@dataclass(frozen=True)
class Attempt:
    """One trial of the grid: what was asked. `sin`: None for a reference, else whether the sin is switched on."""

    consumer: str
    scenario: str
    kafka_version: str = DEFAULT_VERSION
    seed: int = 1
    sin: bool | None = None

    def __str__(self) -> str:
        switch = {None: "", True: "-sinning", False: "-sin-off"}[self.sin]
        return f"{self.consumer}{switch}-on-{self.scenario}-{self.kafka_version}".replace("/", "-")


@dataclass(frozen=True)
class Row:
    """One attempt with what came out; a line of the rows file.

    `expected` are the anomalies that must be found, none for a sound consumer. `verdict` is pass, fail, unknown, or
    `not begun`. `faults_bit` has one entry for each planned fault. `source_digest` is the harness's,
    `trial_digest` that of consumer and scenario. `silent`: the consumer says nothing of what it does, so that a sound
    one cannot pass: it is rightly *unknown* for its silence alone.
    """

    attempt: Attempt
    expected: tuple[str, ...]
    verdict: str
    violations: tuple[str, ...]
    reasons: tuple[str, ...]
    faults_bit: tuple[bool, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    source_digest: str = ""
    trial_digest: str = ""
    commit: str = ""
    silent: bool = False

    @property
    def answered(self) -> bool:
        """Whether the verdict is an answer: an unknown is none, unless it is the right one."""
        return self.verdict in ("pass", "fail") or self.as_expected

    @property
    def as_expected(self) -> bool:
        """Whether it shows what its consumer must: a sin exactly its anomalies, a sound one a pass."""
        if self.silent and not self.expected:
            return self.verdict == "unknown" and not self.violations and for_silence_alone(self.reasons)
        return self.verdict == ("fail" if self.expected else "pass") and set(self.violations) == set(self.expected)


def grid(*, times: int, only: Sequence[str] | None = None) -> Iterator[Attempt]:
    """Yields every attempt: references on every scenario; each sin, on and off, and each twin, on its header's suite.

    A reference that says nothing goes through a few scenarios only.

    Raises:
        InputError: `only` names a consumer that does not exist.
    """
    names = registry.consumers()
    for name in only or ():
        if name not in names:
            raise InputError("--only", unknown_name("consumer", name, names))
    for seed in range(1, times + 1):
        for name in only or names:
            header = header_of(name)
            if header is None:
                scenarios = QUIET_SCENARIOS if registry.is_silent(name) else registry.scenarios()
                yield from (Attempt(name, scenario, seed=seed) for scenario in scenarios)
            elif header.sound:
                yield Attempt(name, header.suite, seed=seed)
            else:
                yield from (Attempt(name, header.suite, seed=seed, sin=sin) for sin in (True, False))


def ask(attempt: Attempt, folder: Path) -> Asked:
    """Returns the trial to ask for, its run folder inside `folder`.

    A sin is switched off in a copy of its folder; nothing else is touched.
    """
    consumer = registry.find_consumer(attempt.consumer)
    if attempt.sin is False:
        shutil.copytree(consumer.parent, folder / "consumer")
        consumer = folder / "consumer" / consumer.name
        text = consumer.read_text()
        if 'SIN = "1"' not in text:
            raise InputError(str(consumer), 'has no line SIN = "1" to switch the sin off')
        consumer.write_text(text.replace('SIN = "1"', 'SIN = "0"'))
    scenario = registry.find_scenario(attempt.scenario)
    question = make_question(scenario, consumer, kafka_version=attempt.kafka_version, seed=attempt.seed)
    return Asked(question, folder / "run")


def expected_of(attempt: Attempt) -> tuple[str, ...]:
    """Returns the anomalies that an attempt must show: where the sin is on, those of its header, as far as they can be
    seen by the evidence that this variant of the consumer gives; else none."""
    header = header_of(attempt.consumer)
    if header is None or not attempt.sin:
        return ()
    return shown_at(levels_of(spec_from_toml(registry.find_consumer(attempt.consumer)).evidence), header)


def newest(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of what was calibrated last: a harness, a consumer or a scenario that has changed is another."""
    same = [row for row in rows if row.source_digest == rows[-1].source_digest]
    last = {(row.attempt.consumer, row.attempt.scenario): row.trial_digest for row in same}
    return [row for row in same if row.trial_digest == last[row.attempt.consumer, row.attempt.scenario]]


def page(rows: Sequence[Row]) -> str:
    """Returns the page as Markdown: sums of the newest source, a line per consumer and scenario, older sources."""
    latest = newest(rows)
    lines = [
        "# Calibration",
        "",
        f"{len(latest)} trials of source {latest[-1].source_digest if latest else '-'}, {_measured_at(latest)}. "
        f"Generated from `{ROWS_NAME}`, which keeps every attempt.",
        "",
        *_sums(latest),
        "",
        *_table(
            ["consumer", "scenario", "must be", "pass", "fail", "unknown", "as it must be", "violations", "because"],
            [_line(key, group) for key, group in sorted(_grouped(latest).items())],
        ),
        *_older(rows),
    ]
    return "\n".join([*lines, ""])


def _measured_at(rows: Sequence[Row]) -> str:
    return f"measured at {', '.join(sorted({row.commit for row in rows})) or 'no commit yet'}"


def _older(rows: Sequence[Row]) -> list[str]:
    """Returns the section on what was calibrated before: how many attempts, and what was not as it had to be."""
    latest = set(map(id, newest(rows)))
    older: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if id(row) not in latest:
            older[row.source_digest].append(row)
    if not older:
        return []
    table = [
        [digest, _measured_at(group), _right(group), "; ".join(_wrong(row) for row in group if not row.as_expected)]
        for digest, group in older.items()
    ]
    return ["", "## Before", "", *_table(["source", "", "as it must be", "not so"], table)]


def _wrong(row: Row) -> str:
    return f"{row.attempt} seed {row.attempt.seed}: {', '.join([row.verdict, *row.violations, *row.reasons])}"


def read_rows(path: Path) -> list[Row]:
    """Returns every row of a rows file, oldest first; none when there is no file. A torn last line is left out.

    Raises:
        InputError: a line is no row.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    try:
        return [_row(orjson.loads(line)) for line in lines]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(str(path), f"holds a line that is no row ({type(error).__name__}: {error})") from error


def append_row(path: Path, row: Row) -> None:
    """Adds one line to a rows file."""
    with path.open("ab") as file:
        file.write(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS))


def header_of(consumer: str) -> FixtureHeader | None:
    """Returns what a fixture's header promises; None for a reference."""
    file = registry.find_consumer(consumer)
    return fixture_header(file.parent / "main.py") if set(registry.zoo_folders()) & set(file.parents) else None


def _row(table: dict[str, Any]) -> Row:
    lists = {name: tuple(table[name]) for name in ("expected", "violations", "reasons", "faults_bit")}
    return Row(**(table | lists | {"attempt": Attempt(**table["attempt"])}))


def _grouped(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[Row]]:
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.attempt.consumer + SWITCHES[row.attempt.sin], row.attempt.scenario].append(row)
    return grouped


def _sums(rows: Sequence[Row]) -> list[str]:
    names = {None: "sound consumers", True: "sins switched on", False: "sins switched off"}
    kinds: dict[str, list[Row]] = {name: [] for name in names.values()}
    for row in rows:
        kinds.setdefault(names[row.attempt.sin] + ", quiet" * row.silent, []).append(row)
    return _table(
        ["", "trials", "with a fault that bit", "pass", "fail", "unknown", "as it must be", "wrong at most (95 %)"],
        [
            [
                name,
                len(group),
                sum(any(row.faults_bit) for row in group),
                *_verdicts(group),
                _right(group),
                _bound(group),
            ]
            for name, group in kinds.items()
        ],
    )


def _bound(rows: Sequence[Row]) -> str:
    """Returns how often, at most, a trial of this kind comes out wrong; what is no answer is not wrong."""
    answered = [row for row in rows if row.answered]
    return f"{upper_bound(sum(not row.as_expected for row in answered), len(answered)):.1%}"


def upper_bound(wrong: int, trials: int, *, confidence: float = 0.95) -> float:
    """Returns the greatest rate with which so few wrong ones are not yet unlikely: Clopper and Pearson, one-sided."""
    low, high = wrong / trials if trials else 1.0, 1.0
    while high - low > 1e-6:
        rate = (low + high) / 2
        so_few = sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(wrong + 1))
        low, high = (rate, high) if so_few > 1 - confidence else (low, rate)
    return high


def _line(key: tuple[str, str], rows: Sequence[Row]) -> list[Any]:
    must = {_must(row) for row in rows}
    seen = Counter(name for row in rows for name in row.violations)
    reasons = Counter(reason for row in rows if not row.answered for reason in row.reasons)
    return [
        *key,
        "; ".join(sorted(must)),
        *_verdicts(rows),
        _right(rows),
        ", ".join(f"{name} {count}" for name, count in sorted(seen.items())),
        "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items())),
    ]


def _must(row: Row) -> str:
    if row.expected:
        return "fail: " + ", ".join(sorted(row.expected))
    return "unknown for its silence alone" if row.silent else "pass"


def _verdicts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Counts pass, fail and everything else."""
    verdicts = Counter(row.verdict for row in rows)
    return verdicts["pass"], verdicts["fail"], len(rows) - verdicts["pass"] - verdicts["fail"]


def _right(rows: Sequence[Row]) -> str:
    return f"{sum(row.as_expected for row in rows)}/{len(rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    body = [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body]
