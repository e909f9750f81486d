"""The history of one stage: what was seen of a trial up to that stage's snapshot, as a run folder of its own.

A trial through several stages writes one history. At the end of each stage the load is held, the group drains, and the
witnesses read to the end: from then on the judge can be asked. It judges whole trials, each of one drain and one
snapshot, so the stage's history is cut off where its snapshot ended, and says of all phases but those that are the
stage's own whose they were. `faults` is the first of all: what went before it went undisturbed.

Of several control reads of the topic the last one counts, which holds what was there at the snapshot; events are
numbered anew, so that nothing seems to be missing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.history.event import SCHEMA
from kafka_trial.history.store import RunFolder

OF_A_STAGE = ("heal", "drain", "snapshot")
OF_A_CONTROL_READ = ("record", "control_read")
RECORD, CONTROL_READ = (f'"kind":"{kind}"'.encode() for kind in OF_A_CONTROL_READ)
ASKED = ("run.json", "scenario.json", "schedule.json", "consumer.toml", "successor-*.toml")


@dataclass(frozen=True)
class StageEnd:
    """Where a stage ended: its name, when its snapshot was done (monotonic clock), and how many bytes each file of the
    history had by then."""

    stage: str
    time_ns: int
    sizes_bytes: Mapping[str, int]


def stage_end(stage: str, folder: RunFolder) -> StageEnd:
    """Returns the end of a stage whose snapshot has just been taken."""
    return StageEnd(stage, time.monotonic_ns(), {file.name: file.stat().st_size for file in folder.history_files()})


def write_stage(whole: RunFolder, end: StageEnd, place: RunFolder) -> None:
    """Writes the history up to the end of a stage into an empty run folder, with what was asked.

    Raises:
        OSError: the disk refuses.
    """
    for asked in (file for name in ASKED for file in whole.path.glob(name)):
        shutil.copy(asked, place.path / asked.name)
    if whole.payload.exists():
        shutil.copytree(whole.payload, place.payload)
    for name, size in end.sizes_bytes.items():
        text = _whole_lines(whole.history / name, size)
        with (place.history / name).open("xb") as file:
            if name == "run.jsonl":
                lines = text.splitlines(keepends=True)
                file.writelines(_numbered([*_own_phases(lines, end), _end_line(lines, end)]))
            elif name == "observer.jsonl":
                file.writelines(_numbered(_last_read(text.splitlines(keepends=True))))
            else:
                file.write(text)


def _whole_lines(file: Path, size: int) -> bytes:
    """Returns the lines that were whole when the file had so many bytes."""
    with file.open("rb") as history:
        text = history.read(size)
    return text[: text.rfind(b"\n") + 1]


def _own_phases(lines: Sequence[bytes], end: StageEnd) -> Iterator[bytes]:
    """Yields the lines of a run; phases of other stages bear their names."""
    first_faults = True
    for line in lines:
        event = orjson.loads(line)
        if event.get("kind") != "phase":
            yield line
            continue
        stage, phase = event.get("stage"), event["phase"]
        own = stage is None or (stage == end.stage and phase in OF_A_STAGE)
        if phase == "faults":
            own, first_faults = first_faults, False
        yield line if own else _line(event | {"phase": f"{phase} of {stage}"})


def _end_line(lines: Sequence[bytes], end: StageEnd) -> bytes:
    return _line(
        {"schema": SCHEMA, "source": "run", "seq": len(lines), "time_ns": end.time_ns, "kind": "end", "outcome": "ok"}
    )


def _last_read(lines: Sequence[bytes]) -> list[bytes]:
    """Returns the lines of the observer without those of all control reads but the last."""
    reads = [number for number, line in enumerate(lines) if CONTROL_READ in line]
    before = reads[-2] if len(reads) > 1 else -1
    return [
        line for number, line in enumerate(lines) if number > before or not (RECORD in line or CONTROL_READ in line)
    ]


def _numbered(lines: Sequence[bytes]) -> Iterator[bytes]:
    for seq, line in enumerate(lines):
        event = orjson.loads(line)
        yield line if event["seq"] == seq else _line(event | {"seq": seq})


def _line(event: Mapping[str, Any]) -> bytes:
    return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
