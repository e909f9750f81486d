"""The formatted template of a Kafka version: what every broker's data folder begins as, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.tool import run_tool, tail
from kafka_trial.cluster.user_cache import cache_folder, made_once, remove
from kafka_trial.errors import StartError


def formatted_template(version: str) -> Path:
    """Returns a folder with `meta.properties` and `bootstrap.checkpoint`, made once by the version's StorageTool."""
    place = template_place(version)
    with made_once(place, f"template-{version}") as temporary:
        if temporary is not None:
            _format(version, temporary)
    return place


def template_place(version: str) -> Path:
    """Returns where the formatted template of a Kafka version belongs."""
    return cache_folder() / "template" / version


def _format(version: str, temporary: Path) -> None:
    temporary.mkdir()
    properties = temporary / "format.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=0\ncontroller.quorum.voters=0@127.0.0.1:1\n"
        "listeners=CONTROLLER://127.0.0.1:1,X://127.0.0.1:2\nadvertised.listeners=X://127.0.0.1:2\n"
        "controller.listener.names=CONTROLLER\ninter.broker.listener.name=X\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,X:PLAINTEXT\nlog.dirs={temporary / 'data'}\n"
    )
    command: list[str | Path] = [find_java(), "-cp", class_path(version), "kafka.tools.StorageTool", "format"]
    command += ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", properties]
    status, said = run_tool("StorageTool", command)
    if status != 0:
        raise StartError(f"Kafka {version}'s StorageTool could not format a folder: {tail(said)}")
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(temporary / "data" / name, temporary / name)
    remove(temporary / "data")
