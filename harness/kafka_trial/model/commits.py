"""How `Commits` and `CommitRegressions` are made; what their columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model.batch import index
from kafka_trial.model.commits_log import (
    AMBIGUOUS,
    OPERATOR,
    UNKNOWN,
    commits_in_effect,
    final_committed_offsets,
    from_outside,
    requests_of,
)
from kafka_trial.model.handlers import first_handled_of_records
from kafka_trial.model.instants import at_latest
from kafka_trial.model.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    covering,
    in_ranges,
    per_group,
    picked,
    previous_in,
    starts_of,
    true_or_none,
)
from kafka_trial.model.log_ends import log_ends
from kafka_trial.model.long_silences import told_of_all
from kafka_trial.model.ownership_epochs import member_lines, ownership_epochs
from kafka_trial.model.ownership_log import logged_assignments
from kafka_trial.model.partition import CommitRegressions, Commits
from kafka_trial.model.rows import Kind
from kafka_trial.model.start_positions import answers_with_starts
from kafka_trial.model.table import FILE, Table, last_until, table
from kafka_trial.model.trial_context import TOLERANCE_NS
from kafka_trial.model.truncations import truncated_away
from kafka_trial.model.wall_clock import done_ns

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def commits(batch: Batch) -> Commits:
    """Returns the commits that took effect."""
    log = commits_in_effect(batch)
    outside = from_outside(log["committer"])
    return Commits(log.columns).having_when_asked(
        member_name=lambda: _names(batch, log["committer"]),
        own=lambda: _own(log),
        by_operator=lambda: outside["by_operator"],
        maybe_operator=lambda: outside["maybe_operator"],
        partition_was_owned=lambda: np.isin(log["slice"], np.unique(logged_assignments(batch)["slice"])),
        owner_source=lambda: picked(logged_assignments(batch)["source"], _owners(batch), -1),
        owner_seq=lambda: picked(logged_assignments(batch)["seq"], _owners(batch), -1),
        request_source=lambda: _requests(batch)["source"],
        request_seq=lambda: _requests(batch)["seq"],
        reporter_killed=lambda: reporter_killed(batch),
        passes_unhandled=lambda: _passes_unhandled(batch),
        log_end=lambda: picked(log_ends(batch)["position"], _ends_after(batch), NEVER),
        end_source=lambda: picked(log_ends(batch)["source"], _ends_after(batch), -1),
        end_seq=lambda: picked(log_ends(batch)["seq"], _ends_after(batch), -1),
        longest_end=lambda: _longest_ends(batch)[log["slice"]],
        cut_off=lambda: _cut_off(batch),
    )


@index
def commit_regressions(batch: Batch) -> CommitRegressions:
    """Returns the episodes below an earlier committed offset."""
    log = commits_in_effect(batch)
    low = log["committed_offset"] < log["peak"]
    run = np.cumsum(starts_of(log["stretch"], low)) if len(log) else low.astype(np.int64)
    first = np.flatnonzero(low & starts_of(run))
    begins = np.flatnonzero(starts_of(run))
    following = np.searchsorted(begins, first, side="right")
    after = (
        np.where(following < len(begins), begins[following.clip(0, max(len(begins) - 1, 0))], -1)
        if len(begins)
        else first
    )
    slices = log["slice"][first]
    same = (after >= 0) & (picked(log["stretch"], after, -1) == log["stretch"][first])
    further = picked(log["slice"], after, -1) == slices
    gone = np.where(further, ~same, final_committed_offsets(batch)[slices] == NONE)
    episodes = CommitRegressions(
        {"slice": slices, "fell_row": first, "recovered_row": np.where(same, after, -1), "deleted": gone}
    )
    return episodes.having_when_asked(
        restart_inside=lambda: _restarted_inside(batch, episodes),
        asked_earlier=lambda: ~np.isin(run[first], run[_falls(log) & low & ~_asked_earlier(batch)]),
    )


def _names(batch: Batch, members: Ints) -> Array:
    return np.array([*batch.trial_context.members, None], dtype=object)[np.maximum(members, -1)]


def _own(log: Table) -> Array:
    owned = np.where(log["committer"] == OPERATOR, 0, log["owned"])
    own: Array = np.array([None, False, True], dtype=object)[owned + 1]
    return own


@index
def _owners(batch: Batch) -> Ints:
    """Returns the last assignment record of the partition before each commit."""
    log, given = commits_in_effect(batch), logged_assignments(batch)
    return at_or_before(given["slice"], given["log_offset"], log["slice"], log["log_offset"])


@index
def _requests(batch: Batch) -> Table:
    row, asked = requests_of(batch, commits_in_effect(batch))
    return table(source=picked(asked["source"], row, -1), seq=picked(asked["seq"], row, -1))


def _passes_unhandled(batch: Batch) -> Bools:
    log = commits_in_effect(batch)
    never = batch.records.take(first_handled_of_records(batch).time_ns == NEVER)
    first, end = between(never["slice"], never["offset"], log["slice"], log["peak"], log["committed_offset"])
    return end > first


@index
def _ends_after(batch: Batch) -> Ints:
    log, ends = commits_in_effect(batch), log_ends(batch)
    return at_or_after(ends["slice"], ends["time_ns"], log["slice"], log["time_ns"])


def _longest_ends(batch: Batch) -> Ints:
    """Returns the longest log end of each slice that anybody saw: what was there before is proof enough."""
    ends = log_ends(batch)
    return np.maximum(per_group(ends["slice"], ends["position"], batch.size, how="max", start=NONE), batch.ends)


def _cut_off(batch: Batch) -> Array:
    log = commits_in_effect(batch)
    was_longer = truncated_away(batch, log["slice"], log["committed_offset"] - 1, log["effect_ns"])
    return true_or_none(was_longer)


def _restarted_inside(batch: Batch, episodes: Table) -> Bools:
    """Returns whether an ownership epoch opened, or a member started from an answer below the peak, inside each
    episode."""
    log = commits_in_effect(batch)
    begun_ns = picked(log["effect_ns"], episodes["fell_row"], NONE)
    ended_ns = picked(log["effect_ns"], episodes["recovered_row"], NEVER)
    peak = picked(log["peak"], episodes["fell_row"], NONE)
    opened = ownership_epochs(batch).sorted_by("slice", "open_ns")
    opens, held = in_ranges(*between(opened["slice"], opened["open_ns"], episodes["slice"], begun_ns, ended_ns))
    began_ns = np.where(batch.untimed(opened["source"]), NONE, batch.earliest(opened["open_ns"]))
    inside = opens[began_ns[held] > begun_ns[opens]]
    answers = answers_with_starts(batch).take(answers_with_starts(batch)["starts"]).sorted_by("slice", "at_ns")
    which, rows = in_ranges(*between(answers["slice"], answers["at_ns"], episodes["slice"], begun_ns + 1, ended_ns))
    below = which[answers["committed_offset"][rows] < peak[which]]
    return np.isin(np.arange(len(episodes)), np.concatenate([inside, below]))


def _falls(log: Table) -> Bools:
    """Returns which commits are below the one before them."""
    before = picked(log["committed_offset"], previous_in(log["stretch"]), NONE)
    falls: Bools = log["committed_offset"] < before
    return falls


def _asked_earlier(batch: Batch) -> Bools:
    """Returns which commits their client had asked for before it asked for the one before them in the offsets log.

    "On a single TCP connection, requests will be processed in the order they are sent" (Kafka, Protocol guide); on two
    they need not be. A client that gives an answer up closes its connection and asks over a new one, while the broker
    still has the old request before it. So what came over the older connection to that broker was asked for before,
    by the same member id (each client of a process has its own), unless a line of its member asks for the same position
    once more. To another broker it may have gone back.
    """
    log, about = commits_in_effect(batch), batch.trial_context
    first_ns = done_ns(about, [(one.first_wall_ns, one.first_time_ns) for one in about.connections])
    used_ns = np.array([*first_ns, NONE], np.int64)  # NONE: the connection is not known
    row, asked = requests_of(batch, log)
    before_row = previous_in(log["stretch"])
    before = picked(row, before_row, -1)
    broker, member_id, connection = (picked(asked[name], row, -1) for name in ("source", "member_id", "connection"))
    same = (member_id >= 0) & (member_id == picked(asked["member_id"], before, -1))
    same &= broker == picked(asked["source"], before, -1)
    same &= log["incarnation"] == picked(log["incarnation"], before_row, -1)
    newer = used_ns[connection] < used_ns[picked(asked["connection"], before, -1)]
    said = _last_said(batch)
    earlier: Bools = same & (connection >= 0) & newer & (said <= picked(said, before_row, NEVER))
    return earlier


def _last_said(batch: Batch) -> Ints:
    """Returns the last line of its process that asks for each commit's position; NONE where no line does."""
    log, lines = commits_in_effect(batch), member_lines(batch)
    own = lines.take(lines["kind"] == Kind.COMMIT_INVOKE)
    wanted = log.having(source=picked(batch.incarnations["source"], log["incarnation"], -1))
    last = last_until(own, wanted, *FILE, "committed_offset", by="seq", until=np.full(len(log), NEVER))
    return picked(own["seq"], last, NONE)


