"""`python -m lab.kafka_versions VERSION…`: pins the jars of new Kafka versions, of MirrorMaker and of the remote tier,
and writes the table of features again.

What `cluster/versions.py` names and what has its jars pinned already stays as it is. The table is made of all versions
that are known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kafka_trial.cluster.kafka_jars import kafka_jar_set, kafka_jars
from kafka_trial.cluster.mirror_maker import mirror_maker_jar_set
from kafka_trial.cluster.tiered_storage import tiered_jar_set
from kafka_trial.cluster.versions import KNOWN, find_version
from kafka_trial.compatibility.feature_levels import TABLE
from kafka_trial.errors import PASS
from lab.kafka_versions.feature_levels import ask_jars, table_of
from lab.kafka_versions.jars import pin_jars
from lab.repository import exit_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Brings in the versions that are named."""
    parser = argparse.ArgumentParser(prog="python -m lab.kafka_versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="of Kafka, among NUMBERS in cluster/versions.py")
    options = parser.parse_args(arguments)
    return exit_status("kafka_versions", lambda: _bring_in(options.versions))


def _bring_in(versions: Sequence[str]) -> int:
    for version in [find_version(given, where="VERSION") for given in versions]:
        print(f"{version}: {pin_jars(kafka_jar_set(version))}")
    for jars in (mirror_maker_jar_set(), tiered_jar_set()):
        print(f"{jars.what}: {pin_jars(jars)}")
    TABLE.write_bytes(table_of({version: ask_jars(kafka_jars(version)) for version in KNOWN}))
    print(f"{TABLE.name}: {len(KNOWN)} versions; git diff shows what is new: read it before you commit it")
    return PASS


if __name__ == "__main__":
    sys.exit(main())
