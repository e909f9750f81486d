"""Case 1, the lag that more partitions made worse: a hot partition behind blocking turns, over each of three knobs.

A cell is a scenario of `fixtures/blocking-turns/scenarios`, a consumer beside them, and how many partitions so many
members share. What the formula says is computed before the trial, and stored beside what was measured: a row each in
`reports/blocking_turns.jsonl`. Waits are a tenth of those that were met (`SCALE`), but for one cell in real time.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.consumers.patched_consumer import merged_text
from kafka_trial.errors import KafkaTrialError
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.scenario import Scenario
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import TrialSpec, make_trial_spec
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.blocking_turns_figures import Figures, Knobs, figures_of, predicted_drain_s, predicted_rate_per_s
from lab.cases.timelines import append_timeline, timeline_row
from lab.repository import git_revision, reports_folder

CASE: Final = 1
ROWS_NAME: Final = "blocking_turns.jsonl"
FOLDER: Final = Path("fixtures") / "blocking-turns"
RUNS: Final = Path("trial-runs") / "blocking-turns"
SCALE: Final = 10  # ten seconds of the case are one second here
HOT_RUN, ARRIVALS, TWO_KEYS, REAL_TIME = "hot-run", "arrivals", "two-hot-keys", "real-time"
RECORDS: Final = (1, 5, 20)  # of a fetch
TIMEOUTS_MS: Final = (1000, 100)
PARTITIONS: Final = (4, 6, 10)  # for two members: one, two and four empty ones beside the hot one
MEMBERS: Final = 2
CURE: Final = "one-poll"
BLOCKED: Final = "head-of-line-blocking"
SEED: Final = 1
TWO_KEYS_SEED: Final = 6  # its first two runs are of two keys
LANES: Final = 18


@dataclass(frozen=True)
class BlockingTurnsCell:
    """One trial that is asked for."""

    scenario_name: str
    consumer_name: str
    partitions: int = PARTITIONS[0]
    members: int = MEMBERS
    seed: int = SEED

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"{self.scenario_name}/{self.consumer_name}/{self.partitions}-for-{self.members}"

    @property
    def consumer(self) -> Path:
        return registry.CHECKOUT / FOLDER / f"{self.consumer_name}.toml"

    @property
    def in_turns(self) -> bool:
        """Whether the consumer asks its partitions in turn."""
        return self.consumer_name != CURE

    def scenario(self) -> Scenario:
        """Returns its scenario, on its partitions.

        Raises:
            InputError: it is wrong.
        """
        file = registry.CHECKOUT / FOLDER / "scenarios" / f"{self.scenario_name}.toml"
        scenario = registry.find_scenario(str(file))
        topic = replace(scenario.topic, partitions=self.partitions)
        return replace(scenario, topic=topic, members=self.members)

    def knobs(self) -> Knobs:
        """Returns what the formula is given, as the files of the cell say it."""
        known = tomllib.loads(merged_text(self.consumer))["env"]
        return Knobs(
            records_per_fetch=int(known["RECORDS_PER_FETCH"]),
            timeout_s=int(known["TIMEOUT_MS"]) / 1000,
            empty_partitions=max(1, self.partitions // self.members) - 1,
            service_s=int(known["WORK_MS"]) / 1000,
            arrivals_per_s=self.scenario().load.rate_per_s if self.scenario_name == ARRIVALS else 0.0,
        )

    def trial_spec(self) -> TrialSpec:
        """Returns the trial that it is.

        Raises:
            InputError: scenario or consumer are wrong.
        """
        return make_trial_spec(self.scenario(), self.consumer, seed=self.seed)

    def request(self) -> TrialRequest:
        """Returns the trial to ask for, in an empty folder of its own."""
        folder = RUNS / self.name.replace("/", "-")
        shutil.rmtree(folder, ignore_errors=True)
        return TrialRequest(self.trial_spec(), folder)


@dataclass(frozen=True)
class BlockingTurnsRow:
    """One trial: what its cell is, what was predicted of it, what was measured (as in `Figures`), and its verdict.

    `blocked`: how often head-of-line blocking was found; `told`: the sentence that tells where, empty where it was not.
    """

    cell: str
    seed: int
    knobs: Knobs
    in_turns: bool
    predicted_per_s: float | None
    predicted_drain_s: float | None
    verdict: str
    figures: Figures = field(default_factory=Figures)
    violations: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    blocked: int = 0
    told: str = ""
    kafka: str = ""
    digest: str = ""
    commit: str = ""

    @property
    def ratio(self) -> float | None:
        """The measured rate by the predicted one; None where one of them is missing, or the assignment another."""
        as_set = self.figures.empty_partitions == self.knobs.empty_partitions
        if self.predicted_per_s is None or self.figures.rate_per_s is None or not as_set:
            return None
        return self.figures.rate_per_s / self.predicted_per_s


DRAWN: Final = tuple(
    BlockingTurnsCell(ARRIVALS, consumer).name for consumer in ("1-record-1000ms", "1-record-100ms", CURE)
)


def consumer_name(records: int, timeout_ms: int) -> str:
    """Returns which consumer has so many records in a fetch, and waits for so long."""
    return f"{records}-record{'s' if records > 1 else ''}-{timeout_ms}ms"


def grid() -> Iterator[BlockingTurnsCell]:
    """Yields every setting of the three knobs."""
    return (
        BlockingTurnsCell(HOT_RUN, consumer_name(records, timeout_ms), partitions)
        for records in RECORDS
        for partitions in PARTITIONS
        for timeout_ms in TIMEOUTS_MS
    )


def cells() -> list[BlockingTurnsCell]:
    """Returns all: backlogs with arrivals, the case in real time, the cure, what else it tells of, and the grid."""
    return [
        *(BlockingTurnsCell(ARRIVALS, consumer) for consumer in ("1-record-1000ms", "1-record-100ms", CURE)),
        BlockingTurnsCell(REAL_TIME, "1-record-10000ms", 12, 6),
        *(BlockingTurnsCell(HOT_RUN, CURE, partitions) for partitions in (PARTITIONS[0], PARTITIONS[-1])),
        BlockingTurnsCell(HOT_RUN, "1-record-1000ms", 3, 6),
        BlockingTurnsCell(TWO_KEYS, "20-records-1000ms", seed=TWO_KEYS_SEED),
        *grid(),
    ]


def digest() -> str:
    """Returns what a row was made by: harness, consumers and scenarios."""
    return f"{making_digest()}-{judging_digest()}-{folder_digest(registry.CHECKOUT / FOLDER)}"


def try_missing(
    wanted: Sequence[BlockingTurnsCell],
    *,
    until_s: float | None,
    side_by_side: int | None,
    say: Callable[[str], object],
) -> None:
    """Tries what has no row of today yet, and appends its rows; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {(row.cell, row.seed) for row in read_rows(file) if row.digest == digest()}
    asked = {cell.request(): cell for cell in wanted if (cell.name, cell.seed) not in done}
    predicted = {cell: prediction(cell) for cell in asked.values()}
    with Session(console=Console(quiet=True), lanes=LANES) as session:
        tried = session.try_many(list(asked), side_by_side=side_by_side, until_s=until_s)
        for number, (request, outcome) in enumerate(tried, start=1):
            row = row_of(asked[request], predicted[asked[request]], outcome)
            append_row(file, row)
            if isinstance(outcome, TrialOutcome) and row.cell in DRAWN:
                append_timeline(timeline_row(outcome.folder, case=CASE, cell=row.cell, seed=row.seed, anomaly=BLOCKED))
            say(f"{number}/{len(asked)} {row_in_words(row)}")


