"""Reads from the remote tier, on a real cluster: brokers did them, and failed at them; what never left them is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_trial import registry
from kafka_trial.history.store import raw_lines
from kafka_trial.nemesis import remote_reads
from kafka_trial.nemesis.evidence import SLOW_READS_MIN_S
from kafka_trial.trial.session import Session, TrialOutcome

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

SUITE, FAILING, CONSUMER = "remote-reads", "remote-reads-fail", "python-at-least-once"


def evidence_of(outcome: TrialOutcome) -> list[dict[str, Any]]:
    """What the two steps were seen to do."""
    return [line for line in raw_lines(outcome.folder.history / "nemesis.jsonl") if line["kind"] == "evidence"]


def test_brokers_read_the_second_tier_and_fail_at_it(kafka_trial_session: Session, tmp_path: Path) -> None:
    """By their own logs; the segments are back in their place, and the sound consumer has missed nothing."""
    suite, failing = map(registry.find_scenario, (SUITE, FAILING))
    both = replace(suite, schedule=(*suite.schedule, replace(failing.schedule[0], after="stable")))
    consumer = registry.find_consumer(CONSUMER)
    outcome = kafka_trial_session.try_one(both, consumer, seed=1, out=tmp_path / "run", retry_unknown=1)
    assert outcome.verdict.verdict == "pass", outcome.text
    read, failing_read = (one["details"] for one in evidence_of(outcome))
    assert (read["reads"]["read"] > 0, read["reads"]["failed"]) == (True, 0)
    assert failing_read["reads"]["failed"] > 0
    assert failing_read["hidden_segments"] > 0


@pytest.mark.parametrize(
    ("bytes_per_s", "verdict"), [(300_000, "pass"), (10**9, "unknown")], ids=["a third of a fetch", "no limit at all"]
)
def test_a_slow_tier_lets_members_wait(
    kafka_trial_session: Session, tmp_path: Path, bytes_per_s: int, verdict: str
) -> None:
    """A broker waits between two reads there; one that nothing limits does not, and the step is found out."""
    suite = registry.find_scenario(SUITE)
    slow = replace(suite, schedule=(replace(suite.schedule[0], for_s=8, options={"bytes_per_s": bytes_per_s}),))
    outcome = kafka_trial_session.try_one(slow, registry.find_consumer(CONSUMER), seed=1, out=tmp_path / "run")
    assert outcome.verdict.verdict == verdict, outcome.text
    (told,) = evidence_of(outcome)
    waited = told["details"]["reads"]["longest_wait_s"] >= SLOW_READS_MIN_S
    assert (told["bit"], waited) == (verdict == "pass", verdict == "pass"), told


def test_what_never_leaves_the_brokers_is_found_out(
    kafka_trial_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is copied where no segment rolls: the trial is unknown."""
    monkeypatch.setattr(remote_reads, "LEFT_WITHIN_S", 3.0)
    suite = registry.find_scenario(SUITE)
    kept = replace(suite, topic=replace(suite.topic, configs=suite.topic.configs | {"segment.bytes": "104857600"}))
    outcome = kafka_trial_session.try_one(kept, registry.find_consumer(CONSUMER), seed=1, out=tmp_path / "run")
    assert outcome.verdict.verdict == "unknown", outcome.text
    (told,) = evidence_of(outcome)
    assert (told["bit"], "still in the local logs of the brokers" in told["message"]) == (False, True)
