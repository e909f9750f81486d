"""Packed run folders: what was asked and what was seen, in one compressed file; what can be made again is left out.

Times, owners and modes are left out too, and where the consumer lay on the machine of the trial: the same history packs
to the same bytes.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

import orjson

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder, open_run_folder

SUFFIX = ".tar.xz"
FACTS = "run.json"
ASKED = ("scenario.json", "schedule.json", "consumer.toml")


def pack(folder: RunFolder, file: Path) -> None:
    """Packs the trial's spec and the history of a run folder; whole or not at all.

    Raises:
        InputError: its facts are missing or damaged.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.part")
    asked = [place for name in ASKED if (place := folder.path / name).exists()]
    with tarfile.open(temporary, "w:xz") as archive:
        _add(archive, FACTS, _facts(folder))
        for place in (*asked, *folder.history_files()):
            _add(archive, str(place.relative_to(folder.path)), place.read_bytes())
    temporary.replace(file)


def unpack(file: Path, into: Path) -> RunFolder:
    """Unpacks a run folder into `into`, a new or empty folder.

    Raises:
        InputError: the file is no packed run folder, or is damaged.
    """
    try:
        with lzma.open(file) as whole, tarfile.open(fileobj=whole) as archive:
            archive.extractall(into, filter="data")
            whole.read()  # to its very end, where its checksums are
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise InputError(str(file), f"is no packed run folder: {error}") from error
    return open_run_folder(into)


def _facts(folder: RunFolder) -> bytes:
    facts = folder.read_json(FACTS)
    if "consumer_file" in facts:
        facts["consumer_file"] = "/".join(Path(facts["consumer_file"]).parts[-2:])
    return orjson.dumps(facts, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
