"""Cold reads: what members were sent that had lain in the log for longer than the brokers' memory holds it.

Brokers serve the end of a log from the page cache. What lies further back they may have to read from their disks, on
which all other clients depend too. Which pages the kernel still holds depends on the machine; how long a record has
been in the log does not, and the request log shows when it was read. A broker looks for the position that it is asked
for and sends what follows: an answer counts, with all its bytes, where its first record was cold. If that record is
not in the log any more, the next one decides.

Judged in two steps: `cold_reads` sums up the answers of each partition; then the whole group's are compared with what
is claimed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.clients import client_of_connection, members_of
from kafka_trial.model.commits_log import commits_in_effect, first_covering
from kafka_trial.model.excused_time import (
    counted_from_ns,
    counted_time_ns,
    excused_intervals,
    excused_until_ns_by_fault,
    excusing_faults,
    in_log_by_ns,
    machine_stalled_ns,
)
from kafka_trial.model.instants import at_earliest, at_latest
from kafka_trial.model.kernels import NEVER, Bools, Ints, at_or_after, first_of, joined, picked
from kafka_trial.model.late_records import outpaced_slices
from kafka_trial.model.progress import waited_for_a_processor
from kafka_trial.model.request_logs import timed_fetches
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import Settings, TrialContext
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch

SECOND_NS = 1_000_000_000
ALIKE = ("slice", "member", "client", "fault", "reason")
COLD_READS = (*ALIKE, "bytes", "first_ns", "last_ns", "source", "seq", "last_source", "last_seq")
CERTAIN = NOT_EXCUSED = -1
REASONS = (Undecided.COLD_WHEN, Undecided.LOAD_TOO_FAST, Undecided.DELAYED, Undecided.NO_PROCESSOR)


def cold_age_ns(settings: Settings) -> int:
    """Returns how long a record lies in the log before reading it is a cold read: what a member has not committed yet
    it may have to read again, whatever its age."""
    return int((settings.cold_after_s + settings.commit_interval_s) * SECOND_NS)


def cold_reads(batch: Batch) -> Table:
    """Returns what each member was sent of each partition that was cold, or may have been: columns COLD_READS.

    `slice` as in the trial context. `client`: the first connection with its client id, a place in the trial context's
    `connections` (-1: not known). `fault`: the number of the first fault that explains it, else NOT_EXCUSED. `reason`:
    why it is not certain that they were cold, a place in REASONS, else CERTAIN. From `first_ns` to `last_ns`:
    the events are the first and the last of these answers. Empty where nothing is claimed.
    """
    about = batch.trial_context
    if about.settings.reads_cold_bytes_max is None or about.calibrated_ns is None:
        return Table({name: np.empty(0, np.int64) for name in COLD_READS})
    cold = _cold_answers(batch)
    cold = cold.having(client=client_of_connection(about)[cold["connection"]]).sorted_by(*ALIKE, "begun_ns", "seq")
    first = first_of(joined(*(cold[name] for name in ALIKE)))
    last = np.append(first[1:], len(cold))[: len(first)] - 1
    return table(
        **{name: cold[name][first] for name in ("member", "client", "fault", "reason")},
        slice=batch.slices[cold["slice"][first]],
        bytes=np.add.reduceat(cold["answered_bytes"], first) if len(first) else first,
        first_ns=cold["begun_ns"][first],
        last_ns=cold["begun_ns"][last],
        source=cold["source"][first].astype(np.int64),
        seq=cold["seq"][first],
        last_source=cold["source"][last].astype(np.int64),
        last_seq=cold["seq"][last],
    ).only(*COLD_READS)


def _cold_answers(batch: Batch) -> Table:
    """Returns the answers that began with a cold record, or may have, with `fault` and `reason`."""
    about, limit_ns = batch.trial_context, cold_age_ns(batch.trial_context.settings)
    counted = partial(counted_time_ns, excused_intervals(about))
    answers = _answers(batch)
    answers = answers.take(at_latest(answers["begun_ns"]) - answers["since_ns"] > limit_ns)
    begun_ns, since_ns = answers["begun_ns"], answers["since_ns"]
    there_ns = np.minimum(answers["there_ns"], begun_ns)
    age_ns = at_earliest(counted(begun_ns)) - counted(there_ns)
    stalled_ns = machine_stalled_ns(about, there_ns, begun_ns)
    withheld_ns = stalled_ns + waited_for_a_processor(about, there_ns, begun_ns)
    late = at_latest(answers["committed_ns"]) >= begun_ns  # a record that was committed past is late no more
    excused = at_latest(counted(begun_ns)) - counted(since_ns) <= limit_ns
    return answers.having(
        fault=np.where(excused, _excuses(about, since_ns, begun_ns), NOT_EXCUSED),
        reason=_reasons(
            age_ns <= limit_ns,
            late & outpaced_slices(batch)[answers["slice"]],
            late & (age_ns - stalled_ns <= limit_ns),
            late & (age_ns - withheld_ns <= limit_ns),
        ),
    )


def _answers(batch: Batch) -> Table:
    """Returns the fetches of members until the snapshot that brought records. Of the first of these: `since_ns`, from
    when on it counts, `there_ns`, by when it was in the log for certain, `committed_ns`, when it was committed past."""
    about, records, commits = batch.trial_context, batch.records, commits_in_effect(batch)
    asks = timed_fetches(batch)
    asks = asks.having(member=members_of(batch, asks["lane"], otherwise=-1))
    got = (asks["answered_bytes"] > 0) & (asks["error_code"] == 0) & (asks["member"] >= 0)
    asks = asks.take(got & (asks["answered_ns"] <= (NEVER if about.snapshot_ns is None else about.snapshot_ns)))
    first = at_or_after(records["slice"], records["offset"], asks["slice"], asks["fetch_position"])
    covering = first_covering(batch, records["slice"], records["offset"])
    from_ns = counted_from_ns(about)
    return asks.having(
        committed_ns=picked(commits["effect_ns"], picked(covering, first, -1), NEVER),
        since_ns=np.maximum(picked(records["appended_ns"], first, NEVER), from_ns),
        there_ns=np.maximum(picked(in_log_by_ns(batch), first, NEVER), from_ns),
    )


def _reasons(*uncertain: Bools) -> Ints:
    """Returns for each row the first of REASONS that holds, else CERTAIN."""
    found = np.full(len(uncertain[0]), CERTAIN, np.int64)
    for place in reversed(range(len(REASONS))):
        found[uncertain[place]] = place
    return found


def _excuses(about: TrialContext, since_ns: Ints, until_ns: Ints) -> Ints:
    """Returns the number of the first fault that explains a part of each stretch of time."""
    found, ends_ns = np.full(len(since_ns), NOT_EXCUSED, np.int64), excused_until_ns_by_fault(about)
    for window in sorted(excusing_faults(about), key=lambda one: one.begun_ns, reverse=True):
        found[(window.begun_ns <= until_ns) & (since_ns <= ends_ns[window.number])] = window.number
    return found
