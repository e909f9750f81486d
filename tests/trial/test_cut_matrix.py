"""The matrix of cuts: its cells, how a stopped walk goes on, what it says in the end."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS, UNKNOWN, InputError, StartError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import create_run_folder
from kafka_trial.nemesis.cut_scenarios import MATRIX_ACTIONS
from kafka_trial.registry import find_consumer
from kafka_trial.report.cut_page import CutRow, Matrix, matrix_text, read_rows, write_matrix
from kafka_trial.report.row_files import append_row
from kafka_trial.trial.cut_matrix import MatrixRun, apis_used, walk
from kafka_trial.trial.session import TrialRequest

CONSUMER = find_consumer("python-at-least-once")
RUNS = Path("runs") / "python-at-least-once-4.3.1-seed-1"
ROW = CutRow("Fetch", "after", "kill", "pass", (), "cut", "", "c", "d1", "d2", "4.3.1", 1)


def test_the_apis_are_those_of_its_members(tmp_path: Path) -> None:
    """Not the load's, on a lane of its own; Fetch and Metadata are there always."""
    folder = create_run_folder(tmp_path / "run", "control", "c")
    with Recorder(folder.history, "consumer-m0-1") as told:
        told.record("started", member="m0", incarnation=1, lane=0)
    with Recorder(folder.history, "requests-b0") as told:
        told.record("request", api="OFFSET_COMMIT", lane=0)
        told.record("request", api="INIT_PRODUCER_ID", lane=3)
        told.record("request", api="CONSUMER_GROUP_HEARTBEAT", lane=0)
    assert apis_used(folder) == ["Fetch", "Metadata", "OffsetCommit", "ConsumerGroupHeartbeat"]


def matrix(**words: str) -> Matrix:
    rows = {
        ("Fetch", "after", action): replace(ROW, action=action, verdict=word.replace("_", " "))
        for action, word in words.items()
    }
    return Matrix("c", "4.3.1", [("Fetch", "after", action) for action in MATRIX_ACTIONS], rows)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"hold": "pass", "close": "pass", "delay": "pass", "kill": "pass"}, PASS),
        ({"hold": "pass", "close": "pass", "delay": "pass", "kill": "not_reached"}, PASS),
        ({"hold": "not_reached", "close": "not_reached", "delay": "not_reached", "kill": "not_reached"}, UNKNOWN),
        ({"hold": "pass", "close": "unknown", "delay": "pass", "kill": "pass"}, UNKNOWN),
        ({"hold": "pass", "close": "pass", "delay": "pass"}, UNKNOWN),
        ({"hold": "fail", "close": "unknown"}, FAIL),
    ],
)
def test_the_status_is_that_of_the_worst_cell(words: dict[str, str], status: int) -> None:
    """A cell that was not tried leaves the whole unknown; one that was not reached says nothing."""
    assert matrix(**words).exit_status == status


def test_the_text_has_a_word_in_every_cell_and_names_what_did_not_pass() -> None:
    """As a terminal shows it."""
    shown = matrix(hold="pass", close="not_reached", delay="fail")
    failed = replace(shown.rows["Fetch", "after", "delay"], anomalies=("skipped",), run="runs/x")
    text = matrix_text(replace(shown, rows={**shown.rows, failed.cell: failed}))
    assert text.splitlines() == [
        "c on Kafka 4.3.1: 4 cuts: 1 fail, 1 pass, 1 not reached, 1 not tried",
        "",
        "                                       hold    close    delay     kill",
        "Fetch                   after          pass        -     FAIL        .",
        "",
        "- not reached, . not tried",
        "",
        "not reached: Fetch after close: cut",
        "fail: Fetch after delay: skipped  (runs/x)",
    ]


