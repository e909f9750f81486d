"""Liveness of commits: is what a member handled committed in time, and does whoever is answered records commit?"""

from __future__ import annotations

import numpy as np

from kafka_trial.invariants import commits_log
from kafka_trial.invariants.batch import Batch
from kafka_trial.invariants.claim_rule import Rule, never, no_rogue_reader_claimed
from kafka_trial.invariants.clients import incarnation_at, incarnation_of, members_of
from kafka_trial.invariants.commits_log import AMBIGUOUS, UNKNOWN, commits_in_effect
from kafka_trial.invariants.handlers import first_done, first_handled_of_records
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    between,
    counts,
    first_of,
    joined,
    next_in,
    ordered,
    per_group,
    picked,
    running_max,
)
from kafka_trial.invariants.liveness_bounds import fault_ends_ns, stall_window_s, timing_in
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.ownership_log import owners_in_turn
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import LOG_TOLERANCE_NS, TOLERANCE_NS, TrialContext
from kafka_trial.invariants.undecided import Undecided

SECOND_NS = 1_000_000_000


@invariant(
    "uncommitted-progress",
    family="liveness",
    needs=("records", "own word", "offsets log", "snapshot"),
    level="events",
    progress_in_kafka=True,
    severity=390,
    rule=Rule(never),
    message="record {offset} of {place} was processed {lasted_ms} ms before a commit covered it",
)
def uncommitted_progress(batch: Batch) -> Findings:
    """A record and all before it were handled, its member held the partition on, and for W no commit covered it.

    "The committed position is the last offset that has been stored securely. Should the process fail and restart, this
    is the offset that the consumer will recover to" (KafkaConsumer, Javadoc); a team declares how often it is stored. W
    is here that interval plus detection and a rebalance. It differs from `false-lag` in its time: `false-lag` is what
    stands at the snapshot, after the load (all handled, the position behind or never committed); this is progress that
    stayed uncommitted in the middle of the trial, and was committed in the end. Records not covered at the snapshot are
    left to `false-lag`, `stuck-partition` and `late-convergence`. Legal if the partition changed hands meanwhile, and
    while a fault is in force or was healed less than W before. Undecided if the machine stood still.

    Smallest history: `processed` 0; eleven seconds later committed 1; phase snapshot.

    Usual cause: Work was done long before its position was committed: a crash would repeat all of it.

    Remedy: Commit more often, also while a partition is quiet.
    """
    snapshot_ns, window_ns = _snapshot_ns(batch.trial_context), window_ns_of(batch.trial_context)
    records, ready_ns = batch.records, _ready_ns(batch)
    covering = commits_log.first_covering(batch, records["slice"], records["offset"])
    covered_ns = picked(commits_in_effect(batch)["effect_ns"], covering, NEVER)
    due_ns = np.where(ready_ns == NEVER, NEVER, ready_ns + window_ns)
    late = (covered_ns - TOLERANCE_NS > due_ns) & (covered_ns <= snapshot_ns) & _held(batch, ready_ns, due_ns)
    late &= ~under_fault(batch.trial_context, ready_ns, due_ns, window_ns)
    rows = np.flatnonzero(late)
    episode = joined(records["slice"][rows], covering[rows])
    first = first_of(episode)
    sizes = counts(np.cumsum(np.isin(np.arange(len(rows)), first)) - 1, len(first))
    rows, delayed = rows[first], machine_stalled(batch.trial_context, ready_ns[rows[first]], due_ns[rows[first]])
    found, commit = rows[~delayed], covering[rows[~delayed]]
    handled = first_handled_of_records(batch).row[found]
    return Findings(
        table(
            slice=records["slice"][found],
            order=records["offset"][found],
            offset=records["offset"][found],
            records=sizes[~delayed],
            committed_offset=commits_in_effect(batch)["committed_offset"][commit],
            lasted_ms=(covered_ns[found] - ready_ns[found]) // 1_000_000,
        ),
        [
            (first_done(batch)["source"][handled], first_done(batch)["seq"][handled]),
            (commits_in_effect(batch)["source"][commit], commits_in_effect(batch)["seq"][commit]),
        ],
        [(Undecided.DELAYED, records["slice"][rows[delayed]])],
    )


