"""Images on trial by a user who is not root, and may use the engine's socket: the same evidence, nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

import trials_of_another_user
from another_user import AnotherUser, another_user
from engines import left_of
from kafka_trial.cluster.images import image_for_kafka, image_for_toxiproxy
from kafka_trial.cluster.spark_java import spark_archive_place
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.containers.network import LABEL
from kafka_trial.history.store import RunFolder
from kafka_trial.process.waiting import wait_until
from lab.images import image_of_team

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]
PROGRAM = trials_of_another_user.__file__
TRIED_WITHIN_S = 900


@pytest.fixture(scope="module")
def user(engine: DockerClient, engine_host: str) -> Iterator[AnotherUser]:
    """Lends another user, who finds the images that trials need."""
    with another_user(engine_host) as user:
        image_for_toxiproxy(engine)
        image_for_kafka(engine, DEFAULT_VERSION)
        image_of_team(engine, "python-orders")
        yield user


@pytest.fixture(scope="module")
def told(user: AnotherUser) -> dict[str, Any]:
    """Returns what the user's trials told."""
    command = user.command(sys.executable, PROGRAM, "try", user.folder / "out")
    done = subprocess.run(
        command, env=user.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRIED_WITHIN_S
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_sound_image_passes_with_evidence_of_each_fault(told: dict[str, Any]) -> None:
    """By a user without any right of root's: pauses, kills and a stall took effect, and the verdict is pass."""
    assert told["user"] != 0
    assert int(told["rights"], 16) == 0
    tried = told["as it is"]
    assert {name: one["verdict"] for name, one in tried.items()} == dict.fromkeys(tried, "pass"), tried
    assert {name: [bit for _, bit, _ in one["faults"]] for name, one in tried.items()} == {
        "member-paused": [True],
        "member-killed": [True, True],
        "stalled-network": [True],
    }
    said = {fault: message for one in tried.values() for fault, _, message in one["faults"]}
    assert "was frozen with its container, used no CPU, and sent nothing" in said["pause"]
    assert "ended by signal 9, its sockets are gone" in said["kill"]
    assert "no byte passed while bytes were held" in said["stall"]


def test_a_kill_is_judged_by_connections_that_were_there(told: dict[str, Any]) -> None:
    """Sockets that are gone were seen before: nothing else would be evidence."""
    folder = RunFolder(Path(told["as it is"]["member-killed"]["folder"]))
    looks = [event for event in folder.events() if (event.kind, event.details.get("witness")) == ("sample", "process")]
    before = [look.details["details"]["sockets"] for look in looks if look.details["phase"] == "before"]
    assert len(before) == 2
    assert min(before) > 0


def test_injections_that_do_nothing_are_found_out(told: dict[str, Any]) -> None:
    """No freeze, no signal and no toxic: the verdict is unknown, and says of each fault what was seen instead."""
    tried = told["sabotaged"]
    assert {name: one["verdict"] for name, one in tried.items()} == dict.fromkeys(tried, "unknown"), tried
    assert [bit for one in tried.values() for _, bit, _ in one["faults"]] == [False] * 3
    said = {fault: message for one in tried.values() for fault, _, message in one["faults"]}
    assert "was not stopped: state " in said["pause"]
    assert "waited 10 s for the last line of m" in said["kill"]  # nobody ended
    assert "bytes passed" in said["stall"]


def test_nothing_of_it_stays(told: dict[str, Any], user: AnotherUser) -> None:
    """Neither what containers have written in the user's folders, nor a file there that is another's; and the archive
    that was lent was good for the user too: no other was made."""
    assert told["user"] != 0
    lent = spark_archive_place().name
    assert [file.name for file in (user.folder / "cache" / "archive").iterdir()] == [lent]
    assert [place.name for place in (user.folder / "tmp").iterdir() if place.name.startswith("kafka-trial-kt")] == []
    owners = {place.stat().st_uid for place in (user.folder / "out").rglob("*")}
    assert owners == {told["user"]}


def test_a_killed_harness_leaves_nothing(user: AnotherUser, engine: DockerClient) -> None:
    """Killed with -9, its containers go all the same, and with them what their own users have written."""
    command = user.command(sys.executable, PROGRAM, "boot")
    with subprocess.Popen(command, env=user.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        said = json.loads(harness.stdout.readline())
        there, volumes = len(left_of(engine, harness.pid)), _volumes_of(engine, harness.pid)
        harness.kill()
    assert (said["health"], there) == ([], 5)  # three brokers, Toxiproxy and the network
    assert len(volumes) >= 3
    wait_until(lambda: left_of(engine, harness.pid) == [], within_s=60, what="everything to be gone")
    assert volumes & {volume.name for volume in engine.volumes.list()} == set()
    wait_until(lambda: not any((user.folder / "tmp").glob("kafka-trial-kt*")), within_s=20, what="its folder to go")


def _volumes_of(engine: DockerClient, pid: int) -> set[str]:
    containers = engine.containers.list(filters={"label": f"{LABEL}.pid={pid}"})
    mounts = [mount for container in containers for mount in container.attrs["Mounts"]]
    return {mount["Name"] for mount in mounts if mount["Type"] == "volume"}
