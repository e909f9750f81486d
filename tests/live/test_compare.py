"""Certificates that compare, of real trials: two Kafka versions, and a client with its baseline, in one command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.registry import find_consumer
from kafka_trial.report.certificate import read_certificate

COMPARED = {"convergence", "redelivered", "memory"}  # what a trial without a fault tells


@pytest.mark.cluster
@pytest.mark.rotates(every=20)
@pytest.mark.spark
def test_versions_and_a_baseline_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a client that is its own baseline, when both are tried on two versions, then it is not worse, one pair is
    too few to say anything else, and the certificate verifies until a count in it is edited."""
    for file in find_consumer("python-at-least-once").parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    shutil.copy(tmp_path / "consumer.toml", tmp_path / "old.toml")
    monkeypatch.chdir(tmp_path)
    words = ["--baseline", "old.toml", "--consumer", "consumer.toml", "--out", "certificate"]
    assert main(["certify", "--kafka", "3.9.2,4.3.1", "--suite", "control", *words]) == PASS
    said = capsys.readouterr().out
    assert "NOT WORSE: python-at-least-once is not worse than its baseline" in said
    assert "Kafka 3.9.2 → 4.3.1: 1 pair of the same suite and seed" in said
    certificate = read_certificate(tmp_path / "certificate" / CERTIFICATE)
    comparison = certificate.comparison or {}
    assert [row for row in comparison["figures"] if not row["values"].keys() >= COMPARED] == []
    assert len(comparison["figures"]) == 4
    told = [
        (one["versions"], one["pairs"], {row["outcome"] for row in one["figures"]}) for one in comparison["between"]
    ]
    assert told == [(True, 1, {"too few pairs to say"}), (False, 2, {"too few pairs to say"})]
    assert main(["verify", "certificate"]) == PASS
    file = tmp_path / "certificate" / CERTIFICATE
    file.write_bytes(file.read_bytes().replace(b'"pairs": 2', b'"pairs": 7'))
    assert main(["verify", "certificate"]) == FAIL
    assert "what differs: between is not what its trials say" in capsys.readouterr().out
