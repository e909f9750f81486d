"""The pytest plugin: items for consumers and versions, honest outcomes, the suites out of the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_trial import registry

OUTCOMES = """
import pytest
from kafka_trial.claim import Claim
from kafka_trial.history.store import RunFolder
from kafka_trial.pytest_plugin import Judged
from kafka_trial.session import Trialed
from kafka_trial.verdict import Case, Found, decide
from kafka_trial.invariants.invariant import Anomaly


@pytest.mark.parametrize("word", ["pass", "fail", "unknown"])
def test_it(word, tmp_path):
    anomaly = Anomaly("skipped", "t", 0, {"offset": 7}, ("run#1",))
    core = ("skipped", "unseen", "commit-ahead", "illegal-redelivery")
    found = tuple(Found(name, (anomaly,) if (name, word) == ("skipped", "fail") else ()) for name in core)
    ground = ("the harness was killed",) if word == "unknown" else ()
    verdict = decide(Case(found, ground=ground), Claim("at-least-once"))
    assert verdict.verdict == word
    Judged(Trialed(RunFolder(tmp_path), verdict, f"{word.upper()}: told")).must_pass()
"""


def test_fail_is_a_failure_and_unknown_an_error(pytester: pytest.Pytester) -> None:
    """In the terminal's counts, in the exit status, and in the JUnit file."""
    pytester.makepyfile(OUTCOMES)
    result = pytester.runpytest_subprocess("--junitxml=junit.xml", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")
    told = {str(case.get("name")): [(part.tag, "".join(part.itertext())) for part in case] for case in cases}
    assert told == {
        "test_it[pass]": [],
        "test_it[fail]": [("failure", "FAIL: told")],
        "test_it[unknown]": [("error", "UNKNOWN: told")],
    }


def test_an_item_for_each_consumer_and_version(pytester: pytest.Pytester) -> None:
    """Consumers repeat, versions repeat or come with commas."""
    pytester.makepyfile("def test_mine(trial): ...")
    given = ["--consumer=python-at-least-once", "--consumer=python-at-most-once", "--kafka=3.9.2,4.3.1"]
    listed = pytester.runpytest_subprocess("--collect-only", "-q", *given)
    listed.stdout.fnmatch_lines_random(
        [
            "*test_mine?python-at-least-once-3.9.2?",
            "*test_mine?python-at-least-once-4.3.1?",
            "*test_mine?python-at-most-once-3.9.2?",
            "*test_mine?python-at-most-once-4.3.1?",
        ]
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--consumer=python-at-lest-once"], "*unknown consumer 'python-at-lest-once'*python-at-least-once*"),
        (["--consumer=python-at-least-once", "--kafka=4.3.1,9.9"], "*unknown Kafka version '9.9'*3.9.2*"),
        (["--consumer=python-at-least-once/consumer-protocol", "--kafka=3.9.2"], "*KIP-848*Kafka 4.0 or newer*"),
        (["--consumer-image=team/orders:1"], "*--consumer FILE*"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_starts(
    pytester: pytest.Pytester, given: list[str], told: str
) -> None:
    """A wrong name, version or protocol: pytest's usage error, with the valid choices."""
    pytester.makepyfile("def test_mine(trial): ...")
    refused = pytester.runpytest_subprocess(*given)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines([told])


def test_without_a_consumer_the_references_that_fit_are_tried(pytester: pytest.Pytester) -> None:
    """All that tell what they do, on a version that speaks both protocols; without those of KIP-848 on one that does
    not."""
    pytester.makepyfile("def test_mine(trial): ...")
    listed = pytester.runpytest_subprocess("--collect-only", "-q", "--kafka=3.9.2,4.3.1").outlines
    items = {line.partition("[")[2].rstrip("]") for line in listed if "::" in line}
    references = set(registry.speaking_references())
    new = {name for name in references if name.endswith("/consumer-protocol")}
    assert new
    assert items == {f"{name}-4.3.1" for name in references} | {f"{name}-3.9.2" for name in references - new}


def test_the_suites_are_in_the_wheel(tmp_path: Path) -> None:
    """Given the wheel alone, then `pytest --pyargs kafka_trial.suites` finds every suite, and the references."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, registry.CHECKOUT]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("kafka_trial-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True)
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--pyargs", "kafka_trial.suites"]
    listed = subprocess.run(
        [*asked, "--consumer=python-at-least-once/cooperative", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    items = [line for line in listed.stdout.splitlines() if "::" in line]
    assert len(items) == len(registry.suites()), listed.stdout + listed.stderr
    assert all(item.startswith("site/kafka_trial/suites/") for item in items)
