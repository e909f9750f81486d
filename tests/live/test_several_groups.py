"""Two groups in one trial: whose records, faults and verdict are whose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_trial import registry
from kafka_trial.check import check_run
from kafka_trial.history.store import RunFolder, pack, unpack
from kafka_trial.scenario import FurtherGroup, Step
from kafka_trial.trial.session import Session, TrialOutcome
from kafka_trial.verdict.decide import GroupVerdict

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

TWO_GROUPS = Path(__file__).with_name("two-groups.toml")
FIRST, SIN, SOUND = "python-joins-topics", "commits-before-processing", "python-at-least-once"


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> TrialOutcome:
    """A sound group beside one that commits before it works, both with a member killed."""
    scenario = registry.find_scenario(str(TWO_GROUPS))
    out = tmp_path_factory.mktemp("two") / "run"
    return kafka_trial_session.try_one(scenario, registry.find_consumer(FIRST), seed=1, out=out, retry_unknown=1)


def events(folder: RunFolder, source: str, kind: str) -> Iterator[dict[str, Any]]:
    """The events of one kind of a history's file."""
    lines = (folder.history / f"{source}.jsonl").read_bytes().splitlines()
    return (event for event in map(json.loads, lines) if event["kind"] == kind)


def test_the_group_that_broke_its_claim_is_convicted_by_name(tried: TrialOutcome) -> None:
    """And the other is acquitted; the trial fails for one of them."""
    verdict, text = tried.verdict, tried.text
    assert verdict.groups == (GroupVerdict("", FIRST, "pass"), GroupVerdict("audit", SIN, "fail")), text
    assert (verdict.verdict, verdict.exit) == ("fail", 1)
    assert {one.sentence.partition(":")[0] for one in verdict.violations} == {f"group audit ({SIN})"}
    assert "commit-ahead" in {one.anomaly for one in verdict.violations}
    assert "FAIL     audit (commits-before-processing)  groups/audit/report.txt" in text


def test_each_history_tells_of_its_own_group(tried: TrialOutcome) -> None:
    """Its topics, its members and their faults; the load is one file with two names."""
    first, audit = tried.folder, tried.folder.groups["audit"]
    topics = [[one["topic"] for one in events(folder, "run", "topic_named")] for folder in (first, audit)]
    assert topics[1] == topics[0][1:]
    assert [{one["fault_no"] for one in events(folder, "nemesis", "injected")} for folder in (first, audit)] == [
        {0},
        {1},
    ]
    names = [sorted(file.stem for file in folder.history.glob("consumer-*-0.jsonl")) for folder in (first, audit)]
    assert names == [[f"consumer-m{number}-0" for number in range(count)] for count in (3, 2)]
    assert (first.history / "workload.jsonl").samefile(audit.history / "workload.jsonl")


def test_a_packed_trial_is_judged_as_it_was(tried: TrialOutcome, tmp_path: Path) -> None:
    """All groups of it."""
    pack(tried.folder, tmp_path / "packed.tar.xz")
    again = check_run(unpack(tmp_path / "packed.tar.xz", tmp_path / "unpacked"))
    assert again.groups == tried.verdict.groups
    assert [one.sentence for one in again.violations] == [one.sentence for one in tried.verdict.violations]


def test_what_breaks_brokers_is_told_to_all_groups(kafka_trial_session: Session, tmp_path: Path) -> None:
    """It is played once, and excuses both."""
    scenario = replace(
        registry.find_scenario(str(TWO_GROUPS)),
        further_groups=(FurtherGroup("audit", SOUND, members=2),),
        schedule=(Step("broker-restart", "coordinator", at_s=0.5, for_s=1), Step("kill", "member", group="audit")),
    )
    out = tmp_path / "run"
    tried = kafka_trial_session.try_one(scenario, registry.find_consumer(FIRST), seed=1, out=out, retry_unknown=1)
    assert [one.verdict for one in tried.verdict.groups] == ["pass", "pass"], tried.text
    folders = (tried.folder, tried.folder.groups["audit"])
    restarts = [[one for one in events(folder, "nemesis", "evidence") if one["fault_no"] == 0] for folder in folders]
    assert [[one["bit"] for one in evidence] for evidence in restarts] == [[True], [True]]
    schedule = json.loads((folders[1].path / "schedule.json").read_text())["faults"]
    assert [(one["fault"], one["resolved"] is None) for one in schedule] == [("broker-restart", False), ("kill", False)]
