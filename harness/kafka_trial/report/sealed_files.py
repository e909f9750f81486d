"""Files that say what they rest on (certificates, records of upgrades): written whole, read back, and their run folders
with the SHA-256 of every file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.errors import InputError
from kafka_trial.history.store import GROUPS

REMADE = "cache"  # of a run folder: made again from the history


def write_whole(file: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    temporary = file.with_name(f".{file.name}.part")
    temporary.write_bytes(content)
    temporary.replace(file)


def write_table(file: Path, table: Mapping[str, Any]) -> None:
    """Writes plain data as JSON that people can read, whole or not at all."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    write_whole(file, orjson.dumps(table, option=options))


def read_table(file: Path, *, name: str, schema: int) -> Any:
    """Returns what a file holds; `name` is what such a file is called, `schema` the newest that is read.

    Raises:
        InputError: it cannot be read, is not JSON, or is of a newer schema.
    """
    try:
        table = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InputError(str(file), f"cannot be read ({error.strerror}): name a {name}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(str(file), f"is not JSON ({error}): it was truncated or edited") from error
    if isinstance(table, dict) and isinstance(table.get("schema"), int) and table["schema"] > schema:
        raise InputError(str(file), f"has schema {table['schema']}, this version reads up to {schema}")
    return table


def file_digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of a run folder, by its place inside; not of what can be made again."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    inside = ((file, file.relative_to(folder)) for file in files)
    return {place.as_posix(): _digest(file) for file, place in inside if not _is_remade(place)}


def _is_remade(place: Path) -> bool:
    """Tells whether a file of a run folder, or of one of its further groups, is made again from a history."""
    inside = place.parts[2:] if place.parts[0] == GROUPS else place.parts
    return inside[:1] == (REMADE,)


def changed_files(root: Path, run: str, files: Mapping[str, str]) -> list[str]:
    """Returns what is no longer as it was sealed, a sentence for each file of a run folder; empty where all is.

    `run`: where it is below `root`; `files`: the SHA-256 that each file had.
    """
    folder = root / run
    if not folder.resolve().is_relative_to(root.resolve()):
        return [f"{run} is no place beside the file that names it"]
    if not folder.is_dir():
        return [f"{run} is missing"]
    now = file_digests(folder)
    changed = [name for name in sorted({*now, *files}) if now.get(name) != files.get(name)]
    became = {
        name: "is missing" if name not in now else "was changed" if name in files else "was added" for name in changed
    }
    return [f"{run}/{name} {what}" for name, what in became.items()]


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
