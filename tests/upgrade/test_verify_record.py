"""Whether the record of an upgrade holds: files, verdicts, and the outcomes that follow from them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.check import check_run
from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS, WRONG_INPUT
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.history.store import SUFFIX, RunFolder, unpack
from kafka_trial.registry import CHECKOUT
from kafka_trial.report.sealed_files import file_digests
from kafka_trial.upgrade.cluster_state import Loss
from kafka_trial.upgrade.outcome import NO_GO, NOT_KNOWN
from kafka_trial.upgrade.record import RecordedOutcome, RecordedStage, UpgradeRecord
from kafka_trial.upgrade.record_file import write_record
from upgrade_records import ALL_GO, ORDERS

pytestmark = pytest.mark.spark

SINS = ("stays-paused", "skips-batch-on-rebalance", "commits-last-offset")
STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"
STOOD_STILL, LOST_RECORDS, FAULTY = (CHECKOUT / "fixtures" / "histories" / "zoo" / f"{sin}{SUFFIX}" for sin in SINS)
RUN = "stages/before/orders"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a rehearsal of one stage, whose history is a stored trial, really judged: a go."""
    out = tmp_path_factory.mktemp("upgrade")
    folder = RunFolder(out / RUN)
    shutil.copytree(STORED, folder.path)
    check_run(folder)
    write_record(record_of(out), out)
    return out


def record_of(out: Path, **changes: Any) -> UpgradeRecord:
    """Returns the record of what lies there."""
    folder = RunFolder(out / RUN)
    run, verdict = folder.read_json("run.json"), folder.read_json("verdict.json")
    told = RecordedOutcome("before", "orders", "go", run=RUN, files=file_digests(folder.path))
    return replace(
        ALL_GO,
        before=run["kafka"],
        after="4.4.0",
        seed=run["seed"],
        consumers=[replace(ORDERS, digest=run["consumer_digest"], claim=verdict["claim"])],
        stages=[RecordedStage("before", "a member killed", run["kafka"], 0.0, 60.0)],
        outcomes=[RecordedOutcome("before", "", "go"), replace(told, **changes)],
    )


@pytest.fixture
def out(rehearsed: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(rehearsed, tmp_path / "upgrade")


def told(place: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    return main(["verify", str(place)]), capsys.readouterr().out.splitlines()


def test_a_record_holds_until_a_byte_changes(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its folder or by its file; nothing beside it changes; what the cluster kept rests on the record alone."""
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    holds = ["before, the cluster: go, no run folder shows it", "before, orders: go, holds"]
    assert told(out, capsys) == (PASS, holds)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    history = out / RUN / "history" / "offsets.jsonl"
    history.write_bytes(history.read_bytes().replace(b"1", b"2", 1))
    changed = f"before, orders: go, {RUN}/history/offsets.jsonl was changed"
    assert told(out / UPGRADE, capsys) == (FAIL, [holds[0], changed])


def test_a_verdict_that_was_edited_with_its_checksum_does_not_hold(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its history is judged again, and says otherwise."""
    folder = RunFolder(out / RUN)
    folder.write_json("verdict.json", {**folder.read_json("verdict.json"), "verdict": "fail", "exit": FAIL})
    write_record(record_of(out), out)
    status, lines = told(out, capsys)
    assert (status, lines[-1]) == (
        FAIL,
        f"before, orders: go, {RUN} is now judged pass, or otherwise: by another version of kafka-trial?",
    )


def test_an_outcome_that_does_not_follow_from_its_verdicts_does_not_hold(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files are as they were, and the record says no-go of a consumer that passed."""
    edited = record_of(out, outcome=NO_GO, accused="consumer", reason="skipped: record 5 was left out")
    write_record(edited, out)
    assert told(out, capsys) == (
        FAIL,
        [
            "before, the cluster: go, no run folder shows it",
            "before, orders: no-go, its verdicts say go: no reason",
        ],
    )


def test_who_was_stranded_stays_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That no address was left was seen in the rehearsal; that the group stood still, and no more, follows again."""
    stranded = {"outcome": NO_GO, "accused": "setting", "reason": "every address that m1 was started with is gone"}
    for stored, follows in ((STOOD_STILL, "holds"), (LOST_RECORDS, "its verdicts say no-go: ")):
        out = tmp_path / stored.name
        check_run(unpack(stored, (out / RUN)))
        write_record(record_of(out, **stranded), out)
        status, lines = told(out, capsys)
        assert (status, lines[-1].startswith(f"before, orders: no-go, {follows}")) == (
            PASS if stored == STOOD_STILL else FAIL,
            True,
        ), lines


def test_a_no_go_of_a_consumer_on_a_cluster_that_had_lost_something_does_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it broke may follow from the loss: the outcome is computed with it, and is a no-go without."""
    folder = unpack(FAULTY, tmp_path / RUN)
    check_run(folder)
    accused = record_of(tmp_path, outcome=NO_GO, accused="consumer", reason="who knows")
    lost = replace(accused.stages[0], losses=[Loss("cluster", "a commit is gone")])
    follows = []
    for stage in (accused.stages[0], lost):
        write_record(replace(accused, stages=[stage]), tmp_path)
        follows.append(told(tmp_path, capsys)[1][-1].partition(", its verdicts say ")[2].partition(": ")[::2])
    (alone, broken), (beside, reason) = follows
    assert (alone, beside) == (NO_GO, NOT_KNOWN)
    assert reason == f"the cluster had lost something: a commit is gone. What was broken may follow from it: {broken}"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda record: replace(record, seed=4), "seed"),
        (lambda record: replace(record, before="3.9.2"), "kafka"),
        (lambda record: replace(record, consumers=[replace(record.consumers[0], digest="d2")]), "consumer_digest"),
        (lambda record: replace(record, consumers=[replace(record.consumers[0], claim={})]), "claim"),
    ],
)
def test_what_a_record_says_is_what_its_run_folders_say(
    change: Callable[[UpgradeRecord], UpgradeRecord], name: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of which version, which consumer and which claim."""
    write_record(change(record_of(out)), out)
    assert told(out, capsys)[1][-1] == f"before, orders: go, {RUN} says otherwise: {name}"


def test_a_run_folder_that_is_elsewhere_or_gone_does_not_hold(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record rests on what lies beside it."""
    write_record(record_of(out, run="../elsewhere"), out)
    assert told(out, capsys)[1][-1].endswith("../elsewhere is no place beside the file that names it")
    write_record(record_of(out), out)
    shutil.rmtree(out / RUN)
    assert told(out, capsys) == (
        FAIL,
        ["before, the cluster: go, no run folder shows it", f"before, orders: go, {RUN} is missing"],
    )


def test_what_is_neither_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without either file, and a record that was edited."""
    assert main(["verify", str(tmp_path)]) == WRONG_INPUT
    assert "has neither certificate.json nor upgrade.json in it" in capsys.readouterr().err
    write_record(ALL_GO, tmp_path)
    table = orjson.loads((tmp_path / UPGRADE).read_bytes())
    (tmp_path / UPGRADE).write_bytes(orjson.dumps(table | {"outcome": "no-go"}))
    assert main(["verify", str(tmp_path)]) == WRONG_INPUT
    assert "edited" in capsys.readouterr().err
