"""Events in memory as slice rows: the same lines, read by the same reader, from a folder that lives for a moment."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson
import pyarrow as pa

from kafka_trial.judge.history_reader import read_tables
from kafka_trial.judge.trial_context_builder import TrialContextBuilder


def rows_of_lines(lines: Iterable[bytes]) -> tuple[pa.Table, TrialContextBuilder]:
    """Returns the slice rows and the context's builder of JSON lines of any sources, each source's in its order."""
    by_source: dict[str, list[bytes]] = {}
    for line in lines:
        by_source.setdefault(str(orjson.loads(line)["source"]), []).append(line)
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as folder:
        for source, own in by_source.items():
            (Path(folder) / f"{source}.jsonl").write_bytes(b"".join(own))
        return read_tables(list(Path(folder).glob("*.jsonl")))
