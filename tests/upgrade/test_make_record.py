"""The record of a rehearsal, from literal run folders: times, restarts of brokers, clients, files, what to change."""

from __future__ import annotations

import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.cli import main
from kafka_trial.compatibility.paths import RULES
from kafka_trial.errors import WRONG_INPUT
from kafka_trial.history.output_names import UPGRADE, UPGRADE_PAGE
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures
from kafka_trial.registry import find_consumer
from kafka_trial.report.sealed_files import file_digests
from kafka_trial.upgrade.cluster_state import ClusterState
from kafka_trial.upgrade.make_record import changes_needed, make_record
from kafka_trial.upgrade.outcome import GO, NO_GO, NOT_KNOWN, StageOutcome
from kafka_trial.upgrade.play import STAGES, TRIALS, PlayedStage
from kafka_trial.upgrade.record import BrokerRoll, NotTried, UpgradeRecord
from kafka_trial.upgrade.record_file import read_record
from kafka_trial.upgrade.rehearsal import Rehearsal
from kafka_trial.upgrade.request import make_upgrade_request
from kafka_trial.upgrade.stages import Stage
from kafka_trial.upgrade.successors import Chain

NAME = "python-at-least-once"
SECOND = 1_000_000_000
BEGAN_NS = 50 * SECOND  # of the monotonic clock: of a machine that had been up
STAGE_BEGINS_S = {"before": 10, "mixed-1": 40}
FINALISED = {"metadata.version": 21}


def stage_folder(out: Path, stage: str) -> RunFolder:
    """A stage's history: phases of it and of those before, and two rolls, the second of which is of mixed-1."""
    folder = create_run_folder(out / STAGES / stage / NAME, stage, NAME)
    run_json = {"schema": 1, "kafka": "3.9.2", "seed": 7, "kafka_trial": "0.1.0", "host": "builder-3"}
    folder.write_json("run.json", {**run_json, "consumer_digest": "d1"})
    folder.write_json("verdict.json", {"schema": 1})
    last_s = STAGE_BEGINS_S[stage] + 25
    with Recorder(folder.history, "run") as run:
        run.record("clock", time_ns=BEGAN_NS, wall_ns=1_795_824_000 * SECOND)
        run.record("phase", time_ns=BEGAN_NS, phase="prepare")
        for name, begin_s in STAGE_BEGINS_S.items():
            if begin_s < last_s:
                run.record("phase", time_ns=BEGAN_NS + begin_s * SECOND, phase="faults", stage=name)
                run.record("phase", time_ns=BEGAN_NS + (begin_s + 20) * SECOND, phase="heal", stage=name)
        run.record("end", time_ns=BEGAN_NS + last_s * SECOND, outcome="ok")
    if stage == "mixed-1":
        with Recorder(folder.history, "nemesis") as nemesis:
            roll(nemesis, 0, at_s=12, turns=[turn(2, "3.9.2", whole=True)])
            roll(nemesis, 1, at_s=45, turns=[turn(0, "4.3.1", whole=True), turn(1, "4.3.1", whole=False)])
    return folder


def turn(broker: int, version: str, *, whole: bool) -> dict[str, Any]:
    return {"broker": broker, "version": version, "exit_s": 0.8, "in_sync_s": 4.5, "isr_whole_again": whole}


def roll(
    nemesis: Recorder, number: int, *, at_s: float, turns: list[dict[str, Any]], fault: str = "version-roll"
) -> None:
    about = {"fault_no": number, "fault": fault, "target": "all: all"}
    nemesis.record("injected", time_ns=BEGAN_NS + int(at_s * SECOND), **about)
    details = {"brokers": turns}
    told = {"bit": True, "heals": True, "message": "replaced", "details": details}
    nemesis.record("evidence", time_ns=BEGAN_NS + int((at_s + 10) * SECOND), **about, **told)


def played(out: Path, stage: str) -> PlayedStage:
    answers = {broker: BrokerFeatures({}, finalized=FINALISED, epoch=3) for broker in (0, 1, 2)}
    answers[1] = BrokerFeatures({}, finalized={"metadata.version": 19}, epoch=1)  # has not read so far
    one = Stage(stage, f"what {stage} is", "4.3.1")
    return PlayedStage(one, {NAME: stage_folder(out, stage)}, ClusterState(answers), (), 25.04)


