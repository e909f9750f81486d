"""An anomaly from one file of a stranger's: it is judged, weighed, told, explained and listed as ours are."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from histories import assigned, delivered, judged, processed
from kafka_trial.anomalies import invariant
from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.claim import Claim
from kafka_trial.report.explain import explain
from kafka_trial.verbs import LISTS
from kafka_trial.verdict.decide import Verdict, decide
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput
from plugin_files import ODD_RECORD


@pytest.fixture(autouse=True)
def _odd_record(tmp_path: Path) -> Iterator[None]:
    list_invariants()
    file = tmp_path / "odd_record.py"
    file.write_text(ODD_RECORD)
    spec = importlib.util.spec_from_file_location("odd_record", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield
    del invariant._REGISTERED["odd-record"]


def verdict_on(claim: Claim, *anomalies: Anomaly) -> Verdict:
    names = [one.name for one in list_invariants()]
    found = [AnomalyResult(name, tuple(one for one in anomalies if one.name == name)) for name in names]
    return decide(VerdictInput(tuple(found), counts={"records": 200}), claim)


def odd(offset: int) -> Anomaly:
    return Anomaly("odd-record", "t", 0, {"offset": offset}, ("consumer-m0-0#1",))


def test_it_is_judged() -> None:
    """By the same tables as ours, with its events."""
    lines = [assigned("m0"), delivered("m0", 1), processed("m0", 1)]
    assert judged("odd-record", lines, records=2) == [{"offset": 1}]


def test_it_is_weighed_and_told() -> None:
    """By its own rule and excuse, and by its own message."""
    broken = verdict_on(Claim("at-least-once"), odd(1), odd(3))
    assert [(one.anomaly, one.sentence) for one in broken.violations] == [
        ("odd-record", "record 3 of partition 0 is odd")
    ]
    assert [one.because for one in broken.tolerated] == ["a small one"]
    assert verdict_on(Claim("at-least-once", order="none"), odd(3)).verdict == "pass"


def test_it_stands_beneath_its_cause() -> None:
    """What it follows from is told first, though it is the graver one."""
    skipped = Anomaly("skipped", "t", 0, {"offset": 7}, ("offsets#1",))
    told = verdict_on(Claim("at-least-once"), odd(3), skipped).violations
    assert [(one.anomaly, one.follows) for one in told] == [("skipped", None), ("odd-record", "skipped")]


def test_it_is_explained_and_listed() -> None:
    """With its definition, cause and remedy, and the claims that it can break."""
    said = explain("odd-record")
    parts = ("A record with an odd offset", "**Usually** Offsets are numbers.", "**Change** Do not count.", "order")
    assert [part for part in parts if part not in said] == []
    (row,) = [row for row in LISTS["invariants"]() if row["name"] == "odd-record"]
    assert (row["summary"], row["breaks"]) == ("A record with an odd offset was handled", "order")
