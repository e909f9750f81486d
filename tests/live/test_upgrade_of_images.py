"""An upgrade under consumers that are images: brokers are containers, and become those of another version's image on
their own data, there and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from engines import left_of
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.errors import PASS
from kafka_trial.history.output_names import UPGRADE
from kafka_trial.history.store import RunFolder
from kafka_trial.trial.console import Console
from kafka_trial.upgrade.make_record import make_record
from kafka_trial.upgrade.outcome import GO, NO_GO
from kafka_trial.upgrade.plan import StagePlan
from kafka_trial.upgrade.record_file import verify
from kafka_trial.upgrade.record_page import write_upgrade
from kafka_trial.upgrade.rehearsal import Rehearsal, rehearse
from kafka_trial.upgrade.replaced import BROKERS, CONTROLLERS, stages_replaced
from kafka_trial.upgrade.request import make_upgrade_request
from kafka_trial.upgrade.stages import KILLED, Stage, roll
from kafka_trial.upgrade.successors import Chain
from lab.images import FOLDER, image_of_team

OLD, NEW = "3.9.2", "4.3.1"
TEAM = "python-orders"
SOUND, FAULTY = TEAM, f"{TEAM}-commits-before"


def stages(cluster: BootedCluster, controller: int) -> Iterator[Stage]:
    """Before, all new, and all old again, the active controller last."""
    in_order = (*(broker for broker in sorted(cluster.brokers) if broker != controller), controller)
    yield Stage("before", "a member is killed", OLD, steps=(KILLED,))
    yield Stage("rolled", "all brokers are new", NEW, (roll(in_order, NEW),))
    yield Stage("rolled-back", "all brokers are old again", OLD, (roll(in_order, OLD),))


def replaced(cluster: BootedCluster, controller: int) -> Iterator[Stage]:
    """Up to where every broker is a new one, beside controllers of their own."""
    controllers = sorted(cluster.controllers)
    return islice(stages_replaced(OLD, NEW, controllers=controllers, controller=controller), len(REPLACED))


REPLACED = ("before", "replaced-1", "replaced-2", "replaced")
IN_PLACE = StagePlan(["before", "rolled", "rolled-back"], stages)
BY_NEW_BROKERS = StagePlan(REPLACED, replaced, controllers=CONTROLLERS, further=BROKERS)


def go_through(plan: StagePlan, engine: DockerClient, engine_host: str, out: Path) -> RunFolder:
    """Takes the sound consumer and its faulty twin through stages; the one is a go throughout, the other a no-go of its
    own, and nothing of the containers stays. Returns the trial of the sound one."""
    image_of_team(engine, TEAM)
    chains = [Chain(FOLDER / TEAM / f"{name}.toml") for name in ("consumer", "commits-before")]
    request = make_upgrade_request(OLD, NEW, chains, seed=1, out=out)
    rehearsal = Rehearsal(request, plan.names)
    with pytest.MonkeyPatch.context() as patch, Console() as console:
        patch.setenv("DOCKER_HOST", engine_host)
        rehearse(rehearsal, plan, console)
    assert rehearsal.ended_early == ""
    record = make_record(rehearsal)
    write_upgrade(record, request.out)
    told = {(one.stage, one.subject): (one.outcome, one.accused) for one in record.rows}
    sound = [told[stage, subject] for stage in plan.names for subject in ("", SOUND)]
    assert sound == [(GO, "")] * len(sound), told
    assert (NO_GO, "consumer") in [told[stage, FAULTY] for stage in plan.names], told
    assert verify(request.out / UPGRADE, say=print) == PASS
    trial = RunFolder(request.out / "trials" / SOUND)
    named = trial.read_json("run.json")["images"]
    assert {f"kafka-trial/kafka:{version}" for version in (OLD, NEW)} <= named.keys()
    assert left_of(engine, os.getpid()) == []
    return trial


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_images_go_through_an_upgrade(engine: DockerClient, engine_host: str, tmp_path: Path) -> None:
    """Each broker is of either version in turn, on its own data."""
    trial = go_through(IN_PLACE, engine, engine_host, tmp_path / "upgrade")
    assert [said(trial, broker) for broker in range(3)] == [[NEW, OLD]] * 3


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_images_see_every_broker_replaced(engine: DockerClient, engine_host: str, tmp_path: Path) -> None:
    """New containers join, the data moves, the old ones leave: none of a client's first addresses is left."""
    trial = go_through(BY_NEW_BROKERS, engine, engine_host, tmp_path / "upgrade")
    turns = [turn for turn in turns_of(trial) if "by" in turn]
    assert [(turn["broker"], turn["by"], turn["version"]) for turn in turns] == [
        (old, old + BROKERS, NEW) for old in range(BROKERS)
    ]


def turns_of(trial: RunFolder) -> list[dict[str, Any]]:
    """What the evidence of rolls and replacements says of each broker, in their order."""
    seen = [event.details["details"] for event in trial.events() if event.kind == "evidence"]
    return [turn for details in seen for turn in details.get("brokers", ())]


def said(trial: RunFolder, broker: int) -> list[str]:
    """The versions that a broker said it was of after each restart, by its own log."""
    return [turn["said_version"] for turn in turns_of(trial) if turn["broker"] == broker]
