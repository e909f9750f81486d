"""Splits that are read by one process and gone on with by another give the cache that one process makes alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from kafka_trial.history.store import SUFFIX, RunFolder, unpack
from kafka_trial.judge.cache import CONTEXT, LINES, ROWS_FILE, make_cache
from kafka_trial.judge.lines import Block, LineStats, splits_of
from kafka_trial.judge.spark_reader import store_split, stored_blocks
from kafka_trial.registry import CHECKOUT

pytestmark = pytest.mark.lengthy

ZOO = CHECKOUT / "fixtures" / "histories" / "zoo"
DAMAGED = b'garbage\n{"schema":1,"source":"sink","seq":0,"time_ns":1,"kind":"effect","partition":"x"}\n{"schema":1'


@pytest.mark.parametrize("name", ["commits-last-offset", "adds-on-conflict", "offsets-outside-transaction"])
def test_the_cache_is_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slice rows, line index, trial context and defects, of files cut into splits of any size; damaged lines too."""
    monkeypatch.setattr("kafka_trial.judge.lines.SPLIT_BYTES", 40_000)
    run = unpack(ZOO / f"{name}{SUFFIX}", tmp_path / "run")
    with (run.history / "consumer-m0-0.jsonl").open("ab") as file:
        file.write(DAMAGED)
    alone, stored = _made(run, tmp_path / "alone"), tmp_path / "stored"
    stored.mkdir()
    assert max(len(splits_of(path)) for path in run.history_files()) > 2
    for path in run.history_files():
        for at in splits_of(path):
            store_split(path, at, stored)

    def read(path: Path, line_stats: LineStats) -> Iterator[Block]:
        return stored_blocks(path, splits_of(path), stored, line_stats)

    (tmp_path / "together").mkdir()
    make_cache(tmp_path / "together", run.history_files(), read=read)
    together = tmp_path / "together"
    assert orjson.loads((together / CONTEXT).read_bytes()) == orjson.loads((alone / CONTEXT).read_bytes())
    for table in (ROWS_FILE, LINES):
        assert pq.read_table(together / table).equals(pq.read_table(alone / table), check_metadata=True)
    assert any("is no event" in said for said in orjson.loads((alone / CONTEXT).read_bytes())["defects"])


def _made(run: RunFolder, place: Path) -> Path:
    place.mkdir()
    make_cache(place, run.history_files())
    return place
