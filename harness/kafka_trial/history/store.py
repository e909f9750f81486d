"""The run folder: where one trial's spec, history, logs and judgement lie (its layout is a contract).

`run.json scenario.json consumer.toml consumer/ payload/ schedule.json history/ logs/ cache/ groups/ verdict.json
anomalies.jsonl series.parquet report.txt report.html`. The history is the truth; the rest can be made again from it.
It is read whole, or by a `HistoryTail` while it is being written. Of a trial with a mirror `source/` and `mirror/` are
folders like this one, of which `history/` is made.

A folder can be packed: what was asked and what was seen, in one compressed file; what can be made again is left out.
Times, owners and modes are left out too, and the host of the trial and where the consumer lay on it: the same history
packs to the same bytes.
"""

from __future__ import annotations

import datetime
import fnmatch
import io
import lzma
import os
import secrets
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.errors import InputError, StartError, UnjudgeableError, shown
from kafka_trial.history.event import Event, from_line

RUN_SCHEMA = 1
BLOCK_BYTES = 1 << 16
GROUPS = "groups"  # the folder of the further groups


@dataclass(frozen=True)
class RunFolder:
    """The places inside one run folder."""

    path: Path

    @property
    def history(self) -> Path:
        return self.path / "history"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def member_lanes(self) -> set[int]:
        """Returns the lanes that members were started with; on the others the harness or another group is a client."""
        begun = (first_raw_line(file) or {} for file in self.history.glob("consumer-*.jsonl"))
        lanes = (line.get("lane") for line in begun if line.get("kind") == "started")
        return {lane for lane in lanes if isinstance(lane, int)}

    @property
    def consumer(self) -> Path:
        """Where the files of a consumer lie that is stored as a patch; not there for others."""
        return self.path / "consumer"

    @property
    def payload(self) -> Path:
        """Where the files lie that the records were made of; not there where they were ours."""
        return self.path / "payload"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def groups(self) -> dict[str, RunFolder]:
        """The run folders of the further groups of a trial, by name: each of them holds all that it is judged by."""
        places = sorted((self.path / GROUPS).glob("*/history"))
        return {place.parent.name: RunFolder(place.parent) for place in places}

    def write_json(self, name: str, value: Any) -> None:
        """Writes `<name>` whole or not at all, keys sorted."""
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        temporary = self.path / f".{name}.part"
        temporary.write_bytes(text)
        temporary.replace(self.path / name)

    def read_json(self, name: str) -> Any:
        """Returns the parsed `<name>`.

        Raises:
            InputError: it is missing, not JSON, or of a newer schema.
        """
        return read_json(self.path / name)

    def history_files(self) -> list[Path]:
        """Returns the history's files, sorted by name."""
        return sorted(self.history.glob("*.jsonl"))

    def events(self) -> Iterator[Event]:
        """Yields every readable event, file by file; a torn last line is left out (the judge counts it).

        Raises:
            UnjudgeableError: a line that is not the last of its file is not an event.
        """
        for file in self.history_files():
            yield from _events_of(file)

    def end_told(self) -> str | None:
        """Returns why the trial was cut short, as it told itself: empty when it was not, None when it told no end.

        Raises:
            UnjudgeableError: a line that is not the last of `run.jsonl` is not an event.
        """
        ends = (event for event in _events_of(self.history / "run.jsonl") if event.kind == "end")
        return next((str(event.details.get("message", "")) for event in ends), None)


def create_run_folder(out: Path | None, scenario: str, consumer: str) -> RunFolder:
    """Makes a new run folder: `out` itself, or `./trial-runs/<utc>-<scenario>-<consumer>-<4 hex>`.

    Raises:
        InputError: `out` exists and is not an empty folder.
        StartError: the disk refuses.
    """
    if out is None:
        out = new_place(scenario, consumer)
    else:
        check_out(out, empty=True)
    folder = RunFolder(out.absolute())
    try:
        for place in (folder.history, folder.logs):
            place.mkdir(parents=True)
    except OSError as error:
        raise StartError(f"cannot make the run folder {out}: {error.strerror}; free space or choose --out") from error
    return folder


