"""The matrix of cuts on a real cluster: where a sound consumer and a faulty one are killed at their commits."""

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
    """Given a consumer, when a member is killed at a commit, at each place, then its matrix says what became of it."""
    out = tmp_path / "cuts"
    words = ["--api", "OffsetCommit", "--action", "kill", "--seed", "3", "--retry-unknown", "1"]
    assert main(["cuts", "--consumer", consumer, "--out", str(out), *words]) == status
    rows = read_rows(out / "cuts.jsonl")
    assert sorted(row.where for row in rows) == ["after", "answered", "before"]
    assert {row.verdict for row in rows} == {"pass" if status == PASS else "fail"}
    assert all("process" in row.told and "signal 9" in row.told for row in rows)
    assert f"{consumer} on Kafka" in capsys.readouterr().out
    assert ((out / "cuts.html").exists(), (out / "runs").exists() and any((out / "runs").iterdir())) == (
        True,
        status == FAIL,
    )
