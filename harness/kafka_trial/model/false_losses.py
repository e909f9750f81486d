"""False losses: `lost` lines of a partition that their member cannot have lost, but was asked to give back.

Partitions are lost, and not revoked, where the member is out of its group already: a broker refused it, its session or
its poll interval ran out, it had left. What is in hand then cannot be prevented from ending, which excuses it
(`work-after-revoke`). The brokers know of each of these; where they saw none, the line counts as `revoked`. A request
log that lacks the answer that gave the partition may lack the one that took it: then the line is believed
(`evidence_complete`).

Not listed by the word "lost" alone: a member with an instance id does not say that its poll interval ran out, and a
Java client that is closed while its group rebalances calls what it still has lost (`onLeavePrepare`).

`corroborated` are a member's callbacks as far as brokers bear them out; what they contradict acquits nobody.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafka_trial.history.consequences import Consequence
from kafka_trial.model.batch import Batch, index
from kafka_trial.model.client_attribution import callbacks
from kafka_trial.model.clients import incarnation_of, known_clients
from kafka_trial.model.false_assignments import evidence_complete, is_uncorroborated
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    exactly,
    in_ranges,
    joined,
    last_true,
    ordered,
    picked,
    previous_in,
    running_max,
)
from kafka_trial.model.ownership_log import logged_assignments
from kafka_trial.model.response_delivery import LATE_OR_LOST
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import Table, table
from kafka_trial.model.trial_context import TOLERANCE_NS, GroupAnswer, HeartbeatRun, TrialContext, Window

# Answers that leave a member in its group: to be retried, or to be followed by a request that is told the new epoch.
KEEPS: Final = (0, 27, 79, 113)
REBALANCING: Final = 27
SECOND_NS: Final = 1_000_000_000
OF_ALL: Final = -2
MAY_END_SESSION: Final = (*LATE_OR_LOST, Consequence.CUTS_OFF)  # it may end a session behind a member's back


@index
def false_losses(batch: Batch) -> Table:
    """Returns the `lost` lines that tell of no loss: slice, source, seq; sorted."""
    lines = callbacks(batch)
    lines = lines.take(~is_uncorroborated(batch, lines))
    opened = last_true(lines["file"], lines["kind"] == Kind.ASSIGNED)
    before = previous_in(lines["file"])
    follows = (before >= 0) & (picked(lines["kind"], before, 0) == Kind.ASSIGNED)
    refutable = follows & (lines["kind"] == Kind.LOST) & evidence_complete(batch, lines["source"], lines["time_ns"])
    member = picked(batch.incarnations["member"], incarnation_of(batch, lines["source"]), -1)
    shared = [batch.trial_context.lanes[lane] for lane in known_clients(batch).lanes]
    lost = np.flatnonzero(refutable & ~np.isin(member, shared))
    said = batch.written_ns(lines["source"], lines["time_ns"])
    rows = lines.take(lost).having(
        member=member[lost],
        from_ns=said[opened[lost]],
        until_ns=lines["time_ns"][lost] + batch.uncertainty(lines["source"], lines["time_ns"])[lost],
    )
    for can_be_one in (
        (_refused, _said_goodbye, _without_answers, _disturbed, _given_away, _closing) if len(rows) else ()
    ):
        rows = rows.take(~can_be_one(batch, rows))
    return rows.only("slice", "source", "seq").sorted_by("slice", "source", "seq")


def is_no_loss(batch: Batch, rows: Table) -> Bools:
    """Returns which rows (slice, source, seq, kind) are `lost` lines that tell of no loss."""
    found, size = false_losses(batch), len(batch.trial_context.sources) + 1
    files, of_files = (one["slice"] * size + one["source"] for one in (found, rows))
    there: Bools = exactly(files, found["seq"], of_files, rows["seq"]) >= 0
    return there & (rows["kind"] == Kind.LOST)


# --- by answers ----------------------------------------------------------------------------------------------------


def _refused(batch: Batch, rows: Table) -> Bools:
    """Returns which members had been refused, had left, or have an instance id; a broker stamps its answer when it has
    been sent, and the line may be read before that."""
    refusals = [one for one in batch.trial_context.group_answers if one.error not in KEEPS or one.api == "LEAVE_GROUP"]
    static = {one.member for one in batch.trial_context.group_answers if one.instance_id is not None}
    read = rows.having(until_ns=np.maximum(rows["until_ns"], rows["time_ns"] + SECOND_NS))
    return _between(_begun(batch, refusals), read) | np.isin(rows["member"], sorted(static))


def _said_goodbye(batch: Batch, rows: Table) -> Bools:
    """Returns which members had left by a heartbeat (KIP-848); a request is read a moment after its answer."""
    about = batch.trial_context
    if not about.speaks("consumer"):
        return np.zeros(len(rows), np.bool_)
    leaves = [(about.lanes[lane], at_ns) for lane, at_ns in about.declared_timeouts.leaves if lane in about.lanes]
    member, at_ns = np.array(sorted(leaves), np.int64).reshape(-1, 2).T
    return _between(table(member=member, at_ns=at_ns), rows.having(until_ns=rows["until_ns"] + SECOND_NS))


def _closing(batch: Batch, rows: Table) -> Bools:
    """Returns which members were rebalancing, and were given nothing more by then on: they were being closed."""
    answers = [one for one in batch.trial_context.group_answers if one.member >= 0]
    rebalancing = _begun(batch, [one for one in answers if one.error == REBALANCING or one.api == "JOIN_GROUP"])
    assigned = _begun(batch, [one for one in answers if one.assigned is not None])
    since = at_or_before(rebalancing["member"], rebalancing["at_ns"], rows["member"], rows["until_ns"])
    since_ns = picked(rebalancing["at_ns"], since, NEVER)
    next_one = at_or_after(assigned["member"], assigned["at_ns"], rows["member"], since_ns)
    exited_ns = picked(batch.incarnations["exited_ns"], incarnation_of(batch, rows["source"]), NONE)
    end_ns = np.where(exited_ns == NONE, NEVER, exited_ns)
    closing: Bools = (since_ns != NEVER) & (picked(assigned["at_ns"], next_one, NEVER) > end_ns - 1)
    return closing


def _begun(batch: Batch, answers: list[GroupAnswer]) -> Table:
    """Returns the member and the beginning (at_ns) of requests that were answered, sorted."""
    wall_ns = np.array([NONE if one.wall_ns is None else one.wall_ns for one in answers], np.int64)
    time_ns, lasted_ns, member = (
        np.array([getattr(one, name) for one in answers], np.int64) for name in ("time_ns", "duration_ns", "member")
    )
    begun = table(member=member, at_ns=batch.monotonic(wall_ns, time_ns) - lasted_ns)
    return begun.take(member >= 0).sorted_by("member", "at_ns")


def _between(moments: Table, rows: Table) -> Bools:
    """Returns which rows have a moment of their member between the opening and the line."""
    first = at_or_after(moments["member"], moments["at_ns"], rows["member"], rows["from_ns"])
    there: Bools = picked(moments["at_ns"], first, NEVER) <= rows["until_ns"]
    return there


# --- by what was not answered --------------------------------------------------------------------------------------


def _without_answers(batch: Batch, rows: Table) -> Bools:
    """Returns which members were answered neither heartbeat nor join for a session, less the tolerance.

    Commits do not count, though a broker takes them for a sign of life: no client does.
    """
    about = batch.trial_context
    ours = [one for one in about.heartbeat_runs if one.lane in about.lanes]
    member = np.array([about.lanes[one.lane] for one in ours], np.int64)
    begin_ns, end_ns = (_at(batch, ours, f"{side}_wall_ns", f"{side}_time_ns") for side in ("first", "last"))
    order = ordered(member, begin_ns)
    member, begin_ns, end_ns = member[order], begin_ns[order], end_ns[order]
    reached_ns = end_ns[running_max(member, end_ns)] if len(end_ns) else end_ns
    before = previous_in(member)
    session_ns = int(about.session_timeout_s * SECOND_NS) - TOLERANCE_NS
    # A gap that ended before the opening is none of the ownership epoch's; one in force at the line ends there.
    first = at_or_before(member, begin_ns, rows["member"], rows["from_ns"])
    first = np.where(first >= 0, first, at_or_after(member, begin_ns, rows["member"], rows["from_ns"]))
    last = at_or_before(member, begin_ns, rows["member"], rows["time_ns"])
    still = rows["time_ns"] - picked(reached_ns, last, 0) >= session_ns
    gap = (before >= 0) & (begin_ns - picked(reached_ns, before, 0) >= session_ns)
    so_far = np.cumsum(gap)
    inside = picked(so_far, last, 0) - picked(so_far, first, 0) > 0
    without_answers: Bools = (last < 0) | still | inside
    return without_answers


def _at(batch: Batch, ours: list[HeartbeatRun], wall: str, time: str) -> Ints:
    walls = np.array([NONE if (at := getattr(one, wall)) is None else at for one in ours], np.int64)
    return batch.monotonic(walls, np.array([getattr(one, time) for one in ours], np.int64))


def _disturbed(batch: Batch, rows: Table) -> Bools:
    """Returns which members a fault had stopped or cut off within a session and a poll interval before the line: what
    a broker answered then they may not have received, and the callback waits for the next poll."""
    about = batch.trial_context
    poll_interval_s = about.declared_timeouts.rebalance_timeout_s or about.settings.poll_interval_s
    wait_ns = int((about.session_timeout_s + poll_interval_s) * SECOND_NS) + TOLERANCE_NS
    disturbed = np.zeros(len(rows), np.bool_)
    for window in about.windows:  # faults, not events: some dozens at most
        if window.does(*MAY_END_SESSION):
            begun_ns = window.begun_ns
            until_ns = NEVER if window.healed_ns is None else window.healed_ns + wait_ns
            inside = (rows["until_ns"] >= begun_ns) & (rows["time_ns"] <= until_ns)
            disturbed |= inside & _meant(about, window, rows["member"])
    return disturbed


def _meant(trial_context: TrialContext, window: Window, members: Ints) -> Bools:
    names = [window.member in (None, name) for name in trial_context.members]
    meant: Bools = np.array([*names, True], np.bool_)[members]
    return meant


# --- by the offsets log --------------------------------------------------------------------------------------------


def _given_away(batch: Batch, rows: Table) -> Bools:
    """Returns which partitions the offsets log had given to others since, or had taken away with the membership."""
    assignment_records = (
        logged_assignments(batch)
        .take(logged_assignments(batch)["protocol"] != Protocol.CONSUMER_PENDING)
        .sorted_by("slice", "time_ns")
    )
    which, found = _inside(assignment_records["slice"], assignment_records["time_ns"], rows["slice"], rows)
    to_others = which[assignment_records["member"][found] != rows["member"][which]]
    ends = _membership_ends(batch)
    which, found = _inside(np.zeros(len(ends), np.int64), ends["at_ns"], np.zeros(len(rows), np.int64), rows)
    names = ("slice", "log_offset", "member")
    asked = table(slice=rows["slice"][which], log_offset=ends["log_offset"][found], member=rows["member"][which])
    both = joined(*(np.concatenate([assignment_records[name], asked[name]]) for name in names))
    listed = np.isin(both[len(assignment_records) :], both[: len(assignment_records)])
    whose = ends["member"][found]
    ended = which[np.where(whose == OF_ALL, ~listed, whose == rows["member"][which])]
    taken: Bools = np.isin(np.arange(len(rows)), np.concatenate([to_others, ended]))
    return taken


def _inside(group: Ints, at_ns: Ints, wanted: Ints, rows: Table) -> tuple[Ints, Ints]:
    """Returns (row, moment) for every moment of its group between the opening and the line."""
    return in_ranges(*between(group, at_ns, wanted, rows["from_ns"], rows["until_ns"] + 1))


def _membership_ends(batch: Batch) -> Table:
    """Returns the group records that may end a membership: `member` (OF_ALL: whoever they do not list),
    log_offset, at_ns.

    Sorted by time. Classic ones that say nothing of assignments end none.
    """
    about = batch.trial_context
    ends = [one for one in about.memberships if one.what.endswith("gone") or one.members is not None]
    owners = [OF_ALL if one.member_id < 0 else about.owners[one.member_id] for one in ends]
    wall_ns = np.array([NONE if one.wall_ns is None else one.wall_ns for one in ends], np.int64)
    at_ns = batch.monotonic(wall_ns, np.array([one.time_ns for one in ends], np.int64))
    places = np.array([one.place for one in ends], np.int64)
    return table(member=np.array(owners, np.int64), log_offset=places, at_ns=at_ns).sorted_by("at_ns")


def corroborated(batch: Batch, own: Table) -> Table:
    """Returns rows of a member's own word without the `assigned` that nobody gave, and with the `lost` that was no
    loss as the `revoked` that it was."""
    own = own.take(~is_uncorroborated(batch, own))
    kinds = np.where(is_no_loss(batch, own), Kind.REVOKED, own["kind"]).astype(own["kind"].dtype)
    return own.having(kind=kinds)