def new_place(scenario: str, consumer: str) -> Path:
    """Returns `./trial-runs/<utc>-<scenario>-<consumer>-<4 hex>`, where nothing is yet."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("trial-runs") / f"{stamp}-{scenario}-{consumer}-{secrets.token_hex(2)}"


def check_out(out: Path, *, empty: bool = False) -> None:
    """Makes sure that files can be written in a folder, which need not be there yet; `empty`: nothing may be in it.

    Raises:
        InputError: they cannot, or it is no folder, or something is in it.
    """
    try:
        if out.exists() and empty and (not out.is_dir() or any(out.iterdir())):
            raise InputError(str(out), "exists already and a history is never overwritten; name an empty or new folder")
        if out.is_symlink() and not out.exists():
            raise InputError(str(out), "is a link that leads nowhere; name a folder, or a new one")
        there = next(place for place in (out, *out.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        remedy = "name a folder that can be written, or a new one in such a folder"
        raise InputError(str(out), f"cannot be written: {error.strerror}; {remedy}") from error


def open_run_folder(path: Path) -> RunFolder:
    """Returns an existing run folder.

    Raises:
        InputError: there is no run folder there, or it is of a newer schema.
    """
    folder = RunFolder(path.absolute())
    if not folder.history.is_dir():
        raise InputError(str(path), "is not a run folder: it has no history/ inside; name a folder that `run` made")
    with suppress(OSError, orjson.JSONDecodeError):  # without whole facts the history can be judged all the same
        metadata = folder.path / "run.json"
        _refuse_newer(metadata, orjson.loads(metadata.read_bytes()))
    return folder


def read_json(path: Path) -> Any:
    """Returns the parsed JSON file.

    Raises:
        InputError: it is missing, cannot be read, is no JSON object, or of a newer schema.
    """
    try:
        value = orjson.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(str(path), "does not exist. Check the path; without it a run folder is incomplete") from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}. Check the path and the rights on it") from error
    except orjson.JSONDecodeError as error:
        raise InputError(str(path), f"is not JSON ({error}): it was truncated or edited") from error
    if not isinstance(value, dict):
        raise InputError(str(path), "holds no JSON object: it was edited, or is another file")
    _refuse_newer(path, value)
    return value


def _refuse_newer(path: Path, value: Any) -> None:
    schema = value.get("schema", RUN_SCHEMA) if isinstance(value, dict) else RUN_SCHEMA
    if not isinstance(schema, int):
        raise InputError(str(path), f"has schema {shown(schema)}, which is no number: it was edited")
    if schema > RUN_SCHEMA:
        raise InputError(str(path), f"has schema {schema}, this version reads up to {RUN_SCHEMA}; upgrade kafka-trial")


def _events_of(file: Path) -> Iterator[Event]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return  # a torn last line: its writer was killed in mid-write
            try:
                yield from_line(line)
            except ValueError as error:
                raise UnjudgeableError(f"{file.name}, line {number} is not an event: {error}") from error


def raw_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the lines of a history's file as they were written; a torn last line is left out, as is all of a file that
    is not there."""
    if file.exists():
        text = file.read_bytes()
        yield from map(orjson.loads, text[: text.rfind(b"\n") + 1].splitlines())


def first_raw_line(file: Path) -> dict[str, Any] | None:
    """Returns the first line of a history's file as it was written; None: it is not whole, or damaged, or there is no
    file."""
    with suppress(FileNotFoundError, orjson.JSONDecodeError), file.open("rb") as history:
        line = history.readline()
        told = orjson.loads(line) if line.endswith(b"\n") else None
        return told if isinstance(told, dict) else None
    return None


