"""The matrix of cuts on a real cluster: a sound consumer and a faulty one are killed at a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS
from kafka_trial.report.cut_page import read_rows

pytestmark = pytest.mark.cluster


@pytest.mark.rotates
@pytest.mark.parametrize(("consumer", "status"), [("python-at-least-once", PASS), ("commits-before-processing", FAIL)])
def test_a_member_killed_at_its_commits(
    consumer: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a consumer, when a member is killed while its broker has taken a commit, then its matrix says so."""
    out = tmp_path / "cuts"
    words = ["--api", "OffsetCommit", "--where", "answered", "--action", "kill", "--retry-unknown", "1"]
    assert main(["cuts", "--consumer", consumer, "--out", str(out), *words]) == status
    (row,) = read_rows(out / "cuts.jsonl")
    assert (row.where, row.verdict) == ("answered", "pass" if status == PASS else "fail")
    assert "ended by signal 9" in row.told
    assert (row.began.startswith("20"), (row.lasted_s or 0) > 5, "Tried 20" in (out / "cuts.html").read_text()) == (
        True,
        True,
        True,
    )
    assert f"{consumer} on Kafka" in capsys.readouterr().out
    assert (out / "cuts.html").exists()
    assert bool(list(out.rglob("report.html"))) is (status == FAIL)
