"""Samples: single measurements of the scale campaign, a line each in `reports/scale.jsonl`, appended at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.report.row_files import rows_in

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


def read_samples(path: Path) -> list[Sample]:
    """Returns every sample, oldest first; none when there is no file.

    Raises:
        InputError: a line is no sample.
    """
    return rows_in(path, lambda table: Sample(**table))


def newest(samples: Sequence[Sample]) -> list[Sample]:
    """Returns what was measured of the source that was measured last."""
    return [sample for sample in samples if sample.digest == samples[-1].digest]
