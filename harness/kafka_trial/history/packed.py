"""Packed run folders: what was asked and what was seen, in one compressed file; what can be made again is left out.

Times, owners and modes are left out too: the same history packs to the same bytes.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

from kafka_trial.errors import InputError
from kafka_trial.history.store import RunFolder, open_run_folder

SUFFIX = ".tar.xz"
ASKED = ("run.json", "scenario.json", "schedule.json", "consumer.toml")


def pack(folder: RunFolder, file: Path) -> None:
    """Packs the question and the history of a run folder; whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.part")
    asked = [place for name in ASKED if (place := folder.path / name).exists()]
    with tarfile.open(temporary, "w:xz") as archive:
        for place in (*asked, *folder.history_files()):
            archive.add(place, str(place.relative_to(folder.path)), filter=_bare)
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


def _bare(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.mode = 0, 0o644
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
