"""The harness itself on trial, live: sound consumers pass, each sin fails with exactly its anomalies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from sampled import BY_TURNS, OFTEN, SOUND, Sample, Sampled, sins

from kafka_trial import registry
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.process.waiting import wait_until
from kafka_trial.pytest_plugin import TRIED_AGAIN
from kafka_trial.trial.session import TrialOutcome
from lab.calibration.attempts import expected_of


def test_the_sample_is_pairwise() -> None:
    """Every reference that tells what it does in two suites or more, every suite with two of them; three on 3.9.2."""
    references = set(registry.speaking_references())
    suites_of = Counter(one.consumer for one in SOUND)
    references_of = Counter(one.scenario for one in SOUND)
    assert {name for name in references if suites_of[name] < 2} == set()
    assert {name for name in registry.scenarios() if references_of[name] < 2} == set()
    assert sum(one.kafka_version == "3.9.2" for one in SOUND) >= 3


def test_what_is_tried_often_covers_suites_libraries_and_protocols() -> None:
    """What is tried every tenth time: every suite, every client library in every protocol, three on 3.9.2."""
    spoken = {(library(one), protocol(one)) for one in OFTEN}
    assert {one.scenario for one in OFTEN} == set(registry.scenarios())
    assert spoken == {(library(one), protocol(one)) for one in SOUND}
    assert {library for library, _ in spoken} == {"aiokafka", "kafka", "kafka-python", "python"}  # Java, librdkafka
    assert sum(one.kafka_version == "3.9.2" for one in OFTEN) == 3
    assert len(SOUND) == len(set(SOUND))


def library(one: Sampled) -> str:
    """Returns what a reference's name begins with: its client library."""
    return next(name for name in ("aiokafka", "kafka-python", "kafka", "python") if one.consumer.startswith(name))


def protocol(one: Sampled) -> str:
    """Returns the variant of a reference that names its protocol; nothing: the classic one, eager."""
    return one.consumer.partition("/")[2]


@pytest.mark.parametrize(
    "sampled",
    [
        *(pytest.param(one, marks=pytest.mark.rotates(every=10)) for one in OFTEN),
        *(pytest.param(one, marks=pytest.mark.rotates) for one in BY_TURNS),
    ],
    ids=str,
)
@pytest.mark.sample
@pytest.mark.cluster
@pytest.mark.spark
def test_a_sound_consumer_passes(
    sampled: Sampled, sampled_trials: Sample, record_property: Callable[[str, object], None]
) -> None:
    """Given a sound consumer, when the faults of the suite bite, then the verdict is pass."""
    trial_outcome = tried(sampled_trials.of(sampled), record_property)
    assert trial_outcome.verdict.verdict == "pass", trial_outcome.text
    assert all(fault.bit for fault in trial_outcome.verdict.faults)


@pytest.mark.parametrize(
    "sampled",
    [
        *(pytest.param(one, marks=pytest.mark.rotates(every=10)) for one in sins(on=True)),
        *(pytest.param(one, marks=pytest.mark.rotates) for one in sins(on=False)),
    ],
    ids=str,
)
@pytest.mark.sample
@pytest.mark.cluster
@pytest.mark.spark
def test_a_sin_fails_with_exactly_its_anomalies(
    sampled: Sampled, sampled_trials: Sample, record_property: Callable[[str, object], None]
) -> None:
    """Given a sin, when its suite is run, then exactly the anomalies of its header; switched off, then pass."""
    trial_outcome = tried(sampled_trials.of(sampled), record_property)
    expected, seen = set(expected_of(sampled)), {violation.anomaly for violation in trial_outcome.verdict.violations}
    assert bool(expected) == sampled.sin
    assert (trial_outcome.verdict.verdict, seen) == ("fail" if sampled.sin else "pass", expected), trial_outcome.text
    assert all(fault.bit for fault in trial_outcome.verdict.faults)


@pytest.mark.sample
@pytest.mark.cluster
@pytest.mark.spark
def test_ended_trials_leave_no_topic_behind(sampled_trials: Sample | None, cluster: BootedCluster) -> None:
    """Warm clusters give the disk back: of the topics of all the trials they have seen, nothing is left there."""
    if sampled_trials is None:
        pytest.skip("no sampled trial was selected")
    data = {place.name for place in cluster.folder.glob("b*/data/*")}
    assert any(name.startswith("__consumer_offsets-") for name in data)  # topics do lie there

    def left() -> list[str]:
        return sorted(str(place) for place in cluster.folder.glob("b*/data/kt-*"))

    wait_until(lambda: not left(), within_s=30, what="the topics of ended trials to go", detail=lambda: f"{left()}")


def tried(trial_outcome: TrialOutcome, record_property: Callable[[str, object], None]) -> TrialOutcome:
    """Returns the trial; where it took several tries, the summary of the session says so."""
    if trial_outcome.tries:
        record_property(TRIED_AGAIN, trial_outcome.tries)
    return trial_outcome
