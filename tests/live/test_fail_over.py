"""A group fails over to a mirror: what a wrong way costs it is found, and a mirror that ends is nobody's fault."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from docker import DockerClient

from kafka_trial import registry
from kafka_trial.cluster.mirror_maker import PROPERTIES
from kafka_trial.history.store import RunFolder, raw_lines
from kafka_trial.mirror.fail_over_event import OFFSET_SYNCS
from kafka_trial.process.waiting import wait_until
from kafka_trial.scenario import Mirror, Scenario, Step
from kafka_trial.trial.mirror import HOME, OWN_RECORDS
from kafka_trial.trial.session import Session, TrialOutcome
from lab.images import FOLDER, image_of_team

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

CONSUMER, TEAM = "python-at-least-once", "python-orders"


def fail_over(way: str, **mirror: object) -> Scenario:
    """The suite's scenario, by another way."""
    suite = registry.find_scenario("fail-over")
    steps = tuple(replace(step, options={"way": way}) for step in suite.schedule)
    return replace(suite, schedule=steps, mirror=replace(suite.mirror or Mirror(), **mirror))  # type: ignore[arg-type]


def tried(session: Session, scenario: Scenario, out: Path, consumer: str = CONSUMER) -> TrialOutcome:
    """A trial of a sound consumer."""
    return session.try_one(scenario, registry.find_consumer(consumer), seed=1, out=out, retry_unknown=1)


def starts_of(outcome: TrialOutcome) -> Iterator[tuple[int, int, int]]:
    """What was committed when the group left, its position on the mirror, and the least it may be."""
    lines = raw_lines(outcome.folder.history / "run.jsonl")
    told = next(line for line in lines if line["kind"] == "failed_over")
    for entry in told["entries"]:
        yield entry["committed_offset"], entry["started_offset"], entry["earliest_offset"]


def topics_of(outcome: TrialOutcome) -> set[str]:
    """The topics that the group took to the mirror."""
    lines = raw_lines(outcome.folder.history / "run.jsonl")
    return {entry["topic"] for line in lines if line["kind"] == "failed_over" for entry in line["entries"]}


def test_copied_positions_are_convicted(kafka_trial_session: Session, tmp_path: Path) -> None:
    """On a mirror whose offsets are 500 further they lead 500 records back, further than any translation."""
    outcome = tried(kafka_trial_session, fail_over("raw", shift=500), tmp_path / "run")
    assert outcome.verdict.verdict == "fail", outcome.text
    assert {one.anomaly for one in outcome.verdict.violations} == {"illegal-redelivery"}
    assert all(begun == max(0, committed - 500) for committed, begun, _ in starts_of(outcome))
    assert any(begun < bound for _, begun, bound in starts_of(outcome))


def test_positions_by_time_are_convicted(kafka_trial_session: Session, tmp_path: Path) -> None:
    """What the group had not done by then lies before the instant of the fail-over: it is lost."""
    outcome = tried(kafka_trial_session, fail_over("by-timestamp", policy="identity"), tmp_path / "run")
    assert outcome.verdict.verdict == "fail", outcome.text
    skipped = [one for one in outcome.verdict.violations if one.anomaly == "skipped"]
    ahead = sum(begun - committed for committed, begun, _ in starts_of(outcome) if begun > committed)
    assert 0 < sum(one.count for one in skipped) <= ahead  # some of these had been done, and not committed yet


def test_a_source_that_was_truncated_convicts_nobody(kafka_trial_session: Session, tmp_path: Path) -> None:
    """What the group had done was deleted on the source; the mirror has it, and the group does some of it again."""
    suite = fail_over("translated")
    deleted = Step("records-deleted", "all", at_s=1, for_s=2, options={"once_due": True})
    moved = replace(suite.schedule[0], at_s=2, after="healed")
    outcome = tried(kafka_trial_session, replace(suite, schedule=(deleted, moved)), tmp_path / "run")
    assert outcome.verdict.verdict == "pass", outcome.text
    assert any(started < committed for committed, started, _ in starts_of(outcome))


