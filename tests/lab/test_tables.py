"""The tables of API versions and defaults: as Kafka's jars say, one line where only one thing changed."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import orjson
import pytest

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.compatibility.tables import API_VERSIONS, DEFAULTS, ROLES, apis, settings, versions
from lab.tables.__main__ import main, with_apis, with_settings, write_tables
from lab.tables.api_messages import api_rows
from lab.tables.lines import shortened, with_version
from requirements import missing

MESSAGES = {
    "FetchRequest": '{ // a comment, "validVersions": "9"\n"apiKey": 1, "type": "request", "name": "FetchRequest", '
    '"listeners": ["zkBroker", "broker"], "validVersions": "0-17", "deprecatedVersions": "0-3", '
    '"fields": [{"about": "see https://kafka.apache.org"}]}',
    "NewRequest": '{"apiKey": 90, "name": "NewRequest", "listeners": ["broker"], "validVersions": "0", '
    '"latestVersionUnstable": true}',
    "CommitRequest": '{"apiKey": 8, "name": "CommitRequest", "listeners": ["broker"], "validVersions": "2-10", '
    '"latestVersionUnstable": true}',
    "VoteRequest": '{"apiKey": 52, "name": "VoteRequest", "listeners": ["controller"], "validVersions": "0-2"}',
    "GoneRequest": '{"apiKey": 4, "name": "GoneRequest", "listeners": ["broker"], "validVersions": "none"}',
    "ProduceRequest": '{"apiKey": 0, "name": "ProduceRequest", "listeners": ["broker"], "validVersions": "3-13"}',
}


@pytest.mark.cluster
@pytest.mark.rotates(every=2)
@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_the_tables_are_up_to_date(version: str, tmp_path: Path) -> None:
    """Written again from the jars of a version, they stay as they are."""
    compiler = find_java().resolve().with_name("javac")
    if not compiler.exists():
        missing("javac", f"there is no {compiler}; set JAVA_HOME to a JDK")
    again = [Path(shutil.copy(file, tmp_path)) for file in (API_VERSIONS, DEFAULTS)]
    write_tables(version, kafka_jars(version), api_versions=again[0], defaults=again[1])
    for file, kept in zip(again, (API_VERSIONS, DEFAULTS), strict=True):
        told = f"python -m lab.tables {version} writes {kept.name} again"
        assert file.read_text().splitlines() == kept.read_text().splitlines(), told


def test_message_definitions_are_read_as_brokers_read_them(tmp_path: Path) -> None:
    """Comments are none of theirs; unstable versions are not answered; of Produce 0 is told (KAFKA-18659)."""
    jar = tmp_path / "kafka-clients-3.9.2.jar"
    with zipfile.ZipFile(jar, "w") as files:
        for name, text in MESSAGES.items():
            files.writestr(f"common/message/{name}.json", text)
    (tmp_path / "kafka-clients-3.9.2-test.jar").touch()
    assert api_rows(sorted(tmp_path.iterdir())) == {
        "Fetch": (1, (0, 17, 0, [0, 3])),
        "Commit": (8, (2, 9, 2, None)),
        "Produce": (0, (3, 13, 0, None)),
    }


def test_a_line_holds_what_changed() -> None:
    """Each row stands until the next one; what came and went again is null."""
    told = {"3.9.2": None, "4.0.2": ["a"], "4.1.2": ["a"], "4.2.1": None, "4.10.0": ["b"]}
    line = shortened(told)
    assert line == [["4.0.2", "a"], ["4.2.1", None], ["4.10.0", "b"]]
    known = [*told]
    again = with_version({"x": line}, known, "4.1.2", {"x": ["c"]})
    assert again == {"x": [["4.0.2", "a"], ["4.1.2", "c"], ["4.2.1", None], ["4.10.0", "b"]]}
    assert with_version({"x": line}, known, "4.2.2", {"x": ["a"]})["x"][1:] == [
        ["4.2.1", None],
        ["4.2.2", "a"],
        ["4.10.0", "b"],
    ]
    assert with_version({"x": [["4.0.2", "a"]]}, ["4.0.2"], "4.0.2", {}) == {}


def test_an_api_that_was_renamed_is_one_line() -> None:
    """Its key stays; the newest version names it, in whatever order they are written."""
    old, new = {"Old": (74, (0, 0, 0, None))}, {"New": (74, (0, 1, 0, None))}
    forth = with_apis(orjson.loads(with_apis({}, "4.0.2", old)), "4.1.2", new)
    back = with_apis(orjson.loads(with_apis({}, "4.1.2", new)), "4.0.2", old)
    assert forth == back
    rows = [["4.0.2", 0, 0, 0, None], ["4.1.2", 0, 1, 0, None]]
    assert orjson.loads(forth)["apis"] == {"New": {"key": 74, "from": rows}}


def test_settings_are_json_by_role() -> None:
    """One line each, so that a change is a line of a diff."""
    rows = {role: {} for role in ROLES} | {"producer": {"linger.ms": ["LONG", "MEDIUM", "0", "[0,...]"]}}
    written = with_settings({}, "3.9.2", rows)
    assert orjson.loads(written)["settings"]["producer"] == {"linger.ms": [["3.9.2", "LONG", "MEDIUM", "0", "[0,...]"]]}
    assert b'  "linger.ms": [["3.9.2","LONG","MEDIUM","0","[0,...]"]]\n' in written


def test_a_version_that_is_not_known_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Its jars could not be verified."""
    assert main(["9.9.9"]) == 2
    assert "unknown Kafka version '9.9.9'" in capsys.readouterr().err


def test_both_tables_know_the_same_versions() -> None:
    """And say what Kafka's upgrade notes do."""
    assert orjson.loads(DEFAULTS.read_bytes())["versions"] == [*versions()]
    assert {"3.9.2", "4.4.0", DEFAULT_VERSION} <= {*versions()}
    lowest = {name: (apis("3.9.2")[name].lowest, apis("4.0.2")[name].lowest) for name in ("Fetch", "OffsetCommit")}
    assert lowest == {"Fetch": (0, 4), "OffsetCommit": (0, 2)}
    assert "ConsumerGroupHeartbeat" in apis("4.0.2")
    assert [settings(version, "producer")["linger.ms"].default for version in ("3.9.2", "4.0.2")] == ["0", "5"]
