"""`doctor`: every part with its place, its version and what to do; it looks and makes nothing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.cluster import doctor, spark_java
from kafka_trial.cluster.doctor import ABSENT, LEFT, Finding, examine, in_words
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.errors import InputError, StartError


class _Engine:
    """An engine that answers."""

    def info(self) -> dict[str, str]:
        """Returns what one tells of itself."""
        return {"DockerRootDir": "/var/lib/docker", "ServerVersion": "20.10"}

    def close(self) -> None:
        """Lets go."""


@pytest.mark.parametrize(
    ("user", "hidden", "said"),
    [
        (0, False, ""),
        (1000, False, "this user is not root: images are tried with the same evidence, but"),
        (1000, True, "this user cannot try images: /proc hides"),
    ],
)
def test_what_a_user_gets_of_a_container_engine_is_told(
    user: int, hidden: bool, said: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root has all; others have what the kernel shows them."""
    monkeypatch.setattr(doctor, "connect", _Engine)
    monkeypatch.setattr(doctor, "others_are_hidden", lambda: hidden)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = next(one for one in examine() if one.part == "container engine")
    assert (found.ok, found.where, found.version) == (True, "/var/lib/docker", "20.10")
    assert found.remedy.startswith(said)
    assert bool(found.remedy) is bool(said)


def test_without_a_container_engine_all_is_well(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only images need one; what is to be done stands beside it."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    found = next(one for one in examine() if one.part == "container engine")
    assert (found.ok, found.where) == (True, "not there")
    assert "no container engine answers where DOCKER_HOST says" in found.remedy


@pytest.fixture(scope="module")
def warm_jars() -> list[Path]:
    """The jars in the user's own cache."""
    return kafka_jars(DEFAULT_VERSION)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and no Toxiproxy on PATH or named."""
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_TRIAL_TOXIPROXY", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    spark_java.spark_archive_place.cache_clear()
    yield tmp_path / "cache"
    spark_java.spark_archive_place.cache_clear()


@pytest.mark.cluster
def test_a_provisioned_machine_is_sound() -> None:
    """Fetching the default version makes every part of it be there, with a place and a version."""
    findings = {finding.part: finding for finding in examine(fetch=[DEFAULT_VERSION])}
    assert [finding for finding in findings.values() if not finding.ok] == []
    kafka, toxiproxy = findings[f"Kafka {DEFAULT_VERSION}"], findings["Toxiproxy"]
    assert (kafka.version, "jars verified" in kafka.where) == (DEFAULT_VERSION, True)
    assert toxiproxy.version == TOXIPROXY_VERSION
    assert Path(findings[f"archive of Kafka {DEFAULT_VERSION}"].where).exists()
    assert findings["Java"].where == str(find_java())


def test_on_a_fresh_machine_it_says_what_to_do_and_makes_nothing(fresh: Path) -> None:
    """Jars and Toxiproxy are missing, each with the command that fetches it; the cache stays empty."""
    missing = [finding for finding in examine() if not finding.ok]
    assert [finding.part for finding in missing] == ["Toxiproxy", f"Kafka {DEFAULT_VERSION}"]
    assert all(f"kafka-trial doctor --fetch {DEFAULT_VERSION}" in finding.remedy for finding in missing)
    assert not fresh.exists()


def test_a_changed_jar_is_found_though_its_size_is_the_same(warm_jars: list[Path], fresh: Path) -> None:
    """Trials trust the stamp; `doctor` reads every byte, and names the jar."""
    folder = fresh / "kafka" / DEFAULT_VERSION
    folder.mkdir(parents=True)
    jars = [Path(shutil.copy(jar, folder)) for jar in warm_jars]
    shutil.copy(warm_jars[0].parent / "verified", folder)
    sound = _finding(f"Kafka {DEFAULT_VERSION}")
    content = bytearray(jars[0].read_bytes())
    content[99] ^= 1
    jars[0].write_bytes(content)
    changed = _finding(f"Kafka {DEFAULT_VERSION}")
    assert (sound.ok, changed.ok, jars[0].name in changed.remedy) == (True, False, True)


def test_without_java_the_other_parts_are_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One missing part hides no other."""

    def none() -> Path:
        raise StartError("no Java 17 or newer; install one")

    monkeypatch.setattr(doctor, "find_java", none)
    findings = {finding.part: finding for finding in examine()}
    assert findings["Java"] == Finding("Java", False, "", "", "no Java 17 or newer; install one")
    assert {"Python", "Toxiproxy", "memory", "pyspark"} <= {part for part, finding in findings.items() if finding.ok}


def test_an_unknown_version_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong name beside a right one is refused before anything is fetched."""
    monkeypatch.setattr(doctor, "_fetch", lambda _: pytest.fail("fetched"))
    with pytest.raises(InputError, match=r"unknown Kafka version '9\.9'"):
        examine(fetch=[DEFAULT_VERSION, "9.9"])


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 3 GB free: not ok, with the figure and the variable that moves the cache."""
    monkeypatch.setattr(doctor, "DISK_FREE_MIN_BYTES", 10**18)
    cache = _finding("cache")
    assert (cache.ok, "GB free" in cache.where, "KAFKA_TRIAL_CACHE" in cache.remedy) == (False, True, True)


def _finding(part: str) -> Finding:
    return next(finding for finding in examine() if finding.part == part)


def test_what_is_missing_is_marked_so_and_what_was_left_behind_is_not_ok() -> None:
    """Also where a trial can do without it; the marks are explained below."""
    told = in_words(
        [
            Finding("Java", True, "/usr/bin/java", "21"),
            Finding("Toxiproxy", False, "not built yet", "2.12.0", "build it"),
            Finding("PostgreSQL", True, "not there", "", "install it", ABSENT),
            Finding("leftover folder", True, "/tmp/x", "", "rm -r /tmp/x", LEFT),
        ]
    )
    assert told.splitlines() == [
        "ok      Java: 21 /usr/bin/java",
        "MISSING Toxiproxy: 2.12.0 not built yet",
        "        → build it",
        "missing PostgreSQL:  not there",
        "        → install it",
        "LEFT    leftover folder:  /tmp/x",
        "        → rm -r /tmp/x",
        "MISSING: no trial can run without it",
        "missing: only some trials need it, or the first one makes it",
        "LEFT: an earlier run left it behind",
    ]
