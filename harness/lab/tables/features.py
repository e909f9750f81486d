"""The features of one Kafka version, printed by a Java program that asks its classes; and the table of all versions.

`python -m lab.tables.features VERSION…` writes `kafka_trial/upgrade/features.json` again, lines of other versions stay.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.user_cache import run_tool, tail
from kafka_trial.cluster.versions import find_version
from kafka_trial.errors import PASS, StartError
from kafka_trial.kafka_protocol.features import METADATA_VERSION
from kafka_trial.upgrade.paths import FEATURES, order
from lab.repository import exit_status

PROGRAM: Final = Path(__file__).with_name("Features.java")
SCHEMA: Final = 1
Line = tuple[str, int, str, str]  # of what the program prints


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the table with what the jars of each version say."""
    parser = argparse.ArgumentParser(prog="python -m lab.tables.features", description=__doc__)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="of Kafka, as `kafka-trial doctor` knows them")
    options = parser.parse_args(arguments)
    return exit_status("features", lambda: _write(options.versions))


def _write(versions: Sequence[str]) -> int:
    table = orjson.loads(FEATURES.read_bytes()) if FEATURES.exists() else {}
    for version in map(find_version, versions):
        table = with_features(table, version, feature_lines(kafka_jars(version)))
    FEATURES.write_bytes(as_json(table))
    print(f"{', '.join(versions)}: {FEATURES.name}")
    return PASS


def feature_lines(jars: Sequence[Path]) -> list[Line]:
    """Returns what the classes in some jars say, a line for each level of a feature.

    Raises:
        StartError: there is no Java, or the program failed.
    """
    command: list[str | Path] = [find_java(), "-cp", os.pathsep.join(map(str, jars)), PROGRAM]
    status, said = run_tool("java", command)
    if status != 0:
        raise StartError(f"{PROGRAM.name} ended with {status}: {tail(said)}")
    words = (line.split("\t") for line in said.splitlines())
    return [(name, int(level), first, second) for name, level, first, second in words]


def with_features(table: Mapping[str, Any], version: str, lines: Sequence[Line]) -> dict[str, Any]:
    """Returns the table with what one version says; of what a level means the newest version is right."""
    supported: dict[str, list[int]] = {}
    metadata, levels = {}, {}
    for name, level, first, second in lines:
        supported[name] = [min(level, supported.get(name, [level])[0]), level]
        if name == METADATA_VERSION:
            metadata[str(level)] = [first, second == "true"]
        else:
            levels[f"{name} {level}"] = [first, second.strip("{}")]
    known = {**table.get("supported", {}), version: supported}
    newest = version == max(known, key=order)

    def merged(name: str, now: Mapping[str, Any]) -> dict[str, Any]:
        before = table.get(name, {})
        return {**before, **now} if newest else {**now, **before}

    return {
        "schema": SCHEMA,
        "supported": {one: known[one] for one in sorted(known, key=order)},
        "metadata": dict(sorted(merged("metadata", metadata).items(), key=lambda pair: int(pair[0]))),
        "levels": dict(sorted(merged("levels", levels).items())),
    }


def as_json(table: Mapping[str, Any]) -> bytes:
    """Returns the table as JSON, with a line for each version, metadata version and level."""
    parts = []
    for name, value in table.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"  {_dumps(key)}: {_dumps(one)}" for key, one in value.items())
            parts.append(f" {_dumps(name)}: {{\n{lines}\n }}")
        else:
            parts.append(f" {_dumps(name)}: {_dumps(value)}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _dumps(value: object) -> str:
    return orjson.dumps(value).decode()


if __name__ == "__main__":
    sys.exit(main())
