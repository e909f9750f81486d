"""The session: a judge of its own, warm, whose files go when it goes; and clusters, while somebody needs them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from kafka_trial.calibration import Attempt, ask
from kafka_trial.cluster.leftovers import SCRATCH_PREFIX
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import open_run_folder
from kafka_trial.session import Session

STORED = Path(__file__).parent.parent / "fixtures" / "histories" / "member-killed"


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
        session._judge._dialogue.child.kill()
        session._judge._dialogue.child.wait(within_s=10)
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
        monkeypatch.setattr(session, "run_one", lambda question, out: told.append(question.scenario.name))
        monkeypatch.setattr(session, "_trialed", lambda folder: folder)
        monkeypatch.setattr(session.clusters, "end_unused", lambda *, alone: told.append(f"end {alone}"))
        assert len(list(session.try_many(asked, side_by_side=1))) == len(asked)
    assert told == order
