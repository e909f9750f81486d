"""Zombie excuses: which handlings of a record lie in the zombie window of their ownership epoch (`zombies.py`).

What it holds at the end of the window the member may finish, and else whatever it had fetched by then; a record fetched
later is never excused, nor is one that it began after it had said itself, or heard, where at most once is claimed, that
the commit which covers it was refused (`work_after_failed_commit.py`). No plain consumer can prevent the rest: inside
the window overlap and reordering are excused.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.client_attribution import alone
from kafka_trial.invariants.kernels import NEVER, NONE, Array, Bools, Ints, at_or_after, joined, picked
from kafka_trial.invariants.ownership_epochs import own_words, ownership_epochs
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TOLERANCE_NS
from kafka_trial.invariants.work_after_failed_commit import first_start_after_rejected_commit
from kafka_trial.invariants.zombies import zombie_windows


def excused(batch: Batch, epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each handling of a record lies in the zombie window of its ownership epoch (-1: of none)."""
    windows = zombie_windows(batch)
    loss_ns, until_ns = (
        picked(windows[name], epochs, start) for name, start in (("loss_ns", NEVER), ("until_ns", NONE))
    )
    inside: Bools = (loss_ns != NEVER) & (time_ns >= loss_ns - TOLERANCE_NS) & (time_ns <= until_ns)
    _, refused_ns = first_start_after_rejected_commit(batch, epochs, offsets)
    knowing = fetched_though_told(batch, epochs, offsets, time_ns) | (time_ns >= refused_ns)
    return inside & ~knowing


def fetched_though_told(batch: Batch, epochs: Array, offsets: Array, time_ns: Array) -> Bools:
    """Returns whether each record was fetched after its ownership epoch's member had been told that it was lost."""
    windows = zombie_windows(batch)
    fetched, told_ns = (picked(windows[name], epochs, NEVER) for name in ("fetched", "told_ns"))
    later: Bools = (offsets >= fetched) & (time_ns > told_ns)
    return later


def doubted(batch: Batch, epochs: Array, time_ns: Array) -> Bools:
    """Returns whether each moment is one at which nobody can tell what the member knew and had fetched.

    It was told, or said itself that a commit of its had failed, and the request log holds no fetches of it.
    """
    windows = zombie_windows(batch)
    heard_ns = np.minimum(windows["told_ns"], _said_to_fail_ns(batch, windows["loss_ns"]))
    unknown = ~windows["fetches_known"] & (heard_ns < ownership_epochs(batch)["close_ns"])
    after_ns = picked(np.where(unknown, heard_ns, NEVER), epochs, NEVER)
    doubtful: Bools = batch.earliest(time_ns) > np.minimum(after_ns, NEVER - TOLERANCE_NS) + TOLERANCE_NS
    return doubtful


def _said_to_fail_ns(batch: Batch, after_ns: Ints) -> Ints:
    """Returns the time of the first line after each moment in which the ownership epoch's member, while it held it,
    said that a commit had failed: of the partition, or of nothing in particular; NEVER where there is none."""
    held = ownership_epochs(batch)
    own = own_words(batch).take(own_words(batch)["kind"] == Kind.COMMIT_FAIL)
    of_file = np.array(batch.trial_context.refusals, np.int64).reshape(-1, 3)
    after = np.minimum(after_ns, NEVER - 1) + 1
    by_slice = own.only("slice", "source", "client", "seq", "time_ns")
    by_slice = by_slice.sorted_by("slice", "source", "client", "time_ns")
    group, wanted = _files(by_slice, held)
    first = at_or_after(group, by_slice["time_ns"], wanted, after)
    seq, time = picked(by_slice["seq"], first, NEVER), picked(by_slice["time_ns"], first, NEVER)
    unlisted = of_file[np.lexsort((of_file[:, 2], of_file[:, 0]))]
    general = at_or_after(unlisted[:, 0], unlisted[:, 2], held["source"], after)
    general = np.where(alone(batch, held), general, -1)  # of several clients nobody knows whose it was
    general_seq, general_ns = picked(unlisted[:, 1], general, NEVER), picked(unlisted[:, 2], general, NEVER)
    earlier = general_seq < seq
    seq, time = np.where(earlier, general_seq, seq), np.where(earlier, general_ns, time)
    inside = seq < held["close_seq"]
    return np.where(inside, time, NEVER)


def _files(rows: Table, held: Table) -> tuple[Ints, Ints]:
    both = joined(*(np.concatenate([rows[name], held[name]]) for name in ("slice", "source", "client")))
    return both[: len(rows)], both[len(rows) :]
