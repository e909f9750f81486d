"""Late callbacks: `revoked` lines that come long after the callback, by what their member asked its group next.

A client tells its group that it gave a partition back only once the callback has returned: by a heartbeat that lists
less (KIP-848), or by joining again (classic, incremental). Work after that, and before the line, was done after the
callback or by another thread beside it: the place of the line does not say which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.client_attribution import alone
from kafka_trial.model.clients import incarnation_of
from kafka_trial.model.fencing import revoke_confirmed_ns, surely_read_ns
from kafka_trial.model.kernels import NONE, Bools, picked
from kafka_trial.model.ownership_epochs import SAID, member_lines
from kafka_trial.model.rows import CALLBACKS, Kind
from kafka_trial.model.table import last_until

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.table import Table


def before_late_revoked_line(batch: Batch, work: Table) -> Bools:
    """Returns which lines of work came after the callback that gave the partition back had returned, while the newest
    callback that its member tells of is the one that took it."""
    own = member_lines(batch)
    callbacks = own.take(np.isin(own["kind"], CALLBACKS) & (own["told_by"] == SAID))
    last = last_until(callbacks, work, "file", by="seq", until=work["seq"])
    member = picked(batch.incarnations["member"], incarnation_of(batch, work["source"]), -1)
    given_back = revoke_confirmed_ns(batch, work["slice"], member, work["time_ns"])
    untold: Bools = picked(callbacks["kind"], last, 0) == Kind.ASSIGNED
    untold &= (picked(callbacks["time_ns"], last, NONE) < given_back) & alone(batch, work)
    untold &= ~batch.vague(work["source"])
    said_ns = batch.written_ns(work["source"][untold], work["time_ns"][untold])
    untold[untold] = said_ns > surely_read_ns(batch, given_back[untold], stalls=True)
    return untold
