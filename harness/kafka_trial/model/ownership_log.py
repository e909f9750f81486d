"""Who owned a partition by the offsets log: the broker's word, in its own order.

Classic: owners are the members whose assignment in a group record lists the partition; a record that gives it to nobody
leaves the last owner in place, because the recommended commit on revoke comes after the record that takes it away.
KIP-848: owners are the members that have it assigned or pending revocation; when the last one lets go it stays the
owner until another gets it.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.batch import Batch, index
from kafka_trial.model.clients import known_clients
from kafka_trial.model.group_presence import ANYBODY, members_after
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    composites,
    covering,
    first_of,
    joined,
    max_before,
    next_in,
    ordered,
    picked,
    starts_of,
)
from kafka_trial.model.rows import Kind, Protocol
from kafka_trial.model.table import Table, is_among, last_until, table
from kafka_trial.model.wall_clock import done_ns


@index
def logged_assignments(batch: Batch) -> Table:
    """Returns slice, member_id, member (-1 unknown), client, protocol, log_offset,
    until_log_offset, time_ns, source, seq; sorted by slice and log_offset.

    The member id has the partition from `log_offset` to `until_log_offset`, as the records say; nobody's gaps are left
    open.
    `client` is the group member, where several live in one process (`clients.py`), else the process itself.
    """
    rows = batch.of(Kind.ASSIGNMENT_RECORD).sorted_by("slice", "log_offset")
    classic = rows["protocol"] == Protocol.CLASSIC
    listed = _next_listing(rows["slice"], rows["log_offset"])
    next_owned = np.where(classic, listed, _next_classic(rows, classic))
    until = np.where(classic, next_owned, np.minimum(rows["until_log_offset"], next_owned))
    of_id = known_clients(batch).of_member_id
    owners = np.array([*batch.trial_context.owners, -1], np.int64)
    return table(
        slice=rows["slice"],
        member_id=rows["member_id"].astype(np.int64),
        member=owners[rows["member_id"]],
        client=np.where(of_id[rows["member_id"]] >= 0, of_id[rows["member_id"]], owners[rows["member_id"]]),
        protocol=rows["protocol"].astype(np.int64),
        log_offset=rows["log_offset"],
        until_log_offset=until,
        time_ns=batch.monotonic(rows["append_wall_ns"], rows["time_ns"]),
        source=rows["source"],
        seq=rows["seq"],
    )


def has_members(batch: Batch, places: Array) -> Bools:
    """Returns whether the group surely has members at each place of the log."""
    known = _memberships(batch).sorted_by("place")
    row = at_or_before(np.zeros(len(known), np.int64), known["place"], np.zeros(len(places), np.int64), places)
    there: Bools = picked(known["populated"], row, 0) == 1
    return there


@index
def _memberships(batch: Batch) -> Table:
    """Returns place, at_ns and `populated` (1: surely with members) of each group record, sorted by time and place."""
    about = batch.trial_context
    populated = [any(one != ANYBODY for one in present) for present in members_after(about.memberships)]
    times = done_ns(about, [(one.wall_ns, one.time_ns) for one in about.memberships])
    return table(
        place=np.array([one.place for one in about.memberships], np.int64),
        at_ns=np.array(times, np.int64),
        populated=np.array(populated, np.int64),
    ).sorted_by("at_ns", "place")


def owners_in_turn(batch: Batch) -> Table:
    """Returns slice, member, since_ns, until_ns (NEVER: to the end) of those that the records list one after the other,
    sorted by slice and since_ns; a member stays until a record lists another one."""
    rows = logged_assignments(batch).sorted_by("slice", "time_ns", "log_offset")
    rows = rows.take(starts_of(rows["slice"], rows["member"]))
    until_ns = picked(rows["time_ns"], next_in(rows["slice"]), NEVER)
    return rows.only("slice", "member").having(since_ns=rows["time_ns"], until_ns=until_ns)


def filled(batch: Batch) -> Table:
    """Returns the assignment records with nobody's gaps closed: the last owner stays until another gets the
    partition."""
    assignment_records = logged_assignments(batch)
    highest = max_before(assignment_records["slice"], assignment_records["until_log_offset"])
    gap_before = (highest >= 0) & (
        picked(assignment_records["until_log_offset"], highest, NEVER) < assignment_records["log_offset"]
    )
    until = assignment_records["until_log_offset"].copy()
    resumed = np.flatnonzero(gap_before)
    _stretch(
        assignment_records,
        until,
        picked(assignment_records["until_log_offset"], highest, 0)[resumed],
        assignment_records["slice"][resumed],
        assignment_records["log_offset"][resumed],
    )
    last = np.ones(len(assignment_records), np.bool_)
    last[:-1] = assignment_records["slice"][1:] != assignment_records["slice"][:-1]
    ends = np.flatnonzero(last)
    peak = np.maximum(
        picked(assignment_records["until_log_offset"], highest, 0)[ends], assignment_records["until_log_offset"][ends]
    )
    _stretch(assignment_records, until, peak, assignment_records["slice"][ends], np.full(len(ends), NEVER))
    return assignment_records.having(until_log_offset=until)


def owned_by(batch: Batch, slices: Array, members: Array, places: Array) -> Bools:
    """Returns whether one of the member's ids has the partition at that place of the log (gaps left open).

    A member is a process, or one of several clients in it (`clients.py`).
    """
    by_client = logged_assignments(batch).having(member=logged_assignments(batch)["client"])
    return _held(logged_assignments(batch), slices, members, places) | _held(by_client, slices, members, places)


def others_hold(batch: Batch, slices: Array, members: Array, at_ns: Array) -> Bools:
    """Returns whether at each time the offsets log surely gives the partition to another member than that one, who is
    in the group: not where an owner's id was never seen on any lane."""
    rows, known = logged_assignments(batch), _memberships(batch)
    if not len(rows):
        return np.zeros(len(slices), np.bool_)
    row = at_or_before(np.zeros(len(known), np.int64), known["at_ns"], np.zeros(len(at_ns), np.int64), at_ns)
    place = picked(known["place"], row, NONE)
    anybody = covering(rows["slice"], rows["log_offset"], rows["until_log_offset"], slices, place) > 0
    strangers = _held(rows, slices, np.full(len(slices), -1), place)
    return anybody & ~strangers & ~owned_by(batch, slices, members, place) & has_members(batch, place)


