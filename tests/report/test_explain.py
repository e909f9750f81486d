"""`explain`: every anomaly has its advice, and the page in docs/ is what the code says."""

from __future__ import annotations

import pytest

from kafka_trial.errors import InputError
from kafka_trial.invariants.invariant import list_invariants
from kafka_trial.registry import CHECKOUT
from kafka_trial.report.explain import explain, page


def test_every_anomaly_has_advice() -> None:
    """Its docstring says the usual cause and the remedy, a sentence each at least."""
    assert [one.name for one in list_invariants() if not one.cause.endswith(".") or not one.remedy.endswith(".")] == []


def test_the_page_of_anomalies_is_generated() -> None:
    """docs/anomalies.md is what `kafka-trial explain --all` prints."""
    assert (CHECKOUT / "docs" / "anomalies.md").read_text() == page()


def test_a_section_says_what_it_is_its_cause_and_the_change() -> None:
    """In this order, beneath its name."""
    section = explain("commit-ahead")
    places = [section.index(part) for part in ("## commit-ahead", "Smallest history:", "**Usually**", "**Change**")]
    assert places == sorted(places)


def test_an_unknown_anomaly_is_wrong_input() -> None:
    """The nearest name is offered."""
    with pytest.raises(InputError, match="Did you mean 'commit-ahead'"):
        explain("commit-ahed")
