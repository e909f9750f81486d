"""Records that waited longer than their team claims: how `LateRecords` is made.

A record's wait is from its append until it was first handled; in an audit, of a consumer that shows nothing of its
work, and of one that commits it in transactions, until it was committed past. Time that a fault explains does not
count (`excused_time.py`). And a record may wait twice the time that it and those that stand before it in its partition
take, at the pace that the group showed with its opening burst, or since, if that was better; where handlers take
batches, and those that stand behind it too. An audit knows of no fault, and of no pace.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import commits_in_effect, final_committed_offsets, first_covering
from kafka_trial.model.drain_backlog import rate_of
from kafka_trial.model.excused_time import (
    counted_from_ns,
    counted_time_ns,
    excused_intervals,
    excused_until_ns_by_fault,
    excusing_faults,
    in_log_by_ns,
    is_audit,
    machine_stalled_ns,
)
from kafka_trial.model.handlers import first_done, first_handled_of_records
from kafka_trial.model.instants import at_earliest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    first_of,
    per_group,
    picked,
    previous_in,
    running_max,
    starts_of,
)
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.partition import LateRecords
from kafka_trial.model.progress import waited_for_a_processor
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

SECOND_NS = 1_000_000_000
LIMIT_S_MAX = 10**6
SECONDS_PER_RECORD_MAX = 3600
QUEUE_FACTOR = 2  # times as long as the group takes for as many records


@index
def late_records(batch: Batch) -> LateRecords:
    """Returns the records that waited longer than claimed, those of one stretch and one reason in one row."""
    about = batch.trial_context
    limit_ns = _limit_ns(about)
    waits = _with_counted_time(batch, _waits(batch))
    waits = waits.take(at_earliest(waits["until_ns"]) - waits["since_ns"] > limit_ns)
    allowed_ns = limit_ns + waits["queue_ns"]
    certain = at_earliest(waits["counted_least_ns"]) > allowed_ns
    excused = at_earliest(waits["counted_ns"]) <= allowed_ns
    in_a_batch = ~excused & (at_earliest(waits["counted_least_ns"]) <= limit_ns + waits["batch_ns"])
    since_ns, until_ns = waits["since_ns"], waits["until_ns"]
    queued = excused & (at_earliest(waits["counted_ns"]) > limit_ns)
    outpaced = queued & waits["too_fast"]
    beyond_ns = np.where(certain, waits["counted_least_ns"], waits["counted_ns"]) - np.where(
        queued, limit_ns, allowed_ns
    )
    may_be_late = ~excused | outpaced
    stalled_ns = machine_stalled_ns(about, since_ns, until_ns)
    withheld_ns = stalled_ns + waited_for_a_processor(about, since_ns, until_ns)
    waits = waits.having(
        allowed_ns=allowed_ns,
        excused_by=_excuse_texts(about, waits, excused),
        member=_owners(batch, waits["slice"], np.minimum(since_ns + limit_ns, until_ns)),
    )
    why = undecided_because(
        (Undecided.DELAYED, may_be_late & (beyond_ns <= stalled_ns)),
        (Undecided.NO_PROCESSOR, may_be_late & (beyond_ns <= withheld_ns)),
        (Undecided.LOAD_TOO_FAST, outpaced),
        (Undecided.IN_A_BATCH, in_a_batch & certain),
        (Undecided.HANDLED_WHEN, ~excused & ~certain),
    )
    return _one_row_per_stretch(about, waits.having(why=why))


@index
def outpaced_slices(batch: Batch) -> Bools:
    """Returns the slices to which more was sent than the group was seen to do in the same time."""
    waits = _with_counted_time(batch, _waits(batch))
    found = np.zeros(batch.size, np.bool_)
    found[waits["slice"][waits["too_fast"]]] = True
    return found


def _limit_ns(about: TrialContext) -> int:
    """Returns how long a record may wait by the claim; NEVER: nothing is claimed, or nobody knows when the opening
    burst was done."""
    limit_s, begun = about.settings.lag_age_max_s, is_audit(about) or about.calibrated_ns is not None
    return NEVER if limit_s is None or not begun else int(min(limit_s, LIMIT_S_MAX) * SECOND_NS)


def _one_row_per_stretch(about: TrialContext, waits: Table) -> LateRecords:
    """Returns of each stretch of records that are alike the one that waited longest, with `last_offset`, `records`."""
    alike = ("slice", "member", "excused_by", "why")
    begins = starts_of(*(waits[name] for name in alike)) | (np.diff(waits["place"], prepend=-1) != 1)
    stretch = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(waits))[: len(first)] - 1
    longest = np.lexsort((-waits["counted_ns"], stretch))[first] if len(first) else first
    found = waits.take(longest)
    return LateRecords(found.columns).having(
        offset=waits["offset"][first],
        last_offset=waits["offset"][last],
        longest_wait_offset=found["offset"],
        records=last - first + 1,
        member_name=np.array([*about.members, None], dtype=object)[found["member"]],
    )


def _waits(batch: Batch) -> Table:
    """Returns the wait of every record that was handled in the end, or waits still at the snapshot: `place` (its row),
    `step` (how many offsets further it lies than the record before it), from `since_ns` to `until_ns`, and `least_ns`,
    when it may have ended already; `there_ns`: by when the record was there for certain; `ended`: whether the wait has;
    `over_…` is the event by which it has."""
    about, records = batch.trial_context, batch.records
    done = _committed_past(batch) if _by_commits(about) else _handled(batch)
    snapshot_ns = NEVER - 1 if about.snapshot_ns is None else about.snapshot_ns
    unhandled_least_ns = NONE if _output_may_be_buffered(about) else snapshot_ns - _commit_delay_ns(about)
    ended, before = done["until_ns"] <= snapshot_ns, previous_in(records["slice"])
    done_below = final_committed_offsets(batch)[records["slice"]]
    if not about.settings.in_offsets_log:
        done_below = 1 + per_group(records["slice"][ended], records["offset"][ended], batch.size, how="max", start=NONE)
        done_below = done_below[records["slice"]]
    waits = done.having(
        slice=records["slice"],
        offset=records["offset"],
        ended=ended,
        place=np.arange(len(records)),
        step=np.where(before >= 0, records["offset"] - records["offset"][before], 1),
        source=records["source"],
        seq=records["seq"],
        since_ns=np.maximum(records["appended_ns"], counted_from_ns(about)),
        until_ns=np.minimum(done["until_ns"], snapshot_ns),
        least_ns=np.where(ended, done["least_ns"], unhandled_least_ns),
        there_ns=np.maximum(in_log_by_ns(batch), counted_from_ns(about)),
    )
    return waits.take((ended | (records["offset"] >= done_below)) & (waits["until_ns"] > waits["since_ns"]))


def _by_commits(about: TrialContext) -> bool:
    return is_audit(about) or about.settings.silent or about.settings.progress == "transaction"


def _commit_delay_ns(about: TrialContext) -> int:
    """Returns how long before the commit that covers it a record may have been handled; in transactions it is done by
    that."""
    told = not _by_commits(about) or about.settings.progress == "transaction"
    return 0 if told else int(about.settings.commit_interval_s * SECOND_NS)


def _output_may_be_buffered(about: TrialContext) -> bool:
    """Tells whether a line that says that a record was handled may not have come yet."""
    return about.settings.stdout == "buffered" and not about.has_sink


def _handled(batch: Batch) -> Table:
    first, done = first_handled_of_records(batch), first_done(batch)
    return table(
        until_ns=first.time_ns,
        least_ns=np.where(batch.untimed(picked(done["source"], first.row, -1)), NONE, first.said_ns),
        over_source=picked(done["source"], first.row, -1),
        over_seq=picked(done["seq"], first.row, -1),
    )


def _committed_past(batch: Batch) -> Table:
    """Each record had been handled a commit interval before, at the earliest; in transactions it is done by that."""
    commits, records = commits_in_effect(batch), batch.records
    row = first_covering(batch, records["slice"], records["offset"])
    until_ns = picked(commits["effect_ns"], row, NEVER)
    return table(
        until_ns=until_ns,
        least_ns=np.where(until_ns == NEVER, NEVER, until_ns - _commit_delay_ns(batch.trial_context)),
        over_source=picked(commits["source"], row, -1),
        over_seq=picked(commits["seq"], row, -1),
    )


def _with_counted_time(batch: Batch, waits: Table) -> Table:
    """Returns the waits with how long of them counts, by `until_ns` and by `least_ns`; `queue_ns`: how long a record
    may wait behind others, `batch_ns`: with those that may be of one batch; `too_fast`: whether more came to its
    partition than the group was seen to do.

    A queue with one server: a record is done at its pace after it came, or after the one before it, whichever is later.
    What the log does not hold any more (by compaction) has taken its time as well: offsets tell how many came.
    """
    about = batch.trial_context
    counted = partial(counted_time_ns, excused_intervals(about))
    waits = waits.sorted_by("slice", "since_ns", "offset")
    slices, arrived = waits["slice"], _running_sum(waits["slice"], waits["step"])
    each_ns = np.zeros(len(waits), np.int64)
    if not is_audit(about) and about.calibrated_ns is not None:
        each_ns = _ns_per_record(about, batch.slices[slices])
        each_ns = np.minimum(each_ns, _best_ns_per_record(waits, about.calibrated_ns))
    since_ns = counted(waits["since_ns"])
    free_ns = since_ns - (arrived - waits["step"]) * each_ns
    peak = running_max(slices, free_ns) if len(waits) else arrived
    ready_ns = free_ns[peak] + arrived * each_ns
    all_ready_ns = ready_ns
    if _in_batches(about):
        period = np.cumsum(starts_of(slices, peak)) - 1  # in which there is always one to do
        all_ready_ns = per_group(period, ready_ns, len(waits), how="max", start=NONE)[period]
    there_ns = np.minimum(waits["there_ns"], waits["until_ns"])
    return waits.having(
        counted_ns=counted(waits["until_ns"]) - since_ns,
        counted_least_ns=counted(np.maximum(waits["least_ns"], there_ns)) - counted(there_ns),
        queue_ns=QUEUE_FACTOR * (ready_ns - since_ns),
        batch_ns=QUEUE_FACTOR * (all_ready_ns - since_ns),
        too_fast=_load_exceeds_pace(slices, arrived, waits["since_ns"], each_ns),
    ).sorted_by("place")


def _in_batches(about: TrialContext) -> bool:
    """Tells whether several records may be done at once: by a handler, in a transaction, or for all that is known."""
    return about.settings.handler == "batch" or about.settings.silent or about.settings.progress == "transaction"


def _ns_per_record(about: TrialContext, slices: Ints) -> Ints:
    """Returns how long the group took for one record of each slice, by its opening burst; 0 where that is unknown."""
    if not about.calibrated_rate:
        return np.zeros(len(slices), np.int64)
    rate_per_s, burst = about.calibrated_rate, about.opening_burst
    rates = [rate_of(number, rate_per_s, burst, topic_of=about.topic_of) for number in range(len(about.slices))]
    return np.minimum(SECOND_NS / np.array(rates), SECONDS_PER_RECORD_MAX * SECOND_NS)[slices].astype(np.int64)


def _best_ns_per_record(waits: Table, begun_ns: int) -> Ints:
    """Returns how long one record of each wait's slice took at the best pace that was seen from `begun_ns` until some
    moment of the second half of the time in which records came; NEVER where none was done by then.

    A consumer that gathers batches looks slow in the opening burst, though it keeps up.
    """
    done = waits.take(waits["ended"]).sorted_by("slice", "until_ns")
    size = int(waits["slice"].max(initial=-1)) + 1
    took_ns = done["until_ns"] - begun_ns
    load_ns = per_group(waits["slice"], waits["since_ns"], size, how="max", start=NONE)[done["slice"]] - begun_ns
    seen = (took_ns <= load_ns) & (2 * took_ns >= load_ns) & (took_ns > 0)
    each_ns = took_ns // _running_sum(done["slice"], done["step"])
    return per_group(done["slice"][seen], each_ns[seen], size, how="min", start=NEVER)[waits["slice"]]


def _running_sum(group: Ints, values: Ints) -> Ints:
    """Returns the sum of the values of each row's group so far, itself included."""
    total = np.cumsum(values)
    first = np.maximum.accumulate(np.where(starts_of(group), np.arange(len(group)), 0))
    return total - (total - values)[first]


