"""Bringing in a Kafka version: its jars are pinned, and the table of features is what its classes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.cluster import jars as provision
from kafka_trial.cluster.jars import CHECKSUMS, JarSet, sha256
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import kafka_jar_set, kafka_jars
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.compatibility.feature_levels import TABLE
from kafka_trial.errors import InputError
from lab.kafka_versions import jars
from lab.kafka_versions.__main__ import main
from lab.kafka_versions.feature_levels import Said, ask_jars, table_of
from requirements import missing

HALF: dict[str, Any] = {"metadata_versions": {1: ("3.0-IV1", True)}, "supported": {"metadata.version": (1, 1)}}


@pytest.mark.lengthy
@pytest.mark.rotates(every=4)
@pytest.mark.parametrize("version", KNOWN)
def test_the_table_is_what_the_classes_of_a_version_say(version: str) -> None:
    """Asked again: nothing in its jars differs from the committed table."""
    if not (compiler := find_java().resolve().with_name("javac")).exists():
        missing("javac", f"there is no {compiler} to compile with; set JAVA_HOME to a JDK")
    table, said = orjson.loads(TABLE.read_bytes()), ask_jars(kafka_jars(version))
    oldest, newest = min(said.metadata_versions), max(said.metadata_versions)
    metadata_versions = {level: (name, changed) for level, name, changed in table["metadata_versions"]}
    features = {name: {level: (at, needs) for level, at, needs in rows} for name, rows in table["features"].items()}
    assert table["supported"][version] == {name: list(levels) for name, levels in said.supported.items()}
    assert {level: metadata_versions[level] for level in range(oldest, newest + 1)} == said.metadata_versions
    assert {name: {level: features[name][level] for level in levels} for name, levels in said.features.items()} == (
        said.features
    )


def test_the_table_has_all_known_versions() -> None:
    """In their order; whoever adds a version has to write it again."""
    assert list(orjson.loads(TABLE.read_bytes())["supported"]) == list(KNOWN)


def test_a_table_is_made_of_what_versions_say() -> None:
    """A line for each fact; what two versions say alike stands once."""
    newer = Said({1: ("3.0-IV1", True), 2: ("3.1-IV0", False)}, {"group.version": {1: ("3.1-IV0", {})}}, {})
    assert orjson.loads(table_of({"3.0.0": Said(**HALF), "3.1.0": newer})) == {
        "schema": 1,
        "metadata_versions": [[1, "3.0-IV1", True], [2, "3.1-IV0", False]],
        "features": {"group.version": [[1, "3.1-IV0", {}]]},
        "supported": {"3.0.0": {"metadata.version": [1, 1]}, "3.1.0": {}},
    }


def test_versions_that_contradict_each_other_are_no_table() -> None:
    """A level that one version says changes the metadata, and another one does not."""
    other = Said({1: ("3.0-IV1", False)})
    with pytest.raises(InputError, match=r"metadata.version of Kafka 3\.1\.0: level 1: .*False.*, before .*True"):
        table_of({"3.0.0": Said(**HALF), "3.1.0": other})


def test_a_version_that_is_in_no_table_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is fetched."""
    assert main(["9.9.9"]) == 2
    assert "unknown Kafka version '9.9.9'" in capsys.readouterr().err


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of checksums of one other version, and a repository that serves two jars for the new one."""
    (tmp_path / "4.3.1.sha256").write_text((CHECKSUMS / f"{DEFAULT_VERSION}.sha256").read_text())

    def retrieve(jars: JarSet, folder: Path, *, about: str) -> None:
        folder.mkdir(parents=True)
        (folder / f"kafka-clients-{jars.modules[0].revision}.jar").write_bytes(b"new")
        (folder / "slf4j-api-1.7.36.jar").write_bytes((tmp_path / "served").read_bytes())

    monkeypatch.setattr(jars, "retrieve", retrieve)
    monkeypatch.setattr(jars, "CHECKSUMS", tmp_path)
    monkeypatch.setattr(provision, "CHECKSUMS", tmp_path)
    return tmp_path


def test_the_jars_of_a_new_version_are_pinned_once(served: Path) -> None:
    """Their checksums are committed; asked again nothing is fetched, whatever is served by then."""
    own = next(jar for jar in kafka_jars(DEFAULT_VERSION) if jar.name == "slf4j-api-1.7.36.jar")
    (served / "served").write_bytes(own.read_bytes())
    assert jars.pin_jars(kafka_jar_set("4.4.0")) == "2 jars, 1 of them in no other set"
    digests = [line.split() for line in (served / "4.4.0.sha256").read_text().splitlines()]
    assert [name for _, name in digests] == ["kafka-clients-4.4.0.jar", "slf4j-api-1.7.36.jar"]
    assert digests[1][0] == sha256(own)
    (served / "served").unlink()
    assert jars.pin_jars(kafka_jar_set("4.4.0")) == "2 jars, pinned before"


def test_a_jar_that_is_another_one_than_before_is_refused(served: Path) -> None:
    """Of the same name in another version; nothing is committed then."""
    (served / "served").write_bytes(b"changed on its way")
    told = r"slf4j-api-1\.7\.36\.jar: sha256 \w{64}, committed of another set \w{64}"
    with pytest.raises(InputError, match=told):
        jars.pin_jars(kafka_jar_set("4.4.0"))
    assert not (served / "4.4.0.sha256").exists()
