"""The commits that took effect, in the order of the offsets log, each with its committer and the owner at that place.

A commit in a transaction takes effect at the marker that takes it, if no later record of the partition took effect
before ("existing == null || offsetAndMetadata.recordOffset > existing.recordOffset": Kafka, OffsetMetadataManager); of
several in one transaction the last one counts. One whose transaction was aborted never took effect, and a pending one
has not yet. A tombstone means "no commit": a new stretch begins. The committer comes from the request log: a line that
asked for this very position, answered without an error, around the commit's time, on a member's lane or, off the lanes,
with a member's id. One off the lanes without an id is the operator's; while the group has members nobody knows whose.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import incarnation_at, incarnation_of, known_clients, members_of
from kafka_trial.model.instants import at_earliest, at_earliest_in_logs, at_latest, at_latest_in_logs
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    covering,
    exactly,
    joined,
    max_before,
    next_in,
    ordered,
    picked,
    starts_of,
    true_or_none,
)
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.ownership_log import has_members, ownership_at
from kafka_trial.model.request_logs import commit_requests
from kafka_trial.model.rows import IN_TRANSACTION, Kind
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TOLERANCE_NS

UNKNOWN, OPERATOR, AMBIGUOUS = -1, -2, -3  # a committer that is no member
STRANGER = -4  # it asked off the lanes, and nothing tells whether it is a member or an operator
NOT_TOLD = (UNKNOWN, AMBIGUOUS, STRANGER)


@index
def commits_in_effect(batch: Batch) -> Table:
    """Returns the commits that took effect, sorted by (slice, log_offset), tombstones left out.

    Columns: those of OFFSETS_LOG_COMMITS (`families.py`); effect_ns (when it took effect); `stretch` (numbered between
    tombstones, and from where the group is on another cluster, whose positions are others); `peak`
    (the greatest committed offset before it in its stretch, NONE if none) and `peak_row`; `committer` (a member,
    UNKNOWN, OPERATOR, AMBIGUOUS or STRANGER) and its `incarnation` (-1 unknown); `owned` (1 the committer owned the
    partition there, 0 others did, -1 nobody knows).
    """
    log = _effective(batch)
    tombstones = log["kind"] == Kind.COMMIT_TOMBSTONE
    stretch = np.cumsum(tombstones | _firsts(log["slice"]) | _first_of_leg(batch, log))
    found = log.having(stretch=stretch).take(~tombstones)
    peak_row = max_before(found["stretch"], found["committed_offset"])
    committer = _committers(batch, found, "member")
    # "Member epoch is negative and the group is empty": only then is a commit without a member id taken (Kafka,
    # ConsumerGroup.validateOffsetCommit; the same for classic groups).
    refused = (committer == OPERATOR) & has_members(batch, found["log_offset"])
    committer = np.where(refused, STRANGER, committer)
    client = np.where(committer >= 0, _committers(batch, found, "client"), -1)
    effect_ns = batch.monotonic(found["effect_wall_ns"], found["effect_time_ns"])
    return found.having(
        effect_ns=effect_ns,
        peak_row=peak_row,
        peak=picked(found["committed_offset"], peak_row, NONE),
        committer=committer,
        incarnation=incarnation_at(batch, committer, effect_ns),
        owned=np.where(client >= 0, ownership_at(batch, found["slice"], client, found["log_offset"]), -1),
    )


def _first_of_leg(batch: Batch, log: Table) -> Bools:
    """Returns which rows of the offsets log are the first of their slice since the group failed over."""
    legs = legs_in_log(batch, log)
    first: Bools = (legs > 0) & starts_of(joined(log["slice"], legs))
    return first


def legs_in_log(batch: Batch, log: Table) -> Ints:
    """Returns of which leg each row of the offsets log is: how often the group had failed over by then."""
    ends = np.array([one.log_offset for one in batch.trial_context.fail_overs], np.int64)
    legs: Ints = np.searchsorted(ends, log["log_offset"], side="left").astype(np.int64)
    return legs


def from_outside(committers: Ints) -> dict[str, Array]:
    """Returns of commits whether they are from outside the members (`by_operator`), and True where the evidence does
    not show whether they are (`maybe_operator`; else None)."""
    return {"by_operator": committers == OPERATOR, "maybe_operator": true_or_none(committers == STRANGER)}


def committed_at(batch: Batch, at_ns: int | None) -> Ints:
    """Returns the committed offset of each slice that stood at `at_ns` (None: at the end of the log); NONE if none."""
    log = _effective(batch)
    if at_ns is not None:
        log = log.take(batch.monotonic(log["effect_wall_ns"], log["effect_time_ns"]) <= at_ns)
    values = np.full(batch.size, NONE, np.int64)
    values[log["slice"]] = np.where(  # the last one stays
        log["kind"] == Kind.COMMIT_TOMBSTONE, NONE, log["committed_offset"]
    )
    return values


@index
def final_committed_offsets(batch: Batch) -> Ints:
    """Returns the committed offset that stands at the end of the log, for each slice; NONE where none does.

    None at all for a consumer whose progress is not in Kafka: what it commits there means nothing.
    """
    if not batch.trial_context.settings.in_offsets_log:
        return np.full(batch.size, NONE, np.int64)
    return committed_at(batch, None)


def first_covering(batch: Batch, slices: Array, offsets: Array) -> Ints:
    """Returns, for each offset, the first commit that covers it (a greater committed offset), else -1."""
    log = commits_in_effect(batch)
    so_far = max_before(log["slice"], log["committed_offset"])
    high = np.maximum(log["committed_offset"], picked(log["committed_offset"], so_far, NONE))
    return at_or_after(log["slice"], high, slices, offsets + 1)


def requests_of(batch: Batch, commits: Table) -> tuple[Ints, Table]:
    """Returns, for each commit, a matching request's row in the table returned with it; -1 where there is none."""
    asked = _requests(batch)
    mine, wanted = _targets(asked, commits)
    order = ordered(mine, asked["answered_wall_ns"])
    asked, mine = asked.take(order), mine[order]
    found = at_or_after(mine, asked["answered_wall_ns"], wanted, at_earliest_in_logs(commits["commit_wall_ns"]))
    begun = at_earliest_in_logs(picked(asked["answered_wall_ns"], found, 0) - picked(asked["duration_ns"], found, 0))
    member = picked(asked["member"], found, UNKNOWN)
    fits = (found >= 0) & (begun <= commits["commit_wall_ns"]) & (member == commits["committer"])
    return np.where(fits, found, -1), asked


