"""What the classes of Kafka versions say of their features, asked by a small Java program, as one table."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.user_cache import run_tool, tail
from kafka_trial.errors import InputError, StartError

PROGRAM: Final = Path(__file__).with_name("FeatureLevels.java")
SCHEMA: Final = 1


@dataclass
class Said:
    """What one version says: metadata versions by level, levels of other features, and the range of each feature."""

    metadata_versions: dict[int, tuple[str, bool]] = field(default_factory=dict)
    features: dict[str, dict[int, tuple[str, dict[str, int]]]] = field(default_factory=dict)
    supported: dict[str, tuple[int, int]] = field(default_factory=dict)


def ask_jars(jars: Sequence[Path]) -> Said:
    """Returns what the classes in the jars of one version say.

    Raises:
        StartError: this Java has no compiler, or the program failed.
    """
    command: list[str | Path] = [find_java(), "-cp", os.pathsep.join(map(str, jars)), PROGRAM]
    status, printed = run_tool(PROGRAM.name, command)
    if status != 0:
        raise StartError(f"{PROGRAM.name} ended with {status}; it needs a JDK as JAVA_HOME: {tail(printed)}")
    said = Said()
    for kind, *words in (line.split("\t") for line in printed.splitlines()):
        if kind == "metadata":
            said.metadata_versions[int(words[0])] = words[1], words[2] == "true"
        elif kind == "level":
            needs = {name: int(level) for name, level in re.findall(r"([\w.]+)=(\d+)", words[3])}
            said.features.setdefault(words[0], {})[int(words[1])] = words[2], needs
        elif kind == "range":
            said.supported[words[0]] = int(words[1]), int(words[2])
    return said


def table_of(said: Mapping[str, Said]) -> bytes:
    """Returns the table of some versions, the oldest first, as JSON with a line for each fact.

    Raises:
        InputError: two versions contradict each other about a level.
    """
    metadata_versions: dict[int, tuple[str, bool]] = {}
    features: dict[str, dict[int, tuple[str, dict[str, int]]]] = {}
    for version, one in said.items():
        _join(metadata_versions, one.metadata_versions, f"metadata.version of Kafka {version}")
        for name, levels in one.features.items():
            _join(features.setdefault(name, {}), levels, f"{name} of Kafka {version}")
    parts = {
        "metadata_versions": [_dumps([level, *metadata_versions[level]]) for level in sorted(metadata_versions)],
        "features": [
            f"{_dumps(name)}: {_dumps([[level, *levels[level]] for level in sorted(levels)])}"
            for name, levels in sorted(features.items())
        ],
        "supported": [
            f"{_dumps(version)}: {_dumps(dict(sorted(one.supported.items())))}" for version, one in said.items()
        ],
    }
    told = [f' "schema": {SCHEMA}']
    for name, lines in parts.items():
        opens, closes = "[]" if name == "metadata_versions" else "{}"
        told.append(f" {_dumps(name)}: {opens}\n  " + ",\n  ".join(lines) + f"\n {closes}")
    return ("{\n" + ",\n".join(told) + "\n}\n").encode()


def _join(known: dict[int, Any], more: Mapping[int, Any], where: str) -> None:
    if other := [level for level in more if known.get(level, more[level]) != more[level]]:
        raise InputError(where, [f"level {level}: {more[level]}, before {known[level]}" for level in other])
    known.update(more)


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()
