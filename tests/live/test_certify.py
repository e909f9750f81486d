"""A certificate of real trials: it holds, until a byte of a run folder changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS
from kafka_trial.report.certificate import CERTIFICATE, PAGE, read_certificate

pytestmark = pytest.mark.cluster


@pytest.mark.rotates
def test_a_consumer_is_certified_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Given a sound consumer, when it is certified, then the certificate verifies as long as nobody touches it."""
    out = tmp_path / "certificate"
    words = ["certify", "--consumer", "python-at-least-once", "--suite", "control", "--budget", "5m", "--out", str(out)]
    assert main([*words, "--retry-unknown", "1"]) == PASS
    certificate = read_certificate(out / CERTIFICATE)
    (trial,) = certificate.trials.values()
    assert (trial.verdict, certificate.missing, (out / PAGE).exists()) == ("pass", [], True)
    assert main(["verify", str(out / CERTIFICATE)]) == PASS
    history = out / trial.run / "history" / "offsets.jsonl"
    content = bytearray(history.read_bytes())
    content[-2] ^= 1
    history.write_bytes(content)
    assert main(["verify", str(out / CERTIFICATE)]) == FAIL
    assert "history/offsets.jsonl was changed" in capsys.readouterr().out
