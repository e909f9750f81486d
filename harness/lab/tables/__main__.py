"""`python -m lab.tables VERSION…`: asks the jars of these Kafka versions, and writes both tables again.

The jars are those that trials use: resolved once, and verified (`cluster/kafka_jars.py`). Lines of other versions stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.versions import find_version
from kafka_trial.compatibility.tables import API_VERSIONS, DEFAULTS, ROLES
from kafka_trial.errors import PASS
from lab.repository import exit_status
from lab.tables.api_messages import api_rows
from lab.tables.config_classes import config_rows
from lab.tables.lines import Row, as_json, in_order, with_version

SCHEMA = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes both tables with what the jars of each version say."""
    parser = argparse.ArgumentParser(prog="python -m lab.tables", description=__doc__)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="of Kafka, as `kafka-trial doctor` knows them")
    options = parser.parse_args(arguments)
    return exit_status("tables", lambda: _write(options.versions))


def _write(versions: Sequence[str]) -> int:
    for version in map(find_version, versions):
        jars = kafka_jars(version)
        write_tables(version, jars, api_versions=API_VERSIONS, defaults=DEFAULTS)
        print(f"{version}: {API_VERSIONS.name}, {DEFAULTS.name}")
    return PASS


def write_tables(version: str, jars: Sequence[Path], *, api_versions: Path, defaults: Path) -> None:
    """Puts what the jars of a version say into both files; they are made where there are none."""
    api_versions.write_bytes(with_apis(_read(api_versions), version, api_rows(jars)))
    defaults.write_bytes(with_settings(_read(defaults), version, config_rows(jars)))


def with_apis(table: Mapping[str, Any], version: str, now: Mapping[str, tuple[int, Row]]) -> bytes:
    """Returns the table of API versions as JSON, with the rows of one version in their place.

    An API that was renamed is one line: its key stays, and its name is that of the newest version.
    """
    known, old = table.get("versions", []), table.get("apis", {})
    after = in_order(known, version)
    names = {line["key"]: name for name, line in old.items()}
    told = {key: name for name, (key, _) in now.items()}
    names = names | told if version == after[-1] else told | names
    before = {str(line["key"]): line["from"] for line in old.values()}
    lines = with_version(before, known, version, {str(key): row for key, row in now.values()})
    apis = {names[key]: {"key": key, "from": lines[str(key)]} for key in sorted(map(int, lines))}
    return as_json({"schema": SCHEMA, "versions": after}, {"apis": apis}, nested=False)


def with_settings(table: Mapping[str, Any], version: str, now: Mapping[str, Mapping[str, Row]]) -> bytes:
    """Returns the table of settings as JSON, with the rows of one version in their place."""
    known, old = table.get("versions", []), table.get("settings", {})
    roles = {role: with_version(old.get(role, {}), known, version, now[role]) for role in ROLES}
    return as_json({"schema": SCHEMA, "versions": in_order(known, version)}, roles, nested=True)


def _read(file: Path) -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(file.read_bytes()) if file.exists() else {}
    return table


if __name__ == "__main__":
    sys.exit(main())