def requested_at(batch: Batch, commits: Table) -> Ints:
    """Returns when each commit was asked for, by the request log: when its request arrived (its answer was sent so much
    later as it took); where no request is known, when it took effect, by the offsets log."""
    request, asked = requests_of(batch, commits)
    arrived_ns = batch.monotonic(asked["answered_wall_ns"], asked["time_ns"]) - asked["duration_ns"]
    return np.minimum(picked(arrived_ns, request, NEVER), commits["effect_ns"])


def requested(batch: Batch, commits: Table) -> tuple[Bools, Ints]:
    """Returns whether its member said before each commit that it asks for it, and, where it did not, when it said so
    after all (NEVER: not so soon that its line may have been read late, or it asked for the position once more).

    By an event `commit` invoke of the same partition and position, in an ownership epoch that it still had then. Where
    the committer is not known, any member.
    """
    own = member_lines(batch).take(member_lines(batch)["kind"] == Kind.COMMIT_INVOKE)
    own = own.having(
        member=picked(batch.incarnations["member"], incarnation_of(batch, own["source"]), -1),
        ended_ns=picked(ownership_epochs(batch)["close_ns"], own["ownership_epoch"], NEVER),
        asked_ns=batch.written_ns(own["source"], own["time_ns"]),
    )
    log, commits = (
        rows.having(member=np.maximum(rows["committer"], UNKNOWN)) for rows in (commits_in_effect(batch), commits)
    )
    by_anybody = own.having(member=np.full(len(own), UNKNOWN))
    late_max_ns = 0 if batch.trial_context.readings else TOLERANCE_NS  # where it was measured, late lines are known
    known, unknown = (_requested(log, asked, commits, late_max_ns) for asked in (own, by_anybody))
    before, late_ns = (np.where(commits["committer"] >= 0, *pair) for pair in zip(known, unknown, strict=True))
    operators = commits["committer"] == OPERATOR
    return before & ~operators, np.where(before | operators, NEVER, late_ns)


