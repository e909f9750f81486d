"""Acknowledged commits: is everything that was answered with "stored" in the offsets log?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.circumstances import TOLERANCE_NS
from kafka_trial.invariants.commits_log import OPERATOR, members_of
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NONE, Bools, Ints, between, exactly, first_of, joined, ordered, picked
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

ANOTHER_TIME = "the position is in the log, but of another time than its acknowledgement"
REFUSED = "the member says that it was stored, the request log that it was refused"


@invariant("commit-lost", family="commits", needs=("offsets log", "snapshot"), level="none", progress_in_kafka=True)
def commit_lost(batch: Batch) -> Findings:
    """A commit was acknowledged, to the member or by the request log, and its position is nowhere in the offsets log.

    "The broker sends a successful offset commit response to the consumer only after all the replicas of the offsets
    topic receive the offsets" (Kafka, Implementation, Consumer Offset Tracking). Never legal. Judged up to the
    snapshot, for there the witness was asked to read to the end. One anomaly a position. Undecided where the position
    is in the log at a time at which the answer cannot have been for it, or where the member's word alone stands against
    a refusal in the request log. What a transaction committed and then aborted is in the log, and not lost; what EndTxn
    acknowledges is not looked at.

    Smallest history: `commit` ok 1, phase snapshot, and the witness read to the end.
    """
    acked = _acknowledged(batch)
    log = batch.of(Kind.COMMITTED)
    log = log.having(at_ns=batch.monotonic(log["wall_ns"], log["time_ns"]))
    both = joined(np.concatenate([log["slice"], acked["slice"]]), np.concatenate([log["offset"], acked["value"]]))
    stored, wanted = both[: len(log)], both[len(log) :]
    order = ordered(stored, log["at_ns"])
    stored, at_ns = stored[order], log["at_ns"][order]
    first, end = between(stored, at_ns, wanted, acked["since_ns"], acked["until_ns"] + 1)
    there = exactly(stored, stored, wanted, wanted) >= 0
    missing = acked.having(target=wanted, there=there).take(end <= first)
    missing = missing.take(ordered(missing["target"], missing["own"], missing["time_ns"], missing["source"]))
    one = first_of(missing["target"])
    return _findings(batch, missing, one)


def _findings(batch: Batch, missing: Table, one: Ints) -> Findings:
    """Returns one finding a position; `one` is the first acknowledgement of each, those of the request log first."""
    lost = missing.take(one)
    contradicted = lost["own"] & _refused(batch, lost)
    found = lost.take(~lost["there"] & ~contradicted)
    rows = table(
        slice=found["slice"],
        order=found["value"],
        committed_offset=found["value"],
        by=np.array(["request log", "own word"], dtype=object)[found["own"].astype(np.int64)],
    )
    said = missing.take(missing["own"])
    own = said.take(first_of(said["target"]))
    word = exactly(own["target"], own["target"], found["target"], found["target"])
    proofs = [(found["source"], found["seq"]), (picked(own["source"], word, -1), picked(own["seq"], word, -1))]
    undecided = [
        (ANOTHER_TIME, lost["slice"][lost["there"]]),
        (REFUSED, lost["slice"][~lost["there"] & contradicted]),
    ]
    return Findings(rows, proofs, undecided)


def _acknowledged(batch: Batch) -> Table:
    """Returns the acknowledgements until the snapshot: slice, value, since_ns and until_ns (when it took effect), own.

    By the request log a commit took effect while it was answered; by a member's word at any time before. A position
    below 0 is none: clients answer so for partitions of which they had nothing to commit.
    """
    asked = batch.commit_requests
    member = members_of(batch, asked["who"], otherwise=OPERATOR)
    asked = asked.take((asked["flag"] == 0) & (member != OPERATOR))
    answered_ns = batch.monotonic(asked["wall_ns"], asked["time_ns"])
    told = batch.own.take(batch.own["kind"] == Kind.COMMIT_OK)
    both = stacked(
        _asked(asked, answered_ns - asked["until"] - TOLERANCE_NS, answered_ns, own=False),
        _asked(told, np.full(len(told), NONE), told["time_ns"], own=True),
    )
    snapshot_ns = batch.circumstances.snapshot_ns
    before: Bools = both["time_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)
    return both.take(before & (both["value"] >= 0))


def _asked(rows: Table, since_ns: Ints, answered_ns: Ints, *, own: bool) -> Table:
    return table(
        slice=rows["slice"],
        value=rows["offset"],
        since_ns=since_ns,
        until_ns=answered_ns + TOLERANCE_NS,
        own=np.full(len(rows), own),
        time_ns=rows["time_ns"],
        source=rows["source"].astype(np.int64),
        seq=rows["seq"],
    )


def _refused(batch: Batch, acked: Table) -> Bools:
    """Returns whether a broker refused the same position."""
    refused = batch.of(Kind.COMMIT_REQUEST)
    refused = refused.take(refused["flag"] != 0).sorted_by("slice", "offset")
    return exactly(refused["slice"], refused["offset"], acked["slice"], acked["value"]) >= 0
