"""Readers: who is answered records of a partition, and whether its commits say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.bounds import timing_in
from kafka_trial.invariants.claim_rule import Rule, never
from kafka_trial.invariants.commits_log import AMBIGUOUS, UNKNOWN, commits_in_effect
from kafka_trial.invariants.expiries import over_ns
from kafka_trial.invariants.incarnations import members_of
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NONE, Bools, Ints, first_of, joined, ordered, per_group
from kafka_trial.invariants.progress import DELAYED, stood_still, window_ns_of
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TOLERANCE_NS, TrialContext

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

NOBODY = -1
WHOSE = "nobody knows who made a commit on the partition meanwhile"


@invariant(
    "rogue-reader",
    family="resources",
    needs=("offsets log", "requests", "snapshot"),
    level="none",
    progress_in_kafka=True,
    severity=410,
    rule=Rule(never),
    message="member {member} was sent {fetched_bytes} bytes of {place}, for {lasted_ms} ms, without a commit",
)
def rogue_reader(batch: Batch) -> Findings:
    """A member was answered records of a partition for longer than W, and never committed on it: bytes that no commit
    explains.

    Lag is read from commits: "the position of all consumers in a consumer group as well as how far behind the end of
    the log they are" (Kafka, Operations, Checking Consumer Position); who reads and does not commit is not seen there,
    and loads the brokers all the same. W (`bounds.py`) is the declared commit interval on top of detection and a
    rebalance. Legal while a fault on this member, or on all, was in force or was healed less than W before; undecided
    where the machine stood still, or where nobody knows who committed there. Partitions of other topics are not seen.

    Smallest history: m0's FETCH from 0 is answered 100 bytes; eleven seconds later its FETCH from 1 is; phase snapshot.

    Usual cause: Somebody fetched records and never committed: a partition read outside the group, or thrown away.

    Remedy: Look which member it is; do not fetch what is not assigned.
    """
    reads = _reads(batch)
    window_ns = window_ns_of(batch.trial_context)
    reads = reads.take((reads["last_ns"] - reads["first_ns"] > window_ns) & ~_explained(batch, reads, by_nobody=False))
    reads = reads.take(~_under_own_fault(batch.trial_context, reads, window_ns))
    delayed = stood_still(batch.trial_context, reads["first_ns"], reads["last_ns"])
    unclear = _explained(batch, reads, by_nobody=True) & ~delayed
    found = reads.take(~delayed & ~unclear)
    members = batch.trial_context.members
    return Findings(
        table(
            slice=found["slice"],
            order=found["member"],
            member=np.array([members[number] for number in found["member"].tolist()], dtype=object),
            fetched_bytes=found["bytes"],
            offset=found["position"],
            lasted_ms=(found["last_ns"] - found["first_ns"]) // 1_000_000,
        ),
        [(found["source"], found["seq"]), (found["last_source"], found["last_seq"])],
        [(DELAYED, reads["slice"][delayed]), (WHOSE, reads["slice"][unclear])],
    )


def _reads(batch: Batch) -> Table:
    """Returns one row for each partition and member that was answered bytes of it before the snapshot."""
    snapshot_ns = batch.trial_context.snapshot_ns
    asks = batch.of(Kind.FETCH_ASKED)
    asks = asks.having(
        at_ns=batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]),
        member=members_of(batch, asks["lane"], otherwise=NOBODY),
    )
    answered = (asks["answered_bytes"] > 0) & (asks["member"] != NOBODY)
    asks = asks.take(answered & (asks["at_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)))
    asks = asks.take(ordered(asks["slice"], asks["member"], asks["at_ns"], asks["source"], asks["seq"]))
    pair = joined(asks["slice"], asks["member"])
    first = first_of(pair)
    last = np.append(first[1:], len(asks)) - 1 if len(first) else first
    sizes = np.add.reduceat(asks["answered_bytes"], first) if len(first) else first
    return table(
        slice=asks["slice"][first],
        member=asks["member"][first],
        position=asks["fetch_position"][first],
        first_ns=asks["at_ns"][first],
        last_ns=asks["at_ns"][last],
        bytes=sizes,
        source=asks["source"][first].astype(np.int64),
        seq=asks["seq"][first],
        last_source=asks["source"][last].astype(np.int64),
        last_seq=asks["seq"][last],
    )


def _explained(batch: Batch, reads: Table, *, by_nobody: bool) -> Bools:
    """Returns whether the reader, or (`by_nobody`) somebody unknown, committed on the partition since it began."""
    snapshot_ns = batch.trial_context.snapshot_ns
    log = commits_in_effect(batch).take(
        commits_in_effect(batch)["effect_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)
    )
    log = log.take(np.isin(log["committer"], (UNKNOWN, AMBIGUOUS)) == by_nobody)
    whose = np.zeros(len(log), np.int64) if by_nobody else log["committer"]
    wanted = np.zeros(len(reads), np.int64) if by_nobody else reads["member"]
    latest = _latest(np.concatenate([log["slice"], reads["slice"]]), np.concatenate([whose, wanted]), log["effect_ns"])
    explained: Bools = latest[len(log) :] >= reads["first_ns"] - TOLERANCE_NS
    return explained


def _latest(slices: Ints, whose: Ints, effect_ns: Ints) -> Ints:
    """Returns for each (slice, whose) the latest of the commits, which are the first rows; NONE where there is none."""
    pair = np.unique(joined(slices, whose - int(whose.min(initial=0))), return_inverse=True)[1]
    size = int(pair.max(initial=-1)) + 1
    return per_group(pair[: len(effect_ns)], effect_ns, size, how="max", start=NONE)[pair]


def _under_own_fault(trial_context: TrialContext, reads: Table, window_ns: int) -> Bools:
    """Returns where a fault on the reader, or on nobody in particular, was in force while it read, or just before."""
    touched = np.zeros(len(reads), np.bool_)
    ends_ns = over_ns(trial_context, timing_in(trial_context), window_ns)
    for window in trial_context.windows:
        known = window.member in trial_context.members
        mine = reads["member"] == (trial_context.members.index(str(window.member)) if known else NOBODY)
        during = (window.injected_ns <= reads["last_ns"]) & (reads["first_ns"] <= ends_ns[window.number])
        touched |= during & (mine | (window.member is None))
    return touched
