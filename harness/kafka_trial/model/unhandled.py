"""How `Unhandled` is made; what its columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_trial.model.batch import index
from kafka_trial.model.commits import reporter_killed
from kafka_trial.model.commits_log import final_committed_offsets, first_covering
from kafka_trial.model.handlers import first_handled_of_records
from kafka_trial.model.in_flight import in_flight
from kafka_trial.model.kernels import NEVER, value_at
from kafka_trial.model.partition import Unhandled
from kafka_trial.model.truncations import overwritten
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.kernels import Bools, Ints


@index
def unhandled(batch: Batch) -> Unhandled:
    """Returns the records that nobody had handled by the snapshot."""
    snapshot_ns = batch.trial_context.snapshot_ns
    handled_ns = first_handled_of_records(batch).time_ns
    left = handled_ns > (NEVER - 1 if snapshot_ns is None else snapshot_ns)
    records = batch.records.take(left)
    commit = first_covering(batch, records["slice"], records["offset"])
    committed = records["offset"] < final_committed_offsets(batch)[records["slice"]]
    return Unhandled(records.columns).having_when_asked(
        handled_ns=lambda: handled_ns[left],
        after_truncation=lambda: overwritten(batch)[left],
        committed=lambda: committed,
        commit=lambda: commit,
        in_flight_at_crash=lambda: in_flight(batch, records, commit),
        why=lambda: undecided_because((Undecided.UNCERTAIN_AFTER_KILL, committed & _reporter_killed(batch, commit))),
    )


def _reporter_killed(batch: Batch, commit: Ints) -> Bools:
    """Returns whether that is so of each commit, a row of `Commits`."""
    killed: Bools = value_at(reporter_killed(batch), commit, False)
    return killed
