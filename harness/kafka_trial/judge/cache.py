"""The cache of a run folder: slice rows and line index as Parquet, and the trial context, made from the history.

JSONL is the truth: the cache is used only while every history file has the size and checksum it was made from, and can
be deleted at any time. Earlier outputs in the folder are never read. Slice rows
lie in runs, each sorted by slice; the trial context is kept as plain data.
"""

from __future__ import annotations

import atexit
import errno
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.history.consequences import Consequence
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.arrow_rows import ROWS
from kafka_trial.judge.history_defects import missing_files
from kafka_trial.judge.history_reader import ReadFile, read_history
from kafka_trial.judge.line_index import LineIndex, LineIndexBuilder, index_of, read_index
from kafka_trial.judge.lines import SPLIT_BYTES, read_blocks
from kafka_trial.model.group_timeouts import DeclaredTimeouts
from kafka_trial.model.trial_context import (
    AbortLine,
    Connection,
    CpuWait,
    Epoch,
    FailOver,
    GroupAnswer,
    HeartbeatRun,
    Incarnation,
    IntermediateTopic,
    LostEvents,
    Membership,
    MemberSpan,
    MirrorStart,
    OomRise,
    OpenTransaction,
    OwnClient,
    Peak,
    PositionProducer,
    PrintedLines,
    Settings,
    SlowAnswer,
    TrialContext,
    Window,
)

CACHE_SCHEMA = 32
ROW_GROUP, SORTED_RUN = 32_768, 524_288  # rows: what a reader passes over as one, and what is sorted at once
BY_NUMBER = ("lanes", "opening_burst")  # JSON knows no numbers as keys
ROWS_FILE, LINES, CONTEXT = "rows.parquet", "lines.parquet", "trial_context.json"
NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)  # to write into: of somebody else, or mounted to be read
_CHECKSUMS: dict[tuple[Any, ...], list[int]] = {}  # of files that this process has read, by what they were then


@dataclass(frozen=True)
class SliceRows:
    """Where the slice rows of a history lie, how many each slice has, and what belongs to them."""

    path: Path
    by_slice: Mapping[int, int]
    trial_context: TrialContext
    defects: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(self.by_slice.values())


