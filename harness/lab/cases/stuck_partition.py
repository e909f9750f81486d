"""Case 0, the stuck partition that is not stuck: five provocations, each met by every cure; rows and a table of them.

A provocation is a scenario in `fixtures/stuck-partition/provocations`, a cure a consumer.toml beside them: one
program, with or without its guards, on the assignors and protocols there are. Which cure stops which provocation is
measured, a few seeds each. Rows are appended to `reports/stuck_partition.jsonl`; what made them is part of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.errors import KafkaTrialError
from kafka_trial.report.row_files import append_row, rows_in
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import TrialSpec, make_trial_spec
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.stuck_partition_figures import figures_of
from lab.cases.timelines import append_timeline, timeline_row
from lab.repository import git_revision, reports_folder

ROWS_NAME: Final = "stuck_partition.jsonl"
FOLDER: Final = Path("fixtures") / "stuck-partition"
RUNS: Final = Path("trial-runs") / "stuck-partition"
PROVOCATIONS: Final = ("frozen", "stalled", "long-order", "rejoins", "parallel")
PARALLEL: Final = "parallel"  # several workers a member: variants of their own
CURES: Final = (
    "none",
    "guard-before-processing",
    "guard-before-commit",
    "both-guards",
    "hand-over",
    "sticky",
    "cooperative-sticky",
    "consumer-protocol",
    "one-at-a-time",
)
COUNTED: Final = ("commit-regression", "zombie-commit", "false-lag", "work-after-revoke", "illegal-redelivery")
SEEDS: Final = (1, 2, 3)
SWEPT: Final = "frozen"  # over these numbers of partitions, with these cures
SWEPT_PARTITIONS: Final = (3, 6, 12, 24)
SWEPT_CURES: Final = ("none", "cooperative-sticky")
CASE: Final = 0
DRAWN: Final = ("frozen/none", "frozen/both-guards")  # with their first seed: what the page has a plot of
LANES: Final = 18


@dataclass(frozen=True)
class StuckPartitionRow:
    """One trial. `counts`: how often each anomaly of `COUNTED` was found; `false_lag`: the sentence that tells for how
    long and how much, empty where there is none. The rest as in `Figures`."""

    provocation: str
    cure: str
    seed: int
    partitions: int
    verdict: str
    violations: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    bit: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    false_lag: str = ""
    rebalances: int = 0
    moved: int = 0
    done_twice: int = 0
    wasted_s: float = 0.0
    wasted_cpu_s: float = 0.0
    kafka: str = ""
    digest: str = ""
    commit: str = ""
    swept: bool = False

    @property
    def stuck(self) -> bool:
        """Whether a lag was left standing that is none."""
        return "false-lag" in self.violations

    @property
    def told(self) -> bool:
        """Whether the trial can say anything: it ran, and its faults took effect."""
        return self.bit and self.verdict in ("pass", "fail")


@dataclass(frozen=True)
class StuckPartitionCell:
    """One trial that is asked for; `partitions` None: as many as the provocation says."""

    provocation: str
    cure: str
    seed: int
    partitions: int | None = None

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"{self.provocation}/{self.cure}" + (f"/{self.partitions}" if self.partitions else "")

    @property
    def consumer(self) -> Path:
        name = f"{PARALLEL}-{self.cure}" if self.provocation == PARALLEL else self.cure
        return registry.CHECKOUT / FOLDER / f"{name}.toml"

    @property
    def scenario(self) -> Path:
        return registry.CHECKOUT / FOLDER / "provocations" / f"{self.provocation}.toml"

    def trial_spec(self) -> TrialSpec:
        """Returns the trial that it is.

        Raises:
            InputError: scenario or consumer are wrong.
        """
        scenario = registry.find_scenario(str(self.scenario))
        if self.partitions is not None:
            scenario = replace(scenario, topic=replace(scenario.topic, partitions=self.partitions))
        return make_trial_spec(scenario, self.consumer, seed=self.seed)

    def request(self) -> TrialRequest:
        """Returns the trial to ask for, in an empty folder of its own."""
        folder = RUNS / f"{self.provocation}-{self.cure}-{self.partitions or 'own'}-{self.seed}"
        shutil.rmtree(folder, ignore_errors=True)
        return TrialRequest(self.trial_spec(), folder)


def grid(seeds: Sequence[int] = SEEDS) -> Iterator[StuckPartitionCell]:
    """Yields every provocation with every cure that there is a consumer for, one seed after the other."""
    cells = (
        StuckPartitionCell(provocation, cure, seed) for seed in seeds for provocation in PROVOCATIONS for cure in CURES
    )
    return (cell for cell in cells if cell.consumer.exists())


def sweep(seeds: Sequence[int] = SEEDS) -> Iterator[StuckPartitionCell]:
    """Yields the sweep over partitions for each consumer."""
    return (
        StuckPartitionCell(SWEPT, cure, seed, partitions)
        for seed in seeds
        for partitions in SWEPT_PARTITIONS
        for cure in SWEPT_CURES
    )


def digest() -> str:
    """Returns what a row was made by: harness, consumers and provocations."""
    return f"{making_digest()}-{judging_digest()}-{folder_digest(registry.CHECKOUT / FOLDER)}"


def try_missing(
    cells: Sequence[StuckPartitionCell],
    *,
    until_s: float | None,
    side_by_side: int | None,
    say: Callable[[str], object],
) -> None:
    """Tries what has no row of today yet, and appends its rows; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    done = {_key(row) for row in read_rows(file) if row.digest == digest()}
    todo = [cell for cell in cells if (cell.provocation, cell.cure, cell.seed, cell.partitions) not in done]
    asked = {cell.request(): cell for cell in todo}
    with Session(console=Console(quiet=True), lanes=LANES) as session:
        tried = session.try_many(list(asked), side_by_side=side_by_side, until_s=until_s)
        for number, (request, outcome) in enumerate(tried, start=1):
            row = _row(asked[request], outcome)
            append_row(file, row)
            if isinstance(outcome, TrialOutcome) and asked[request].name in DRAWN and row.seed == SEEDS[0] and row.told:
                append_timeline(
                    timeline_row(
                        outcome.folder, case=CASE, cell=asked[request].name, seed=row.seed, anomaly="false-lag"
                    )
                )
            told = ", ".join([row.verdict, *row.violations])
            say(f"{number}/{len(todo)} {asked[request].name} seed {row.seed}: {told}")


