"""Clients that are moved to the successor of their consumer, member by member, on real brokers: a sound way there and
back, one that brokers refuse, and a successor with a bug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
import pytest

from kafka_trial.nemesis.fault import EACH_MEMBER
from kafka_trial.registry import find_consumer
from kafka_trial.scenario import STABLE, Load, Scenario, Step
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.upgrade.successors import OWN, OWN_WRONG

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

LOAD = Load(opening_burst=600, rate_per_s=150.0)
SOUND, WRONG, GUILTY = "sound", "wrong", "guilty"
THERE, AND_BACK = {"to": "successor"}, {"to": "predecessor"}
ASKED: Mapping[str, tuple[Sequence[str], int, Sequence[Mapping[str, str]]]] = {
    SOUND: (OWN["classic to consumer"], 3, (THERE, AND_BACK)),
    WRONG: (OWN_WRONG["eager to cooperative, in one step"], 2, (THERE,)),
    GUILTY: (("python-at-least-once", "commits-past-end"), 2, (THERE, AND_BACK)),
}


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """One trial of each, side by side on one cluster."""
    out, asked = tmp_path_factory.mktemp("moved"), dict[TrialRequest, str]()
    for name, ((consumer, *successors), members, moves) in ASKED.items():
        steps = tuple(
            Step("move-client", EACH_MEMBER, at_s=0.5, for_s=1.0, after=STABLE, options=options) for options in moves
        )
        scenario = Scenario(f"moved-{name}", "clients are moved", load=LOAD, members=members, schedule=steps)
        spec = make_trial_spec(
            scenario, find_consumer(consumer), seed=7, successors=[find_consumer(one) for one in successors]
        )
        asked[TrialRequest(spec, out / name)] = name
    outcomes = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many([*asked], side_by_side=len(asked))}
    failed = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, TrialOutcome)}
    assert failed == {}
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, TrialOutcome)}


def told(folder: Path, pattern: str, kind: str) -> list[dict[str, object]]:
    lines = [line for file in sorted(folder.glob(f"history/{pattern}")) for line in file.read_bytes().splitlines()]
    return [event for event in map(orjson.loads, lines) if event["kind"] == kind]


def test_a_group_goes_over_to_the_consumer_protocol_and_back(tried: dict[str, TrialOutcome]) -> None:
    """Each member once there and once back; brokers saw each of them join, and the group's records are of both types.
    What migration does by design is nobody's violation."""
    verdict, folder = tried[SOUND].verdict, tried[SOUND].folder.path
    assert (verdict.verdict, verdict.reasons) == ("pass", ())
    assert [(one.kind, one.bit, one.healed) for one in verdict.faults] == [("move-client", True, True)] * 6
    begun = told(folder, "consumer-m0-*.jsonl", "started")
    assert [one["protocol"] for one in begun] == ["classic", "consumer", "classic"]
    records = told(folder, "offsets.jsonl", "group") + told(folder, "offsets.jsonl", "member")
    types = [one["kind"] for one in sorted(records, key=lambda one: str(one["log_offset"]).zfill(20))]
    assert (types[0], "member" in types, types[-1]) == ("group", True, "group")


def test_assignors_that_share_nothing_are_a_violation_that_names_the_successor(tried: dict[str, TrialOutcome]) -> None:
    """The first member is refused; nobody told the judge that an eager group cannot become cooperative in one step."""
    verdict = tried[WRONG].verdict
    assert (verdict.verdict, [one.anomaly for one in verdict.violations]) == ("fail", ["never-rejoined"])
    sentence = verdict.violations[0].sentence
    assert "was moved from python-at-least-once to python-at-least-once-cooperative" in sentence
    assert "JOIN_GROUP with INCONSISTENT_GROUP_PROTOCOL (23)" in sentence
    assert verdict.faults[0].bit


def test_a_successor_with_a_bug_does_not_pass(tried: dict[str, TrialOutcome]) -> None:
    """Its consumer was sound, and is so again at the end."""
    verdict = tried[GUILTY].verdict
    assert verdict.verdict == "fail", verdict.reasons
    assert "commit-ahead" in {one.anomaly for one in verdict.violations}
