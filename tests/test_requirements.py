"""A tool that is missing skips a test and says why, or fails it where the environment requires that tool."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import requirements
from kafka_trial.registry import CHECKOUT

NEEDS_POSTGRES = """
    from requirements import missing

    def test_needs_it():
        missing("postgres", "no initdb; install it")
"""
# Files that skip for want of something else: a library, a kernel's feature, a right, another Kafka.
OF_THE_MACHINE = {
    "tests/audit/test_sink_table.py",
    "tests/kafka_protocol/test_requests_cluster.py",
    "tests/lab/scale/test_campaign.py",
    "tests/lab/test_memory_limits.py",
    "tests/live/test_sample.py",
    "tests/machines.py",
    "tests/process/test_page_cache.py",
    "tests/process/test_real_time.py",
    "tests/trial/test_stall_prevention.py",
    "tests/witness/test_samplers.py",
}
IN_ONE_PLACE = "tests/requirements.py"


@pytest.mark.parametrize(
    ("names", "outcome", "said"),
    [
        ("", {"skipped": 1}, "SKIPPED*no initdb; install it"),
        ("chromium,docker", {"skipped": 1}, "SKIPPED*no initdb; install it"),
        ("chromium, postgres", {"failed": 1}, "*no initdb; install it (KAFKA_TRIAL_REQUIRE names postgres)"),
    ],
)
def test_a_missing_tool_fails_only_where_it_is_required(
    names: str, outcome: dict[str, int], said: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either way with the reason."""
    monkeypatch.setenv(requirements.REQUIRE, names)
    pytester.makepyfile(NEEDS_POSTGRES)
    done = pytester.runpytest("-p", "requirements", "-ra")
    done.assert_outcomes(**outcome)
    done.stdout.fnmatch_lines([said])


def test_a_tool_that_no_test_needs_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slip of the pen would require nothing, and nobody would know."""
    monkeypatch.setenv(requirements.REQUIRE, "chromium,postgresql")
    done = pytester.runpytest("-p", "requirements")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*KAFKA_TRIAL_REQUIRE names postgresql, which no test needs; there are*postgres (*"])


def test_who_may_install_must_have_all_and_others_what_there_is() -> None:
    """Root is asked for everything; another user for what is found."""
    found = {"chromium": None, "postgres": "no initdb", "docker": None, "dockerd": "only root can start one"}
    assert dict(requirements.to_be_required(installs=True, found=found.__getitem__)) == dict.fromkeys(found)
    assert dict(requirements.to_be_required(installs=False, found=found.__getitem__)) == found


def test_why_a_tool_is_not_to_be_had_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what looks for it in trials; with nothing on PATH, no engine, and as another user than root."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setattr("kafka_trial.cluster.postgres.DEBIANS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    why = {tool: requirements.why_not(tool) or "" for tool in requirements.INSTALLED}
    assert "is on PATH" in why["chromium"]
    assert "initdb and postgres cannot be found" in why["postgres"]
    assert "no container engine answers where DOCKER_HOST says" in why["docker"]
    assert "only root can start one" in why["dockerd"]
    assert not requirements.may_install()
    for name in ("chromium", "initdb", "postgres"):
        (tmp_path / name).symlink_to("/bin/true")
    assert [requirements.why_not(tool) for tool in ("chromium", "postgres")] == [None, None]


def test_tests_skip_for_want_of_a_tool_in_one_place_only() -> None:
    """Else a requirement would not reach them."""
    skips = re.compile(r"pytest\.(?:skip|importorskip)\(|@pytest\.mark\.skip")
    files = {str(file.relative_to(CHECKOUT)): file.read_text() for file in sorted((CHECKOUT / "tests").rglob("*.py"))}
    found = {name for name, text in files.items() if skips.search(text)}
    assert found == {IN_ONE_PLACE, "tests/test_durations.py", *OF_THE_MACHINE}


def test_ci_requires_what_can_be_had() -> None:
    """The line stands in the script; who sets the variable decides."""
    script = (CHECKOUT / ".ci" / "run").read_text()
    assert 'export KAFKA_TRIAL_REQUIRE="${KAFKA_TRIAL_REQUIRE-$(.venv/bin/python tests/requirements.py)}"' in script
    assert script.index("make services") < script.index("export KAFKA_TRIAL_REQUIRE") < script.index("exec make test")
