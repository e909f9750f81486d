"""Generated histories: whole for the judge, what their shapes say, the same from the same seed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.judge.findings import find
from kafka_trial.judge.history_defects import missing_files, strangers
from kafka_trial.judge.history_reader import read_tables
from kafka_trial.judge.judge import Judgement, judgement_of
from lab.scale.duck import counted
from lab.scale.history import write_history
from lab.scale.planted import Planted
from lab.scale.shapes import Shape, World

SMALL = Shape(20_000)
FAULTY = Shape(100_000, planted=8)


def judged(folder: RunFolder) -> Judgement:
    """Returns the judgement on a run folder, without Spark."""
    rows, builder = read_tables(folder.history_files())
    trial_context = builder.trial_context(settings_of(folder.path / "consumer.toml"))
    defects = [*builder.defects, *missing_files(trial_context, builder.brokers), *strangers(folder)]
    return judgement_of(find(rows, trial_context), trial_context, defects)


def anomalies(judgement: Judgement) -> dict[str, int]:
    """Returns how often each anomaly was found, undecided cases too."""
    found = {name: finding.count + sum(finding.undecided.values()) for name, finding in judgement.findings.items()}
    return {name: count for name, count in found.items() if count}


def events(folder: RunFolder, source: str, kind: str) -> list[dict[str, Any]]:
    """Returns the events of a kind in one file."""
    lines = (folder.history / f"{source}.jsonl").read_bytes().splitlines()
    return [event for event in map(orjson.loads, lines) if event["kind"] == kind]


@pytest.mark.parametrize(
    "shape",
    [
        SMALL,
        replace(SMALL, hot=0.9),
        replace(SMALL, partitions=100),
        replace(SMALL, keys=10),
        replace(SMALL, keys=100_000),
        replace(SMALL, first_offset=10**9),
    ],
    ids=lambda shape: f"{shape.partitions} partitions, {shape.keys} keys, hot {shape.hot}, from {shape.first_offset}",
)
def test_a_sound_one_is_whole_and_nothing_is_found_but_what_is_legal(shape: Shape, tmp_path: Path) -> None:
    """No defect, no undecided case, nothing that is not judged for want of evidence; what was handed on came again."""
    judgement = judged(write_history(tmp_path / "run", shape))
    unjudged = {name for name, one in judgement.findings.items() if one.not_judged and one.not_judged.applies}
    assert (judgement.defects, judgement.crashed, set(anomalies(judgement))) == ((), {}, {"redelivered"})
    assert unjudged == set()
    assert judgement.coverage.records == shape.records


def test_both_computations_find_what_was_planted(tmp_path: Path) -> None:
    """The judge, and SQL over the same files, find each anomaly as often as it was planted, and agree on the rest; the
    judge alone sees the gap that is left by what was skipped, and that the tail stays."""
    folder = write_history(tmp_path / "run", FAULTY)
    by_judge, by_sql = anomalies(judged(folder)), counted(folder.history)
    planted = dict(Planted(World(FAULTY)).expected())
    assert {name: by_sql[name] for name in planted} == planted
    assert by_sql["redelivered"] > 0
    assert by_sql == {name: by_judge[name] for name in by_sql}
    assert set(by_judge) - set(by_sql) == {"poll-skip", "stuck-partition"}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another seed gives others."""
    first, again, other = (
        write_history(tmp_path / name, replace(SMALL, seed=seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    contents = [[file.read_bytes() for file in folder.history_files()] for folder in (first, again, other)]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_a_history_has_the_shape_that_was_asked_for(tmp_path: Path) -> None:
    """As many events, give or take a tenth; so many partitions and keys, the hot one's share, the first offset."""
    shape = Shape(40_000, partitions=8, keys=40, hot=0.5, first_offset=1000)
    folder = write_history(tmp_path / "run", shape)
    lines = sum(file.read_bytes().count(b"\n") for file in folder.history_files())
    records = events(folder, "observer", "record")
    of = Counter(record["partition"] for record in records)
    partitions_of_keys = {record["key"]: set[int]() for record in records}
    for record in records:
        partitions_of_keys[record["key"]].add(record["partition"])
    assert abs(lines / shape.events - 1) < 0.1
    assert (len(of), of[0]) == (8, round(shape.records / 2))
    assert (len(partitions_of_keys), {len(some) for some in partitions_of_keys.values()}) == (40, {1})
    assert min(record["offset"] for record in records) == 1000


def test_every_partition_changes_its_owner_at_each_handover(tmp_path: Path) -> None:
    """By the offsets log, and by the members' own word."""
    folder = write_history(tmp_path / "run", SMALL)
    owners = [[entry["member_id"] for entry in group["entries"]] for group in events(folder, "offsets", "group")]
    kept = [[one for one, other in zip(*pair, strict=True) if one == other] for pair in pairwise(owners)]
    assert (len(owners), kept) == (SMALL.handovers + 1, [[]] * SMALL.handovers)
    assert len(events(folder, "consumer-m0-0", "assigned")) == SMALL.handovers + 1


def test_a_history_is_written_stretch_by_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one ends and the next begins changes nothing in the group, but how long the last handler of each took."""
    whole = write_history(tmp_path / "whole", SMALL)
    monkeypatch.setattr("lab.scale.history.STRETCH_RECORDS", 300)
    cut = write_history(tmp_path / "cut", SMALL)
    for name in ("consumer-m0-0", "consumer-m1-0", "offsets", "requests-b1"):
        told = [(folder.history / f"{name}.jsonl").read_text() for folder in (whole, cut)]
        assert len({re.sub(r'"time_ns":\d+,', "", text) for text in told}) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"events": 1000, "partitions": 1000}, "too few"),
        ({"keys": 3}, "every partition has one"),
        ({"hot": 1.5}, "a share between 0 and 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(wrong: dict[str, Any], told: str) -> None:
    """Before anything is written."""
    with pytest.raises(InputError, match=told):
        Shape(**{"events": 10_000} | wrong)


def test_more_anomalies_than_there_is_room_for_are_refused() -> None:
    """It says how many there are room for."""
    with pytest.raises(InputError, match="there is room for"):
        Planted(World(replace(SMALL, planted=100)))
