"""The stage of features: one step after the other, with a transaction open across the change of transaction.version."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.cluster.versions import parse_release
from kafka_trial.compatibility.feature_levels import defaults_of, supported
from kafka_trial.errors import UnjudgeableError
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures
from kafka_trial.nemesis.fault import step_problems
from kafka_trial.scenario import Step
from kafka_trial.upgrade.play import finalise_features

OLD, NEW = parse_release("3.9.2"), parse_release("4.3.1")


class Noted:
    """Notes what is played and what the writers are told, in its order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def play(self, step: Step) -> None:
        assert step_problems(step.fault, step.target, step.options) == []
        self.told.append(f"{step.options['feature']} {step.options['level']}")

    def open_transaction(self) -> int:
        self.told.append("open")
        return 1

    def end_transaction(self) -> str:
        self.told.append("end")
        return "committed"


def test_the_transaction_is_open_across_its_feature_alone() -> None:
    """And the newest that brokers know of the metadata log counts: one of them is behind."""
    noted: Any = Noted()
    known = supported(NEW)
    features = {
        0: BrokerFeatures({}, known, defaults_of(OLD), 3),
        1: BrokerFeatures({}, known, {**defaults_of(OLD), "metadata.version": 30}, 5),
    }
    raised = finalise_features(NEW, features, noted.play, noted)
    assert noted.told == [
        "group.version 1",
        "open",
        "transaction.version 2",
        "end",
        "eligible.leader.replicas.version 1",
        "share.version 1",
        "streams.version 1",
    ]
    assert [one.feature for one in raised][1] == "transaction.version"


def test_nothing_is_raised_while_a_broker_is_old() -> None:
    """Not even what all of them support."""
    noted: Any = Noted()
    levels = defaults_of(OLD)
    features = {0: BrokerFeatures({}, supported(NEW), levels), 1: BrokerFeatures({}, supported(OLD), levels)}
    with pytest.raises(UnjudgeableError, match=r"broker 1 supports metadata.version 3.9-IV0 at most"):
        finalise_features(NEW, features, noted.play, noted)
    assert noted.told == []


def test_static_voters_stay_static() -> None:
    """No scenario may raise kraft.version either."""
    (problem,) = step_problems("finalise-feature", "all", {"feature": "kraft.version"})
    assert "static voters would become dynamic for good" in problem