def lines_newest_first(file: Path) -> Iterator[bytes]:
    """Yields the lines of a history's file, the last one first, without their ends; of the file no more is read than is
    asked for. A torn last line is left out, as is all of a file that is not there."""
    if not file.exists():
        return
    with file.open("rb") as history:
        end, torn, rest = history.seek(0, os.SEEK_END), True, b""
        while end > 0:
            begin = max(0, end - BLOCK_BYTES)
            history.seek(begin)
            rest, *lines = (history.read(end - begin) + rest).split(b"\n")
            if lines and torn:  # what follows the last end
                lines.pop()
                torn = False
            yield from reversed(lines)
            end = begin
    if not torn:
        yield rest


class HistoryTail:
    """Yields the events that were appended to the files matching one of `patterns` since the last look: those of the
    first pattern first."""

    def __init__(self, folder: Path, *patterns: str) -> None:
        self._folder = str(folder)
        self._patterns = patterns
        self._places: dict[str, int] = {}  # by name: up to where a file has been read

    def new_events(self) -> Iterator[Event]:
        """Yields each new event once; a line still being written waits for the next look.

        A trial looks many times a second, at files of which most have nothing new, and the others little.
        """
        for name in self._names():
            path, place = f"{self._folder}/{name}", self._places.get(name, 0)
            size = os.stat(path).st_size
            if size <= place:
                continue
            *lines, _ = _read(path, place, size).split(b"\n")  # what follows the last end is still being written
            for line in lines:
                place += len(line) + 1
                self._places[name] = place
                yield from_line(line)

    def _names(self) -> list[str]:
        try:
            there = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [name for pattern in self._patterns for name in sorted(fnmatch.filter(there, pattern))]


def _read(path: str, begin: int, end: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)  # a file object costs more
    try:
        return os.pread(descriptor, end - begin, begin)
    finally:
        os.close(descriptor)


SUFFIX = ".tar.xz"
RUN_METADATA = "run.json"
ASKED = ("scenario.json", "schedule.json", "consumer.toml")


def pack(folder: RunFolder, file: Path) -> None:
    """Packs the trial's spec and the history of a run folder, and of its groups; whole or not at all.

    Raises:
        InputError: its facts are missing or damaged.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.part")
    with tarfile.open(temporary, "w:xz") as archive:
        for one in (folder, *folder.groups.values()):
            asked = [place for name in ASKED if (place := one.path / name).exists()]
            _add(archive, str((one.path / RUN_METADATA).relative_to(folder.path)), _run_metadata(one))
            for place in (*asked, *one.history_files()):
                _add(archive, str(place.relative_to(folder.path)), place.read_bytes())
    temporary.replace(file)


def unpack(file: Path, into: Path) -> RunFolder:
    """Unpacks a run folder into `into`, a new or empty folder.

    Raises:
        InputError: the file is no packed run folder, or is damaged.
    """
    try:
        with lzma.open(file) as whole, tarfile.open(fileobj=whole) as archive:
            for member in archive:
                _extract(archive, member, into)
            whole.read()  # to its very end, where its checksums are
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise InputError(str(file), f"is no packed run folder: {error}") from error
    return open_run_folder(into)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Writes one file of an archive below a folder. Before Python 3.11.4 `tarfile` cannot refuse others itself."""
    place, content = into / member.name, archive.extractfile(member) if member.isfile() else None
    if content is None or ".." in Path(member.name).parts or not place.is_relative_to(into):
        raise tarfile.ExtractError(f"it holds {member.name!r:.100}, which is no file below it")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.read())


def _run_metadata(folder: RunFolder) -> bytes:
    metadata = folder.read_json(RUN_METADATA)
    metadata.pop("host", None)
    if "consumer_file" in metadata:
        metadata["consumer_file"] = "/".join(Path(metadata["consumer_file"]).parts[-2:])
    return orjson.dumps(metadata, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
