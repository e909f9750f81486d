"""The table of Kafka versions, and what a broker says of its own."""

from pathlib import Path

import pytest

from kafka_trial.cluster.jars import CHECKSUMS
from kafka_trial.cluster.versions import (
    DEFAULT_VERSION,
    KNOWN,
    NUMBERS,
    KafkaVersion,
    Release,
    find_version,
    is_of,
    oldest_first,
    parse_release,
    said_version,
)
from kafka_trial.errors import InputError


def test_an_unknown_version_is_refused_with_those_there_are() -> None:
    """The message offers the nearest version and lists all of them."""
    valid = r"Valid: 3\.7\.2, 3\.9\.2, .*4\.3\.1, 4\.4\.0$"
    with pytest.raises(InputError, match=rf"'4\.3\.0'. Did you mean '4\.3\.1'\? {valid}") as refused:
        find_version("4.3.0")
    assert refused.value.exit_status == 2


@pytest.mark.parametrize("version", KNOWN)
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


def test_versions_stand_in_their_order() -> None:
    """The oldest first, as numbers; the default is one of them."""
    assert oldest_first(NUMBERS) == list(NUMBERS)
    assert oldest_first(["4.10.0", "4.9.1", "10.0.0", "4.9.0", "-"]) == ["-", "4.9.0", "4.9.1", "4.10.0", "10.0.0"]
    assert DEFAULT_VERSION in KNOWN


def test_a_release_is_its_numbers() -> None:
    """Without a patch it is the first of its line."""
    assert parse_release("4.10.2") > parse_release("4.9.12") > parse_release("4.9") == Release(4, 9, 0)
    assert (str(parse_release("4.10")), parse_release("4.10.2").line) == ("4.10.0", "4.10")


@pytest.mark.parametrize("number", ["", "4", "4.3.1.2", "v4.3.1", "4.3.1-rc0", "4.x", "٤.3"])
def test_what_is_no_version_is_refused(number: str) -> None:
    """With what was expected."""
    with pytest.raises(InputError, match=r"expected two or three numbers with dots, as in 4\.3\.1"):
        parse_release(number)


@pytest.mark.parametrize(
    ("number", "differs"),
    [
        ("3.8.9", (False, False, False, False, False)),
        ("3.9.0", (True, False, False, False, False)),
        ("3.99.0", (True, False, False, False, False)),
        ("4.0.0", (True, True, True, True, False)),
        ("4.2.9", (True, True, True, True, False)),
        ("4.3.0", (True, True, True, True, True)),
        ("4.10.0", (True, True, True, True, True)),
    ],
)
def test_what_differs_begins_with_a_release(number: str, differs: tuple[bool, ...]) -> None:
    """Advertised controllers with 3.9; log4j2, KRaft alone and KIP-848 with 4.0; assignment intervals with 4.3."""
    one = KafkaVersion(number)
    own = one.log4j2, one.kraft_only, one.consumer_protocol, one.assignment_intervals
    assert (one.advertised_controllers, *own) == differs


def test_a_broker_says_its_version_in_its_log(tmp_path: Path) -> None:
    """The last time counts, from a byte on: a node that was restarted as another version writes on in the same log."""
    log, line = tmp_path / "server.log", "[2026-11-27 20:00:00,714] INFO Kafka version: {} (org.apache.kafka)\n"
    assert said_version(log) is None
    log.write_text(old := "[…] INFO starting\n" + line.format("3.9.2"))
    assert said_version(log) == "3.9.2"
    log.write_text(old + line.format("4.3.1") * 2)
    assert (said_version(log), said_version(log, from_byte=len(old.encode()))) == ("4.3.1", "4.3.1")
    assert said_version(log, from_byte=log.stat().st_size) is None


@pytest.mark.parametrize(
    ("said", "agrees"), [("4.3.1", True), ("4.3.1-hardened", True), (None, True), ("4.3.10", False), ("4.3", False)]
)
def test_what_a_broker_says_agrees_with_a_version(said: str | None, agrees: bool) -> None:
    """A vendor's suffix does not matter, and silence is no contradiction."""
    assert is_of(said, "4.3.1") is agrees