def prediction(cell: BlockingTurnsCell) -> tuple[float | None, float | None]:
    """Returns the rate that the formula gives the cell, and how long its backlog takes while records arrive; None where
    it does not apply."""
    knobs = cell.knobs()
    if not cell.in_turns or not knobs.empty_partitions:
        return None, None
    if cell.scenario_name != ARRIVALS:
        return predicted_rate_per_s(knobs), None
    (burst,) = cell.scenario().load.bursts
    return predicted_rate_per_s(knobs), predicted_drain_s(knobs, burst.records)


def row_of(
    cell: BlockingTurnsCell, predicted: tuple[float | None, float | None], outcome: TrialOutcome | KafkaTrialError
) -> BlockingTurnsRow:
    """Returns what came of a trial."""
    about: dict[str, Any] = {
        "cell": cell.name,
        "seed": cell.seed,
        "knobs": cell.knobs(),
        "in_turns": cell.in_turns,
        "predicted_per_s": predicted[0],
        "predicted_drain_s": predicted[1],
        "digest": digest(),
        "commit": git_revision(),
    }
    if isinstance(outcome, KafkaTrialError):
        return BlockingTurnsRow(verdict="not begun", reasons=(str(outcome),), **about)
    verdict = outcome.verdict
    sentences = [one.sentence for one in verdict.violations if one.anomaly == BLOCKED]
    return BlockingTurnsRow(
        verdict=verdict.verdict,
        figures=figures_of(outcome.folder, cell.knobs().records_per_fetch),
        violations=tuple(sorted({one.anomaly for one in verdict.violations})),
        reasons=tuple(verdict.reasons),
        blocked=verdict.counts.get(BLOCKED, 0),
        told=sentences[0] if sentences else "",
        kafka=outcome.folder.read_json("run.json")["kafka"],
        **about,
    )


def row_in_words(row: BlockingTurnsRow) -> str:
    """Says what came of a trial, in a line."""
    rate = "no rate" if row.figures.rate_per_s is None else f"{row.figures.rate_per_s:.2f}/s"
    against = "" if row.ratio is None else f" ({row.ratio:.2f} of what was predicted)"
    drained = "" if row.figures.drain_s is None else f", drained in {row.figures.drain_s:.1f} s"
    return f"{row.cell}: {', '.join([row.verdict, *row.violations])}; {rate}{against}{drained}"


def read_rows(file: Path) -> list[BlockingTurnsRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, _of_table)


def _of_table(table: Mapping[str, Any]) -> BlockingTurnsRow:
    nested = {"knobs": Knobs(**table["knobs"]), "figures": Figures(**table["figures"])}
    return BlockingTurnsRow(**(dict(table) | nested | {name: tuple(table[name]) for name in ("violations", "reasons")}))