def test_rows_are_read_as_they_were_written_and_bad_ones_named(tmp_path: Path) -> None:
    """By file and line."""
    file = tmp_path / "cuts.jsonl"
    append_row(file, replace(ROW, anomalies=("skipped", "reordered-key")))
    append_row(file, ROW)
    assert read_rows(file) == [replace(ROW, anomalies=("skipped", "reordered-key")), ROW]
    file.write_text('{"api": 1}\n')
    with pytest.raises(InputError, match=r"cuts\.jsonl:1"):
        read_rows(file)


def test_the_page_shows_what_a_consumer_says_as_text(tmp_path: Path) -> None:
    """Nothing in it is taken for markup."""
    shown = matrix(hold="unknown")
    row = replace(shown.rows["Fetch", "after", "hold"], told="<b>&")
    write_matrix(replace(shown, rows={row.cell: row}), tmp_path)
    assert "&lt;b&gt;&amp;" in (tmp_path / "cuts.html").read_text()


@dataclass
class Sitting:
    """A session that runs nothing: every trial ends as `words` say, by the cell's name; else it passes."""

    words: dict[str, str] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    most: int = 1000
    cut_short: bool = False

    def run_one(self, spec: Any, *, out: Path) -> Any:
        folder = create_run_folder(out, spec.scenario.name, "c")
        with Recorder(folder.history, "run") as told:
            told.record("end", outcome="info" if self.cut_short else "ok", message="no disk" if self.cut_short else "")
        with Recorder(folder.history, "consumer-m0-1") as told:
            told.record("started", member="m0", incarnation=1, lane=0)
        self.begun.append(spec.scenario.name)
        return folder

    def try_many(self, asked: Sequence[TrialRequest], **_: object) -> Iterator[tuple[TrialRequest, Any]]:
        for one in asked[: self.most]:
            name, word = one.trial_spec.scenario.name, self.words.get(one.trial_spec.scenario.name, "pass")
            self.begun.append(name)
            folder = create_run_folder(one.out, name, "c")
            metadata = dict.fromkeys(("kafka_trial", "kafka", "toxiproxy", "python"), "1")
            folder.write_json("run.json", {**metadata, "libraries": {}})
            evidence = "not reached: 0 of 1" if word == "not reached" else "cut"
            reason = f"fault 0: {evidence}" if word == "not reached" else "a witness died"
            reason = "fault 0 (cut) proves nothing about the consumer: it was idle" if word == "idle" else reason
            verdict = SimpleNamespace(
                verdict="unknown" if word in ("not reached", "idle") else word,
                exit={"pass": PASS, "fail": FAIL}.get(word, UNKNOWN),
                violations=[SimpleNamespace(anomaly="skipped")] if word == "fail" else [],
                faults=[SimpleNamespace(evidence=evidence)],
                reasons=[reason],
            )
            yield one, SimpleNamespace(verdict=verdict, folder=folder)


def go(
    sitting: Sitting, out: Path, *, consumer: Path = CONSUMER, say: Callable[[str], object] = str, **words: Any
) -> Matrix:
    session: Any = sitting
    return walk(session, MatrixRun(consumer, out, **words), say=say)


def test_a_walk_beside_the_consumer_goes_on_and_names_what_changed(tmp_path: Path) -> None:
    """Its own files are no other consumer; where the consumer has changed, its cells are tried again, and told."""
    consumer = shutil.copytree(CONSUMER.parent, tmp_path / "orders") / CONSUMER.name
    words: dict[str, Any] = {"consumer": consumer, "apis": ["Fetch"], "places": ["before"]}
    out, said = consumer.parent / "cuts", list[str]()
    go(Sitting({"cut-Fetch-before-kill": "fail"}, most=3), out, **words)
    go(went_on := Sitting(), out, say=said.append, **words)
    assert (len(went_on.begun), [told for told in said if "again" in told]) == (1, [])
    (consumer.parent / "main.py").write_text("pass")
    go(again := Sitting(), out, say=said.append, **words)
    assert len(again.begun) == 4
    told = "4 cells are tried again: tried with an earlier state of the consumer: main.py was changed. What"
    assert [one.startswith(told) for one in said if "again" in one] == [True]


