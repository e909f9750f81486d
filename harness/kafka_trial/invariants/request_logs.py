"""Request logs: whether, and until when, they tell of every request that the members sent; and what was answered."""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_trial.invariants.batch import Batch, index
from kafka_trial.invariants.clients import members_at
from kafka_trial.invariants.incarnations import members_of
from kafka_trial.invariants.kernels import NEVER, NONE
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table
from kafka_trial.invariants.trial_context import TrialContext

FENCING: Final = (22, 25, 82, 110)  # errors that tell a member that it is out of its group: see `fencing.py`
COMMITS: Final = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
LAST_LINES_NS = 1_000_000_000  # of a broker that ends: what it did just before may not be in its log
STOPS_A_BROKER = ("broker-kill", "broker-restart", "broker-pause", "rolling-restart")  # its last lines may be missing


def read_to_end(trial_context: TrialContext) -> bool:
    """Tells whether every broker's request log was read to its end."""
    logs = [name for name in trial_context.counts if name.startswith("requests-")]
    return bool(logs) and all(trial_context.witnesses.get(name) == "complete" for name in logs)


def complete_until_ns(trial_context: TrialContext) -> int:
    """Returns until when no request can be missing: all logs were read to the end (else NONE), and a broker that is
    stopped may not have written its last lines; NEVER where none was."""
    if not read_to_end(trial_context):
        return NONE
    stops = [window.injected_ns for window in trial_context.windows if window.fault in STOPS_A_BROKER]
    return min(stops) - LAST_LINES_NS if stops else NEVER


@index
def position_answers(batch: Batch) -> Table:
    """Returns the positions brokers answered to members: slice, member, at_ns, committed_offset; sorted by
    the first three.

    `client`: the group member that asked, where several live in the process (-1: not told), else the process itself.
    """
    answers = batch.of(Kind.FETCH_ANSWER)
    answers = answers.having(
        client=members_at(batch, answers["lane"], answers["connection"], np.full(len(answers), -1)),
        member=members_of(batch, answers["lane"], otherwise=-1),
        at_ns=batch.monotonic(answers["answered_wall_ns"], answers["time_ns"]),
    )
    return answers.take((answers["error_code"] == 0) & (answers["member"] >= 0)).sorted_by("slice", "member", "at_ns")
