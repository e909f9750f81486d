"""A stored run of a real trial, judged again: same bytes however it is cut, unknown where it is not whole."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import stored_verdicts
from kafka_trial.check import check_run
from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS, UNKNOWN, WRONG_INPUT
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import slice_rows
from kafka_trial.judge.slices import found_frame
from kafka_trial.judge.spark_session import session
from kafka_trial.registry import CHECKOUT

pytestmark = pytest.mark.spark

STORED = CHECKOUT / "fixtures" / "histories" / "member-killed"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Copies the stored run, its files made in a shuffled order."""
    folder = RunFolder(tmp_path / "somewhere" / "else")
    files = [path for path in STORED.rglob("*") if path.is_file()]
    random.Random(3).shuffle(files)
    for path in files:
        place = folder.path / path.relative_to(STORED)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    return folder


def test_it_passes(run: RunFolder) -> None:
    """The sound consumer of the stored run is acquitted, with a fault that bit."""
    verdict = check_run(run)
    assert stored_verdicts.fresh_verdict(run) == stored_verdicts.stored_verdict(STORED)
    assert (verdict.verdict, [fault.bit for fault in verdict.faults], verdict.violations) == ("pass", [True], ())


def test_a_folder_may_be_named_from_where_one_stands(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is judged as the absolute one is."""
    monkeypatch.chdir(run.path.parent)
    assert check_run(RunFolder(Path(run.path.name))).verdict == "pass"


@pytest.mark.parametrize("partitions", [1, 4, 17])
def test_the_bytes_do_not_depend_on_spark_partitions(run: RunFolder, partitions: int) -> None:
    """1, 4 or 17 partitions, in a folder elsewhere: the verdict's bytes are those of the first judgement."""
    check_run(run)
    first = (run.path / "verdict.json").read_bytes()
    check_run(run, partitions=partitions)
    assert (run.path / "verdict.json").read_bytes() == first


def test_the_bytes_do_not_depend_on_the_process(run: RunFolder) -> None:
    """Another process, time zone, locale and hash seed; earlier outputs that lie there are ignored."""
    check_run(run)
    first = (run.path / "verdict.json").read_bytes()
    (run.path / "verdict.json").write_text('{"schema": 1, "verdict": "fail"}')
    shutil.rmtree(run.cache)
    other = os.environ | {"TZ": "Asia/Kolkata", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-m", "kafka_trial", "check", str(run.path)]
    done = subprocess.run(command, env=other, cwd=run.path, capture_output=True, timeout=300, check=False)
    assert (done.returncode, (run.path / "verdict.json").read_bytes() == first) == (PASS, True)


def test_renaming_the_consumer_changes_nothing(run: RunFolder) -> None:
    """The judge never sees a name."""
    check_run(run)
    first = (run.path / "verdict.json").read_bytes()
    text = (run.path / "consumer.toml").read_text()
    (run.path / "consumer.toml").write_text(text.replace("python-at-least-once", "somebody-else"))
    check_run(run)
    assert (run.path / "verdict.json").read_bytes() == first


def test_one_flipped_commit_changes_the_verdict(run: RunFolder) -> None:
    """A committed offset put back to 0 in the JSONL is a regression: the history is the truth, the cache is not."""
    check_run(run)

    def flipped(event: dict) -> dict:  # type: ignore[type-arg]
        return event | {"committed_offset": 0}

    _edit(run, "offsets.jsonl", flipped, kind="committed", number=10)
    verdict = check_run(run)
    assert (verdict.exit, "commit-regression" in {one.anomaly for one in verdict.violations}) == (FAIL, True)


def test_clocks_that_were_read_together_and_written_late_have_not_jumped(run: RunFolder) -> None:
    """The pair says when it was read; without that word, what kept the writer waiting would look like a jump."""
    check_run(run)
    first = (run.path / "verdict.json").read_bytes()

    def late(event: dict) -> dict:  # type: ignore[type-arg]
        return event | {"time_ns": event["time_ns"] + 400_000_000, "read_ns": event["time_ns"]}

    _edit(run, "run.jsonl", late, kind="clock", number=5)
    check_run(run)
    assert (run.path / "verdict.json").read_bytes() == first
    _edit(run, "run.jsonl", lambda event: event | {"read_ns": event["time_ns"]}, kind="clock", number=5)
    assert check_run(run).counts["wall clock jumps"] == 2


def test_the_plan_is_one_map_in_arrow_of_so_many_tasks(run: RunFolder) -> None:
    """All invariants of all slices run in one pass, and Spark moves no row: its executed plan says so."""
    rows = slice_rows(run)
    for partitions in (None, 1, 2):
        frame = found_frame(session(), rows, rows.trial_context, partitions=partitions)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert (plan.count("Exchange"), plan.count("MapInArrow")) == (0, 1), plan
        assert frame.rdd.getNumPartitions() == (partitions or 1)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda run: _cut(run, "run.jsonl", lines=1), "truncated"),
        (lambda run: _append(run, "offsets.jsonl", b'{"schema":1,"sou'), "torn"),
        (lambda run: _append(run, "offsets.jsonl", b"garbage\n"), "no event"),
        (lambda run: _drop(run, "offsets.jsonl", number=5), "missing or repeated"),
        (lambda run: (run.history / "observer.jsonl").unlink(), "observer"),
        (lambda run: [path.unlink() for path in run.history_files()], ""),
        (lambda run: _append(run, "offsets.jsonl", b"\xff\xfe\n"), "1 line is no event"),
        (lambda run: _repeat(run, "offsets.jsonl", number=5), "missing or repeated"),
        (lambda run: _repeat(run, "run.jsonl", number=-1), "a second end"),
        (lambda run: (run.history / "consumer-m0-0.jsonl").write_bytes(b""), "consumer-m0-0: does not tell that"),
        (lambda run: (run.history / "consumer-m2-0.jsonl").unlink(), "consumer-m2-0: is missing"),
        (lambda run: (run.history / "requests-b1.jsonl").unlink(), "requests-b1: is missing"),
        (lambda run: _copy(run, "consumer-m0-0.jsonl", "consumer-m3-0.jsonl"), "events of another source"),
        (lambda run: _copy(run, "offsets.jsonl", "offsets (1).jsonl"), "there is no such source"),
        (lambda run: _copy(run, "offsets.jsonl", "offsets.jsonl.gz"), "which is no file of events"),
        (lambda run: _edit(run, "offsets.jsonl", _but(kind="comitted")), "1 event is of an unknown kind"),
        (
            lambda run: _edit(run, "run.jsonl", _but(delay_ns=10**11), kind="scheduling_delay", number=9),
            "the harness stood still for 101.0 s of ",
        ),
        (lambda run: _edit(run, "offsets.jsonl", _but(partition="three")), "1 field is of the wrong type"),
        (
            lambda run: _edit(run, "run.jsonl", _but(wall_ns="now"), kind="clock"),
            "is missing 1 time: clock lacks",
        ),
        (
            lambda run: _edit(run, "run.jsonl", _but(every_ns="long"), kind="scheduling_delay"),
            "is missing 1 time: scheduling_delay lacks every_ns",
        ),
        (lambda run: _edit(run, "run.jsonl", _but(seq=[]), kind="phase"), "1 line is no event"),
        (lambda run: _edit(run, "nemesis.jsonl", _but(fault_no={}), kind="evidence"), "had no measurable effect"),
        (
            lambda run: _edit(run, "nemesis.jsonl", _but(fault_no=[]), kind="healed"),
            "is missing 1 time: healed lacks",
        ),
        (lambda run: _jump(run, "offsets.jsonl", "time_ns", by_s=-5), "its clock runs backwards 1 time"),
        (lambda run: _jump(run, "run.jsonl", "wall_ns", by_s=3600), "the wall clock jumped 1 time, by up to 3600.0 s"),
        (lambda run: _append(run, "offsets.jsonl", b"{" + b"x" * 100_000_000 + b"}\n"), "longer than 16 MiB"),
    ],
    ids=[
        *("no end", "torn last line", "garbage", "a gap", "no observer", "empty"),
        *("not UTF-8", "a repeat", "two ends", "empty file", "no first life", "no request log of one broker"),
        *(
            "copied as another's",
            "copied",
            "no JSON lines",
            "unknown kind",
            "stood still",
            "out of schema",
            "no clock",
            "a pause of no length",
            "no place",
        ),
        *("evidence of nothing", "healed nothing", "time runs backwards", "wall clock jumps", "100 MB line"),
    ],
)
def test_a_history_that_is_not_whole_is_unknown(run: RunFolder, broken: Callable[[RunFolder], None], said: str) -> None:
    """Never pass, never a crash, nothing dropped in silence: status 4 and the reason."""
    broken(run)
    verdict = check_run(run)
    assert (verdict.exit, said in " ".join(verdict.reasons)) == (UNKNOWN, True), verdict.reasons


