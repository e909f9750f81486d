"""The session: a judge of its own, warm, whose files go when it goes; and clusters, while somebody needs them."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.claim import Claim
from kafka_trial.cluster.doctor import SCRATCH_PREFIX
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder, open_run_folder
from kafka_trial.trial.session import Session, TrialOutcome
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.verdict.decide import Verdict, decide
from kafka_trial.verdict.verdict_input import VerdictInput, Violation
from lab.calibration.attempts import Attempt, ask

STORED = Path(__file__).parents[2] / "fixtures" / "histories" / "member-killed"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A temporary folder of this test's own, and a stored run that can be written to."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary, Path(shutil.copytree(STORED, tmp_path / "run"))


@pytest.mark.spark
def test_what_spark_writes_goes_with_the_session(places: tuple[Path, Path]) -> None:
    """It lies in the judge's folder while the session lasts, and afterwards nowhere."""
    temporary, run = places
    with Session() as session:
        assert session.check(open_run_folder(run)).verdict == "pass"
        (scratch,) = temporary.glob(f"{SCRATCH_PREFIX}*")
        assert any(place.name.startswith(("blockmgr-", "spark-")) for place in scratch.rglob("*"))
    assert [place.name for place in temporary.iterdir() if place.is_dir() and "kafka-trial-0" not in place.name] == []


@pytest.mark.spark
def test_a_judge_that_died_is_told(places: tuple[Path, Path]) -> None:
    """Not a broken pipe: whoever waits for the verdict hears that its judge has died."""
    with Session() as session:
        assert session._judge is not None
        session._judge._rpc.child.kill()
        session._judge._rpc.child.wait(within_s=10)
        with pytest.raises(UnjudgeableError, match=r"the judgement on .*: it has exited with -9"):
            session.check(open_run_folder(places[1]))


@pytest.mark.parametrize(
    ("scenarios", "order"),
    [
        (("control", "leader-lost", "rolling-restart"), ["leader-lost", "rolling-restart", "end True", "control"]),
        (("control",), ["control"]),
    ],
    ids=["some break brokers", "none does"],
)
def test_the_cluster_of_those_that_break_brokers_ends_after_the_last_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scenarios: tuple[str, ...], order: list[str]
) -> None:
    """Not where none did: whoever has such a cluster besides keeps it."""
    told: list[str] = []
    asked = [ask(Attempt("python-at-least-once", name), tmp_path) for name in scenarios]
    with Session(judging=False) as session:
        monkeypatch.setattr(session, "run_one", lambda trial_spec, out: told.append(trial_spec.scenario.name))
        monkeypatch.setattr(session, "_trialed", lambda folder: folder)
        monkeypatch.setattr(session.clusters, "end_unused", lambda *, alone: told.append(f"end {alone}"))
        assert len(list(session.try_many(asked, side_by_side=1))) == len(asked)
    assert told == order


@pytest.mark.parametrize(
    ("words", "retries", "runs"),
    [
        (["unknown", "pass"], 1, ["unknown", "pass"]),
        (["unknown", "unknown", "fail"], 3, ["unknown", "unknown", "fail"]),
        (["unknown", "unknown"], 1, ["unknown", "unknown"]),
        (["unknown", "pass"], 0, ["unknown"]),
        (["fail", "pass"], 2, ["fail"]),
        (["no evidence", "pass"], 2, ["no evidence"]),
    ],
)
def test_an_unknown_of_its_ground_is_tried_again_with_the_same_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], retries: int, runs: list[str]
) -> None:
    """Never a fail, never a pass, never what lacks evidence; every try keeps a folder of its own."""
    left, seeds, places = list(words), [], []

    def run_one(trial_spec: TrialSpec, *, out: Path) -> RunFolder:
        seeds.append(trial_spec.seed)
        places.append(out.name)
        return RunFolder(out)

    with Session(judging=False) as session:
        monkeypatch.setattr(session, "run_one", run_one)
        monkeypatch.setattr(session, "_trialed", lambda folder: TrialOutcome(folder, _verdict(left.pop(0)), "told"))
        (asked,) = [ask(Attempt("python-at-least-once", "control"), tmp_path / "run")]
        trial_outcome = session.try_spec(asked.trial_spec, out=asked.out, retry_unknown=retries)
    assert words[: len(runs)] == runs == words[: len(words) - len(left)]
    assert (len(set(seeds)), len(set(places)), len(trial_outcome.earlier)) == (1, len(runs), len(runs) - 1)
    assert trial_outcome.tries.startswith(f"unknown, tried again: {runs[-1]} ({len(runs)} tries)") is (len(runs) > 1)


def test_what_ought_to_have_been_begun_earlier_is_begun_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a trial, which yields nothing then, nor a further try; what may still begin does."""
    asked = [ask(Attempt("python-at-least-once", name), tmp_path) for name in ("control", "member-killed")]
    asked[0] = replace(asked[0], begin_by_s=time.monotonic())
    with Session(judging=False) as session:
        monkeypatch.setattr(session, "run_one", lambda trial_spec, out: RunFolder(out))
        monkeypatch.setattr(session, "_trialed", lambda folder: TrialOutcome(folder, _verdict("unknown"), "told"))
        begun = [one for one, _ in session.try_many(asked, side_by_side=1)]
        tried = session.try_spec(asked[0].trial_spec, out=tmp_path, retry_unknown=3, begin_by_s=asked[0].begin_by_s)
    assert (begun, tried.earlier) == (asked[1:], ())


def _verdict(word: str) -> Verdict:
    """Returns a verdict; "no evidence" is an unknown that another try cannot change."""
    gaps = ("claimed but not judged: skipped: no sink",) if word == "no evidence" else ()
    ground = ("the harness stood still",) if word == "unknown" else ()
    failures = (Violation("never-assigned", 1, "it never was", ()),) if word == "fail" else ()
    return decide(VerdictInput((), ground=ground, gaps=gaps, failures=failures), Claim("unclaimed"))