def _requested(log: Table, asked: Table, commits: Table, late_max_ns: int) -> tuple[Bools, Ints]:
    """`log`: all commits, by whom as `asked` has it; `asked_ns` is when each line can have been written at the
    earliest. One that was written no more than `late_max_ns` after the commit may have been read late."""
    mine, wanted, stored = _positions(asked, commits, log)
    order = ordered(mine, asked["asked_ns"])
    asked, mine = asked.take(order), mine[order]
    in_time_ns = commits["effect_ns"]
    last = at_or_before(mine, asked["asked_ns"], wanted, in_time_ns)
    ended_ns = picked(asked["ended_ns"], last, NONE)
    before = (last >= 0) & (at_latest(ended_ns) >= commits["effect_ns"])
    late_ns = picked(asked["asked_ns"], at_or_after(mine, asked["asked_ns"], wanted, in_time_ns + 1), NEVER)
    late_ns = np.where(late_ns <= commits["effect_ns"] + late_max_ns, late_ns, NEVER)
    order = ordered(stored, log["effect_ns"])
    stored, stored_ns = stored[order], log["effect_ns"][order]
    again_ns = picked(stored_ns, at_or_after(stored, stored_ns, wanted, commits["effect_ns"] + 1), NEVER)
    return before, np.where(at_earliest(again_ns) > at_latest(late_ns), late_ns, NEVER)


def _positions(*tables: Table) -> list[Ints]:
    """Returns slice, position and member of each table's rows as numbers that are equal where all three are."""
    whole = joined(
        *(np.concatenate([rows[name] for rows in tables]) for name in ("slice", "committed_offset", "member"))
    )
    return np.split(whole, np.cumsum([len(rows) for rows in tables])[:-1])


def _effective(batch: Batch) -> Table:
    """Returns commits and tombstones that took effect, sorted by (slice, log_offset); and where and when they did."""
    log, aborted, taken = (
        batch.of(*kinds).sorted_by("slice", "log_offset")
        for kinds in ((Kind.COMMITTED, Kind.COMMIT_TOMBSTONE), (Kind.COMMIT_ABORTED,), (Kind.COMMIT_TAKEN,))
    )
    twin, end = (exactly(one["slice"], one["log_offset"], log["slice"], log["log_offset"]) for one in (aborted, taken))
    pending = (log["kind"] == Kind.COMMITTED) & (log["in_transaction"] == IN_TRANSACTION) & (end < 0)
    log = log.having(
        effect_log_offset=np.where(end >= 0, picked(taken["marker_log_offset"], end, NONE), log["log_offset"]),
        effect_wall_ns=np.where(end >= 0, picked(taken["marker_wall_ns"], end, NONE), log["commit_wall_ns"]),
        effect_time_ns=np.where(end >= 0, picked(taken["time_ns"], end, NONE), log["time_ns"]),
    )
    return _standing_at_all(log.take((twin < 0) & ~pending))


def _standing_at_all(log: Table) -> Table:
    """Leaves out what was replaced before it took effect: by a later record, or by one of the same transaction."""
    log = log.sorted_by("slice", "effect_log_offset", "log_offset")
    replaced = next_in(joined(log["slice"], log["effect_log_offset"])) >= 0
    log = log.take(~replaced)
    latest = max_before(log["slice"], log["log_offset"])
    late = (latest >= 0) & (picked(log["log_offset"], latest, NONE) > log["log_offset"])
    return log.take(~late).sorted_by("slice", "log_offset")