@pytest.fixture(name="record")
def made(tmp_path: Path) -> UpgradeRecord:
    """The record of a rehearsal that ended in its third stage; the second one convicted the consumer."""
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    outcomes = [
        *(StageOutcome("before", "", GO), StageOutcome("before", NAME, GO)),
        StageOutcome("mixed-1", "", GO),
        StageOutcome("mixed-1", NAME, NO_GO, "consumer", "skipped: record 5 was left out"),
        *(
            StageOutcome("rolled", who, NOT_KNOWN, reason="not played: broker b2 did not come back")
            for who in ("", NAME)
        ),
    ]
    rehearsal = Rehearsal(request, ["before", "mixed-1", "rolled"], [played(tmp_path, one) for one in STAGE_BEGINS_S])
    rehearsal.outcomes += outcomes
    rehearsal.ended_early = "broker b2 did not come back"
    return make_record(rehearsal)


def test_stages_have_their_times_and_their_own_restarts(record: UpgradeRecord) -> None:
    """Seconds since the first phase; a broker that was not back in every ISR has no time for it."""
    assert [(one.name, one.began_s, one.lasted_s) for one in record.stages] == [
        ("before", 10.0, 25.0),
        ("mixed-1", 40.0, 25.0),
        ("rolled", None, None),
    ]
    assert [list(one.rolls) for one in record.stages] == [
        [],
        [BrokerRoll(0, "4.3.1", 45.0, 0.8, 4.5), BrokerRoll(1, "4.3.1", 49.5, 0.8, None)],
        [],
    ]
    assert (record.began, record.lasted_s) == ("2026-11-28T00:00:00Z", 65.0)


def test_a_new_broker_stands_in_the_place_of_an_old_one(tmp_path: Path) -> None:
    """When it was in sync wherever it was to be, and when the old one was gone; the next one begins then."""
    stage = played(tmp_path, "mixed-1")
    turns = [
        {"broker": old, "by": new, "version": "4.3.1", "partitions": {"t": 6}, "moved_s": 6.0, "gone_s": 9.5}
        for old, new in ((0, 3), (1, 4))
    ]
    folder = create_run_folder(tmp_path / "replaced", "mixed-1", NAME)
    shutil.copytree(stage.folders[NAME].path, folder.path, dirs_exist_ok=True)
    (folder.history / "nemesis.jsonl").unlink()
    with Recorder(folder.history, "nemesis") as nemesis:
        roll(nemesis, 0, at_s=45, turns=turns, fault="broker-replace")
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    record = make_record(Rehearsal(request, ["mixed-1"], [replace(stage, folders={NAME: folder})]))
    assert list(record.stages[0].rolls) == [
        BrokerRoll(3, "4.3.1", 45.0, 9.5, 6.0, instead_of=0),
        BrokerRoll(4, "4.3.1", 54.5, 9.5, 6.0, instead_of=1),
    ]


def test_outcomes_have_the_run_folders_that_show_them(record: UpgradeRecord, tmp_path: Path) -> None:
    """Relative to the record, with the SHA-256 of every file; none of the cluster, none of what was not played."""
    runs = {(one.stage, one.subject): one.run for one in record.outcomes}
    assert [place for place, run in runs.items() if run] == [("before", NAME), ("mixed-1", NAME)]
    convicted = next(one for one in record.outcomes if one.outcome == NO_GO)
    assert convicted.run == f"stages/mixed-1/{NAME}"
    assert convicted.files == file_digests(tmp_path / convicted.run)
    assert (record.outcome, record.missing) == (NO_GO, ["rolled"])


def test_a_history_that_was_not_judged_shows_no_outcome(tmp_path: Path) -> None:
    """The stage was played, and its judge died."""
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    one = played(tmp_path, "before")
    (one.folders[NAME].path / "verdict.json").unlink()
    rehearsal = Rehearsal(request, ["before"], [one], [StageOutcome("before", NAME, NOT_KNOWN)])
    (told,) = make_record(rehearsal).outcomes
    assert (told.run, told.files) == ("", {})


def test_what_was_asked_and_found_stands_in_it(record: UpgradeRecord) -> None:
    """The path, the consumer as its run folder knows it, features as the broker says that has read the most."""
    assert (record.path.rules, record.path.refusals) == (list(RULES), ())
    assert record.path.reversible_until.startswith("Reversible until metadata.version 4.0-IV1")
    (consumer,) = record.consumers
    assert (consumer.name, consumer.digest, consumer.claim["delivery"]) == (NAME, "d1", "at-least-once")
    assert (record.finalised_before, record.finalised_after, record.brokers) == (FINALISED, FINALISED, [0, 1, 2])
    assert record.not_tried == [
        NotTried("rolled", "broker b2 did not come back"),
        NotTried(f"clients of {NAME} moved", "it names no successor"),
        NotTried("partitions added to topics", "--add-partitions was not given"),
        NotTried("brokers replaced by new ones", "each broker is restarted on its data, under its address"),
    ]


