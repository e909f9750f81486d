"""How long suites take: trials that were run, timed by their histories; a line each in `reports/suite_seconds.jsonl`.

`python -m lab.calibration --seconds FOLDER` adds every trial of a suite that stands anywhere below a folder, be it of
`certify` or of a calibration. By the medians `kafka-trial certify --budget` chooses what there is time for.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson

from kafka_trial import registry
from kafka_trial.consumers.spec import KafkaSettings
from kafka_trial.errors import PASS, InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.trial.suite_budget import waits_for_metadata_s
from lab.bench.figures import Row as BenchRow
from lab.repository import reports_folder

SECONDS_NAME = "suite_seconds.jsonl"
COLD, WARM = (f"member-killed trial, cluster and Spark {state}" for state in ("cold", "warm"))
SHORT_AGE_S = 5.0  # clients that ask so often notice partitions while the faults last
BESIDE = "of the warm trial: opening, judging, telling"  # what its history does not hold


@dataclass(frozen=True)
class TimedTrial:
    """One trial: `seconds` from its first phase to the end of its history; `began` is UTC, and tells trials apart."""

    suite: str
    consumer: str
    kafka: str
    seed: int
    began: str
    seconds: float
    cores: int


def add_seconds(folders: Sequence[str]) -> int:
    """Adds the trials that stand below some folders; those that are known, were cut short or waited for their clients'
    metadata are left out.

    Raises:
        InputError: this is no checkout, a folder does not exist, or a run folder is damaged.
    """
    if missing := [name for name in folders if not Path(name).is_dir()]:
        raise InputError("--seconds", [f"{name} is no folder: name one with run folders in it" for name in missing])
    file = reports_folder() / SECONDS_NAME
    runs = (RunFolder(place.parent) for name in folders for place in sorted(Path(name).rglob("run.json")))
    trials = {trial for run in runs for trial in _timed(run)}
    added = sorted(trials - set(read_seconds(file)), key=lambda trial: trial.began)
    with file.open("ab") as rows:
        rows.writelines(orjson.dumps(asdict(trial), option=orjson.OPT_APPEND_NEWLINE) for trial in added)
    print(f"{len(added)} trials added to {file}")
    return PASS


def read_seconds(file: Path) -> list[TimedTrial]:
    """Returns every timed trial, oldest first; none when there is no file.

    Raises:
        InputError: a line is none.
    """
    lines = file.read_bytes().splitlines() if file.exists() else []
    try:
        return [TimedTrial(**orjson.loads(line)) for line in lines]
    except (orjson.JSONDecodeError, TypeError) as error:
        raise InputError(str(file), f"holds a line that is no timed trial ({error})") from error


def _waited_long(run: RunFolder, suite: str) -> bool:
    """Tells whether a trial waited for its clients to notice partitions: with a budget that time is added by itself."""
    told = settings_of(run.path / "consumer.toml")
    kafka = KafkaSettings(protocol=told.protocol, metadata_age_s=told.metadata_age_s)
    return waits_for_metadata_s(kafka, [registry.scenarios()[suite]]).get(suite, 0.0) > SHORT_AGE_S


def typical_seconds(trials: Sequence[TimedTrial], measured: Sequence[BenchRow]) -> dict[str, float]:
    """Returns what a trial of each suite takes until its verdict, by name: the median of its trials, and what the
    newest measurement found beside the history of one."""
    beside_s = _newest(measured, BESIDE)
    suites = sorted({trial.suite for trial in trials})
    return {
        suite: round(median(trial.seconds for trial in trials if trial.suite == suite) + beside_s, 1)
        for suite in suites
    }


def first_seconds(measured: Sequence[BenchRow]) -> float:
    """Returns what the first trial of a session takes besides, until brokers and judge are up, as measured last."""
    return round(_newest(measured, COLD) - _newest(measured, WARM), 1)


def _newest(measured: Sequence[BenchRow], name: str) -> float:
    return median(next((row.figure.values for row in reversed(measured) if row.figure.name == name), (0.0,)))


def _timed(run: RunFolder) -> Iterator[TimedTrial]:
    metadata, suite = run.read_json("run.json"), run.read_json("scenario.json")["name"]
    if suite not in registry.scenarios() or run.end_told() != "" or _waited_long(run, suite):
        return
    told = [event for event in run.events() if event.source == "run"]
    began = datetime.datetime.fromtimestamp(told[0].details["wall_ns"] / 1e9, datetime.UTC)
    begins_ns = next(event.time_ns for event in told if event.kind == "phase")
    yield TimedTrial(
        suite=suite,
        consumer=Path(metadata["consumer_file"]).parent.name,
        kafka=metadata["kafka"],
        seed=metadata["seed"],
        began=began.isoformat(timespec="milliseconds"),
        seconds=round((max(event.time_ns for event in told) - begins_ns) / 1e9, 2),
        cores=metadata["machine"]["cores"],
    )
