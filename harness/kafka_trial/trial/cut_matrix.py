"""The matrix of cuts: a consumer is cut at every place of every API that it uses, one trial a cell.

Every trial becomes one row of `cuts.jsonl`, appended and never rewritten: a walk that was stopped goes on where it
stopped. A row counts while the consumer, the harness, the Kafka version, the client libraries of our own Python and the
seed are the same.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from kafka_trial import registry
from kafka_trial.cluster.kafka_cut import API_KEYS, WHERE
from kafka_trial.cluster.wiring import LANES
from kafka_trial.containers.engine import connect
from kafka_trial.containers.network import require_image
from kafka_trial.errors import PASS, InputError, KafkaTrialError, StartError, unknown_name
from kafka_trial.history.store import RunFolder
from kafka_trial.nemesis.cut_scenarios import MATRIX_ACTIONS, Cell, cells_of, scenario_of
from kafka_trial.report.certificate import trial_times
from kafka_trial.report.cut_page import CONSUMERS, ROWS, CutRow, Matrix, read_rows, write_matrix
from kafka_trial.report.row_files import append_row
from kafka_trial.scenario import Scenario
from kafka_trial.trial.consumer_files import (
    IF_WRITTEN,
    ChangeWatch,
    ConsumerFiles,
    changes_in_words,
    consumer_files,
    folder_digest,
)
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.setup import run_metadata
from kafka_trial.trial.spec import TrialSpec, make_trial_spec
from kafka_trial.verdict.unknown_reasons import PROVES_NOTHING
from kafka_trial.verdict.verdict_input import NOT_REACHED

FIRST = "control"  # the trial that shows which APIs the consumer uses
RUNS = "runs"
ALWAYS: Final = ("Fetch", "Metadata")  # every consumer sends them; the history keeps only those that tell something new
Key = tuple[str, str, str]


@dataclass(frozen=True)
class MatrixRun:
    """What is asked: which consumer, and where rows, page and the run folders of what did not pass go.

    `rows` None: `cuts.jsonl` in `out`; one file may hold rows of several consumers. `source_digest` says which harness
    its rows count for (empty: this very one), `alike` of which others they count too, unless they failed; `commit` goes
    into them.
    `apis`: only these (empty: those that a first trial shows it to use); of each only these `places` and `actions`. No
    trial is begun after `minutes`. `image` stands for what the consumer's file names.
    """

    consumer: Path
    out: Path
    kafka_version: str | None = None
    seed: int = 1
    apis: Sequence[str] = ()
    places: Sequence[str] = WHERE
    actions: Sequence[str] = MATRIX_ACTIONS
    image: str | None = None
    rows: Path | None = None
    source_digest: str = ""
    alike: Sequence[str] = ()
    commit: str = ""
    minutes: float | None = None
    side_by_side: int | None = None
    retry_unknown: int = 0


def walk(session: Session, matrix_run: MatrixRun, *, say: Callable[[str], object]) -> Matrix:
    """Tries what is missing of the matrix, writes rows and pages as it goes and says so, and returns the matrix.

    Raises:
        InputError: the consumer, an API or a row is wrong.
        StartError: the first trial, which shows what it uses, did not come to its end.
    """
    until_s = None if matrix_run.minutes is None else time.monotonic() + matrix_run.minutes * 60
    first = _spec(matrix_run, registry.find_scenario(FIRST))
    matrix_run.out.mkdir(parents=True, exist_ok=True)
    rows, source = matrix_run.rows or matrix_run.out / ROWS, matrix_run.source_digest or folder_digest(registry.PACKAGE)
    image = first.consumer.image
    images = {image: require_image(connect(), image)} if image else {}
    files = consumer_files(first.consumer.path, first.payload, out=matrix_run.out, images=images)
    matrix_rows = [row for row in read_rows(rows) if _is_of(row, first)]
    why_not = _why_not_counted(matrix_run, first, files, source)
    ours = {row.cell: row for row in matrix_rows if not why_not(row)}
    place = matrix_run.out / RUNS / f"{first.consumer.name}-{first.kafka_version}-seed-{matrix_run.seed}"
    apis = matrix_run.apis or _apis(session, first, place / FIRST, say)
    cells = cells_of(apis, places=matrix_run.places, actions=matrix_run.actions)
    asked = {_key(cell) for cell in cells} - ours.keys()
    for because, count in Counter(why_not(row) for row in _newest(matrix_rows) if row.cell in asked).items():
        say(f"{count} cell{'s are' if count > 1 else ' is'} tried again: {because}")
    watch = ChangeWatch(first.consumer.path, first.payload, matrix_run.out, files.stored(), images)
    _store_consumer(matrix_run.out / CONSUMERS, files, {row.consumer_digest for row in matrix_rows})
    matrix = Matrix(first.consumer.name, first.kafka_version, [_key(cell) for cell in cells], ours)
    requests = {_request(matrix_run, cell, place / cell.name): cell for cell in cells if _key(cell) not in ours}
    tried = session.try_many(
        list(requests), side_by_side=matrix_run.side_by_side, until_s=until_s, retry_unknown=matrix_run.retry_unknown
    )
    for ended, (request, outcome) in enumerate(tried, start=1):
        row = _row(matrix_run, requests[request], outcome, request, consumer=files.digest, source=source)
        append_row(rows, row)
        ours[row.cell] = row
        write_matrix(matrix, matrix_run.out)
        tries = [outcome.tries] if isinstance(outcome, TrialOutcome) and outcome.tries else []
        told = ", ".join([row.verdict, *row.anomalies, *tries])
        say(f"{ended}/{len(requests)} {row.api} {row.where} {row.action}: {told}")
        if changes := watch.new_changes():
            say(changes)
    write_matrix(matrix, matrix_run.out)
    return matrix


def _is_of(row: CutRow, first: TrialSpec) -> bool:
    """Tells whether a row is of a matrix: of this consumer by its name, on this Kafka, with this seed."""
    matrix = first.consumer.name, first.kafka_version, first.seed
    return (row.consumer, row.kafka_version, row.seed) == matrix


def _newest(rows: Sequence[CutRow]) -> list[CutRow]:
    return list({row.cell: row for row in rows}.values())


def _why_not_counted(
    matrix_run: MatrixRun, first: TrialSpec, files: ConsumerFiles, source: str
) -> Callable[[CutRow], str]:
    """Returns who says why a row of the matrix does not count any more; "" where it does."""
    libraries = run_metadata(seed=1, kafka_version="", consumer_file=first.consumer.path)["libraries"]
    stored = _stored_consumers(matrix_run.out / CONSUMERS)
    changes = {digest: files.changes_since(before) for digest, before in stored.items()} | {files.digest: []}

    def because(row: CutRow) -> str:
        if not counts_for(row, source, matrix_run.alike):
            return "tried by another kafka-trial"
        if row.consumer_digest not in changes:
            return "tried with an earlier state of the consumer, whose files are not stored"
        if changed := changes[row.consumer_digest]:
            return f"tried with an earlier state of the consumer: {changes_in_words(changed)}. {IF_WRITTEN}"
        others = [name for name, version in libraries.items() if row.versions.get(name, version) != version]
        if others:
            return f"tried with another version of {', '.join(others)}"
        return "unknown before" if row.verdict == "unknown" else ""

    return because


def _stored_consumers(file: Path) -> dict[str, Mapping[str, str]]:
    """Returns the files of each consumer that rows are of, by their digest; none where nothing is stored."""
    if not file.exists():
        return {}
    try:
        return {digest: dict(one["files"]) for digest, one in orjson.loads(file.read_bytes()).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(str(file), "was edited: take it away, and all cells are tried again") from error


def _store_consumer(file: Path, files: ConsumerFiles, of_rows: Collection[str]) -> None:
    """Stores the files of a consumer beside those of the states of it that there are rows of."""
    stored = {digest: kept for digest, kept in _stored_consumers(file).items() if digest in of_rows}
    table = {digest: {"files": kept} for digest, kept in (stored | {files.digest: files.stored()}).items()}
    file.write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def counts_for(row: CutRow, source_digest: str, alike: Sequence[str]) -> bool:
    """Tells whether a row counts for a harness: it is of that one, or of one that is like it, and did not fail."""
    return row.source_digest == source_digest or (row.source_digest in alike and row.verdict != "fail")


def apis_used(folder: RunFolder) -> list[str]:
    """Returns the APIs that the members of a trial were seen to use, by the brokers' request logs."""
    lanes, seen = set[int](), set[tuple[str, int]]()
    for event in folder.events():
        if event.kind == "started":
            lanes.add(event.details["lane"])
        elif event.kind == "request" and event.details.get("lane") is not None:
            seen.add((event.details["api"].replace("_", "").lower(), event.details["lane"]))
    names = {api for api, lane in seen if lane in lanes}
    return [api for api in API_KEYS if api in ALWAYS or api.lower() in names]