def test_what_to_change_is_what_a_no_go_rests_on(record: UpgradeRecord) -> None:
    """The remedy of an anomaly, for the consumer that showed it, once; a setting that was lost; of unknown nothing."""
    (told,) = record.to_change
    assert (told.startswith(f"{NAME}: "), told.endswith(" (skipped)")) == (True, True)
    others = [
        StageOutcome("rolled", "", NO_GO, "setting", "min.insync.replicas of t fell from 2 to 1"),
        StageOutcome("replaced", NAME, NO_GO, "setting", "every address that m1 was started with is gone"),
        StageOutcome("rolled", "", NO_GO, "cluster", "the committed offset of partition 1 is gone"),
        StageOutcome("rolled", NAME, NOT_KNOWN, "", "skipped: perhaps"),
    ]
    assert list(changes_needed(others)) == [
        "Set again what the upgrade takes away: min.insync.replicas of t fell from 2 to 1",
        f"{NAME}: name an address that lasts, or start its members again before the last old broker goes",
    ]


def test_a_rehearsal_that_played_no_stage_is_unknown(tmp_path: Path) -> None:
    """And names every stage that it was to have."""
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    record = make_record(Rehearsal(request, ["before", "rolled"], ended_early="no consumer got to work"))
    assert (record.outcome, record.began, record.lasted_s, record.finalised_before) == (NOT_KNOWN, "", None, None)
    assert [one.what for one in record.not_tried][:2] == ["before", "rolled"]


def test_a_path_that_is_refused_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, nothing was started, and the page says by which rule; what is wrong otherwise leaves nothing."""
    words = ["upgrade", "--from", "3.9.2", "--consumer", NAME, "--out", str(tmp_path / "out")]
    assert main([*words, "--to", "4.3.9"]) == WRONG_INPUT
    assert not (tmp_path / "out").exists()
    assert main([*words, "--to", "4.2.0"]) == WRONG_INPUT
    record = read_record(tmp_path / "out" / UPGRADE)
    assert (record.exit, record.outcome, record.stages) == (WRONG_INPUT, NO_GO, [])
    assert "4.2.0 is to be avoided" in record.path.refusals[0]
    assert record.path.refusals[0] in unescape((tmp_path / "out" / UPGRADE_PAGE).read_text())
    assert "4.2.0 is to be avoided" in capsys.readouterr().err


def test_each_stage_has_what_it_cost_each_consumer(record: UpgradeRecord) -> None:
    """By the last history; the consumer has nothing sent or answered here, so nothing is known but the times."""
    costs = [(stage.name, one) for stage in record.stages for one in stage.availability]
    assert [(stage, one.consumer, one.from_s, one.until_s) for stage, one in costs] == [
        ("before", NAME, 10.0, 30.0),
        ("mixed-1", NAME, 40.0, 60.0),
    ]
    assert [one.group.unanswered_s for _, one in costs] == [None, None]


def test_loads_are_read_from_the_logs_of_the_whole_trial(tmp_path: Path) -> None:
    """Where the brokers' logs are kept when the cluster is gone."""
    logs = tmp_path / TRIALS / NAME / "logs"
    logs.mkdir(parents=True)
    (logs / "b0-server.log").write_text("[2026-11-28 00:00:01,000] INFO Started (kafka.server.KafkaRaftServer)")
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    (stage,) = make_record(Rehearsal(request, ["before"], [played(tmp_path, "before")])).stages
    assert [one.group.loads for one in stage.availability] == [[]]


def test_a_damaged_history_costs_nothing_but_this(tmp_path: Path) -> None:
    """The record is made all the same."""
    request = make_upgrade_request("3.9.2", "4.3.1", [Chain(find_consumer(NAME))], seed=7, out=tmp_path)
    one = played(tmp_path, "before")
    (one.folders[NAME].history / "workload.jsonl").write_bytes(b"torn\n")
    (stage,) = make_record(Rehearsal(request, ["before"], [one])).stages
    assert (stage.lasted_s, stage.availability) == (25.0, ())