def test_a_newer_history_is_refused_by_name(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Events of a schema this version does not know: status 2, and what to do."""
    _edit(run, "run.jsonl", lambda event: event | {"schema": 9}, kind="phase", number=0)
    assert (main(["check", str(run.path)]), "schema 9" in capsys.readouterr().err) == (WRONG_INPUT, True)


def _but(**changes: object) -> Callable[[dict], dict]:  # type: ignore[type-arg]
    return lambda event: event | changes


def _edit(
    run: RunFolder,
    file: str,
    change: Callable[[dict], dict],  # type: ignore[type-arg]
    *,
    kind: str = "committed",
    number: int = 0,
) -> None:
    lines = (run.history / file).read_bytes().splitlines()
    places = [place for place, line in enumerate(lines) if orjson.loads(line)["kind"] == kind]
    lines[places[number]] = orjson.dumps(change(orjson.loads(lines[places[number]])))
    (run.history / file).write_bytes(b"\n".join(lines) + b"\n")


def _cut(run: RunFolder, file: str, *, lines: int) -> None:
    kept = (run.history / file).read_bytes().splitlines(keepends=True)[:-lines]
    (run.history / file).write_bytes(b"".join(kept))


def _drop(run: RunFolder, file: str, *, number: int) -> None:
    lines = (run.history / file).read_bytes().splitlines(keepends=True)
    (run.history / file).write_bytes(b"".join(lines[:number] + lines[number + 1 :]))


def _repeat(run: RunFolder, file: str, *, number: int) -> None:
    lines = (run.history / file).read_bytes().splitlines(keepends=True)
    (run.history / file).write_bytes(b"".join([*lines, lines[number]]))


def _copy(run: RunFolder, file: str, name: str) -> None:
    shutil.copy(run.history / file, run.history / name)


def _jump(run: RunFolder, file: str, clock: str, *, by_s: int) -> None:
    """Puts a clock forward, or back, from the middle of a file on."""
    events = [orjson.loads(line) for line in (run.history / file).read_bytes().splitlines()]
    told = [event for event in events if clock in event]
    for event in told[len(told) // 2 :]:
        event[clock] += by_s * 1_000_000_000
    (run.history / file).write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))


def _append(run: RunFolder, file: str, text: bytes) -> None:
    with (run.history / file).open("ab") as history:
        history.write(text)
