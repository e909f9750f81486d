"""Samples: single measurements of the scale campaign, a line each in `reports/scale.jsonl`, appended at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from kafka_trial.errors import InputError

SAMPLES_NAME = "scale.jsonl"


@dataclass(frozen=True)
class Sample:
    """One measurement. `of` is check (a cold process), duckdb, or warm; `values` by name with their units.

    `events` and `size_bytes` are those of the history; `digest` is that of the harness's source.
    """

    case: str
    of: str
    run: int
    events: int
    size_bytes: int
    values: Mapping[str, float]
    machine: str
    commit: str
    digest: str


def append_sample(path: Path, sample: Sample) -> None:
    """Adds one line to a file of samples."""
    with path.open("ab") as file:
        file.write(orjson.dumps(asdict(sample), option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS))


def read_samples(path: Path) -> list[Sample]:
    """Returns every sample, oldest first; none when there is no file.

    Raises:
        InputError: a line is no sample.
    """
    lines = path.read_bytes().splitlines() if path.exists() else []
    try:
        return [Sample(**orjson.loads(line)) for line in lines]
    except (orjson.JSONDecodeError, TypeError) as error:
        raise InputError(str(path), f"holds a line that is no sample ({error})") from error


def newest(samples: Sequence[Sample]) -> list[Sample]:
    """Returns what was measured of the source that was measured last."""
    return [sample for sample in samples if sample.digest == samples[-1].digest]
