"""The crash matrix, cell by cell: what is missing is tried, and every trial becomes a row.

A cell whose crash did not land at one of its points is tried again with the next seed, and so with another n, a few
times. A row counts for the harness that made and judged it, for its consumer and for its scenario.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka_trial import registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.cluster.wiring import LANES
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import merged_text
from kafka_trial.errors import KafkaTrialError
from kafka_trial.report.row_files import append_row
from kafka_trial.scenario import scenario_to_table
from kafka_trial.trial.console import Console
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from lab.calibration.attempts import NOT_BEGUN
from lab.calibration.campaign import LANES_EACH
from lab.calibration.source_digests import judging_digest, making_digest
from lab.cases.crash_matrix import Cell
from lab.cases.crash_proof import Proof, effects_left, prove
from lab.cases.crash_rows import ROWS_NAME, CrashRow, read_rows
from lab.repository import git_revision, reports_folder

RUNS = Path("trial-runs") / "cases"
SEEDS = 4  # so often a cell is tried until its crash lands; once where its program cannot be at the point


def try_missing(
    cells: Sequence[Cell], *, until_s: float | None, side_by_side: int | None, say: Callable[[str], object]
) -> None:
    """Tries what is missing, a round for each seed, and appends a row for each trial; begins none after `until_s`."""
    file = reports_folder() / ROWS_NAME
    side_by_side = side_by_side or 1
    with Session(console=Console(quiet=True), lanes=max(LANES, LANES_EACH * side_by_side)) as session:
        for seed in range(1, SEEDS + 1):
            asked = {request_of(cell, seed): cell for cell in missing(cells, read_rows(file), seed)}
            tried = session.try_many(list(asked), side_by_side=side_by_side, until_s=until_s, retry_unknown=0)
            for ended, (request, outcome) in enumerate(tried, start=1):
                row = row_of(asked[request], seed, outcome)
                if row.verdict != NOT_BEGUN:  # it is tried when the campaign goes on
                    append_row(file, row)
                say(f"seed {seed}, {ended}/{len(asked)} {row_in_words(row)}")


def try_again(cell: Cell, seed: int) -> str:
    """Tries one cell once more, writes no row, and returns the report of its trial."""
    with Session(console=Console(quiet=True)) as session:
        ((_, outcome),) = session.try_many([request_of(cell, seed)])
        if isinstance(outcome, KafkaTrialError):
            raise outcome
        return f"{outcome.text}\n{row_in_words(row_of(cell, seed, outcome, keep=True))}"


def missing(cells: Sequence[Cell], rows: Sequence[CrashRow], seed: int) -> list[Cell]:
    """Returns the cells to be tried with a seed: not tried with it yet, and not reached with another."""
    missing = []
    for cell in cells:
        own = _counting(rows, cell)
        settled = any(row.reached for row in own) or (seed > 1 and not cell.may_be_reached)
        if not settled and all(row.seed != seed for row in own):
            missing.append(cell)
    return missing


def request_of(cell: Cell, seed: int) -> TrialRequest:
    """Returns the trial to ask for, in an empty folder of its own."""
    folder = RUNS / f"{cell.name.replace('/', '-')}-seed-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # of a campaign that was stopped in the midst of this one
    return TrialRequest(make_trial_spec(cell.scenario(seed), registry.CHECKOUT / cell.consumer, seed=seed), folder)


def row_of(cell: Cell, seed: int, outcome: TrialOutcome | KafkaTrialError, *, keep: bool = False) -> CrashRow:
    """Returns what came of a trial; its folder stays where it contradicts itself, or to `keep` it."""
    began = isinstance(outcome, TrialOutcome)
    events = list(outcome.folder.events()) if isinstance(outcome, TrialOutcome) else []
    row = CrashRow(
        cell=cell.name,
        seed=seed,
        nth=cell.nth(seed),
        claim=spec_from_toml(registry.CHECKOUT / cell.consumer).claim.delivery,
        proof=prove(events, cell.place) if began else Proof("", str(outcome)),
        raw=effects_left(events),
        kafka_version=DEFAULT_VERSION,
        consumer_digest=consumer_digest(registry.CHECKOUT / cell.consumer),
        source_digest=f"{making_digest()}-{judging_digest()}",
        scenario_digest=scenario_digest(cell, seed),
        commit=git_revision(),
        **(_judged(outcome) if isinstance(outcome, TrialOutcome) else _not_begun(outcome)),
    )
    if isinstance(outcome, TrialOutcome) and row.reached and not row.contradictions and not keep:
        shutil.rmtree(outcome.folder.path)
    return row


def row_in_words(row: CrashRow) -> str:
    """Says what came of a trial, in a line."""
    where = row.proof.point or f"not reached: {row.proof.because}"
    against = "".join(f"; CONTRADICTION: {one}" for one in row.contradictions) if row.reached else ""
    return f"{row.cell} n={row.nth}: {row.verdict}, {row.delivered}, {where}{against}"


def consumer_digest(file: Path) -> str:
    """Returns a digest of a consumer: its TOML file as it is merged, and the folders of its program."""
    spec = spec_from_toml(file)
    program = (file.parent / spec.command[-1]).resolve().parent
    parts = (merged_text(file), folder_digest(program), folder_digest(file.parent) if program == file.parent else "")
    return text_digest(*parts)


def scenario_digest(cell: Cell, seed: int) -> str:
    """Returns a digest of what is asked with a seed."""
    return text_digest(repr(scenario_to_table(cell.scenario(seed))))


def _judged(outcome: TrialOutcome) -> dict[str, Any]:
    verdict, metadata = outcome.verdict, outcome.folder.read_json("run.json")
    names = {one.anomaly for one in verdict.violations} | {one.anomaly for one in verdict.tolerated}
    evidence = "; ".join(fault.evidence for fault in verdict.faults)
    return {
        "verdict": verdict.verdict,
        "anomalies": {name: verdict.counts[name] for name in sorted(names) if verdict.counts.get(name)},
        "violations": tuple(sorted({violation.anomaly for violation in verdict.violations})),
        "told": "; ".join(verdict.reasons) or evidence,
        "versions": {name: metadata[name] for name in ("kafka_trial", "kafka", "toxiproxy", "python")}
        | metadata["libraries"],
    }


def _not_begun(error: KafkaTrialError) -> dict[str, Any]:
    return {"verdict": NOT_BEGUN, "anomalies": {}, "violations": (), "told": str(error)}


def _counting(rows: Sequence[CrashRow], cell: Cell) -> list[CrashRow]:
    """Returns the rows of a cell that count today."""
    source, consumer = f"{making_digest()}-{judging_digest()}", consumer_digest(registry.CHECKOUT / cell.consumer)
    return [
        row
        for row in rows
        if row.cell == cell.name
        and row.proof.rule >= cell.place.rule
        and (row.source_digest, row.consumer_digest) == (source, consumer)
        and row.scenario_digest == scenario_digest(cell, row.seed)
    ]


def text_digest(*parts: str) -> str:
    """Returns a short digest of some texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