def test_a_walk_goes_on_once_what_the_consumer_writes_is_named(tmp_path: Path) -> None:
    """Its state came with the trials."""
    consumer = shutil.copytree(CONSUMER.parent, tmp_path / "orders") / CONSUMER.name
    words: dict[str, Any] = {"consumer": consumer, "apis": ["Fetch"], "places": ["before"], "actions": ["hold"]}
    go(Sitting(), consumer.parent / "cuts", **words)
    (consumer.parent / "positions.db").write_text("7")
    consumer.write_text(consumer.read_text().replace("members = 3", 'members = 3\nwrites = ["*.db"]'))
    go(again := Sitting(), consumer.parent / "cuts", **words)
    assert again.begun == []


def test_rows_that_tell_no_files_are_tried_again_by_name(tmp_path: Path) -> None:
    """They are of an earlier version; nothing is forgotten without a word."""
    go(Sitting(), tmp_path, apis=["Fetch"], places=["before"], actions=["hold"])
    (tmp_path / "cuts-consumers.json").unlink()
    rows = tmp_path / "cuts.jsonl"
    rows.write_text(re.sub(r'"consumer_digest":"\w+"', '"consumer_digest":"before"', rows.read_text()))
    said = list[str]()
    go(again := Sitting(), tmp_path, apis=["Fetch"], places=["before"], actions=["hold"], say=said.append)
    assert (len(again.begun), said[0].endswith("whose files are not stored")) == (1, True)


def test_the_page_says_when_and_what_was_not_tried(tmp_path: Path) -> None:
    """With seed and version; what was not tried is not nothing."""
    write_matrix(matrix(), tmp_path)
    empty = (tmp_path / "cuts.html").read_text()
    assert ("no cell has been tried" in empty, "nothing" in empty) == (True, False)
    assert "Fetch: after hold, after close, after delay, after kill" in empty
    shown = matrix(hold="pass")
    (row,) = shown.rows.values()
    row = replace(row, began="2026-11-27T04:00:00Z", lasted_s=31.0, versions={"kafka_trial": "0.1.0"})
    write_matrix(replace(shown, rows={row.cell: row}), tmp_path)
    page = re.sub(r"\s+", " ", (tmp_path / "cuts.html").read_text())
    assert "Tried 2026-11-27 04:00 to 04:00 UTC; 1 trial took 31 s. Seed 1. kafka-trial 0.1.0." in page
    assert "every cell that was tried passed" in page


