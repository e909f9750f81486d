"""How `Unhandled` is made; what its columns mean stands in `partition.py`.

A claim of at-most-once excuses records that were in flight when their member crashed. The excuse covers one member, one
attempt, one time. Either the member crashed soon after it had committed, when it could have the record: one of its
fetches can have brought it. Or the member cannot know that its commit took effect (`indeterminate_commits.py`): then it
must not handle the record, and no other member will.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model import indeterminate_commits
from kafka_trial.model.batch import index
from kafka_trial.model.commits import reporter_killed
from kafka_trial.model.commits_log import commits_in_effect, final_committed_offsets, first_covering
from kafka_trial.model.handler_retries import handler_starts
from kafka_trial.model.handlers import finished_handlers, first_handled_of_records
from kafka_trial.model.instants import at_earliest_in_logs, at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Bools,
    Ints,
    at_or_before,
    exactly,
    first_of,
    joined,
    max_before,
    next_in,
    ordered,
    per_group,
    picked,
    value_at,
)
from kafka_trial.model.ownership_epochs import BY_EXIT, SAID, STILL_OPEN, member_lines, ownership_epochs
from kafka_trial.model.partition import Unhandled
from kafka_trial.model.request_logs import LATE_NS_MAX, never_fetched
from kafka_trial.model.rows import CALLBACKS, Kind
from kafka_trial.model.start_positions import answers_with_starts
from kafka_trial.model.table import FILE, Table, is_among, last_until
from kafka_trial.model.trial_context import TOLERANCE_NS
from kafka_trial.model.truncations import overwritten
from kafka_trial.model.undecided import Undecided, undecided_because

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch
    from kafka_trial.model.kernels import Bools, Ints


@index
def unhandled(batch: Batch) -> Unhandled:
    """Returns the records that nobody had handled by the snapshot."""
    snapshot_ns = batch.trial_context.snapshot_ns
    handled_ns = first_handled_of_records(batch).time_ns
    left = handled_ns > (NEVER - 1 if snapshot_ns is None else snapshot_ns)
    records = batch.records.take(left)
    commit = first_covering(batch, records["slice"], records["offset"])
    committed = records["offset"] < final_committed_offsets(batch)[records["slice"]]
    return Unhandled(records.columns).having_when_asked(
        handled_ns=lambda: handled_ns[left],
        after_truncation=lambda: overwritten(batch)[left],
        committed=lambda: committed,
        commit=lambda: commit,
        in_flight_at_crash=lambda: in_flight(batch, records, commit),
        why=lambda: undecided_because((Undecided.UNCERTAIN_AFTER_KILL, committed & _reporter_killed(batch, commit))),
    )


def _reporter_killed(batch: Batch, commit: Ints) -> Bools:
    """Returns whether that is so of each commit, a row of `Commits`."""
    killed: Bools = value_at(reporter_killed(batch), commit, False)
    return killed


SECOND_NS = 1_000_000_000


def in_flight(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether each lost record was in flight; `commits` are the first commits that cover them, -1 for none."""
    if not len(commits_in_effect(batch)) or not len(lost):
        return np.zeros(len(lost), np.bool_)
    unknown = indeterminate_commits.unknown_to_member(batch)
    not_told = unknown & ~indeterminate_commits.accepted_by_own_line(batch)
    log, (last, since_ns) = commits_in_effect(batch), _last_position_before_crash(batch, not_told)
    crashed: Bools = picked(last & _may_be_at_work(batch, since_ns), commits, 0) == 1
    incarnation = picked(log["incarnation"], commits, -1)
    crashed |= (picked(last, commits, 0) == 1) & _to_be_tried_again(batch, lost, incarnation)
    crashed |= _unfinished_at_crash(batch, lost, incarnation)
    never_told = picked(unknown & ~indeterminate_commits.known_later(batch), commits, 0) == 1
    crashed = crashed & ~_delivered_beyond(batch, lost, commits) & ~_never_in_hand(batch, lost, commits)
    excused: Bools = never_told | crashed
    return excused


def _last_position_before_crash(batch: Batch, unknown: Bools) -> tuple[Bools, Ints]:
    """Returns for each commit whether its position is the last one that its incarnation committed on the partition
    before it crashed; and when the member first knew that this position was committed (NONE where it is not the last).

    Clients repeat a commit while a record is in hand, but not one of before they last got the partition. Of a position
    of which the member saw no answer, the one that it committed next counts too: it may have tried again by that.
    """
    log = commits_in_effect(batch)
    order = ordered(log["slice"], log["incarnation"])
    group = joined(log["slice"], log["incarnation"])[order]
    got = last_until(
        ownership_epochs(batch), log, "slice", "incarnation", by="open_ns", until=at_latest(log["effect_ns"])
    )
    heads = first_of(group, got[order], log["committed_offset"][order])
    run = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(log))))  # of commits of the same position
    following = next_in(group[heads])
    is_last, before_last = following < 0, picked((following < 0).astype(np.int64), following, 0) == 1
    places = np.where(unknown[order], NEVER, np.arange(len(log)))
    first_known = per_group(run, places, len(heads), how="min", start=NEVER)
    never_known = first_known == NEVER
    known = np.where(never_known, np.append(heads[1:], len(log)) - 1, first_known)
    counts_with = np.where(is_last[run], run, np.where((never_known & before_last)[run], following[run], -1))
    last, known_ns = np.zeros(len(log), np.bool_), np.full(len(log), NONE)
    last[order] = counts_with >= 0
    known_ns[order] = picked(log["effect_ns"][order], picked(known, counts_with, -1), NONE)
    return last & (picked(batch.incarnations["crashed"], log["incarnation"], 0) == 1), known_ns