def named(option: str, given: Collection[str], known: Collection[str]) -> list[str]:
    """Returns what was given of what is known, in that order.

    Raises:
        InputError: something that was given is not known.
    """
    problems = [unknown_name(option.removeprefix("--"), name, known) for name in given if name not in known]
    if problems:
        raise InputError(option, problems)
    return [name for name in known if name in given]


def lanes_for(matrix_run: MatrixRun) -> int:
    """Returns how many lanes a cluster needs for its trials at once.

    Raises:
        InputError: the consumer or the version is wrong.
    """
    return max(
        LANES, (matrix_run.side_by_side or os.cpu_count() or 1) * _spec(matrix_run, registry.find_scenario(FIRST)).lanes
    )


def _apis(session: Session, first: TrialSpec, place: Path, say: Callable[[str], object]) -> list[str]:
    """Returns the APIs that the consumer uses in a trial without faults, kept at `place`.

    Raises:
        StartError: that trial was cut short.
    """
    shutil.rmtree(place, ignore_errors=True)
    folder = session.run_one(first, out=place)
    if because := folder.end_told():
        raise StartError(f"the trial {place} that shows which APIs the consumer uses was cut short: {because}")
    apis = apis_used(folder)
    say(f"it uses {', '.join(apis)}")
    return apis


