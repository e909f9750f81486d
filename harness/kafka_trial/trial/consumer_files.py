"""What a consumer is: the files of its folder, each with a digest, by which `certify` and `cuts` know it again.

Every file counts, of any size: programs, jars, configuration, libraries. So do files and folders elsewhere that its
command or its `[env]` names (a jar of the build, a PYTHONPATH), but not folders around its own.

Stored are digests of single files, so that a refusal can name what has changed; where there are very many, a digest of
each of the largest folders.

Left out are:

- what Kafka Trial writes: run folders, certificates, records of upgrades, matrices of cuts (known by their content, not
  by their names), and the `--out` of the command that asks;
- version control, caches of tools, logs, files of process ids;
- what a consumer itself writes as it works: what `writes` names in its consumer.toml.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from kafka_trial.consumers.patched_consumer import PATCHES, read_consumer_toml, render_patched_files
from kafka_trial.consumers.spec import is_written
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.event import from_line
from kafka_trial.history.output_names import (
    CERTIFICATE,
    CERTIFICATE_PAGE,
    CUT_CONSUMERS,
    CUT_PAGE,
    CUT_ROWS,
    CUT_TEXT,
    JUNIT,
    UPGRADE,
    UPGRADE_PAGE,
)
from kafka_trial.workload.payload import OURS, PayloadFiles, payload_digest, sample_files

FILES_MAX = 2_000  # digests that are stored of one consumer
NAMED_MAX = 8  # changes that a sentence names
CHUNK_BYTES = 1 << 20
WRITES = "writes"  # the key of consumer.toml
IF_WRITTEN = (
    "What the consumer itself writes as it works does not count where consumer.toml names it "
    '(writes = ["state/", "*.db"]), or where it lies in {run_dir}'
)
SEPARATORS = re.compile(r"[:;=,\s]+")  # of paths in an argument: a class path, an option with its value
NO_IMAGES: Mapping[str, str] = MappingProxyType({})
EVERYTHING = "./"  # a folder that stands for all files
FOLDERS_LEFT_OUT = (
    *("__pycache__", ".git", ".hg", ".svn", ".idea", ".vscode", ".gradle"),
    *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
)
FILES_LEFT_OUT = ("*.pyc", "*.log", "*.log.*", "nohup.out", "*.pid", "*~", "*.swp", ".DS_Store", ".*.part")
# The files that certify, upgrade and cuts write, and what each of them says of itself.
OUR_FILES: Sequence[tuple[str, tuple[bytes, ...]]] = (
    (CERTIFICATE, (b'"harness_digest"', b'"not_tried"')),
    (CERTIFICATE_PAGE, (b"<title>certificate of ",)),
    (UPGRADE, (b'"harness_digest"', b'"not_tried"')),
    (UPGRADE_PAGE, (b"<title>upgrade of Kafka from ",)),
    (JUNIT, (b"<testsuite",)),
    (CUT_ROWS, (b'"consumer_digest"', b'"source_digest"')),
    (CUT_PAGE, (b"<title>cuts of ",)),
    (CUT_TEXT, (b" on Kafka ", b" cuts: ")),
    (CUT_CONSUMERS, (b'"files"',)),
)
Entry = tuple[str, Path]  # a file by its place in the folder, names joined by "/", and where it is


@dataclass(frozen=True)
class ConsumerFiles:
    """The files of a consumer by their places, each with a digest; `digest` is of all of them and of its payload.

    `writes`: the patterns of consumer.toml of what it writes itself, which is not among them.
    """

    digest: str
    files: Mapping[str, str]
    writes: tuple[str, ...] = ()

    def stored(self) -> dict[str, str]:
        """Returns what is to be stored of them: at most `FILES_MAX` digests, of files or of whole folders ("lib/")."""
        return _folded(self.files, most=FILES_MAX)

    def changes_since(self, stored: Mapping[str, str]) -> list[str]:
        """Returns what is no longer as it was stored, a phrase each: "main.py was changed"; empty: the same consumer.

        What it writes itself, as it is declared now, is not compared.
        """
        before = {place: digest for place, digest in stored.items() if not is_written(place, self.writes)}
        now = _folded_into(self.files, [place for place in before if place.endswith("/")])
        return [
            f"{place} {'came' if place not in before else 'went' if place not in now else 'was changed'}"
            for place in sorted({*before, *now})
            if before.get(place) != now.get(place)
        ]


def changes_in_words(changes: Sequence[str]) -> str:
    """Returns changes of a consumer as the part of a sentence, the first ones by name."""
    more = f", and {len(changes) - NAMED_MAX} more" if changes[NAMED_MAX:] else ""
    return ", ".join(changes[:NAMED_MAX]) + more


def consumer_files(
    toml: Path, payload: PayloadFiles = OURS, *, out: Path | None = None, images: Mapping[str, str] = NO_IMAGES
) -> ConsumerFiles:
    """Returns the files of the consumer whose consumer.toml this is; those of its payload too, and what its command
    names, wherever they lie.

    `out`: the folder that the command writes into; beneath the consumer's folder it is none of its files. `images`: the
    ids of the container images that it is, by their names; they count as files do. The consumer.toml counts by what it
    says, but for `writes`. Of a consumer that is stored as a patch they are those of the folder that a trial makes of
    it.

    Raises:
        InputError: consumer.toml cannot be read, or a patch does not apply.
    """
    folder, table = toml.absolute().parent, read_consumer_toml(toml)
    writes = _written(table)
    besides = None if out is None or out.resolve() == folder.resolve() else out.resolve()
    entries = list(counted(folder, follow=True, besides=besides, writes=writes))
    digest, files = _digests(folder, entries, payload)
    named = {f"image {name}": told.removeprefix("sha256:")[:16] for name, told in images.items()}
    for place, path in _elsewhere(folder, table):
        named |= {} if is_written(place, writes) else {place: _file_digest(path)}
    if named:
        digest = hashlib.sha256(orjson.dumps([digest, sorted(named.items())])).hexdigest()[:16]
    for path in _payload_paths(payload):
        if not path.resolve().is_relative_to(folder.resolve()):
            named[os.path.relpath(path, folder)] = _file_digest(path)
    said = orjson.dumps(table, option=orjson.OPT_SORT_KEYS, default=str)
    return ConsumerFiles(digest, files | named | {toml.name: hashlib.sha256(said).hexdigest()[:16]}, writes)


@dataclass
class ChangeWatch:
    """Looks, as trials go on, whether a consumer is still what it was when they began, and tells each change once."""

    toml: Path
    payload: PayloadFiles
    out: Path
    begun: Mapping[str, str]
    images: Mapping[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def new_changes(self) -> str:
        """Returns what has changed since the last look, as a sentence; "" where nothing has."""
        try:
            now = consumer_files(self.toml, self.payload, out=self.out, images=self.images)
            changes = now.changes_since(self.begun)
        except KafkaTrialError as error:
            changes = [str(error)]
        new = [change for change in changes if change not in self.told]
        self.told |= {*new}
        return f"the consumer changed while it was tried: {changes_in_words(new)}. {IF_WRITTEN}" if new else ""


def folder_digest(folder: Path, payload: PayloadFiles = OURS) -> str:
    """Returns a digest of the files of a folder of ours (names and contents), and of a payload; links to folders are
    not followed.

    Raises:
        InputError: it is a consumer that is stored as a patch, and the patch does not apply.
    """
    return _digests(folder, list(counted(folder, follow=False)), payload)[0]


def _written(table: dict[str, Any]) -> tuple[str, ...]:
    """Takes `writes` out of the table of a consumer.toml; its patterns, and the file that the positions are kept in."""
    checkpoint = str(table.get("progress", {}).get("path") or "")
    pattern = re.sub(r"\{[^}]*\}", "*", checkpoint.removeprefix("./"))
    beside = bool(checkpoint) and not checkpoint.startswith(("/", "{"))
    return (*table.pop(WRITES, ()), *([pattern] if beside else []))


def _elsewhere(folder: Path, table: Mapping[str, Any]) -> Iterator[Entry]:
    """Yields the files outside of its folder that a consumer's command and environment name."""
    words = [*table.get("command", ()), *table.get("env", {}).values()]
    for name in sorted({part for word in words for part in SEPARATORS.split(str(word)) if part and "{" not in part}):
        path, here = folder / name, folder.resolve()
        if not os.path.exists(path) or path.resolve().is_relative_to(here) or here.is_relative_to(path.resolve()):
            continue
        if os.path.isfile(path) and not file_left_out(path):
            yield os.path.normpath(name), path
        elif os.path.isdir(path) and not name.startswith("/"):
            yield from ((f"{os.path.normpath(name)}/{place}", file) for place, file in counted(path, follow=True))