def _firsts(group: Array) -> Bools:
    first = np.ones(len(group), np.bool_)
    first[1:] = group[1:] != group[:-1]
    return first


def _committers(batch: Batch, commits: Table, who: str) -> Ints:
    """Returns who asked for each commit: the one whose accepted request matches it in position and time.

    `who`: told apart by "member", a process, or by "client", where several group members live in one.
    """
    asked = _requests(batch)
    size = len(commits)
    mine, wanted = _targets(asked, commits)
    first = at_earliest_in_logs(asked["answered_wall_ns"] - asked["duration_ns"])
    end = at_latest_in_logs(asked["answered_wall_ns"]) + 1
    committer, matches = np.full(size, UNKNOWN, np.int64), np.zeros(size, np.int64)
    for member in np.unique(asked[who]):  # some dozens at most: one for each lane
        own = asked[who] == member
        fits = covering(mine[own], first[own], end[own], wanted, commits["commit_wall_ns"]) > 0
        committer[fits & ((committer < 0) | (member >= 0))] = member
        matches += fits & (member >= 0)
    return np.where(matches > 1, AMBIGUOUS, committer)


def _targets(asked: Table, commits: Table) -> tuple[Ints, Ints]:
    """Returns what each request asked for, and what each commit is, as numbers that are equal where these are alike:
    partition, position, and whether it is part of a transaction."""
    inside = (rows["in_transaction"] == IN_TRANSACTION for rows in (asked, commits))
    target = joined(
        np.concatenate([asked["slice"], commits["slice"]]),
        np.concatenate([asked["committed_offset"], commits["committed_offset"]]),
        np.concatenate([*inside]).astype(np.int64),
    )
    return target[: len(asked)], target[len(asked) :]


def _requests(batch: Batch) -> Table:
    """Returns the accepted commit requests with their member: who runs in the lane or, off the lanes, whose id it
    bears; else OPERATOR."""
    asked = commit_requests(batch)
    asked = asked.take((asked["error_code"] == 0) & (asked["answered_wall_ns"] != NONE))
    member_id = _member_ids(batch, asked)
    in_lane = members_of(batch, asked["lane"], otherwise=OPERATOR)
    member = np.where(in_lane == OPERATOR, _by_id(batch, asked, member_id), in_lane)
    return asked.having(member=member, member_id=member_id, client=_clients_of(batch, asked, member, member_id))


def _member_ids(batch: Batch, asked: Table) -> Ints:
    """Returns the member id (a number) that each request bears, -1 for none."""
    named = batch.of(Kind.COMMIT_EPOCH).sorted_by("source", "seq")
    return picked(named["member_id"], exactly(named["source"], named["seq"], asked["source"], asked["seq"]), -1)


def _by_id(batch: Batch, asked: Table, member_id: Ints) -> Ints:
    """Returns whose id each request bears: a STRANGER's where no lane saw it. One without an id is the operator's; but
    for those in a transaction, which brokers take from anybody at any time."""
    owner = np.array([*batch.trial_context.owners, -1], np.int64)[member_id]
    stranger = (member_id >= 0) | (asked["in_transaction"] == IN_TRANSACTION)
    return np.where(owner >= 0, owner, np.where(stranger, STRANGER, OPERATOR))


def _clients_of(batch: Batch, asked: Table, member: Ints, member_id: Ints) -> Ints:
    """Returns the client behind each request: the member, where it is alone in its lane; else by the member id in the
    request, else by its connection, which in a transaction is the producer's. AMBIGUOUS where neither tells."""
    known = known_clients(batch)
    by_id = known.of_member_id[member_id]
    client = np.where(by_id >= 0, by_id, known.of_connection[asked["connection"]])
    several = np.isin(asked["lane"], sorted(known.lanes))
    return np.where(several, np.where(client >= 0, client, AMBIGUOUS), np.where(by_id >= 0, by_id, member))
