"""The laboratory's commands: each says what is wrong in one line, and ends in the status of the command's errors."""

from __future__ import annotations

import pytest

from lab.bench.__main__ import main as bench
from lab.calibration.__main__ import main as calibration


def test_a_measurement_that_does_not_exist_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    """The names that there are are told."""
    assert bench(["no-such-thing"]) == 2
    assert "unknown measurement 'no-such-thing'" in capsys.readouterr().err


def test_measurements_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """One a line, the scale campaign among them."""
    assert bench(["--list"]) == 0
    assert "scale" in capsys.readouterr().out.splitlines()


def test_a_consumer_that_does_not_exist_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Several may be named after one `--only`."""
    assert calibration(["--only", "python-at-least-once", "no-such-consumer", "--minutes", "0"]) == 2
    assert "no-such-consumer" in capsys.readouterr().err
