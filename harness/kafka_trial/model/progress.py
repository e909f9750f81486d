"""Progress that is committed late, and reads without a commit: how `CommittedLate` and `RogueReaders` are made."""

from __future__ import annotations

import numpy as np

from kafka_trial.model import commits_log
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import (
    client_of_connection,
    incarnation_at,
    incarnation_of,
    known_clients,
    members_of,
)
from kafka_trial.model.commits_log import AMBIGUOUS, UNKNOWN, commits_in_effect
from kafka_trial.model.handlers import first_done, first_handled_of_records
from kafka_trial.model.instants import at_earliest, at_latest, at_latest_in_logs
from kafka_trial.model.kernels import (
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
from kafka_trial.model.liveness_bounds import fault_ends_ns, stall_window_s, timing_in
from kafka_trial.model.ownership_epochs import ownership_epochs
from kafka_trial.model.ownership_log import owners_in_turn
from kafka_trial.model.partition import CommittedLate, RogueReaders
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.undecided import Undecided, undecided_because

SECOND_NS = 1_000_000_000


@index
def committed_late(batch: Batch) -> CommittedLate:
    """Returns the records that had been handled for more than W before a commit covered them."""
    about, commits = batch.trial_context, commits_in_effect(batch)
    snapshot_ns, window_ns = _snapshot_ns(about), window_ns_of(about)
    records, ready_ns = batch.records, _ready_ns(batch)
    covering = commits_log.first_covering(batch, records["slice"], records["offset"])
    covered_ns = picked(commits["effect_ns"], covering, NEVER)
    due_ns = np.where(ready_ns == NEVER, NEVER, ready_ns + window_ns)
    late = (at_earliest(covered_ns) > due_ns) & (covered_ns <= snapshot_ns) & _held(batch, ready_ns, due_ns)
    late &= ~under_fault(about, ready_ns, due_ns, window_ns)
    rows = np.flatnonzero(late)
    first = first_of(joined(records["slice"][rows], covering[rows]))
    sizes = counts(np.cumsum(np.isin(np.arange(len(rows)), first)) - 1, len(first))
    rows = rows[first]
    commit, handled = covering[rows], first_handled_of_records(batch).row[rows]
    return CommittedLate(
        {
            "slice": records["slice"][rows],
            "offset": records["offset"][rows],
            "records": sizes,
            "committed_offset": commits["committed_offset"][commit],
            "lasted_ns": covered_ns[rows] - ready_ns[rows],
            "handled_source": first_done(batch)["source"][handled],
            "handled_seq": first_done(batch)["seq"][handled],
            "commit_source": commits["source"][commit],
            "commit_seq": commits["seq"][commit],
            "why": undecided_because((Undecided.DELAYED, machine_stalled(about, ready_ns[rows], due_ns[rows]))),
        }
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


def waited_for_a_processor(trial_context: TrialContext, since_ns: Array, until_ns: Array) -> Ints:
    """Returns how long threads of members and brokers waited for one, by the samples of each stretch of time."""
    waited = np.zeros(len(since_ns), np.int64)
    for sample in trial_context.cpu_waits:
        inside = (sample.time_ns > since_ns) & (sample.time_ns - sample.over_ns < until_ns)
        waited += np.where(inside, sample.waited_ns, 0)
    return waited


def _ready_ns(batch: Batch) -> Ints:
    """Returns since when each record and all before it had been handled; NEVER where one of them never was, or nobody
    knows when, for it was told out of a buffer."""
    first = first_handled_of_records(batch)
    untold = batch.untimed(picked(first_done(batch)["source"], first.row, -1))
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


@index
def rogue_readers(batch: Batch) -> RogueReaders:
    """Returns the members that were answered records for more than W without a commit that explains it."""
    reads, about = _reads(batch), batch.trial_context
    window_ns = window_ns_of(about)
    reads = reads.take(reads["last_ns"] - reads["first_ns"] > window_ns)
    reads = reads.take(reads["twice"] | ~_explained(batch, reads, by_nobody=False))
    reads = reads.take(~_under_own_fault(about, reads, window_ns))
    why = undecided_because(
        (Undecided.DELAYED, machine_stalled(about, reads["first_ns"], reads["last_ns"])),
        (Undecided.COMMITTER_UNKNOWN, ~reads["twice"] & _explained(batch, reads, by_nobody=True)),
    )
    client_ids = np.array([*(one.client_id for one in about.connections), None], dtype=object)
    return RogueReaders(reads.columns).having(
        member_name=np.array([*about.members, None], dtype=object)[reads["member"]],
        client_id=client_ids[np.where(reads["twice"], reads["client"], -1)],
        offset=reads["position"],
        lasted_ns=reads["last_ns"] - reads["first_ns"],
        why=why,
    )


def _clients_outside_groups(batch: Batch, asks: Table) -> Ints:
    """Returns of each fetch the first connection with its client's id, where that client was never seen in a group, nor
    to commit, though another one was that read the partition in the same member; else -1. Clients of a process that
    holds several members of the group are not told apart here."""
    about, client = batch.trial_context, client_of_connection(batch.trial_context)
    grouped = {(one.lane, one.client_id) for one in about.connections if one.of_group or one.client_id is None}
    shared = known_clients(batch).lanes
    inside = [(one.lane, one.client_id) in grouped or one.lane in shared for one in about.connections]
    is_inside = np.array([*inside, True])[asks["connection"]]
    pair = np.unique(joined(asks["slice"], asks["member"] + 1), return_inverse=True)[1]
    beside = np.bincount(pair, weights=is_inside, minlength=int(pair.max(initial=-1)) + 1)[pair] > 0
    return np.where(beside & ~is_inside, client[asks["connection"]], -1)


def _read_beside(asks: Table, window_ns: int) -> set[tuple[int, int, int]]:
    """Returns slice, member and client of those outside groups who read for more than W beside one in a group: both
    went on reading, without a pause longer than W. Commits explain what one of them was sent."""
    at_ns, who = asks["at_ns"], joined(asks["slice"], asks["member"], asks["client"] + 1)
    new = np.ones(len(asks), np.bool_)
    new[1:] = (who[1:] != who[:-1]) | (at_ns[1:] - at_ns[:-1] > window_ns)
    begins, ends = at_ns[new], at_ns[np.roll(new, -1)]
    slices, members, clients = (asks[name][new] for name in ("slice", "member", "client"))
    found = set[tuple[int, int, int]]()
    for one in np.flatnonzero((clients >= 0) & (ends - begins > window_ns)).tolist():
        others = (slices == slices[one]) & (members == members[one]) & (clients < 0)
        together_ns = np.minimum(ends[others], ends[one]) - np.maximum(begins[others], begins[one])
        if (together_ns > window_ns).any():
            found.add((int(slices[one]), int(members[one]), int(clients[one])))
    return found


def _reads(batch: Batch) -> Table:
    """Returns one row for each partition and member that was answered bytes of it before the snapshot, and might have
    handled them; a row of its own for a client outside groups, `client` (else -1), where one in a group read it too.
    `twice`: that one read beside it."""
    snapshot_ns = batch.trial_context.snapshot_ns
    asks = batch.of(Kind.FETCH_ASKED)
    asks = asks.having(
        at_ns=batch.monotonic(asks["answered_wall_ns"], asks["time_ns"]),
        member=members_of(batch, asks["lane"], otherwise=NOBODY),
    )
    answered = (asks["answered_bytes"] > 0) & (asks["member"] != NOBODY)
    asks = asks.take(answered & (asks["at_ns"] <= (NONE if snapshot_ns is None else snapshot_ns)))
    asks = asks.take(~_fetched_ahead(batch, asks))
    asks = asks.having(client=_clients_outside_groups(batch, asks))
    asks = asks.sorted_by("slice", "member", "client", "at_ns", "source", "seq")
    beside = _read_beside(asks, window_ns_of(batch.trial_context))
    first = first_of(joined(asks["slice"], asks["member"], asks["client"] + 1))
    last = np.append(first[1:], len(asks)) - 1 if len(first) else first
    sizes = np.add.reduceat(asks["answered_bytes"], first) if len(first) else first
    who = zip(*(asks[name][first].tolist() for name in ("slice", "member", "client")), strict=True)
    return table(
        twice=np.array([one in beside for one in who], np.bool_),
        slice=asks["slice"][first],
        member=asks["member"][first],
        client=asks["client"][first],
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
    row = at_or_before(held["slice"], held["since_ns"], asks["slice"], at_latest_in_logs(asks["at_ns"]))
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
    return own & ~worked & (lost_ns <= _snapshot_ns(batch.trial_context)) & (asks["at_ns"] <= at_latest(lost_ns))


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
    explained: Bools = latest[len(log) :] >= at_earliest(reads["first_ns"])
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
