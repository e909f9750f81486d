"""Commits that ran ahead of the work: by the members' own word, and by the offsets log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.circumstances import TOLERANCE_NS
from kafka_trial.invariants.commits_log import OPERATOR, asked_at, first_covering, requested_before
from kafka_trial.invariants.delivery import KILLED_UNHEARD, killed_unheard
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    between,
    exactly,
    first_of,
    greatest_in,
    joined,
    last_true,
    ordered,
    per_group,
    picked,
    previous_in,
)
from kafka_trial.invariants.rows import IN_TRANSACTION, Kind
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "commit-ahead", family="commits", needs=("records", "handled", "offsets log"), level="sink", progress_in_kafka=True
)
def commit_ahead(batch: Batch) -> Findings:
    """A position was committed before every record below it had been handled: a crash there loses records.

    "The consumer must process records before committing, so that a crash never loses them" (KafkaConsumer, Manual
    Offset Control). By the member's own word the order is exact; by the logs of the brokers it is so up to what sources
    differ by: the time is that of the request's arrival, else of the commit. A line that tells of a commit afterwards,
    or of its answer, tells nothing of when it was made. Legal under at-most-once, where it is the point; an operator's
    are the operator's. In a transaction positions and outputs take effect at once: there only what was never handled
    counts. So do records below an earlier position, where it fell and rises again.

    Smallest history: `delivered` 0, `commit` invoke 1, `processed` 0.
    """
    said, logged, unheard = _ahead_by_own_word(batch), _ahead_by_log(batch), _unheard_ahead(batch)
    both = stacked(said, logged)
    both = both.take(ordered(both["slice"], both["committed_offset"], both["by_log"], both["commit_seq"]))
    ahead = both.take(first_of(joined(both["slice"], both["committed_offset"])))
    rows = table(
        slice=ahead["slice"],
        order=ahead["committed_offset"],
        committed_offset=ahead["committed_offset"],
        offset=ahead["offset"],
        seen_by=np.array(["own word", "offsets log"], dtype=object)[ahead["by_log"].astype(np.int64)],
        by_operator=ahead["by_operator"],
    )
    proofs = [("record_source", "record_seq"), ("commit_source", "commit_seq"), ("done_source", "done_seq")]
    unheard = unheard.take(_absent(unheard, rows))
    return Findings(rows, [(ahead[source], ahead[seq]) for source, seq in proofs], [(KILLED_UNHEARD, unheard["slice"])])


def _ahead_by_own_word(batch: Batch) -> Table:
    """Returns the commits that a member asked for before it had completed what it was delivered below them.

    Looked at is what the same possession was delivered from its previous own commit on. A record that was completed in
    the same file before the commit is handled, though it may have been delivered again since.
    """
    commits = _own_commits(batch)
    previous = previous_in(commits["possession"])
    low = picked(commits["offset"], previous, NONE)
    delivered = _delivered_offsets(batch)
    first, end = between(delivered["possession"], delivered["offset"], commits["possession"], low, commits["offset"])
    latest = greatest_in(delivered["done_seq"], first, end)
    ahead = (latest >= 0) & (picked(delivered["done_seq"], latest, NONE) > commits["seq"])
    commits, record = commits.take(ahead), delivered.take(latest[ahead])
    return table(
        slice=commits["slice"],
        committed_offset=commits["offset"],
        offset=record["offset"],
        by_log=np.zeros(len(commits), np.bool_),
        by_operator=np.zeros(len(commits), np.bool_),
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=record["source"].astype(np.int64),
        record_seq=record["seq"],
        done_source=np.where(record["done_seq"] == NEVER, -1, record["source"]).astype(np.int64),
        done_seq=record["done_seq"],
    )


def _own_commits(batch: Batch) -> Table:
    """Returns the commits that members asked for by their own word, by possession.

    An answer counts where no request of that position stands before it in the file: it was asked for earlier still.
    None at all where progress is in transactions, for positions may be handed in before the outputs.
    """
    own = batch.own
    commits = own.take(np.isin(own["kind"], (Kind.COMMIT_INVOKE, Kind.COMMIT_OK)))
    commits = commits.take(ordered(commits["file"], commits["offset"], commits["seq"]))
    asked = commits["kind"] == Kind.COMMIT_INVOKE
    unasked = ~asked & (last_true(joined(commits["file"], commits["offset"]), asked) < 0)
    inside = batch.circumstances.settings.progress == "transaction"
    commits = commits.take((asked | unasked) & (commits["possession"] >= 0) & np.bool_(not inside))
    return commits.sorted_by("possession", "seq")


def _delivered_offsets(batch: Batch) -> Table:
    """Returns possession, offset, source, seq (its first delivery) and done_seq (first completion in the file)."""
    held = batch.deliveries.take(batch.deliveries["possession"] >= 0)
    held = held.take(ordered(held["possession"], held["offset"]))
    first = held.take(first_of(joined(held["possession"], held["offset"])))
    done = batch.completions.take(ordered(batch.completions["file"], batch.completions["offset"]))
    done = done.take(first_of(joined(done["file"], done["offset"])))
    row = exactly(done["file"], done["offset"], first["file"], first["offset"])
    return first.only("possession", "offset", "source", "seq").having(done_seq=picked(done["seq"], row, NEVER))


def _ahead_by_log(batch: Batch) -> Table:
    """Returns the durable commits that passed a record which was handled later than they were asked for, or never.

    With a commit in a transaction only the latter counts: what it covers takes effect with it, though one log may be
    told of that before another.
    """
    rising = _rising(batch)
    row = rising["latest"]
    records, first = batch.records, batch.first_handled
    handled_ns = rising["handled_ns"]
    late = (row >= 0) & (batch.earliest(handled_ns) > rising["asked_ns"] + TOLERANCE_NS) & ~rising["unheard"]
    late &= (handled_ns == NEVER) | (rising["flag"] & IN_TRANSACTION == 0)
    commits, row = rising.take(late), row[late]
    done = first.row[row]
    return table(
        slice=commits["slice"],
        committed_offset=commits["value"],
        offset=records["offset"][row],
        by_log=np.ones(len(commits), np.bool_),
        by_operator=commits["committer"] == OPERATOR,
        commit_source=commits["source"].astype(np.int64),
        commit_seq=commits["seq"],
        record_source=records["source"][row].astype(np.int64),
        record_seq=records["seq"][row],
        done_source=picked(batch.handled["source"], done, -1),
        done_seq=picked(batch.handled["seq"], done, -1),
    )


def _unheard_ahead(batch: Batch) -> Table:
    """Returns the commits that cannot be decided: their member was killed before it could say what it had done."""
    rising = _rising(batch)
    found = rising.take(rising["unheard"])
    return table(slice=found["slice"], committed_offset=found["value"])


def _rising(batch: Batch) -> Table:
    """Returns the commits that raised the position, each with the record it passed that was handled last.

    Columns besides: asked_ns (when it was asked for), latest (the record, -1: none), handled_ns (when that was handled,
    as far as this commit goes), unheard (it was never, but by a member that may not have been able to say so).
    """
    log = batch.commits
    before = picked(log["value"], previous_in(log["stretch"]), NONE)
    numbers = np.flatnonzero(log["value"] > before)
    rising = log.take(numbers).having(before=before[numbers])
    by_word, by_log = (_passed_last(batch, rising, times) for times in (_told_ns(batch), batch.first_handled.time_ns))
    asked = requested_before(batch, rising)
    latest, handled_ns = (np.where(asked, told, logged) for told, logged in zip(by_word, by_log, strict=True))
    return rising.having(
        asked_ns=asked_at(batch, rising),
        latest=latest,
        handled_ns=handled_ns,
        unheard=(handled_ns == NEVER) & killed_unheard(batch, numbers),
    )


def _passed_last(batch: Batch, rising: Table, handled_ns: Ints) -> tuple[Ints, Ints]:
    """Returns the record that was handled last of those each commit passed (-1: none), and when it was.

    What lies below an earlier position, and what of that a killed member may have handled unheard, is not held against
    those who rise over it later.
    """
    records = batch.records
    covered_by = first_covering(batch, records["slice"], records["offset"])
    unheard = (handled_ns == NEVER) & killed_unheard(batch, covered_by)
    low = np.minimum(rising["peak"], rising["value"])
    above = greatest_in(handled_ns, *between(*_places(records), rising["slice"], low, rising["value"]))
    excused_ns = np.where(unheard, NONE, handled_ns)
    below = greatest_in(excused_ns, *between(*_places(records), rising["slice"], rising["before"], low))
    above_ns, below_ns = picked(handled_ns, above, NONE), picked(excused_ns, below, NONE)
    higher = above_ns >= below_ns
    return np.where(higher, above, below), np.where(higher, above_ns, below_ns)


def _places(records: Table) -> tuple[Ints, Ints]:
    return records["slice"], records["offset"]


def _told_ns(batch: Batch) -> Ints:
    """Returns when each record was first handled, or said to be: an output to a topic may be read late, and its member
    has told before. NEVER where it was never handled, whatever was said."""
    first, records, done = batch.first_handled, batch.records, batch.completions
    size = len(records)
    row = exactly(*_places(records), done["slice"], done["offset"])
    told = per_group(row[row >= 0], done["time_ns"][row >= 0], size, how="min", start=NEVER)
    return np.where(first.time_ns == NEVER, NEVER, np.minimum(first.time_ns, told))


def _absent(rows: Table, found: Table) -> Bools:
    """Returns whether each row's (slice, committed offset) is not among those found."""
    found = found.sorted_by("slice", "committed_offset")
    return exactly(found["slice"], found["committed_offset"], rows["slice"], rows["committed_offset"]) < 0
