"""The time that counts: a clock that stands still while a fault explains what the group is late with.

A fault explains that from its injection until it is healed and a stall window has passed, then once more as long, for
what had gathered. What came before the opening burst was done counts from there. An audit knows of no fault and no
burst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.kernels import NEVER, NONE, Ints, at_or_after, picked
from kafka_trial.model.liveness_bounds import fault_ends_ns, timing_in
from kafka_trial.model.occupied_intervals import occupied_ns
from kafka_trial.model.progress import window_ns_of
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, is_among, table
from kafka_trial.model.trial_context import TrialContext, Window

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

SECOND_NS = 1_000_000_000
ANSWERED_WITHIN_NS = SECOND_NS  # the observer waits no longer for the log ends that it asks for


def time_that_counts_ns(about: TrialContext) -> int:
    """Returns how long a record can have waited, at most, without the time that faults explain."""
    if about.snapshot_ns is None or is_audit(about):
        return NEVER
    ends = np.array([max(counted_from_ns(about), 0), about.snapshot_ns], np.int64)
    begun_ns, snapshot_ns = counted_time_ns(excused_intervals(about), ends).tolist()
    return int(snapshot_ns - begun_ns)


def counted_time_ns(excused: Table, at_ns: Ints) -> Ints:
    """Returns instants on a clock that stands still while a fault explains that records wait."""
    no_source = np.zeros(len(at_ns), np.int64)
    return at_ns - occupied_ns(excused, no_source, np.full(len(at_ns), NONE), at_ns)


def excused_intervals(about: TrialContext) -> Table:
    """Returns from when to when each fault explains that records wait."""
    ends_ns, windows = excused_until_ns_by_fault(about), excusing_faults(about)
    return table(
        source=np.zeros(len(windows), np.int64),
        since_ns=np.array([window.begun_ns for window in windows], np.int64),
        until_ns=np.array([ends_ns[window.number] for window in windows], np.int64),
    )


def excusing_faults(about: TrialContext) -> list[Window]:
    """Returns the faults that excuse a wait; that others use the same brokers does not."""
    return [window for window in about.windows if not window.does(Consequence.LOADS_BROKERS)]


def excused_until_ns_by_fault(about: TrialContext) -> dict[int, int]:
    """Returns until when each fault, by its number, explains that records wait: as long as it explains what the group
    does, and clients may wait for an answer or not know of a partition; then once more as long."""
    timing = timing_in(about)
    ends_ns = fault_ends_ns(about, timing, window_ns_of(about))
    settings, latest_ns, found = about.settings, NEVER // 4, {}  # a sum of some must be no overflow
    for window in about.windows:
        asked_s = (settings.request_timeout_s or 0.0) if window.does(Consequence.LEAVES_REQUESTS_OPEN) else 0.0
        known_s = timing.noticing_s if window.does(Consequence.CHANGES_TOPIC) else 0.0
        end_ns = min(latest_ns, ends_ns[window.number]) + int((asked_s + known_s) * SECOND_NS)
        found[window.number] = min(latest_ns, 2 * end_ns - window.begun_ns)
    return found


def machine_stalled_ns(about: TrialContext, since_ns: Ints, until_ns: Ints) -> Ints:
    """Returns for how long the machine stood still in each wait."""
    stalled_ns = np.zeros(len(since_ns), np.int64)
    for at_ns, delay_ns in about.delays:
        stalled_ns += np.maximum(0, np.minimum(until_ns, at_ns) - np.maximum(since_ns, at_ns - delay_ns))
    return stalled_ns


def counted_from_ns(about: TrialContext) -> int:
    """Returns from when on waits count: when the opening burst was done; in an audit, always."""
    return NONE if is_audit(about) or about.calibrated_ns is None else about.calibrated_ns


def in_log_by_ns(batch: Batch) -> Ints:
    """Returns when the observer first saw the log end behind each record; where it says nothing of the partition, and
    in an audit, the record's own time. In a trial that is its producer's: it may have waited for the broker since."""
    records = batch.records
    if is_audit(batch.trial_context):
        return records["appended_ns"]
    ends = batch.of(Kind.LOG_END).sorted_by("slice", "position", "time_ns")
    row = at_or_after(ends["slice"], ends["position"], records["slice"], records["offset"] + 1)
    silent = ~is_among(records, ends, "slice")
    seen_ns = picked(ends["time_ns"], row, NEVER - ANSWERED_WITHIN_NS) + ANSWERED_WITHIN_NS
    return np.where(silent, records["appended_ns"], seen_ns)


def is_audit(about: TrialContext) -> bool:
    """Tells whether members were started elsewhere: commits alone tell what was done, and no fault is known."""
    return not about.incarnations
