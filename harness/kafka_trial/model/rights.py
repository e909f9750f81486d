"""Rights: which ownership epochs nobody had given their member, while the group had given the partition to others.

An ownership epoch that its member took by fetching (`inferred_ownership_epochs.py`) is without a right where neither
log ever gave it the partition; so is one that its member alone tells of, where the offsets log, read to its end, gave
the partition to others. Consumers that assign partitions to themselves (`protocol = "none"`) need none.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import file_of
from kafka_trial.model.inferred_ownership_epochs import fetches, given_by_answers
from kafka_trial.model.kernels import NEVER, Bools
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments, never_given
from kafka_trial.model.request_logs import complete_until_ns
from kafka_trial.model.table import FILE, Table, is_among


@index
def without_right(batch: Batch) -> Bools:
    """Returns which ownership epochs nobody had given their member: it took the partition by fetching, or says that it
    was assigned it, while both logs know better."""
    held = ownership_epochs(batch)
    if batch.trial_context.settings.protocol == "none":
        return np.zeros(len(held), np.bool_)
    taken = held["taken"] & ~ever_given(batch, held) & np.isin(held["slice"], logged_assignments(batch)["slice"])
    answers = given_by_answers(batch)
    claimed = (
        ~held["taken"] & never_given(batch, held["slice"], held["member"]) & np.isin(held["slice"], answers["slice"])
    )
    claimed &= ~is_among(held, answers, *FILE)
    return taken | claimed


@index
def surely_without_right(batch: Batch) -> Bools:
    """Returns which ownership epochs without a right are of a member that the offsets log, read to its end, never gave
    the partition: not in another process of its own either."""
    held = ownership_epochs(batch)
    return without_right(batch) & never_given(batch, held["slice"], held["member"])


@index
def mere_claims(batch: Batch) -> Bools:
    """Returns which ownership epochs without a right are of a member that never fetched the partition either, by a
    complete request log: it says so, and that is all. What is done while such a one is open is the owner's."""
    fetched = is_among(ownership_epochs(batch), fetches(batch), *FILE)
    return surely_without_right(batch) & ~fetched & np.bool_(complete_until_ns(batch.trial_context) == NEVER)


def ever_given(batch: Batch, rows: Table) -> Bools:
    """Returns whether the offsets log gave the partition of each row (slice, source) to its incarnation at any time."""
    given = logged_assignments(batch)
    given = given.only("slice").having(source=file_of(batch, given["member"], given["time_ns"]))
    return is_among(rows, given, *FILE)
