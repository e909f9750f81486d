"""The table of Kafka versions."""

import pytest

from kafka_trial.cluster.kafka_jars import CHECKSUMS
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN, find_version
from kafka_trial.errors import InputError


def test_an_unknown_version_is_refused_with_those_there_are() -> None:
    """The message offers the nearest version and lists all of them."""
    with pytest.raises(InputError, match=r"'4\.3\.0'. Did you mean '4\.3\.1'\? Valid: 3\.9\.2, .*4\.3\.1") as refused:
        find_version("4.3.0")
    assert refused.value.exit_status == 2


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_the_jars_of_a_required_version_are_pinned(version: str) -> None:
    """Each committed line is a sha256 and a jar, and each jar stands there once."""
    lines = [line.split() for line in (CHECKSUMS / f"{version}.sha256").read_text().splitlines()]
    jars = [jar for _, jar in lines]
    assert f"kafka_2.13-{version}.jar" in jars
    assert all(len(digest) == 64 and jar.endswith(".jar") for digest, jar in lines)
    assert len(set(jars)) == len(jars)


@pytest.mark.parametrize("version", KNOWN)
def test_every_version_has_one_logging_binding(version: str) -> None:
    """Two slf4j bindings on one class path lose all logs silently."""
    listing = CHECKSUMS / f"{version}.sha256"
    jars = listing.read_text() if listing.exists() else KNOWN[version].logging_dependency[1]
    assert sum(name in jars for name in ("log4j-slf4j-impl", "log4j-slf4j2-impl", "slf4j-reload4j", "slf4j-log4j")) == 1
