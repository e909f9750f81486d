"""How `PollSkips` is made; what its columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.client_attribution import unattributed
from kafka_trial.model.handlers import first_handled_of_records
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    between,
    exactly,
    first_of,
    in_ranges,
    joined,
    max_before,
    ordered,
    per_group,
    picked,
)
from kafka_trial.model.ownership_epochs import BY_EXIT, deliveries, member_lines, ownership_epochs
from kafka_trial.model.ownership_log import never_given
from kafka_trial.model.partition import PollSkips
from kafka_trial.model.rightless_effects import effects_without_right
from kafka_trial.model.rows import Kind
from kafka_trial.model.seeks import above_start
from kafka_trial.model.table import Table, is_among, table
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def poll_skips(batch: Batch) -> PollSkips:
    """Returns one row for each record that an ownership epoch's deliveries jumped over and never came back to."""
    held = deliveries(batch).take(deliveries(batch)["ownership_epoch"] >= 0)  # sorted by ownership epoch, then seq
    held = held.take(~above_start(batch, held, held["ownership_epoch"]))
    highest = max_before(held["ownership_epoch"], held["offset"])
    jump = (highest >= 0) & (held["offset"] > picked(held["offset"], highest, NEVER))
    before, after = held.take(highest[jump]), held.take(jump)
    records = batch.records
    which, row = in_ranges(
        *between(records["slice"], records["offset"], after["slice"], before["offset"], after["offset"])
    )
    over = records["offset"][row] > before["offset"][which]
    which, row = which[over], row[over]
    skipped = table(
        slice=after["slice"][which],
        offset=records["offset"][row],
        source=after["source"][which],
        client=after["client"][which],
        ownership_epoch=after["ownership_epoch"][which],
        previous_offset=before["offset"][which],
        next_offset=after["offset"][which],
        jumped_ns=after["time_ns"][which],
        handled_ns=first_handled_of_records(batch).time_ns[row],
        previous_source=before["source"][which],
        previous_seq=before["seq"][which],
        next_source=after["source"][which],
        next_seq=after["seq"][which],
        record_source=records["source"][row],
        record_seq=records["seq"][row],
    )
    legal = _taken(batch, skipped) | _had_its_effect(batch, skipped) | _done_before(batch, skipped)
    left = skipped.take(~legal & (skipped["offset"] >= _log_starts_max(batch, skipped)))
    why = undecided_because(
        (Undecided.EXPIRED, _overtaken(batch, left)),
        (Undecided.IN_FLIGHT_AT_KILL, _in_last_act(batch, left)),
        (Undecided.UNATTRIBUTED, unattributed(batch, left)),
    )
    return PollSkips(left.columns).having(why=why)


def _taken(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the same ownership epoch was delivered each record after all, or says that it handled it."""
    own = member_lines(batch).take(
        np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED))
        & (member_lines(batch)["ownership_epoch"] >= 0)
    )
    own = own.take(~above_start(batch, own, own["ownership_epoch"])).sorted_by("ownership_epoch", "offset")
    return exactly(own["ownership_epoch"], own["offset"], skipped["ownership_epoch"], skipped["offset"]) >= 0


def _had_its_effect(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the sink saw each record while the ownership epoch lasted: its line was lost. The effect of a
    member that took the record without ever having been given the partition is another one's."""
    effects, held = batch.of(Kind.EFFECT), ownership_epochs(batch)
    taken = effects_without_right(batch)
    taken = taken.take(never_given(batch, taken["slice"], taken["member"]))
    effects = effects.take(~is_among(effects, taken, "slice", "source", "seq"))
    ownership_epoch = skipped["ownership_epoch"]
    record = joined(*(np.concatenate([effects[name], skipped[name]]) for name in ("slice", "offset")))
    order = ordered(record[: len(effects)], effects["time_ns"])
    times, opened_ns = effects["time_ns"][order], batch.earliest(picked(held["open_ns"], ownership_epoch, NEVER))
    first = at_or_after(record[: len(effects)][order], times, record[len(effects) :], at_earliest(opened_ns))
    closed_ns = picked(held["close_ns"], ownership_epoch, NONE)
    return (first >= 0) & (picked(times, first, NEVER) <= at_latest(closed_ns))


def _done_before(batch: Batch, skipped: Table) -> Bools:
    """Returns whether each record had been handled by the time of the jump, where the consumer's own store can tell it.

    A member that was frozen goes on with what it holds; who has its partition finds that done, and goes on behind it.
    Under at-most-once the position is stored before the work: there what another ownership epoch had begun is done.
    """
    settings, done_ns = batch.trial_context.settings, skipped["handled_ns"]
    if settings.in_offsets_log:
        return np.zeros(len(skipped), np.bool_)
    if settings.delivery == "at-most-once":
        done_ns = np.minimum(done_ns, _first_begun_ns(batch, skipped))
    done: Bools = batch.earliest(done_ns) <= at_latest(skipped["jumped_ns"])
    return done


def _first_begun_ns(batch: Batch, skipped: Table) -> Ints:
    """Returns when each record was delivered first, NEVER if it never was."""
    begun = deliveries(batch).sorted_by("slice", "offset", "time_ns")
    begun = begun.take(first_of(begun["slice"], begun["offset"]))
    row = exactly(begun["slice"], begun["offset"], skipped["slice"], skipped["offset"])
    return picked(begun["time_ns"], row, NEVER)


def _log_starts_max(batch: Batch, skipped: Table) -> Ints:
    """Returns the highest log start that was read: what lies below it may have been deleted before it was polled."""
    read = batch.of(Kind.LOG_START)
    return per_group(read["slice"], read["position"], batch.size, how="max", start=NONE)[skipped["slice"]]


def _overtaken(batch: Batch, skipped: Table) -> Bools:
    starts = _log_starts_max(batch, skipped)
    overtaken: Bools = (starts != NONE) & (starts - 1 > skipped["previous_offset"])
    return overtaken


def _in_last_act(batch: Batch, skipped: Table) -> Bools:
    """Returns whether the jump is among the last words of a member that was killed while it held the partition."""
    held = ownership_epochs(batch)
    incarnation = picked(held["incarnation"], skipped["ownership_epoch"], -1)
    killed = picked(batch.incarnations["killed"], incarnation, 0) == 1
    by_exit = picked(held["closed_by"], skipped["ownership_epoch"], 0) == BY_EXIT
    closed_ns = picked(held["close_ns"], skipped["ownership_epoch"], NEVER)
    last: Bools = killed & by_exit & (skipped["jumped_ns"] >= at_earliest(closed_ns))
    return last
