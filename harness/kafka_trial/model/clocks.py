"""Clocks: how late a line may have been read, and by which of its times it counts (`wall_clock.py`: of brokers)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.families import LINES
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools, Ints, at_or_after
from kafka_trial.model.rows import LINE_KINDS, Kind
from kafka_trial.model.trial_context import TOLERANCE_NS

if TYPE_CHECKING:
    from kafka_trial.model.table import Table
    from kafka_trial.model.trial_context import TrialContext

CLOCKS_NS = 10_000_000  # between the wall clock of brokers, told in milliseconds, and the harness's clock
PROBED_EVERY_NS = 25_000_000  # a line may have been written just after a stamp of the probe was
MEASURED_WITHIN_NS = 3_000_000_000  # one measure of a reader comes a second after the other


def earliest(trial_context: TrialContext, read_ns: Ints) -> Ints:
    """Returns when each event may have happened at the earliest; NEVER and NONE stay as they are.

    While the harness stood still it read nothing, and what was said meanwhile bears the time at which it woke, or one
    soon after it.
    """
    if not trial_context.harness_stalls:
        return read_ns
    begins, ends = np.array(trial_context.harness_stalls, np.int64).T
    place = np.searchsorted(begins, read_ns, side="right") - 1
    inside = (place >= 0) & (read_ns <= at_latest(ends[place])) & (read_ns != NEVER) & (read_ns != NONE)
    return np.where(inside, begins[place], read_ns)


def uncertainty(trial_context: TrialContext, sources: Array, time_ns: Ints) -> Ints:
    """Returns how long before it was read each line may have been written; `sources` are numbers, -1 none.

    As was measured of its reader around that time, never more than half a second, and that where nothing was measured.
    What reached the HTTP sink is exact: it is recorded before it is answered. Lines that are not flushed one by one,
    and bear no time of their own, may have been written at any time before. Beyond half a second `earliest` counts.
    """
    timed = _member(_among(trial_context, trial_context.timed), sources)
    late_ns = _read_late(trial_context, sources, time_ns, timed=timed)
    return np.where((time_ns != NEVER) & untimed(trial_context, sources), np.maximum(time_ns, 0), late_ns)


def earliest_append_ns(trial_context: TrialContext, sources: Array, time_ns: Ints) -> Ints:
    """Returns the earliest time of what its broker stamped: nobody read that late, only the clocks may differ."""
    unsure_ns = _read_late(trial_context, sources, time_ns, timed=np.ones(len(time_ns), np.bool_))
    earliest_ns: Ints = time_ns - unsure_ns
    return earliest_ns


def untimed(trial_context: TrialContext, sources: Array) -> Bools:
    """Returns whether each line is of a member that prints when its buffer is full, and not when it was itself."""
    if trial_context.settings.stdout != "buffered":
        return np.zeros(len(sources), np.bool_)
    timed = _among(trial_context, trial_context.timed)
    named = zip(trial_context.sources, timed, strict=True)
    return _member([name.startswith("consumer-") and not own for name, own in named], sources)


def own_times(trial_context: TrialContext, rows: Table) -> Table:
    """Returns physical rows with each line of a member at the time that it bears itself, where all of its file do.

    A line that was flushed was written when it was read, but for the time it waited: earlier than that it is not taken
    to be, whatever it says. Work that came out of a buffer, and bears no time, may have been done as soon as the lines
    before had been read.
    """
    own = np.isin(rows["kind"], LINE_KINDS) & _member(_among(trial_context, trial_context.timed), rows["source"])
    buffered = np.isin(rows["kind"], (Kind.DELIVERED, Kind.PROCESSED)) & untimed(trial_context, rows["source"])
    if buffered.any():
        rows = rows.having(time_ns=np.where(buffered, LINES.read(rows)["read_before_ns"], rows["time_ns"]))
    if not own.any():
        return rows
    own_ns, read_ns, sources = (LINES.read(rows)[name][own] for name in ("own_ns", "time_ns", "source"))
    time_ns = rows["time_ns"].copy()
    time_ns[own] = line_times(trial_context, sources, own_ns, read_ns)
    return rows.having(time_ns=time_ns)


def line_times(trial_context: TrialContext, sources: Array, own_ns: Ints, read_ns: Ints) -> Ints:
    """Returns when lines of members were: by the times that they bear, where all lines of their file do; else when they
    were read."""
    if trial_context.settings.stdout != "buffered":
        own_ns = np.maximum(own_ns, read_ns - _read_late(trial_context, sources, read_ns))
    timed = _member(_among(trial_context, trial_context.timed), sources)
    return np.where(timed, np.minimum(own_ns, read_ns), read_ns)


def _read_late(trial_context: TrialContext, sources: Array, time_ns: Ints, *, timed: Bools | bool = False) -> Ints:
    """Returns how long each line may have waited to be read; of one that is `timed` only its clock is unsure."""
    if not trial_context.readings:
        return np.full(len(time_ns), TOLERANCE_NS, np.int64)
    waited = np.where(timed, 0, _waited(trial_context, sources, time_ns))
    return np.minimum(waited + CLOCKS_NS + _apart(trial_context, time_ns), TOLERANCE_NS)


def _waited(trial_context: TrialContext, sources: Array, time_ns: Ints) -> Ints:
    """Returns the longest that any line waited by the measures of its reader just before, at and after each time."""
    names, places = np.unique([reader for reader, _, _ in trial_context.readings], return_inverse=True)
    at_ns, delay_ns = (np.array(column, np.int64) for column in list(zip(*trial_context.readings, strict=True))[1:])
    numbers = {str(name): number for number, name in enumerate(names)}
    readers = _member([numbers.get(source, -1) for source in trial_context.sources], sources, -1)
    after = at_or_after(places, at_ns, readers, time_ns)
    measured = (after >= 0) & (at_ns[after] - time_ns <= MEASURED_WITHIN_NS)
    around = [np.clip(after + step, 0, len(at_ns) - 1) for step in (-1, 0, 1)]
    greatest = np.max([np.where(places[row] == readers, delay_ns[row], 0) for row in around], axis=0)
    exact = _member([source == "sink" for source in trial_context.sources], sources)
    exact &= trial_context.settings.sink in (None, "http")
    return np.where(exact, 0, np.where(measured, greatest + PROBED_EVERY_NS, TOLERANCE_NS))


def _apart(trial_context: TrialContext, time_ns: Ints) -> Ints:
    """Returns how far the wall clock went apart from the monotonic one around each time: it may have been set."""
    pairs = np.array(sorted((read, wall) for wall, read in trial_context.clocks), np.int64).reshape(-1, 2)
    if not len(pairs):
        return np.full(len(time_ns), TOLERANCE_NS)
    after = np.searchsorted(pairs[:, 0], time_ns)
    offsets = np.array([(pairs[:, 1] - pairs[:, 0])[(after + step).clip(0, len(pairs) - 1)] for step in range(-2, 2)])
    spread: Ints = offsets.max(axis=0) - offsets.min(axis=0)
    return spread


def _among(trial_context: TrialContext, chosen: Collection[int]) -> list[bool]:
    return [number in chosen for number in range(len(trial_context.sources))]


def _member(values: Sequence[int], sources: Array, missing: int = 0) -> Array:
    """Returns what is said of each source by its number; `missing` of -1."""
    found: Array = np.array([*values, missing])[sources]
    return found.astype(np.bool_) if all(isinstance(value, bool) for value in values) else found