def _load_exceeds_pace(slices: Ints, arrived: Ints, since_ns: Ints, each_ns: Ints) -> Bools:
    """Returns whether the records of a slice came faster than they could be done; rows by slice and time."""
    first = first_of(slices)
    sizes = np.diff(np.append(first, len(slices)))
    last = np.append(first[1:], len(slices))[: len(first)] - 1
    too_fast = (arrived[last] - arrived[first]) * each_ns[first] >= np.maximum(since_ns[last] - since_ns[first], 1)
    return np.repeat(too_fast, sizes)


def _excuse_texts(about: TrialContext, waits: Table, excused: Bools) -> Array:
    """Returns the first fault that explains a part of each excused wait, in words; the load, where none does."""
    words = np.full(len(waits), "what was sent at once", dtype=object)
    ends_ns = excused_until_ns_by_fault(about)
    for window in sorted(excusing_faults(about), key=lambda one: one.begun_ns, reverse=True):
        touched = (window.begun_ns <= waits["until_ns"]) & (waits["since_ns"] <= ends_ns[window.number])
        words[touched] = window.in_words
    words[~excused] = None
    return words


def _owners(batch: Batch, slices: Ints, at_ns: Ints) -> Ints:
    """Returns the member that had each partition, by what it or the group says, the one that got it last; -1: none."""
    held = ownership_epochs(batch).sorted_by("slice", "open_ns")
    row = at_or_before(held["slice"], held["open_ns"], slices, at_ns)
    return np.where(picked(held["close_ns"], row, NONE) >= at_ns, picked(held["member"], row, -1), -1)
