"""Liveness: after the faults were healed and the load had stopped, did every partition converge, and in time?"""

from __future__ import annotations

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, always, on_the_partition, sharing_an_event
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.group import Group
from kafka_trial.model.kernels import NEVER, NONE, Array, Bools
from kafka_trial.model.liveness_bounds import (
    bound_in_words,
    window_in_words,
)
from kafka_trial.model.stuck_classes import CLASSES
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TOLERANCE_NS
from kafka_trial.model.undecided import Undecided

SECOND_NS = 1_000_000_000


@invariant(
    "false-lag",
    family="liveness",
    needs=("records", "handled", "offsets log", "snapshot"),
    level="sink",
    of="group",
    progress_in_kafka=True,
    of_the_end=True,
    intermediate_too=True,
    severity=200,
    rule=Rule(always),
    message="{place} ends with a lag of {records} ({committed_offset} of {log_end}), though all {done}{before} "
    "and {within} had passed",
    follows={"commit-regression": sharing_an_event, "commit-lost": on_the_partition},
)
def false_lag(group: Group) -> Findings:
    """All readable records were handled, and yet the committed offset stays behind the end: the lag is false.

    "Lag is the difference between the log end offset and the committed offset" (Kafka, Monitoring): operators are
    alerted although all work is done. Undecided while the drain is shorter than B. Judged only if progress lives in
    Kafka.

    Smallest history: record 0 `processed`, no commit, phase drain; thirteen seconds later phase snapshot.

    Usual cause: All records were done, but the committed position stands below them: the last offset was committed
    instead of the next one, a commit on close was lost, or an old member's commit set it back.

    Remedy: Commit offset + 1; commit on revocation and before close; retry a refused commit while you own the
    partition.
    """
    found = group.slices.take(_is_false_lag(group))
    rows = table(
        slice=found["slice"],
        order=found["end"],
        records=found["lag"],
        committed_offset=found["committed"],
        log_end=found["end"],
        lasted_ms=(group.snapshot_ns - found["all_handled_ns"]) // 1_000_000,
        within=_each(bound_in_words(group.timing), found),
    )
    proofs = [("regression_source", "regression_seq"), ("commit_source", "commit_seq")]
    return Findings(rows, [(found[source], found[seq]) for source, seq in proofs])


@invariant(
    "stuck-partition",
    family="liveness",
    needs=("records", "moves", "offsets log", "snapshot"),
    level="sink",
    of="group",
    intermediate_too=True,
    severity=180,
    rule=Rule(always),
    message="{place} stood still at record {offset} for {within} or longer, with {records} unprocessed "
    "({class}{last_fetch})",
    deciding=("class",),
    follows={"orphan-partition": on_the_partition},
)
def stuck_partition(group: Group) -> Findings:
    """A partition with records left saw no delivery, no completion and no progress of its commits for a whole window.

    A group must detect a lost member, rebalance and go on (KIP-62). The window W is a session, a commit interval and
    the longest pause that any partition made in this trial, or the longest handler, but no more than the poll interval;
    if nothing moved at all, three heartbeats. Giving a record to one owner for the third time is no progress. Undecided
    while the drain is shorter than W. While other partitions progress, or a record is in hand that was given out less
    than a poll interval ago, the drain must have been as long as B too. Legal if the machine itself stood still.

    Smallest history: record 0, phase drain; eleven seconds later phase snapshot.

    Usual cause: A partition stood still with records in it. Its class says where: it had no owner, it was not fetched
    (paused?), its last fetch was refused, what was fetched cannot be decoded, it was not handed out, not worked on, or
    its commits failed.

    Remedy: Follow the class: resume after a rebalance, reset a position that is out of range, catch what the
    deserializer throws and go on behind it, bound the handler, look at refused commits.
    """
    waiting = _is_waiting(group)
    delayed = group.machine_stalled(group.snapshot_ns - int(group.window_s * SECOND_NS))
    stuck = waiting & np.full(len(waiting), group.drained_long_enough and not delayed)
    found = group.slices.take(stuck)
    rows = table(
        slice=found["slice"],
        order=found["open_offset"],
        offset=found["open_offset"],
        records=found["open"],
        within=_each(window_in_words(group.timing), found),
        fetch_error=found["last_fetch_error"],
        fetched_before_s=np.where(
            found["last_fetch_ns"] == NONE, NONE, (group.snapshot_ns - found["last_fetch_ns"]) // SECOND_NS
        ),
        **{"class": np.array(CLASSES, dtype=object)[found["stuck_class"]]},
    )
    proofs = [("open_source", "open_seq"), ("commit_source", "commit_seq")]
    reason = Undecided.DELAYED if delayed else _why_undecided(group)
    return Findings(
        rows,
        [(found[source], found[seq]) for source, seq in proofs],
        [(reason, group.slices["slice"][waiting & ~stuck])],
    )