def slice_rows(folder: RunFolder) -> SliceRows:
    """Returns the slice rows of a run folder, from the cache if it fits the history, else made anew.

    A folder that cannot be written gets its cache in a new temporary folder, for as long as this process lives.
    """
    files = folder.history_files()
    known = cached_rows(folder)
    if known is not None:
        return known
    try:
        if folder.cache.exists():
            shutil.rmtree(folder.cache)
        folder.cache.mkdir(parents=True)
    except OSError as error:
        if error.errno not in NOT_OURS:
            raise
        place = Path(tempfile.mkdtemp(prefix="kafka-trial-cache-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        return make_cache(place, files)
    return make_cache(folder.cache, files)


def line_index(folder: RunFolder) -> LineIndex:
    """Returns where the lines of a run folder's history lie, from the cache if it fits, else read anew.

    Raises:
        InputError: an event is of a newer schema.
    """
    if cached_rows(folder) is None:
        return index_of(folder.history_files())
    return read_index(folder.cache / LINES, folder.history)


def _digest(files: list[Path]) -> dict[str, list[int]]:
    """Returns the size of each file, and the checksums of its splits."""
    return {path.name: [path.stat().st_size, *_checksums_of(path)] for path in files}


def _checksums_of(path: Path) -> list[int]:
    """Returns the checksums of a file, known already where this process has read it as it is now."""
    now = _state(path)
    if now not in _CHECKSUMS:
        with path.open("rb") as file:
            _CHECKSUMS[now] = [zlib.crc32(split) for split in iter(lambda: file.read(SPLIT_BYTES), b"")]
    return _CHECKSUMS[now]


def _state(path: Path) -> tuple[Any, ...]:
    status = path.stat()
    return path.absolute(), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def know_checksums(folder: RunFolder, checksums: Mapping[str, Sequence[int]]) -> None:
    """Notes what another process has read: the checksums of the splits of each history file, as it is now."""
    _CHECKSUMS.update({_state(folder.history / name): list(its) for name, its in checksums.items()})


def cached_rows(folder: RunFolder) -> SliceRows | None:
    """Returns the cache, or None where there is none, or it was made from something else, or cut off."""
    rows = folder.cache / ROWS_FILE
    try:
        plain = orjson.loads((folder.cache / CONTEXT).read_bytes())
        fits = plain["schema"] == CACHE_SCHEMA and plain["made_from"] == _digest(folder.history_files())
        by_slice = dict(plain["rows"])
        pq.ParquetFile(folder.cache / LINES)  # cut off, it cannot be opened
        if not fits or pq.ParquetFile(rows).metadata.num_rows != sum(by_slice.values()):
            return None
        return SliceRows(rows, by_slice, from_plain(plain["trial_context"]), tuple(plain["defects"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # deleted, cut off, or by another version: it is only a cache


def make_cache(place: Path, files: Sequence[Path], *, read: ReadFile = read_blocks) -> SliceRows:
    """Makes the cache of some history files in a folder; `read` is what reads one.

    Raises:
        InputError: an event is of a newer schema.
    """
    rows, states, lines = place / ROWS_FILE, {path.name: _state(path) for path in files}, LineIndexBuilder()
    with _RowsWriter(rows) as writer:
        builder = read_history(files, writer.take, lines, read=read)
    lines.write(place / LINES)
    _CHECKSUMS.update({states[name]: checksums for name, (_, *checksums) in lines.made_from.items()})
    trial_context = builder.trial_context(Settings())
    defects = [*builder.defects, *missing_files(trial_context, builder.brokers)]
    plain: dict[str, Any] = {
        "schema": CACHE_SCHEMA,
        "made_from": lines.made_from,
        "rows": sorted(writer.by_slice.items()),
        "trial_context": to_plain(trial_context),
        "defects": defects,
    }
    temporary = place / ".trial_context.json.part"
    temporary.write_bytes(orjson.dumps(plain))
    temporary.replace(place / CONTEXT)  # last: it says that all is there
    pa.default_memory_pool().release_unused()
    return SliceRows(rows, dict(writer.by_slice), trial_context, tuple(defects))


class _RowsWriter:
    """Writes slice rows in runs that are sorted by slice, and counts those of each slice."""

    def __init__(self, place: Path) -> None:
        self.by_slice: Counter[int] = Counter()
        self._writer = pq.ParquetWriter(
            place, ROWS, compression="snappy", use_dictionary=["key"], write_statistics=["slice"]
        )
        self._waiting: list[pa.Table] = []

    def take(self, rows: pa.Table) -> None:
        """Takes the next rows of the history."""
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= SORTED_RUN:
            self._write()

    def _write(self) -> None:
        rows = pa.concat_tables(self._waiting)
        self._waiting = []
        slices = rows["slice"].to_numpy()
        numbers, counts = np.unique(slices, return_counts=True)
        self.by_slice.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        self._writer.write_table(rows.take(np.argsort(slices, kind="stable")), row_group_size=ROW_GROUP)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            self._write()
        self._writer.close()


def to_plain(trial_context: TrialContext) -> dict[str, Any]:
    """Returns the trial context as what orjson writes, for the cache."""
    plain = {one.name: getattr(trial_context, one.name) for one in fields(trial_context)}
    return plain | {name: sorted(plain[name].items()) for name in BY_NUMBER}


def _window(plain: Mapping[str, Any]) -> Window:
    return Window(**{**plain, "consequences": tuple(map(Consequence, plain["consequences"]))})


def _incarnation(plain: Mapping[str, Any]) -> Incarnation:
    lists = {name: tuple(plain[name]) for name in ("given_back", "held")}
    return Incarnation(**{**plain, **lists})


def from_plain(plain: Mapping[str, Any]) -> TrialContext:
    """Returns the trial context that `to_plain` wrote."""
    return TrialContext(
        **dict(plain)
        | {
            "slices": tuple((topic, partition) for topic, partition in plain["slices"]),
            "incarnations": tuple(map(_incarnation, plain["incarnations"])),
            "windows": tuple(_window(window) for window in plain["windows"]),
            "connections": tuple(Connection(**one) for one in plain["connections"]),
            "slow_answers": tuple(SlowAnswer(**one) for one in plain["slow_answers"]),
            "aborts": tuple(AbortLine(**dict(one) | {"slices": tuple(one["slices"])}) for one in plain["aborts"]),
            "position_producers": tuple(
                PositionProducer(**dict(one) | {"together": tuple(map(tuple, one["together"]))})
                for one in plain["position_producers"]
            ),
            "own_clients": tuple(OwnClient(**one) for one in plain["own_clients"]),
            "memberships": tuple(_membership(one) for one in plain["memberships"]),
            "group_answers": tuple(_group_answer(one) for one in plain["group_answers"]),
            "heartbeat_runs": tuple(HeartbeatRun(**one) for one in plain["heartbeat_runs"]),
            "member_spans": tuple(MemberSpan(**one) for one in plain["member_spans"]),
            "settings": _settings(plain["settings"]),
            "fail_overs": tuple(map(_fail_over, plain["fail_overs"])),
            "declared_timeouts": _declared_timeouts(plain["declared_timeouts"]),
            **{name: dict(plain[name]) for name in BY_NUMBER},
            "lost_events": tuple(LostEvents(**one) for one in plain["lost_events"]),
            "through": tuple(IntermediateTopic(**one) for one in plain["through"]),
            "printed": tuple(PrintedLines(**one) for one in plain["printed"]),
            "peaks": tuple(Peak(**peak) for peak in plain["peaks"]),
            "cpu_waits": tuple(CpuWait(**wait) for wait in plain["cpu_waits"]),
            "oom_rises": tuple(OomRise(**rise) for rise in plain["oom_rises"]),
            "open_transactions": tuple(OpenTransaction(**one) for one in plain["open_transactions"]),
            "epochs": tuple(Epoch(**epoch) for epoch in plain["epochs"]),
            **{
                name: tuple(plain[name])
                for name in (
                    *("sources", "members", "member_ids", "owners", "environment", "topics", "compacted"),
                    *("topic_changes", "fetching", "shared_lanes", "logs", "timed"),
                )
            },
            **{
                name: tuple(map(tuple, plain[name]))
                for name in ("clocks", "delays", "harness_stalls", "readings", "refusals", "false_times")
            },
        }
    )


def _membership(plain: Mapping[str, Any]) -> Membership:
    return Membership(**dict(plain) | {"listed": None if plain["listed"] is None else tuple(plain["listed"])})


def _group_answer(plain: Mapping[str, Any]) -> GroupAnswer:
    listed = {name: None if plain[name] is None else tuple(plain[name]) for name in ("assigned", "owned")}
    return GroupAnswer(**dict(plain) | listed)


def _fail_over(plain: Mapping[str, Any]) -> FailOver:
    return FailOver(**dict(plain) | {"starts": tuple(MirrorStart(**one) for one in plain["starts"])})


def _settings(plain: Mapping[str, Any]) -> Settings:
    return Settings(**dict(plain) | {name: tuple(plain[name]) for name in ("no_effect", "declared")})


def _declared_timeouts(plain: Mapping[str, Any]) -> DeclaredTimeouts:
    told = {name: tuple(map(tuple, plain[name])) for name in ("leaves", "takeovers")}
    told |= {"protocols": tuple(plain["protocols"])}
    return DeclaredTimeouts(**dict(plain) | told)