@index
def reporter_killed(batch: Batch) -> Bools:
    """Returns the column of that name."""
    log, incarnations = commits_in_effect(batch), batch.incarnations
    if batch.trial_context.has_sink:
        return np.zeros(len(log), np.bool_)
    effect_ns, incarnation = log["effect_ns"], log["incarnation"]
    known = (
        (incarnation >= 0)
        & (picked(incarnations["killed"], incarnation, 0) == 1)
        & (effect_ns > picked(incarnations["worked_ns"], incarnation, NEVER) - _unflushed_ns(batch))
    )
    nobody = np.isin(log["committer"], (UNKNOWN, AMBIGUOUS))
    uncertain: Bools = (known & ~told_of_all(batch)) | (nobody & _some_killed(batch, effect_ns))
    return uncertain


def _some_killed(batch: Batch, effect_ns: Array) -> Bools:
    """Returns whether a member that was killed lived at each time, or just before, and was not heard of again."""
    killed = batch.incarnations.take(batch.incarnations["killed"])
    worked_ns = np.where(killed["worked_ns"] == NONE, NONE, killed["worked_ns"] + 1 - _unflushed_ns(batch))
    heard = np.maximum(killed["started_ns"], worked_ns)
    ended = np.where(killed["exited_ns"] == NONE, NEVER, at_latest(killed["exited_ns"]))
    lived = heard < ended
    one = np.zeros(len(killed), np.int64)
    return covering(one[lived], heard[lived], ended[lived], np.zeros(len(effect_ns), np.int64), effect_ns) > 0


def _unflushed_ns(batch: Batch) -> int:
    """Returns how long before its last line was read a member may have begun to say what was never heard."""
    return TOLERANCE_NS if batch.trial_context.settings.stdout == "buffered" else 0
