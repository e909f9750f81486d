"""Which files below a folder count for what it is: every one, of any size, but those that do not make it another.

Left out are:

- what Kafka Trial writes: run folders, certificates, records of upgrades, matrices of cuts (known by their content, not
  by their names), and the `--out` of the command that asks;
- version control, caches of tools, logs, files of process ids;
- what a consumer itself writes as it works: what `writes` names in its consumer.toml.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import orjson

from kafka_trial.consumers.spec import is_written
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
