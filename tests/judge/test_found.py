"""What trials have found, in client libraries and in this harness: their stored histories, judged again."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import stored_verdicts
from kafka_trial.check import check_run
from kafka_trial.history.store import SUFFIX, unpack
from kafka_trial.registry import CHECKOUT

FOUND = CHECKOUT / "fixtures" / "histories" / "found"
SHOWS = {
    "kafka-python-3.0.12-lost-rejoin": {"never-assigned"},
    "kafka-python-3.0.12-lost-after-resume": {"stuck-partition", "unseen"},
    "kafka-python-3.0.12-keeps-its-position": {"illegal-redelivery"},
    "kafkajs-2.2.4-fetches-what-it-lost": {"split-ownership"},
}

# Two dozen processes kept both processors busy from `heal` on, and it waited for them: 18.4 s, of 17.6 s.
BUSY_MACHINE = "python-transactional-on-a-busy-machine"


def test_the_verdict_of_every_stored_history_is_kept() -> None:
    """And none of a history that has gone."""
    kept = [orjson.loads(line)["history"] for line in stored_verdicts.KEPT.read_bytes().splitlines()]
    assert kept == [stored_verdicts.name_of(history) for history in stored_verdicts.stored_histories()]


def test_every_stored_finding_is_looked_at() -> None:
    """None lies there unread."""
    assert {file.name.removesuffix(SUFFIX) for file in FOUND.iterdir()} == {*SHOWS, BUSY_MACHINE}


@pytest.mark.spark
@pytest.mark.parametrize("name", SHOWS)
def test_a_finding_is_still_found(name: str, tmp_path: Path) -> None:
    """The consumer is a sound one by its code; what fails is its library (docs/findings.md)."""
    folder = unpack(FOUND / f"{name}{SUFFIX}", tmp_path / "run")
    verdict = check_run(folder)
    assert stored_verdicts.fresh_verdict(folder) == stored_verdicts.stored_verdict(FOUND / f"{name}{SUFFIX}")
    assert (verdict.verdict, {one.anomaly for one in verdict.violations}) == ("fail", SHOWS[name])


@pytest.mark.spark
def test_a_busy_machine_is_not_held_against_a_group(tmp_path: Path) -> None:
    """It was late by less than it waited for a processor: nobody knows, and the verdict says so."""
    folder = unpack(FOUND / f"{BUSY_MACHINE}{SUFFIX}", tmp_path / "run")
    verdict = check_run(folder)
    assert stored_verdicts.fresh_verdict(folder) == stored_verdicts.stored_verdict(FOUND / f"{BUSY_MACHINE}{SUFFIX}")
    assert (verdict.verdict, verdict.violations) == ("unknown", ())
    assert [("late-convergence" in reason, "waited" in reason) for reason in verdict.reasons] == [(True, True)]
