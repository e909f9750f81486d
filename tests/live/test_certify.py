"""A certificate of real trials: it holds, until a byte of a run folder changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_trial.cli import main
from kafka_trial.errors import FAIL, PASS
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.registry import find_consumer
from kafka_trial.report.certificate import PAGE, read_certificate
from kafka_trial.trial.certify import CertifyRequest, begin_certificate

pytestmark = pytest.mark.cluster


@pytest.mark.rotates
def test_a_consumer_is_certified_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Given a sound consumer, when it is certified beside its consumer.toml, then nothing is missing of it any more,
    and the certificate verifies as long as nobody touches it."""
    consumer = shutil.copytree(find_consumer("python-at-least-once").parent, tmp_path / "orders") / "consumer.toml"
    out = consumer.parent / "certificate"
    words = ["certify", "--consumer", str(consumer), "--suite", "control", "--budget", "5m", "--out", str(out)]
    assert main(words) == PASS
    certificate = read_certificate(out / CERTIFICATE)
    assert begin_certificate(CertifyRequest(consumer, out, suites=["control"])).missing == []
    (trial,) = certificate.trials.values()
    assert (trial.verdict, certificate.missing, (out / PAGE).exists()) == ("pass", [], True)
    assert (trial.began.startswith("20"), (trial.lasted_s or 0) > 5) == (True, True)
    assert main(["verify", str(out / CERTIFICATE)]) == PASS
    history = out / trial.run / "history" / "offsets.jsonl"
    content = bytearray(history.read_bytes())
    content[-2] ^= 1
    history.write_bytes(content)
    assert main(["verify", str(out / CERTIFICATE)]) == FAIL
    assert "history/offsets.jsonl was changed" in capsys.readouterr().out