def _payload_paths(payload: PayloadFiles) -> list[Path]:
    further = [path for of_topic in payload.topics.values() for path in _payload_paths(of_topic)]
    if payload.template is not None:
        return [payload.template, *further]
    return [*(sample_files(payload.samples) if payload.samples is not None else []), *further]


def _digests(folder: Path, entries: Sequence[Entry], payload: PayloadFiles) -> tuple[str, dict[str, str]]:
    """Returns a digest of all and one of each; of a patch the files that are made of it stand for those stored."""
    made = render_patched_files(folder)
    found = {name: path for name, path in entries if not (made and path.name in PATCHES)}
    whole, files = hashlib.sha256(), dict[str, str]()
    for name in sorted({*found, *made}, key=lambda name: name.split("/")):
        one = hashlib.sha256()
        whole.update(name.encode(errors="surrogateescape") + b"\0")
        for chunk in [made[name]] if name in made else _chunks(found[name]):
            one.update(chunk)
            whole.update(chunk)
        whole.update(b"\0")
        files[name] = one.hexdigest()[:16]
    whole.update(payload_digest(payload).encode())
    return whole.hexdigest()[:16], files


def _file_digest(path: Path) -> str:
    one = hashlib.sha256()
    for chunk in _chunks(path):
        one.update(chunk)
    return one.hexdigest()[:16]