def window_ns_of(trial_context: TrialContext) -> int:
    """Returns W in nanoseconds."""
    return int(stall_window_s(timing_in(trial_context)) * SECOND_NS)


def under_fault(trial_context: TrialContext, since_ns: Array, until_ns: Array, window_ns: int) -> Bools:
    """Returns where a fault was in force in a stretch of time, or was not lived down before it."""
    touched = np.zeros(len(since_ns), np.bool_)
    ends_ns = fault_ends_ns(trial_context, timing_in(trial_context), window_ns)
    for window in trial_context.windows:
        touched |= (window.injected_ns <= until_ns) & (since_ns <= ends_ns[window.number])
    return touched


def machine_stalled(trial_context: TrialContext, since_ns: Array, until_ns: Array) -> Bools:
    """Returns where the machine stood still, in a stretch of time, for over a quarter of the session timeout."""
    patience_ns = trial_context.session_timeout_s / 4 * SECOND_NS
    still = np.zeros(len(since_ns), np.bool_)
    for at, delay in trial_context.delays:
        if delay > patience_ns:
            still |= (since_ns <= at) & (at - delay <= until_ns)
    return still


def _ready_ns(batch: Batch) -> Ints:
    """Returns since when each record and all before it had been handled; NEVER where one of them never was, or nobody
    knows when, for it was told out of a buffer."""
    first = first_handled_of_records(batch)
    untold = batch.vague(picked(first_done(batch)["source"], first.row, -1))
    slices, handled_ns = batch.records["slice"], np.where(untold, NEVER, first.time_ns)
    return handled_ns[running_max(slices, handled_ns)] if len(slices) else handled_ns


def _held(batch: Batch, since_ns: Ints, until_ns: Ints) -> Bools:
    """Returns where the ownership epoch that was opened last before a stretch of time lasts through it, the only
    one."""
    held: Table = ownership_epochs(batch).sorted_by("slice", "open_ns")
    slices = batch.records["slice"]
    now = at_or_before(held["slice"], held["open_ns"], slices, since_ns)
    following = picked(held["open_ns"], next_in(held["slice"]), NEVER)
    alone = (picked(held["close_ns"], now, NONE) >= until_ns) & (picked(following, now, NONE) >= until_ns)
    return (now >= 0) & alone


def _snapshot_ns(trial_context: TrialContext) -> int:
    return NEVER - 1 if trial_context.snapshot_ns is None else trial_context.snapshot_ns


NOBODY = -1


@invariant(
    "rogue-reader",
    family="resources",
    needs=("offsets log", "requests", "snapshot"),
    level="none",
    progress_in_kafka=True,
    severity=410,
    rule=Rule(no_rogue_reader_claimed),
    message="member {member} was sent {fetched_bytes} bytes of {place}, for {lasted_ms} ms, without a commit",
)
def rogue_reader(batch: Batch) -> Findings:
    """A member was answered records of a partition for longer than W, and never committed on it: bytes that no commit
    explains.

    Lag is read from commits: "the position of all consumers in a consumer group as well as how far behind the end of
    the log they are" (Kafka, Operations, Checking Consumer Position). A member that reads without committing is not
    seen there, and still loads the brokers. W is here the declared commit interval plus detection and a rebalance.
    Legal while a fault on this member, or on all, was in force or was healed less than W before. Legal for records sent
    to it as the owner by the offsets log, if it lost the partition, or was stopped, before it had handled anything
    there, or within W after that: its client had fetched ahead, no commit was due, and the next owner handles the rest.
    Undecided if the machine stood still, or if it is unknown who committed there. Partitions of other topics are not
    seen.

    Smallest history: m0's FETCH from 0 is answered 100 bytes; eleven seconds later its FETCH from 1 is; phase snapshot.

    Usual cause: Somebody fetched records and never committed: a partition read outside the group, or thrown away.

    Remedy: Look which member it is; do not fetch what is not assigned.
    """
    reads = _reads(batch)
    window_ns = window_ns_of(batch.trial_context)
    reads = reads.take((reads["last_ns"] - reads["first_ns"] > window_ns) & ~_explained(batch, reads, by_nobody=False))
    reads = reads.take(~_under_own_fault(batch.trial_context, reads, window_ns))
    delayed = machine_stalled(batch.trial_context, reads["first_ns"], reads["last_ns"])
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
        [(Undecided.DELAYED, reads["slice"][delayed]), (Undecided.COMMITTER_UNKNOWN, reads["slice"][unclear])],
    )