def test_a_topic_that_was_created_again_convicts_nobody(kafka_trial_session: Session, tmp_path: Path) -> None:
    """What MirrorMaker had noted of the former one's offsets counts no more, by its own rule and by ours."""
    outcome = tried(kafka_trial_session, fail_over("translated", source_topics_recreated=True), tmp_path / "run")
    assert outcome.verdict.verdict == "pass", outcome.text
    noted: dict[tuple[str, int], list[int]] = {}
    for line in raw_lines(tmp_path / "run" / "mirror" / OFFSET_SYNCS):
        if line["topic"] in topics_of(outcome):  # the mirror may have had others before
            noted.setdefault((line["topic"], line["partition"]), []).append(line["upstream"])
    assert noted
    assert all(any(after < before for before, after in pairwise(of_one)) for of_one in noted.values())
    assert all(None not in start for start in starts_of(outcome))


def going_back(way: str, **mirror: object) -> Scenario:
    """The suite's scenario, and the way back."""
    there = fail_over("translated", **mirror)
    back = Step("fail-back", "all", at_s=1, for_s=2, options={"way": way}, after="stable")
    return replace(there, schedule=(*there.schedule, back))


@pytest.mark.parametrize("consumer", [CONSUMER, f"{CONSUMER}/consumer-protocol"])
def test_the_way_back_begins_where_the_group_had_left(
    kafka_trial_session: Session, tmp_path: Path, consumer: str
) -> None:
    """What it did on the mirror it does again; what the mirror has of its own comes home once, and nothing else."""
    outcome = tried(kafka_trial_session, going_back("left", both_ways=True), tmp_path / "run", consumer)
    assert outcome.verdict.verdict == "pass", outcome.text
    there, back = (line for line in raw_lines(outcome.folder.history / "run.jsonl") if line["kind"] == "failed_over")
    starts = [(one["committed_offset"], one["started_offset"], one["earliest_offset"]) for one in back["entries"]]
    assert all(started == left < committed for committed, started, left in starts)
    assert [left for _, _, left in starts] == [one["committed_offset"] for one in there["entries"]]
    counts = RunFolder(tmp_path / "run" / "mirror").read_json(HOME)
    assert counts == {"own_records": OWN_RECORDS, "came_home": OWN_RECORDS, "copied_back": 0}


def test_an_image_goes_there_and_back(
    kafka_trial_session: Session,
    engine: DockerClient,
    engine_host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both clusters are of containers, each on a network of its own."""
    image_of_team(engine, TEAM)
    monkeypatch.setenv("DOCKER_HOST", engine_host)
    consumer = FOLDER / TEAM / "consumer.toml"
    outcome = kafka_trial_session.try_one(going_back("left"), consumer, seed=1, out=tmp_path / "run", retry_unknown=1)
    assert outcome.verdict.verdict == "pass", outcome.text


def test_a_way_back_by_time_is_convicted(kafka_trial_session: Session, tmp_path: Path) -> None:
    """What was not done on the mirror by then lies before the instant of the return."""
    outcome = tried(kafka_trial_session, going_back("by-timestamp"), tmp_path / "run")
    assert outcome.verdict.verdict == "fail", outcome.text
    found = {one.anomaly for one in outcome.verdict.violations}
    assert {"skipped"} <= found <= {"skipped", "commit-ahead"}  # the next commit is ahead of what was skipped


def test_a_mirror_maker_that_ends_is_nobody_s_fault(kafka_trial_session: Session, tmp_path: Path) -> None:
    """The trial is unknown, and says why; what was seen until then is kept."""
    killer = threading.Thread(target=_kill_mirror_maker, args=(tmp_path / "run",))
    killer.start()
    consumer = registry.find_consumer(CONSUMER)
    outcome = kafka_trial_session.try_one(fail_over("translated"), consumer, seed=1, out=tmp_path / "run")
    killer.join(10)
    assert outcome.verdict.verdict == "unknown"
    assert "MirrorMaker exited with -9" in outcome.text
    assert (outcome.folder.history / "consumer-m0-0.jsonl").stat().st_size > 0


def _kill_mirror_maker(run: Path) -> None:
    def found() -> psutil.Process | None:
        own = [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"]]
        return next((one for one in own if one.info["cmdline"][-1].startswith(str(run)) and _is_one(one)), None)

    wait_until(found, within_s=60, what="MirrorMaker to run", every_s=0.2).kill()


def _is_one(process: psutil.Process) -> bool:
    return bool(process.info["cmdline"][-1].endswith(PROPERTIES))
