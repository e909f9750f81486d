"""Kafka's jars by version: resolved through Ivy once, verified against the committed checksums.

A warm cache needs no network and costs milliseconds: a stamp holds sizes and times of what was verified. What has been
touched since is verified again.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Set
from pathlib import Path

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.user_cache import cache_folder, locked, megabytes, remove, run_tool, tail
from kafka_trial.cluster.versions import KNOWN, KafkaVersion
from kafka_trial.errors import InputError, StartError

CHECKSUMS = Path(__file__).parent / "checksums"
STAMP = "verified"
JARS_MB = 45  # of a version

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
    with locked(f"kafka-{version}"):
        if not jars_there(version):
            _resolve(KNOWN[version], folder)
        elif _stamp(folder) != _times(folder):
            verify(folder, version)
            _write_stamp(folder)
    return sorted(folder.glob("*.jar"))


def jars_folder(version: str) -> Path:
    """Returns where the jars of a Kafka version belong; there only when whole and verified."""
    return cache_folder() / "kafka" / version


def jars_there(version: str) -> bool:
    """Tells whether the jars of a Kafka version are there, with the sizes they had when they were verified."""
    folder = jars_folder(version)
    return (folder / STAMP).exists() and _sizes(_stamp(folder)) == _sizes(_times(folder))


def verify(folder: Path, version: str) -> None:
    """Compares every jar with the committed checksums of its version.

    Raises:
        InputError: one differs, is missing or is too many; each named. Or none are committed.
    """
    committed = committed_checksums(version)
    found = {jar.name: sha256(jar) for jar in folder.glob("*.jar")}
    problems = [
        f"{name}: sha256 {found.get(name, 'missing')}, committed {committed.get(name, 'none')}"
        for name in sorted(found.keys() | committed.keys())
        if found.get(name) != committed.get(name)
    ]
    if problems:
        raise InputError(f"jars of Kafka {version} in {folder}", [*problems, _remedy(folder)])


def committed_checksums(version: str) -> dict[str, str]:
    """Returns the committed digest of each jar of a version.

    Raises:
        InputError: there are none.
    """
    listing = CHECKSUMS / f"{version}.sha256"
    if not listing.exists():
        raise InputError(
            f"Kafka {version}", f"no checksums are committed for it ({listing.name}); nothing is run unverified"
        )
    return {name: digest for digest, name in map(str.split, listing.read_text().splitlines())}


def _fetched(ivy_cache: Path, names: Set[str]) -> str:
    """Returns how many of the jars Ivy has fetched, and how much that is."""
    there = [jar for jar in ivy_cache.rglob("*.jar*") if jar.name.removesuffix(".part") in names]
    if not there:
        return f"{len(list(ivy_cache.rglob('ivy-*.xml')))} descriptions read"
    whole = sum(jar.name in names for jar in there)
    return f"{whole} of {len(names)} jars, {megabytes(there)} MB"


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


def _resolve(version: KafkaVersion, folder: Path) -> None:
    names = set(committed_checksums(version.number))
    temporary = folder.with_name(f".{folder.name}.part")
    retrieve(version, temporary, about=f"{len(names)} jars, some {JARS_MB} MB, once", names=names)
    verify(temporary, version.number)
    remove(folder)
    _write_stamp(temporary)
    temporary.rename(folder)


def retrieve(version: KafkaVersion, folder: Path, *, about: str, names: Set[str] = frozenset()) -> None:
    """Resolves the jars of a Kafka version through Ivy into a folder, which holds nothing else then; not verified.

    Of those among `names` it is told meanwhile how many have come.

    Raises:
        StartError: they cannot be resolved.
    """
    work = cache_folder() / "ivy"
    work.mkdir(parents=True, exist_ok=True)
    organisation, name, number = version.logging_dependency
    description = work / f"kafka-{version.number}.xml"
    description.write_text(IVY.format(kafka=version.number, log_org=organisation, log_name=name, log_version=number))
    remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [find_java(), "-jar", ivy_jar(), "-cache", work / "cache", "-ivy", description]
    command += ["-confs", "default"]
    command += ["-types", "jar", "bundle", "-warn"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    status, said = run_tool(
        "Ivy",
        command,
        what=f"fetching the jars of Kafka {version.number} from Maven Central",
        about=f"{about}: about a minute on a quick network",
        done=lambda _: _fetched(work / "cache", names),
    )
    if status != 0 or not any(folder.glob("*.jar")):
        raise StartError(
            f"Kafka {version.number}'s jars could not be resolved from Maven Central: {tail(said)}. "
            "Check the network, then run again: what has arrived is kept."
        )


def _remedy(folder: Path) -> str:
    return (
        f"remove {folder} and {cache_folder() / 'ivy' / 'cache'} and run again; "
        "if they differ again, something between here and Maven Central changes them"
    )


def _write_stamp(folder: Path) -> None:
    (folder / STAMP).write_text("".join(f"{line}\n" for line in _times(folder)))


def _stamp(folder: Path) -> list[str]:
    return (folder / STAMP).read_text().splitlines()


def _times(folder: Path) -> list[str]:
    """Returns a line for each jar: its name, its size, and when it was written."""
    return [f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(folder.glob("*.jar"))]


def _sizes(lines: list[str]) -> list[list[str]]:
    return [line.split()[:2] for line in lines]