def last_given(batch: Batch, slices: Array, members: Array, at_ns: Array) -> tuple[Ints, Ints]:
    """Returns when, by then, each partition was last given to the member (a process, or one of several clients in it),
    and to which member id; NONE and -1 where it never was. What it has still to give up is not given."""
    rows = logged_assignments(batch)
    rows = rows.take(rows["protocol"] != Protocol.CONSUMER_PENDING)
    given_ns, member_id = np.full(len(slices), NONE), np.full(len(slices), -1)
    for whose in ("member", "client"):
        wanted = Table({"slice": slices, whose: members})
        last = last_until(rows, wanted, "slice", whose, by="time_ns", until=at_ns)
        newer = picked(rows["time_ns"], last, NONE) > given_ns
        given_ns = np.where(newer, picked(rows["time_ns"], last, NONE), given_ns)
        member_id = np.where(newer, picked(rows["member_id"], last, -1), member_id)
    return given_ns, member_id


def never_given(batch: Batch, slices: Array, members: Array) -> Bools:
    """Returns whether the offsets log, which knows all owners of each partition, never gave it to the member."""
    rows = logged_assignments(batch)
    known = np.isin(slices, rows["slice"]) & ~np.isin(slices, rows["slice"][rows["member"] < 0])
    never = known & ~is_among(table(slice=slices, member=members), rows, "slice", "member")
    return never & np.bool_(batch.trial_context.witnesses.get("offsets") == "complete")


def ownership_at(batch: Batch, slices: Array, clients: Array, places: Array) -> Ints:
    """Returns 1 where the client owns the partition at that place of the log, 0 where others do, -1 where unknown.

    Unknown: no record before the place gave it to anybody, or an owner's id was never seen on any lane.
    """
    whole = filled(batch)
    whole = whole.having(member=whole["client"])
    if not len(whole):
        return np.full(len(slices), -1, np.int64)
    anybody = covering(whole["slice"], whole["log_offset"], whole["until_log_offset"], slices, places) > 0
    strangers = _held(whole, slices, np.full(len(slices), -1), places)
    return np.where(_held(whole, slices, clients, places), 1, np.where(anybody & ~strangers, 0, -1))


def _held(assignment_records: Table, slices: Array, members: Array, places: Array) -> Bools:
    if not len(assignment_records):
        return np.zeros(len(slices), np.bool_)
    size = max(int(assignment_records["member"].max()), int(members.max(initial=0))) + 2
    group, wanted = (
        s * size + m + 1 for s, m in ((assignment_records["slice"], assignment_records["member"]), (slices, members))
    )
    return covering(group, assignment_records["log_offset"], assignment_records["until_log_offset"], wanted, places) > 0


def _stretch(assignment_records: Table, until: Ints, old: Array, slices: Array, new: Array) -> None:
    """Lets the assignment records of `slices` that end at `old` last until `new`."""
    order = ordered(assignment_records["slice"], assignment_records["until_log_offset"])
    keys, wanted = composites(
        (assignment_records["slice"][order], assignment_records["until_log_offset"][order]), (slices, old)
    )
    low, high = np.searchsorted(keys, wanted, side="left"), np.searchsorted(keys, wanted, side="right")
    for side in range(int((high - low).max(initial=0))):  # members that let go in the very same record: one, or two
        rows = low + side < high
        until[order[low[rows] + side]] = new[rows]


def _next_listing(slices: Array, places: Array) -> Ints:
    """Returns the place of the next record that lists the partition, for each assignment record sorted by place; NEVER
    if none."""
    place = joined(slices, places) if len(slices) else slices
    first = first_of(place)
    following = next_in(slices[first])
    after = np.where(following >= 0, places[first][following], NEVER)
    sizes = np.diff(np.append(first, len(slices)))
    return np.repeat(after, sizes)


def _next_classic(rows: Table, classic: Bools) -> Ints:
    """Returns the place of the next classic record that lists the partition; NEVER if none."""
    listed = rows.take(classic)
    following = at_or_after(listed["slice"], listed["log_offset"], rows["slice"], rows["log_offset"] + 1)
    return picked(listed["log_offset"], following, NEVER)