def _chunks(path: Path) -> Iterator[bytes]:
    """Yields what a file holds, of a folder where its link leads; nothing of one that cannot be read: then no member
    reads it either."""
    if os.path.isdir(path):
        yield os.fsencode(os.readlink(path))
        return
    with suppress(OSError), path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _folded(files: Mapping[str, str], *, most: int) -> dict[str, str]:
    """Returns at most so many digests: of as many single files as fit, and of the smallest folders that are enough."""
    folders = list[str]()
    found = dict(files)
    while len(found) > most:
        below = Counter(folder for place in found for folder in _folders_of(place))
        larger = sorted((count, -folder.count("/"), folder) for folder, count in below.items() if count > 1)
        enough = (folder for count, _, folder in larger if count > len(found) - most)
        fold = next(enough, larger[-1][-1] if larger else EVERYTHING)
        folders = [fold, *(folder for folder in folders if not folder.startswith(fold))]
        found = _folded_into(files, folders)
    return found


def _folders_of(place: str) -> list[str]:
    """Returns the folders that a file, or a folder, lies in, each with its "/" behind it."""
    parts = place.rstrip("/").split("/")[:-1]
    return ["/".join(parts[: end + 1]) + "/" for end in range(len(parts))]


def _folded_into(files: Mapping[str, str], folders: Sequence[str]) -> dict[str, str]:
    """Returns the files, those below each of these folders as one digest of that folder."""
    found = dict[str, str]()
    inside: dict[str, list[tuple[str, str]]] = {}
    for place, digest in files.items():
        folder = next((one for one in folders if one == EVERYTHING or place.startswith(one)), None)
        if folder is None:
            found[place] = digest
        else:
            inside.setdefault(folder, []).append((place, digest))
    for folder, below in inside.items():
        found[folder] = hashlib.sha256(orjson.dumps(sorted(below))).hexdigest()[:16]
    return found


def counted(folder: Path, *, follow: bool, besides: Path | None = None, writes: Sequence[str] = ()) -> Iterator[Entry]:
    """Yields every file below a folder that counts.

    With `follow` a link to a folder counts by where it leads, and what lies there too where that is outside.
    """
    root, waiting, seen = folder.resolve(), [("", folder)], set[Path]()
    while waiting:
        inside, place = waiting.pop()
        for path in _listed(place):
            name, linked = f"{inside}{path.name}", path.is_symlink()
            if is_written(name, writes):
                continue
            if os.path.isfile(path) and not file_left_out(path):
                yield name, path
            elif os.path.isdir(path) and not _folder_left_out(path, besides) and (follow or not linked):
                if linked:
                    yield name, path
                    if (target := path.resolve()) in seen or target.is_relative_to(root) or root.is_relative_to(target):
                        continue
                    seen.add(target)
                waiting.append((f"{name}/", path))


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):  # gone meanwhile, or not ours to read: then no member reads it either
        return sorted(folder.iterdir())
    return []


def _folder_left_out(path: Path, besides: Path | None) -> bool:
    return path.name in FOLDERS_LEFT_OUT or (besides is not None and path.resolve() == besides) or _is_run_folder(path)


def _is_run_folder(path: Path) -> bool:
    """Tells whether a trial wrote a folder, or has begun to: its facts, or its history, empty or with an event."""
    with suppress(OSError, ValueError, AttributeError):
        return bool({"schema", "kafka_trial"} <= orjson.loads((path / "run.json").read_bytes()).keys())
    with suppress(OSError, ValueError, AttributeError), (path / "history" / "run.jsonl").open("rb") as lines:
        first = lines.readline()
        return not first or from_line(first).source == "run"
    return False


def file_left_out(path: Path) -> bool:
    """Tells whether a file is left out, whoever's it is: by its name, or because Kafka Trial wrote it."""
    if any(fnmatchcase(path.name, pattern) for pattern in FILES_LEFT_OUT):
        return True
    known = [marks for name, marks in OUR_FILES if name == path.name]
    if not known:
        return False
    with suppress(OSError):
        content = path.read_bytes()
        return any(all(mark in content for mark in marks) for marks in known)
    return False
