"""`doctor`: for each part a trial needs, where it is, which version, and what to do if it is not there.

Only looks, unless asked to fetch: a part that the first trial would make by itself is reported as missing until then.
What earlier runs left behind (processes whose harness is gone, folders nobody uses, state of clusters that died) is
named and never removed: each with what to do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import psutil

from kafka_trial.cluster import archive, processes, spark_java
from kafka_trial.cluster.archive import formatted_template, template_place
from kafka_trial.cluster.detached import holder_of, states
from kafka_trial.cluster.jars import JarSet, verify
from kafka_trial.cluster.java import find_java, java_version
from kafka_trial.cluster.kafka_jars import kafka_jar_set, kafka_jars
from kafka_trial.cluster.postgres import find_postgres
from kafka_trial.cluster.toxiproxy import (
    TOXIPROXY_VERSION,
    find_go,
    toxiproxy_server,
    toxiproxy_there,
    toxiproxy_version,
)
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN, find_version
from kafka_trial.cluster.wiring import FIRST_PORT, LAST_PORT
from kafka_trial.containers.engine import connect
from kafka_trial.errors import KafkaTrialError, StartError
from kafka_trial.process import supervisor
from kafka_trial.process.control_groups import others_are_hidden

LIBRARIES = ("confluent-kafka", "kafka-python", "pyspark", "pyarrow", "numpy", "psutil", "orjson")
DISK_FREE_MIN_BYTES = 3 * 10**9
MEMORY_FREE_MIN_BYTES = 2 * 10**9
WITHOUT_ROOT = (
    "this user is not root: images are tried with the same evidence, but where a container has several processes, the "
    "memory of the largest alone is known; only root starts a private engine"
)
HIDDEN = "this user cannot try images: /proc hides the processes of others from it (hidepid)"
EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


THERE, ABSENT, LEFT, AMISS = "there", "missing", "left behind", "amiss"
NEEDED = "MISSING"
MARKS = {THERE: "ok", ABSENT: "missing", LEFT: "LEFT", AMISS: "AMISS"}
LEGEND = {
    NEEDED: "no trial can run without it",
    MARKS[ABSENT]: "only some trials need it, or the first one makes it",
    MARKS[LEFT]: "an earlier run left it behind",
    MARKS[AMISS]: "it may spoil trials",
}


def in_words(findings: Sequence[Finding]) -> str:
    """Returns a line for every finding, its remedy below it, and what the marks mean that were needed."""
    width = max(map(len, (*MARKS.values(), NEEDED)))
    lines = []
    for one in findings:
        lines.append(f"{one.mark:{width}} {one.part}: {one.version} {one.where}".rstrip())
        lines += [f"{'':{width}} → {one.remedy}"] if one.remedy else []
    seen = {one.mark for one in findings}
    return "\n".join([*lines, *(f"{mark}: {meaning}" for mark, meaning in LEGEND.items() if mark in seen)])


@dataclass(frozen=True)
class Finding:
    """One part; `ok` is False when a trial with the default version cannot run, or must fetch or make it first.

    `state` says how it is where that is no hindrance: there, not there, left behind by an earlier run, or amiss.
    """

    part: str
    ok: bool
    where: str = ""
    version: str = ""
    remedy: str = ""
    state: str = THERE

    @property
    def mark(self) -> str:
        """The word before it in the list of all parts."""
        return MARKS[self.state] if self.ok else NEEDED


def examine(*, fetch: Sequence[str] = ()) -> list[Finding]:
    """Returns a finding for every part, after having fetched and made what the versions in `fetch` need.

    Raises:
        InputError: `fetch` names an unknown version, or something fetched has the wrong checksum.
        StartError: something could not be fetched or made.
    """
    for version in [find_version(given) for given in fetch]:
        _fetch(version)
    findings: list[Finding] = []
    for look in (_python, _java, _spark, _toxiproxy, _kafka, _postgres, _container_engine, _machine, _clusters):
        findings += look()
    return [*findings, *(Finding(one.what, True, one.where, "", one.remedy, LEFT) for one in leftovers())]


def _fetch(version: str) -> None:
    toxiproxy_server()
    kafka_jars(version)
    formatted_template(version)
    processes.class_data_archive(version)
    spark_java.forget_archive_failure()
    spark_java.spark_class_data_archive()


def _python() -> Iterator[Finding]:
    number = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= (3, 11), sys.executable, number)
    for library in LIBRARIES:
        try:
            found = metadata.distribution(library)
            yield Finding(library, True, str(found.locate_file("")), found.version)
        except metadata.PackageNotFoundError:
            yield Finding(library, False, remedy="`make setup`, or `pip install kafka-trial` again")


def _java() -> Iterator[Finding]:
    def look() -> Finding:
        java = find_java()
        return Finding("Java", True, str(java), str(java_version(java)))

    yield _guarded("Java", look)


def _spark() -> Iterator[Finding]:
    yield _guarded("Spark's class-data archive", _spark_archive)


def _spark_archive() -> Finding:
    part, place = "Spark's class-data archive", spark_java.spark_class_data_archive(make=False)
    if place:
        return Finding(part, True, str(place))
    failure = spark_java.archive_failure()
    if failure:
        retry = f"sessions start without it, slower; `kafka-trial doctor --fetch {DEFAULT_VERSION}` tries again"
        return Finding(part, True, f"could not be made: {failure}", "", retry, ABSENT)
    remedy = "the first `check` makes it, once: 20 s to three minutes"
    return Finding(part, True, "not made yet", "", remedy, ABSENT)


def _toxiproxy() -> Iterator[Finding]:
    yield _guarded("Toxiproxy", _toxiproxy_server)


def _toxiproxy_server() -> Finding:
    there = toxiproxy_there()
    if there:
        return Finding("Toxiproxy", True, str(there), toxiproxy_version(there))
    remedy = f"`kafka-trial doctor --fetch {DEFAULT_VERSION}` builds it with {find_go()}"
    return Finding("Toxiproxy", False, "not built yet", TOXIPROXY_VERSION, remedy)


def _kafka() -> Iterator[Finding]:
    for version in KNOWN:
        jars = kafka_jar_set(version)
        found = _guarded(jars.what, partial(_jars, version, jars))
        yield found
        if found.ok and jars.there:
            yield _made(f"template of Kafka {version}", template_place(version))
            yield _guarded(f"archive of Kafka {version}", partial(_archive, version))


def _jars(version: str, jars: JarSet) -> Finding:
    if not jars.there:
        needed = version == DEFAULT_VERSION
        remedy = f"`kafka-trial doctor --fetch {version}`, or the first trial that names it, fetches it"
        return Finding(jars.what, not needed, "not fetched yet", version, remedy, ABSENT)
    verify(jars)
    return Finding(jars.what, True, f"{jars.place}, {len(list(jars.place.glob('*.jar')))} jars verified", version)


def _archive(version: str) -> Finding:
    return _made(f"archive of Kafka {version}", archive.archive_place(version))


def _made(part: str, place: Path) -> Finding:
    if place.exists():
        return Finding(part, True, str(place))
    return Finding(part, True, "not made yet", "", "the first cluster of this version makes it, once", ABSENT)


def _postgres() -> Iterator[Finding]:
    """PostgreSQL is needed by consumers with sink = "postgres" alone: without it all others can be tried."""
    try:
        found = find_postgres()
    except StartError as error:
        yield Finding("PostgreSQL", True, "not there", "", str(error), ABSENT)
    else:
        yield Finding("PostgreSQL", True, str(found.postgres), found.version)


def _container_engine() -> Iterator[Finding]:
    """An engine is needed for images alone: without it all commands can be tried."""
    part = "container engine"
    try:
        with closing(connect()) as client:
            about = client.info()
    except StartError as error:
        yield Finding(part, True, "not there", "", str(error), ABSENT)
    else:
        remedy = "" if os.geteuid() == 0 else HIDDEN if others_are_hidden() else WITHOUT_ROOT
        yield Finding(part, True, str(about["DockerRootDir"]), str(about["ServerVersion"]), remedy)


def _machine() -> Iterator[Finding]:
    cache = cache_folder()
    yield _folder("cache", cache, "set KAFKA_TRIAL_CACHE to a writable folder with 3 GB free")
    yield _folder("run folders", Path.cwd(), "work in a writable folder with 3 GB free, or give --out")
    yield _memory()
    yield _ephemeral_ports()


def _folder(part: str, folder: Path, remedy: str) -> Finding:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free_bytes = shutil.disk_usage(there).free
    ok = os.access(there, os.W_OK) and free_bytes >= DISK_FREE_MIN_BYTES
    return Finding(part, ok, f"{folder}, {free_bytes / 1e9:.1f} GB free", "", "" if ok else remedy)


def _memory() -> Finding:
    free_bytes = psutil.virtual_memory().available
    ok = free_bytes >= MEMORY_FREE_MIN_BYTES
    remedy = "" if ok else "a three-broker cluster and a Spark session need about 2 GB: end something else"
    return Finding("memory", ok, f"{free_bytes / 1e9:.1f} GB available", "", remedy)


def _ephemeral_ports() -> Finding:
    part = "ephemeral ports"
    if not EPHEMERAL_PORTS.exists():
        return Finding(part, True, "unknown on this system")
    first, last = map(int, EPHEMERAL_PORTS.read_text().split())
    apart = first > LAST_PORT or last < FIRST_PORT
    remedy = f"brokers listen between {FIRST_PORT} and {LAST_PORT}: `sysctl net.ipv4.ip_local_port_range='32768 60999'`"
    return Finding(part, True, f"{first}-{last}", "", "" if apart else remedy, THERE if apart else AMISS)


def _clusters() -> Iterator[Finding]:
    for state in states():
        if holder_of(state):
            yield Finding(f"cluster {state.name}", True, f"up, pid {state.pid}", state.kafka_version)


def _guarded(part: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except KafkaTrialError as error:
        return Finding(part, False, "", "", str(error))


MARKER = "-Dkafka.trial.cluster="
FOLDER_PREFIX = "kafka-trial-kt"
SCRATCH_PREFIX = "kafka-trial-judge-"
# By the place of its file in an installation; other ones on this machine may be of the version before.
SUPERVISORS = ("/".join(Path(supervisor.__file__).parts[-3:]), "kafka_trial/supervisor.py")
INIT = 1


@dataclass(frozen=True)
class Leftover:
    """One thing left behind, where it is, and what to do about it."""

    what: str
    where: str
    remedy: str


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    user: int
    command: tuple[str, ...]


def leftovers() -> list[Leftover]:
    """Returns everything of this user that an earlier run left behind."""
    processes = {process.pid: process for process in _processes()}
    return [*_orphans(processes), *_folders(processes), *_parts(), *_states()]


def _orphans(processes: dict[int, _Process]) -> Iterator[Leftover]:
    """Names supervisors without a harness and brokers without a supervisor."""
    for process in processes.values():
        if process.user != os.getuid():
            continue
        if _is_supervisor(process) and _harness_is_gone(process.parent):
            remedy = f"kill -9 {process.pid} ends it and everything it started"
            yield Leftover("leftover supervisor", f"pid {process.pid}, its harness is gone", remedy)
        place = _cluster_folder(process)
        if place and not _is_supervised(process, processes):
            where = f"pid {process.pid}, a broker of {place} without a supervisor"
            yield Leftover("leftover broker", where, f"kill -9 {process.pid}")


def _folders(processes: dict[int, _Process]) -> Iterator[Leftover]:
    """Names folders of clusters and judges that no running process was started for."""
    used = {_cluster_folder(process) for process in processes.values()}
    used |= {word for process in processes.values() for word in process.command if SCRATCH_PREFIX in word}
    for prefix, whose in {FOLDER_PREFIX: "cluster", SCRATCH_PREFIX: "judge"}.items():
        for folder in sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*")):
            mine = folder.stat().st_uid == os.getuid()
            if mine and str(folder) not in used and not _is_young(folder):
                yield Leftover("leftover folder", f"{folder}, of a {whose} that was killed", f"rm -r {folder}")


def _parts() -> Iterator[Leftover]:
    """Names what was being made in the cache by a process that is gone (`.<name>.<pid>`)."""
    for place in sorted(cache_folder().glob("*/.*")):
        pid = place.name.rpartition(".")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            yield Leftover("half-made part", str(place), f"rm -r {place}; the next run makes it anew")


def _states() -> Iterator[Leftover]:
    for state in states():
        if holder_of(state) is None:
            where = f"cluster {state.name}, whose holder (pid {state.pid}) is gone"
            yield Leftover("stale state", where, f"kafka-trial cluster down {state.name}")


def _processes() -> Iterator[_Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
            yield _Process(process.pid, process.ppid(), process.uids().real, tuple(process.cmdline()))


def _cluster_folder(process: _Process) -> str | None:
    return next((word.removeprefix(MARKER) for word in process.command if word.startswith(MARKER)), None)


def _is_supervised(process: _Process, processes: dict[int, _Process]) -> bool:
    """Tells whether a supervisor is above a process, or somebody is who cannot be looked at and may be one."""
    while process.parent > INIT:
        above = processes.get(process.parent)
        if above is None or _is_supervisor(above):
            return True
        process = above
    return False


def _is_supervisor(process: _Process) -> bool:
    """Tells whether a process is a supervisor, of this installation or of any other on this machine."""
    return any(word.endswith(SUPERVISORS) for word in process.command)


def _harness_is_gone(parent: int) -> bool:
    """Tells whether a supervisor's parent can be no harness: an orphan's is init, or another reaper.

    A parent that cannot be looked at may be one.
    """
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return "python" not in Path(psutil.Process(parent).exe()).name
    return parent == INIT


def _is_young(folder: Path) -> bool:
    """Tells whether a process may be about to start in `folder`: none carries its name yet."""
    return time.time() - folder.stat().st_mtime < 60