def _reads(batch: Batch) -> Table:
    """Returns one row for each partition and member that was answered bytes of it before the snapshot, and might have
    handled them."""
    snapshot_ns = batch.trial_context.snapshot_ns
    asks = batch.of(Kind.FETCH_ASKED)
    asks = asks.having(
        at_ns=batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]),
        member=members_of(batch, asks["lane"], otherwise=NOBODY),
    )
    answered = (asks["answered_bytes"] > 0) & (asks["member"] != NOBODY)
    asks = asks.take(answered & (asks["at_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)))
    asks = asks.take(~_fetched_ahead(batch, asks))
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


def _fetched_ahead(batch: Batch, asks: Table) -> Bools:
    """Returns which fetches an owner of the partition made and then lost it, or was stopped, by the snapshot, before
    anything had been handled there for W since it had become the owner."""
    held = owners_in_turn(batch)
    row = at_or_before(held["slice"], held["since_ns"], asks["slice"], asks["at_ns"] + LOG_TOLERANCE_NS)
    incarnation = incarnation_at(batch, asks["member"], asks["at_ns"])
    exited_ns = picked(batch.incarnations["exited_ns"], incarnation, NONE)
    since_ns = picked(held["since_ns"], row, NEVER)
    lost_ns = np.minimum(picked(held["until_ns"], row, NEVER), np.where(exited_ns == NONE, NEVER, exited_ns))
    due_ns = np.minimum(lost_ns, NEVER - 1) - window_ns_of(batch.trial_context) + 1
    effects, done = batch.of(Kind.EFFECT), batch.of(Kind.PROCESSED)
    by_anyone = table(slice=effects["slice"], member=np.full(len(effects), NOBODY), time_ns=effects["time_ns"])
    by_member = table(
        slice=done["slice"],
        member=picked(batch.incarnations["member"], incarnation_of(batch, done["source"]), NOBODY - 1),
        time_ns=done["time_ns"],
    )
    worked = np.zeros(len(asks), np.bool_)
    for handled, whose in ((by_anyone, np.full(len(asks), NOBODY)), (by_member, asks["member"])):
        both = joined(
            *(np.concatenate(pair) for pair in ((handled["slice"], asks["slice"]), (handled["member"], whose)))
        )
        mine, wanted = both[: len(handled)], both[len(handled) :]
        order = ordered(mine, handled["time_ns"])
        first, end = between(mine[order], handled["time_ns"][order], wanted, since_ns, due_ns)
        worked |= end > first
    own = picked(held["member"], row, NOBODY) == asks["member"]
    return own & ~worked & (lost_ns <= _snapshot_ns(batch.trial_context)) & (asks["at_ns"] <= lost_ns + TOLERANCE_NS)


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
    ends_ns = fault_ends_ns(trial_context, timing_in(trial_context), window_ns)
    for window in trial_context.windows:
        known = window.member in trial_context.members
        mine = reads["member"] == (trial_context.members.index(str(window.member)) if known else NOBODY)
        during = (window.injected_ns <= reads["last_ns"]) & (reads["first_ns"] <= ends_ns[window.number])
        touched |= during & (mine | (window.member is None))
    return touched