@invariant(
    "late-convergence",
    family="liveness",
    needs=("records", "moves", "offsets log", "snapshot"),
    level="sink",
    of="group",
    intermediate_too=True,
    severity=210,
    rule=Rule(always),
    message="{place} had not converged within {within}, {convergence}",
    follows={"head-of-line-blocking": on_the_partition},
)
def late_convergence(group: Group) -> Findings:
    """A partition was not done, or its position not at the end, within B of the healing, and it is neither stuck nor in
    a false lag.

    Whatever broke, a group that is left alone must recover (KIP-62, KIP-848) within a time that follows from its own
    settings. Undecided while the drain is shorter than B, or if the machine was slower or busier in it by as much.
    Legal if the machine stood still. If the group goes round in circles (the same records come for the third time or
    more, and nothing else progresses for W), it is late without waiting for B.

    Smallest history: record 0, phase drain; thirteen seconds later `processed` 0, committed 1, phase snapshot.

    Usual cause: After the faults were healed the group took longer than it may: long sessions, long handlers, slow
    restarts.

    Remedy: Shorten session.timeout.ms and max.poll.interval.ms, or claim the time it needs with converge_within_s.
    """
    slices = group.slices
    apart = (slices["records"] > 0) & ~_is_false_lag(group) & ~_is_stuck(group)
    never = apart & (slices["converged_ns"] == NEVER)
    due_ns = group.drain_ns + TOLERANCE_NS
    after = apart & ~never & (slices["converged_ns"] > due_ns + group.bound_ns)
    overdue = after & (slices["converged_ns"] > due_ns + group.bound_with_allowance_ns)
    overdue |= never & (group.drained_ns >= group.overdue_ns)
    delayed = group.machine_stalled(group.drain_ns)
    late = overdue & np.full(len(after), not delayed)
    found = slices.take(late)
    rows = table(
        slice=found["slice"],
        order=found["end"],
        bound_s=np.full(len(found), round(group.bound_s, 3), dtype=object),
        within=_each(bound_in_words(group.timing), found),
        records=found["open"],
        converged_after_s=np.array(
            [
                None if at == NEVER else round((at - group.drain_ns) / SECOND_NS, 3)
                for at in found["converged_ns"].tolist()
            ],
            dtype=object,
        ),
    )
    reason = Undecided.DELAYED if delayed else group.short_reason
    return Findings(
        rows,
        [(found["open_source"], found["open_seq"]), (found["commit_source"], found["commit_seq"])],
        [(reason, slices["slice"][(never | after) & ~late])],
    )


def _is_false_lag(group: Group) -> Bools:
    slices = group.slices
    lagging: Bools = (slices["open"] == 0) & (slices["lag"] > 0)
    return lagging & np.full(len(slices), group.in_kafka)


def _is_waiting(group: Group) -> Bools:
    """Records are left, and nothing has moved for the length of the window."""
    slices = group.slices
    still: Bools = slices["moved_ns"] < group.snapshot_ns - int(group.window_s * SECOND_NS)
    return still & (slices["open"] > 0)


def _is_stuck(group: Group) -> Bools:
    return _is_waiting(group) & np.full(len(group.slices), group.drained_long_enough)


def _why_undecided(group: Group) -> str:
    if group.patience_s == group.window_s:
        return Undecided.DRAIN_SHORT.format(what=window_in_words(group.timing))
    return group.short_reason


def _each(text: str, found: Table) -> Array:
    return np.full(len(found), text, dtype=object)