def read_rows(file: Path) -> list[StuckPartitionRow]:
    """Returns the rows of a file, see `row_files.py`."""
    return rows_in(file, _of_table)


def _of_table(table: dict[str, Any]) -> StuckPartitionRow:
    return StuckPartitionRow(**(table | {name: tuple(table[name]) for name in ("violations", "reasons")}))


def _key(row: StuckPartitionRow) -> tuple[str, str, int, int | None]:
    return row.provocation, row.cure, row.seed, row.partitions if row.swept else None


def _partitions(cell: StuckPartitionCell) -> int:
    return cell.partitions or registry.find_scenario(str(cell.scenario)).topic.partitions


def _row(cell: StuckPartitionCell, outcome: TrialOutcome | KafkaTrialError) -> StuckPartitionRow:
    about: dict[str, Any] = {
        "provocation": cell.provocation,
        "cure": cell.cure,
        "seed": cell.seed,
        "partitions": _partitions(cell),
        "swept": cell.partitions is not None,
        "digest": digest(),
        "commit": git_revision(),
    }
    if isinstance(outcome, KafkaTrialError):
        return StuckPartitionRow(verdict="not begun", reasons=(str(outcome),), **about)
    verdict = outcome.verdict
    sentences = [one.sentence for one in verdict.violations if one.anomaly == "false-lag"]
    return StuckPartitionRow(
        verdict=verdict.verdict,
        violations=tuple(sorted({one.anomaly for one in verdict.violations})),
        reasons=tuple(verdict.reasons),
        bit=bool(verdict.faults) and all(fault.bit for fault in verdict.faults),
        counts={name: verdict.counts.get(name, 0) for name in COUNTED},
        false_lag=sentences[0] if sentences else "",
        kafka=outcome.folder.read_json("run.json")["kafka"],
        **asdict(figures_of(outcome.folder)),
        **about,
    )
