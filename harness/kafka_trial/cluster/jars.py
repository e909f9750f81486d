"""Jars that are fetched once: resolved through Ivy by set, and verified against the committed checksums of the set.

A warm cache needs no network and costs milliseconds: a stamp holds sizes and times of what was verified. What has been
touched since is verified again.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.user_cache import cache_folder, locked, megabytes, remove, run_tool, tail
from kafka_trial.errors import InputError, StartError

CHECKSUMS = Path(__file__).parent / "checksums"
STAMP = "verified"

IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="kafka-trial" module="kafka-trial"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class IvyModule:
    """A module in the repository; `transitive`: with the jars that it needs. `classifier`: another jar of it alone."""

    organisation: str
    name: str
    revision: str
    transitive: bool = True
    classifier: str = ""

    def __str__(self) -> str:
        alone = "" if self.transitive else ' transitive="false"'
        place = f'org="{self.organisation}" name="{self.name}" rev="{self.revision}"'
        if not self.classifier:
            return f'    <dependency {place}{alone} conf="default->runtime,master"/>'
        artifact = f'<artifact name="{self.name}" type="jar" ext="jar" m:classifier="{self.classifier}"/>'
        return f'    <dependency {place}{alone} conf="default->master">{artifact}</dependency>'


@dataclass(frozen=True)
class JarSet:
    """Jars that are resolved together, and stand on one class path.

    `what` names them in sentences; `folder` is theirs in the cache; `checksums`: the name of the file in CHECKSUMS;
    `size_mb`: of all of them, about.
    """

    what: str
    folder: str
    checksums: str
    modules: Sequence[IvyModule]
    size_mb: int

    @property
    def place(self) -> Path:
        """Where the jars belong; there only when whole and verified."""
        return cache_folder() / self.folder

    @property
    def there(self) -> bool:
        """Whether the jars are there, with the sizes they had when they were verified."""
        return (self.place / STAMP).exists() and _sizes(_stamp(self.place)) == _sizes(_times(self.place))


def jars_of(jars: JarSet) -> list[Path]:
    """Returns the verified jars of a set, sorted; resolves them through Ivy the first time.

    Raises:
        InputError: a jar's checksum is not the committed one.
        StartError: they cannot be resolved.
    """
    with locked(jars.folder.replace("/", "-")):
        if not jars.there:
            _resolve(jars)
        elif _stamp(jars.place) != _times(jars.place):
            verify(jars)
            _write_stamp(jars.place)
    return sorted(jars.place.glob("*.jar"))


def verify(jars: JarSet, folder: Path | None = None) -> None:
    """Compares every jar in a folder, the set's own by default, with the committed checksums.

    Raises:
        InputError: one differs, is missing or is too many; each named. Or none are committed.
    """
    folder, committed = folder or jars.place, committed_checksums(jars)
    found = {jar.name: sha256(jar) for jar in folder.glob("*.jar")}
    problems = [
        f"{name}: sha256 {found.get(name, 'missing')}, committed {committed.get(name, 'none')}"
        for name in sorted(found.keys() | committed.keys())
        if found.get(name) != committed.get(name)
    ]
    if problems:
        raise InputError(f"jars of {jars.what} in {folder}", [*problems, _remedy(folder)])


def committed_checksums(jars: JarSet) -> dict[str, str]:
    """Returns the committed digest of each jar of a set.

    Raises:
        InputError: there are none.
    """
    listing = CHECKSUMS / jars.checksums
    if not listing.exists():
        raise InputError(jars.what, f"no checksums are committed for it ({listing.name}); nothing is run unverified")
    return checksums_in(listing)


def checksums_in(listing: Path) -> dict[str, str]:
    """Returns what a file of checksums says: the digest of each jar, by its name."""
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


def _resolve(jars: JarSet) -> None:
    names, folder = set(committed_checksums(jars)), jars.place
    temporary = folder.with_name(f".{folder.name}.part")
    retrieve(jars, temporary, about=f"{len(names)} jars, some {jars.size_mb} MB, once", names=names)
    verify(jars, temporary)
    remove(folder)
    _write_stamp(temporary)
    temporary.rename(folder)


def retrieve(jars: JarSet, folder: Path, *, about: str, names: Set[str] = frozenset()) -> None:
    """Resolves a set of jars through Ivy into a folder, which holds nothing else then; not verified.

    Of those among `names` it is told meanwhile how many have come.

    Raises:
        StartError: they cannot be resolved.
    """
    work = cache_folder() / "ivy"
    work.mkdir(parents=True, exist_ok=True)
    description = work / f"{jars.folder.replace('/', '-')}.xml"
    description.write_text(IVY.format(dependencies="\n".join(map(str, jars.modules))))
    remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [find_java(), "-jar", ivy_jar(), "-cache", work / "cache", "-ivy", description]
    command += ["-confs", "default"]
    command += ["-types", "jar", "bundle", "-warn"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    status, said = run_tool(
        "Ivy",
        command,
        what=f"fetching the jars of {jars.what} from Maven Central",
        about=f"{about}: about a minute on a quick network",
        done=lambda _: _fetched(work / "cache", names),
    )
    if status != 0 or not any(folder.glob("*.jar")):
        raise StartError(
            f"the jars of {jars.what} could not be resolved from Maven Central: {tail(said)}. "
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