def test_a_stopped_walk_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What has its row is not tried again; another seed is another matrix."""
    stopped, went_on, again = Sitting(most=5), Sitting(), Sitting()
    assert go(stopped, tmp_path, apis=["Fetch"]).count("not tried") == 7
    assert go(went_on, tmp_path, apis=["Fetch"]).exit_status == PASS
    assert (len(stopped.begun), len(went_on.begun)) == (5, 7)
    assert set(stopped.begun).isdisjoint(went_on.begun)
    go(again, tmp_path, apis=["Fetch"], seed=2)
    assert len(again.begun) == 12


def test_the_first_trial_says_which_apis_there_are(tmp_path: Path) -> None:
    """Without an API that is asked for it is run, and kept."""
    sitting = Sitting()
    shown = go(sitting, tmp_path, places=["before"], actions=["kill"])
    assert sitting.begun == ["control", "cut-Fetch-before-kill", "cut-Metadata-before-kill"]
    assert (shown.exit_status, (tmp_path / RUNS / "control" / "history").is_dir()) == (PASS, True)


def test_a_first_trial_that_was_cut_short_shows_nothing(tmp_path: Path) -> None:
    """Then nothing is known of what it uses."""
    with pytest.raises(StartError, match="no disk"):
        go(Sitting(cut_short=True), tmp_path)


def test_what_did_not_pass_keeps_its_run_folder(tmp_path: Path) -> None:
    """And its row says where; of what passed nothing stays."""
    words = {
        "cut-Fetch-before-hold": "fail",
        "cut-Fetch-before-close": "not reached",
        "cut-Fetch-before-delay": "unknown",
    }
    shown = go(Sitting(words), tmp_path, apis=["Fetch"], places=["before"])
    assert [shown.word(cell) for cell in shown.cells] == ["fail", "not reached", "unknown", "pass"]
    runs = tmp_path / "runs" / "python-at-least-once-4.3.1-seed-1"
    assert sorted(path.name for path in runs.iterdir()) == sorted(words)
    row = shown.rows["Fetch", "before", "hold"]
    assert (row.anomalies, row.run, (tmp_path / row.run).is_dir()) == (
        ("skipped",),
        "runs/python-at-least-once-4.3.1-seed-1/cut-Fetch-before-hold",
        True,
    )
    assert shown.rows["Fetch", "before", "delay"].told == "a witness died"


def test_what_an_older_library_did_is_tried_again(tmp_path: Path) -> None:
    """The consumer's folder is the same; what it imports is not."""
    go(Sitting(), tmp_path, apis=["Fetch"], places=["before"])
    rows = tmp_path / "cuts.jsonl"
    rows.write_text(rows.read_text().replace('"versions":{', '"versions":{"kafka-python":"1.0",', 1))
    again = Sitting()
    assert go(again, tmp_path, apis=["Fetch"], places=["before"]).exit_status == PASS
    assert len(again.begun) == 1


def test_rows_of_a_harness_that_is_alike_count_unless_they_failed(tmp_path: Path) -> None:
    """Those of any other harness are tried again."""
    words = {"cut-Fetch-before-hold": "fail"}
    go(Sitting(words), tmp_path, apis=["Fetch"], places=["before"], source_digest="before")
    alike, other = Sitting(), Sitting()
    assert (
        go(alike, tmp_path, apis=["Fetch"], places=["before"], source_digest="now", alike=["before"]).exit_status
        == PASS
    )
    assert alike.begun == ["cut-Fetch-before-hold"]
    go(other, tmp_path, apis=["Fetch"], places=["before"], source_digest="another", alike=["earlier"])
    assert len(other.begun) == 4


def test_what_was_unknown_is_tried_again(tmp_path: Path) -> None:
    """It is no answer; what was not reached is one."""
    ended = {
        "cut-Fetch-before-hold": "unknown",
        "cut-Fetch-before-close": "not reached",
        "cut-Fetch-before-delay": "idle",
    }
    go(Sitting(ended), tmp_path, apis=["Fetch"], places=["before"])
    again = Sitting()
    assert go(again, tmp_path, apis=["Fetch"], places=["before"]).exit_status == PASS
    assert again.begun == ["cut-Fetch-before-hold", "cut-Fetch-before-delay"]


def test_a_folder_that_is_named_by_a_detour_is_the_same(tmp_path: Path) -> None:
    """The run folder in a row is relative to where the rows are."""
    (tmp_path / "here").mkdir()
    shown = go(Sitting({"cut-Fetch-before-kill": "fail"}), tmp_path / "here" / ".." / "cuts", apis=["Fetch"])
    assert (tmp_path / "cuts" / shown.rows["Fetch", "before", "kill"].run).is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--api", "OffsetComit"], "OffsetCommit"),
        (["--where", "between"], "after, answered, before"),
        (["--action", "swallow"], "close, delay, hold, kill, pause"),
        (["--side-by-side", "0"], "0 must be between 1 and 256"),
    ],
)
def test_what_does_not_exist_is_told_before_anything_starts(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what there is."""
    status = main(["cuts", "--consumer", "python-at-least-once", "--out", str(tmp_path / "cuts"), *words])
    assert (status, said in capsys.readouterr().err, (tmp_path / "cuts").exists()) == (2, True, False)
