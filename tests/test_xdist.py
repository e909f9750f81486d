"""Trials in several workers of pytest-xdist: each has a cluster of its own, and all have the seed that was printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

QUICK = Path(__file__).parent / "live" / "quick.toml"
SEEDS = """
import os, pathlib
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number, trial):
    pathlib.Path(f"seed-{number}").write_text(f"{os.getpid()} {trial.seed}")
"""
UNKNOWN = """
from kafka_trial.pytest_plugin import UnknownVerdictError

def test_it():
    raise UnknownVerdictError("UNKNOWN: told")
"""
TWO = """
import os, pathlib
import pytest
from kafka_trial.registry import find_scenario

@pytest.mark.parametrize("number", range(2))
def test_it(number, trial):
    trial(find_scenario("{QUICK}")).must_pass()
    pathlib.Path(f"worker-{number}").write_text(str(os.getpid()))
"""


def test_workers_have_the_seed_that_was_printed(pytester: pytest.Pytester) -> None:
    """Drawn by the process that prints it; two workers at work."""
    pytester.makepyfile(SEEDS)
    result = pytester.runpytest_subprocess("-n2", "--dist=each", "--consumer=python-at-least-once")
    result.assert_outcomes(passed=8)
    told = re.search(r"; seed (\d+)", result.stdout.str())
    assert told is not None
    seeds = {file.read_text().split()[1] for file in pytester.path.glob("seed-*")}
    assert seeds == {told[1]}


def test_an_unknown_trial_of_a_worker_is_an_error(pytester: pytest.Pytester) -> None:
    """Not a failure, as without workers."""
    pytester.makepyfile(UNKNOWN)
    pytester.runpytest_subprocess("-n1").assert_outcomes(errors=1)


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
def test_each_worker_has_a_cluster_of_its_own(pytester: pytest.Pytester) -> None:
    """Two at once, on ports of their own."""
    pytester.makepyfile(TWO.replace("{QUICK}", str(QUICK)))
    result = pytester.runpytest_subprocess("-n2", "--consumer=python-at-least-once", "--retry-unknown=1")
    result.assert_outcomes(passed=2)
    assert len({file.read_text() for file in pytester.path.glob("worker-*")}) == 2
