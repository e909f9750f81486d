"""An upgrade with more consumers than a machine carries side by side: in batches, each on a cluster of its own.

Every batch goes through all stages, has a folder of its own, and a record there. The record of the whole has the rows
of all of them; what the cluster lost in a stage counts whichever batch it was in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kafka_trial.errors import UnjudgeableError
from kafka_trial.trial.console import Console
from kafka_trial.upgrade.make_record import make_record
from kafka_trial.upgrade.plan import make_plan
from kafka_trial.upgrade.record import RecordedStage, UpgradeRecord
from kafka_trial.upgrade.record_page import write_upgrade
from kafka_trial.upgrade.rehearsal import NO_ROOM, Rehearsal, rehearse
from kafka_trial.upgrade.request import UpgradeRequest

CONSUMERS_PER_CORE: Final = 2  # each has three members or so, and 100 records a second


def consumers_per_cluster() -> int:
    """Returns how many consumers this machine carries side by side."""
    return CONSUMERS_PER_CORE * len(os.sched_getaffinity(0))


def in_batches(request: UpgradeRequest, per_cluster: int) -> Iterator[UpgradeRequest]:
    """Yields requests of at most so many consumers each, nearly equally many; a single one keeps its folder."""
    names = list(request.specs)
    count = -(-len(names) // per_cluster)
    for number in range(count):
        own = names[number * len(names) // count : (number + 1) * len(names) // count]
        out = request.out / f"batch-{number + 1}" if count > 1 else request.out
        yield replace(request, specs={name: request.specs[name] for name in own}, out=out)


def rehearse_all(request: UpgradeRequest, *, per_cluster: int, console: Console) -> UpgradeRecord:
    """Rehearses an upgrade with at most so many consumers on one cluster; returns the record, which is written also
    where this raises.

    Raises:
        StartError: a cluster or a trial could not be begun.
        UnjudgeableError: no stage could be played, or the record cannot be written.
        Interrupted: by Ctrl-C or SIGTERM, after all was ended.
    """
    plan, requests = make_plan(request), list(in_batches(request, per_cluster))
    rehearsals = [Rehearsal(one, plan.names) for one in requests]
    try:
        for number, rehearsal in enumerate(rehearsals, 1):
            if len(rehearsals) > 1:
                console.say(f"batch {number} of {len(rehearsals)}: {', '.join(rehearsal.request.specs)}")
            try:
                rehearse(rehearsal, plan, console)
            finally:
                if rehearsal.played:
                    record = make_record(rehearsal)
                    _write(record, rehearsal.request.out)
    finally:
        played = any(rehearsal.played for rehearsal in rehearsals)
        if played and len(rehearsals) > 1:
            folders = [one.out.relative_to(request.out).as_posix() for one in requests]
            record = combined([make_record(rehearsal) for rehearsal in rehearsals], folders)
            _write(record, request.out)
    if not played:
        raise UnjudgeableError(f"no stage could be played: {rehearsals[0].ended_early}")
    return record


def _write(record: UpgradeRecord, out: Path) -> None:
    try:
        write_upgrade(record, out)
    except OSError as error:
        message = f"the record in {out} cannot be written: {error}; {NO_ROOM}"
        raise UnjudgeableError(message) from error


def combined(records: Sequence[UpgradeRecord], folders: Sequence[str]) -> UpgradeRecord:
    """Returns the record of all batches: `folders` are theirs, relative to its own. Only theirs
    say when brokers were restarted."""
    first, lasted_s = records[0], [record.lasted_s for record in records]
    rows = [
        replace(row, run=f"{folder}/{row.run}") if row.run else row
        for record, folder in zip(records, folders, strict=True)
        for row in record.rows
    ]
    return replace(
        first,
        consumers=[consumer for record in records for consumer in record.consumers],
        stages=[_of_all(same) for same in zip(*(record.stages for record in records), strict=True)],
        outcomes=rows,
        not_tried=list(dict.fromkeys(one for record in records for one in record.not_tried)),
        to_change=list(dict.fromkeys(one for record in records for one in record.to_change)),
        brokers=[],
        lasted_s=sum(seconds for seconds in lasted_s if seconds) if any(lasted_s) else None,
        batches=list(folders),
    )


def _of_all(same: Sequence[RecordedStage]) -> RecordedStage:
    """Returns a stage of all batches: not played to its end where one of them did not come there."""
    took = [stage.lasted_s for stage in same]
    lasted_s = None if None in took else round(sum(one for one in took if one is not None), 1)
    losses = [loss for stage in same for loss in stage.losses]
    return replace(same[0], began_s=None, lasted_s=lasted_s, rolls=(), losses=losses)
