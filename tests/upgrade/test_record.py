"""The record of an upgrade: what is a go, what is never one, and what stands in upgrade.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from kafka_trial.errors import FAIL, PASS, UNKNOWN, WRONG_INPUT, InputError
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.registry import PACKAGE
from kafka_trial.upgrade.outcome import GO, NO_GO, NOT_KNOWN
from kafka_trial.upgrade.record import RecordedOutcome, RecordedPath, UpgradeRecord
from kafka_trial.upgrade.record_file import read_record, write_record
from upgrade_records import (
    ALL_GO,
    CONVICTED,
    ENDED_EARLY,
    LOST,
    NO_GO_RECORD,
    STAGES,
    WITH_CLIENTS,
    WITH_COST,
    go,
    with_outcome,
)

SCHEMA = PACKAGE / "upgrade" / "upgrade.schema.json"
REFUSED = replace(
    ALL_GO,
    path=RecordedPath(["zookeeper"], "", ["the cluster uses ZooKeeper, and 4.3.1 has none (zookeeper)"]),
    stages=[replace(stage, began_s=None, lasted_s=None, rolls=[]) for stage in STAGES],
    outcomes=[],
)
LOSING = replace(ALL_GO, stages=[*STAGES[:2], replace(STAGES[2], losses=[LOST])])
RECORDS = [ALL_GO, NO_GO_RECORD, ENDED_EARLY, REFUSED, LOSING, WITH_CLIENTS, WITH_COST]


@pytest.mark.parametrize(
    ("record", "outcome", "status"),
    [
        (ALL_GO, GO, PASS),
        (NO_GO_RECORD, NO_GO, FAIL),
        (ENDED_EARLY, NOT_KNOWN, UNKNOWN),
        (REFUSED, NO_GO, WRONG_INPUT),
        (LOSING, NO_GO, FAIL),
        (with_outcome(ENDED_EARLY, CONVICTED), NO_GO, FAIL),
        (replace(ALL_GO, outcomes=ALL_GO.outcomes[:-1]), NOT_KNOWN, UNKNOWN),
        (replace(ALL_GO, outcomes=[]), NOT_KNOWN, UNKNOWN),
        (replace(ALL_GO, stages=[]), NOT_KNOWN, UNKNOWN),
        (replace(ALL_GO, consumers=[]), NOT_KNOWN, UNKNOWN),
        (replace(ALL_GO, path=RecordedPath([], "")), NOT_KNOWN, UNKNOWN),
        (with_outcome(ALL_GO, go("rolled", "orders", run="")), NOT_KNOWN, UNKNOWN),
        (with_outcome(ALL_GO, go("rolled", "orders", files={})), NOT_KNOWN, UNKNOWN),
        (with_outcome(ALL_GO, replace(CONVICTED, run="")), NOT_KNOWN, UNKNOWN),
        (replace(ALL_GO, stages=ENDED_EARLY.stages), NOT_KNOWN, UNKNOWN),
        (with_outcome(ALL_GO, replace(CONVICTED, stage="a stage of nobody")), NO_GO, FAIL),
        (replace(ALL_GO, outcomes=[*ALL_GO.outcomes, CONVICTED]), NO_GO, FAIL),
    ],
    ids=[
        *("all go", "one no-go", "ended early", "refused", "lost", "no-go and missing", "a row missing", "no rows"),
        *("no stages", "no consumers", "path not checked", "no run folder", "no files", "no-go without a run"),
        *("go of a stage that was not played", "a stage that was not planned", "said twice"),
    ],
)
def test_the_worst_decides_and_what_is_missing_is_never_a_go(record: UpgradeRecord, outcome: str, status: int) -> None:
    """Nor is a go that no run folder shows; who is convicted without one is not."""
    assert (record.outcome, record.exit) == (outcome, status)


def test_what_a_row_lacks_is_said() -> None:
    """Why it is unknown, or by whose fault a no-go."""
    rows = {(one.stage, one.subject): one for one in ENDED_EARLY.rows}
    assert rows["rolled", "orders"] == RecordedOutcome("rolled", "orders", NOT_KNOWN, reason="not played")
    row_missing = replace(ALL_GO, outcomes=ALL_GO.outcomes[:-1]).rows[-1]
    assert row_missing.reason == "no outcome is recorded"
    lost = LOSING.outcome_of(LOSING.stages[2], "")
    assert (lost.outcome, lost.accused, lost.reason) == (NO_GO, "setting", LOST.sentence)
    (unfounded,) = with_outcome(ALL_GO, go("rolled", "orders", run="")).not_go
    assert unfounded.reason == "it is said to be a go, and no run folder of this stage shows it"


def test_a_record_says_in_a_line_what_it_is_of() -> None:
    """How much was played of what was planned, and when."""
    assert NO_GO_RECORD.in_words == ("Kafka 3.9.2 to 4.3.1, in place, 2 consumers, 3 of 3 stages played: 8 go, 1 no-go")
    assert "2 of 3 stages played: 6 go, 3 unknown" in ENDED_EARLY.in_words
    assert ALL_GO.when == "2026-11-27 23:58 to 2026-11-28 00:01 UTC, 3 min"
    assert [replace(ALL_GO, began="").when, replace(ALL_GO, lasted_s=None).when] == ["", "2026-11-27 23:58 UTC"]
    words = [one.path_in_words for one in (ALL_GO, REFUSED, replace(ALL_GO, path=RecordedPath([], "")))]
    assert words == ["allowed by 2 rules", "refused by 1 rule", "not checked"]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_read_as_it_was_written(record: UpgradeRecord, tmp_path: Path) -> None:
    """With a row for every stage and subject; what is written of it again is the same, byte for byte."""
    write_record(record, tmp_path)
    first = (tmp_path / UPGRADE).read_bytes()
    read = read_record(tmp_path / UPGRADE)
    assert (read.outcome, read.rows, read.in_words) == (record.outcome, record.rows, record.in_words)
    write_record(read, tmp_path)
    assert (tmp_path / UPGRADE).read_bytes() == first


@pytest.mark.parametrize("record", RECORDS)
def test_the_published_schema_describes_what_is_written(record: UpgradeRecord, tmp_path: Path) -> None:
    """Whatever came of it; and it refuses what is no record, and words that rest on nothing."""
    schema = Draft202012Validator(orjson.loads(SCHEMA.read_bytes()))
    schema.check_schema(schema.schema)
    write_record(record, tmp_path)
    table = orjson.loads((tmp_path / UPGRADE).read_bytes())
    assert [error.message for error in schema.iter_errors(table)] == []
    table["outcomes"][0] |= {"outcome": "no-go", "accused": ""}
    table["outcomes"][1] |= {"outcome": "go", "subject": "orders", "run": ""}
    table["outcomes"][2] |= {"files": {"run.json": "abc"}}
    table["exit"] = 3
    del table["not_tried"]
    wrong = {"/".join(map(str, error.absolute_path)) for error in schema.iter_errors(table)}
    assert {"", "exit", "outcomes/0/accused", "outcomes/1/run", "outcomes/2/files/run.json"} <= wrong


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: table.update(schema=2), "reads up to 1"),
        (lambda table: table.update(outcome="go", exit=0), "says 'go', and its rows say 'no-go': edited"),
        (lambda table: table["outcomes"].clear(), "says 'no-go', and its rows say 'unknown': edited"),
        (lambda table: table["outcomes"][0].update(outcome="fine"), "is no record of an upgrade"),
        (lambda table: table.pop("stages"), "is no record of an upgrade"),
        (lambda table: table["stages"][0].update(stranger=1), "is no record of an upgrade"),
        (lambda table: table.update(stranger=1), "is no record of an upgrade"),
    ],
)
def test_what_is_no_record_is_refused(change: Callable[[Any], object], problem: str, tmp_path: Path) -> None:
    """With what is wrong with it."""
    write_record(NO_GO_RECORD, tmp_path)
    table = orjson.loads((tmp_path / UPGRADE).read_bytes())
    change(table)
    (tmp_path / UPGRADE).write_bytes(orjson.dumps(table))
    with pytest.raises(InputError, match=problem):
        read_record(tmp_path / UPGRADE)