def _may_be_at_work(batch: Batch, since_ns: Ints) -> Bools:
    """Returns for each commit whether its incarnation ended soon after that time, or with a record in hand, which
    by its own lines it had begun and never ended."""
    log, incarnations = commits_in_effect(batch), batch.incarnations
    at_work: Bools = picked(incarnations["in_hand"], log["incarnation"], 0) > 0
    return at_work | (picked(incarnations["exited_ns"], log["incarnation"], NEVER) <= since_ns + _soon_ns(batch))


def _soon_ns(batch: Batch) -> int:
    """Returns how long a batch is in hand at most: the poll interval, or longer where the consumer declares that a
    handler takes longer."""
    settings = batch.trial_context.settings
    return int(max(settings.poll_interval_s, settings.handler_max_s or 0) * SECOND_NS) + TOLERANCE_NS


def _to_be_tried_again(batch: Batch, lost: Table, incarnation: Ints) -> Bools:
    """Returns whether the incarnation's last line on the partition is an attempt that failed with the record, or with
    one before it: its next attempt may be due at any later time."""
    said = member_lines(batch)
    said = said.take((said["told_by"] == SAID) & ((said["offset"] != NONE) | np.isin(said["kind"], CALLBACKS)))
    wanted = lost.only("slice").having(source=picked(batch.incarnations["source"], incarnation, -1))
    last = last_until(said, wanted, *FILE, by="seq", until=np.full(len(lost), NEVER))
    waits: Bools = picked(said["kind"], last, 0) == Kind.FAILED
    return waits & (picked(said["offset"], last, NEVER) <= lost["offset"])


def _unfinished_at_crash(batch: Batch, lost: Table, incarnation: Ints) -> Bools:
    """Returns whether the incarnation still had the record itself in hand when it crashed, though it went on with
    others: by its lines it works on several of the partition at once, and had begun this one and never ended it, or
    failed with it soon before. Not where it had lost the partition since."""
    own, source = member_lines(batch), picked(batch.incarnations["source"], incarnation, -1)
    wanted = lost.only("slice", "offset").having(source=source)
    said = own.take((own["told_by"] == SAID) & np.isin(own["kind"], (Kind.DELIVERED, Kind.PROCESSED, Kind.FAILED)))
    last = last_until(said, wanted, *FILE, "offset", by="seq", until=np.full(len(lost), NEVER))
    closed_by = picked(ownership_epochs(batch)["closed_by"], picked(said["ownership_epoch"], last, -1), BY_EXIT)
    crashed = picked(batch.incarnations["crashed"], incarnation, 0) == 1
    soon = picked(batch.incarnations["exited_ns"], incarnation, NEVER) - _soon_ns(batch)
    kind = picked(said["kind"], last, 0)
    waits = (kind == Kind.FAILED) & (picked(said["time_ns"], last, NONE) >= soon)
    in_hand: Bools = crashed & ((kind == Kind.DELIVERED) | waits) & np.isin(closed_by, (BY_EXIT, STILL_OPEN))
    return in_hand & is_among(wanted, _at_once(batch), *FILE)


def _at_once(batch: Batch) -> Table:
    """Returns the handlers that began while another one of the partition and file had not ended. A batch is no such
    thing."""
    ended = finished_handlers(batch)  # sorted by (slice, source, start_seq)
    before = max_before(joined(ended["slice"], ended["source"]), ended["end_seq"])
    beside = picked(ended["end_seq"], before, NONE) > ended["start_seq"]
    return ended.take(beside & (batch.trial_context.settings.handler != "batch"))


def _delivered_beyond(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether the incarnation had skipped each record: its lines show that it began a later one and never this
    one, or a broker had answered it a position above this one to start from."""
    log, begun = commits_in_effect(batch), handler_starts(batch)
    source = picked(batch.incarnations["source"], picked(log["incarnation"], commits, -1), -1)
    file = joined(*(np.concatenate(pair) for pair in ((begun["slice"], lost["slice"]), (begun["source"], source))))
    file = np.unique(file, return_inverse=True)[1]
    mine, wanted = file[: len(begun)], file[len(begun) :]
    highest = per_group(mine, begun["offset"], len(file), how="max", start=NONE)[wanted]
    order = ordered(mine, begun["offset"])
    itself = exactly(mine[order], begun["offset"][order], wanted, lost["offset"]) >= 0
    left_out: Bools = ~itself & (highest > lost["offset"])
    return left_out | _began_above(batch, lost, commits)


def _never_in_hand(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether no fetch of the committer's incarnation can have brought each record before its crash, by the
    request log."""
    incarnation = picked(commits_in_effect(batch)["incarnation"], commits, -1)
    source, exited_ns = (picked(batch.incarnations[name], incarnation, -1) for name in ("source", "exited_ns"))
    rows = lost.only("slice", "offset").having(source=source, time_ns=exited_ns)
    # What it had asked for may be logged late; after its end it asked for nothing.
    logged = rows.having(time_ns=exited_ns + LATE_NS_MAX)
    return never_fetched(batch, rows) & never_fetched(batch, logged)


def _began_above(batch: Batch, lost: Table, commits: Ints) -> Bools:
    """Returns whether the last position answered to the committer before its commit is above each record."""
    log, answers, size = commits_in_effect(batch), answers_with_starts(batch), len(batch.trial_context.members) + 1
    told = at_or_before(
        answers["slice"] * size + answers["member"] + 1,
        answers["at_ns"],
        lost["slice"] * size + np.maximum(picked(log["committer"], commits, -1), -1) + 1,
        at_earliest_in_logs(picked(log["effect_ns"], commits, NONE)),
    )
    above: Bools = picked(answers["committed_offset"], told, NONE) > lost["offset"]
    return above