def _request(matrix_run: MatrixRun, cell: Cell, place: Path) -> TrialRequest:
    for left in place.parent.glob(f"{cell.name}*"):  # of a walk that was stopped in the midst of this one
        shutil.rmtree(left)
    return TrialRequest(_spec(matrix_run, scenario_of(cell)), place)


def _spec(matrix_run: MatrixRun, scenario: Scenario) -> TrialSpec:
    return make_trial_spec(
        scenario,
        matrix_run.consumer,
        kafka_version=matrix_run.kafka_version,
        seed=matrix_run.seed,
        image=matrix_run.image,
    )


def _row(
    matrix_run: MatrixRun,
    cell: Cell,
    outcome: TrialOutcome | KafkaTrialError,
    request: TrialRequest,
    *,
    consumer: str,
    source: str,
) -> CutRow:
    word, anomalies, told, run, versions = "unknown", set[str](), "", "", {}
    began, lasted_s = "", None
    if isinstance(outcome, KafkaTrialError):
        told = str(outcome)
    else:
        verdict, folder = outcome.verdict, outcome.folder
        metadata = folder.read_json("run.json")
        versions = {name: metadata[name] for name in ("kafka_trial", "kafka", "toxiproxy", "python")} | metadata[
            "libraries"
        ]
        began, lasted_s = trial_times(folder)
        word, anomalies = verdict.verdict, {violation.anomaly for violation in verdict.violations}
        told = "; ".join(fault.evidence for fault in verdict.faults)
        if word == "unknown":
            cut_only = all(NOT_REACHED in reason or PROVES_NOTHING in reason for reason in verdict.reasons)
            not_reached = cut_only and any(NOT_REACHED in reason for reason in verdict.reasons)
            word, told = (NOT_REACHED, told) if not_reached else (word, "; ".join(verdict.reasons))
        run = folder.path.relative_to(matrix_run.out.absolute()).as_posix()
        if verdict.exit == PASS:
            run = ""
            shutil.rmtree(folder.path)
    spec = request.trial_spec
    return CutRow(
        *(cell.api, cell.where, cell.action, word, tuple(sorted(anomalies)), told, run),
        consumer=spec.consumer.name,
        consumer_digest=consumer,
        source_digest=source,
        kafka_version=spec.kafka_version,
        seed=spec.seed,
        versions=versions,
        commit=matrix_run.commit,
        began=began,
        lasted_s=lasted_s,
    )


def _key(cell: Cell) -> Key:
    return cell.api, cell.where, cell.action
