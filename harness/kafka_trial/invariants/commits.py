"""Commits: did the committed position only move forward, by its owner's hand, and never past what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.claim import Claim
from kafka_trial.invariants.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    always,
    not_an_operators,
    sharing_an_event,
)
from kafka_trial.invariants.commits_log import OPERATOR, commits_in_effect, from_outside, requests_of
from kafka_trial.invariants.handlers import first_handled_of_records
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import (
    NEVER,
    NONE,
    Array,
    Bools,
    Ints,
    at_or_after,
    at_or_before,
    between,
    in_ranges,
    per_group,
    picked,
    starts_of,
)
from kafka_trial.invariants.ownership_epochs import ownership_epochs
from kafka_trial.invariants.ownership_log import logged_assignments
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.start_positions import answers_with_starts
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.truncations import truncated_away
from kafka_trial.invariants.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def _regression(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    own = attributes.get("own")
    weight, why = not_an_operators(claim, attributes)
    if weight != "violation":
        return weight, why
    if not attributes.get("recovered") or claim.commits == "monotonic":
        return VIOLATION
    if attributes.get("restart_inside") or own is False:
        return VIOLATION
    if own is None:
        return "undecided", Undecided.BACKWARD_COMMITTER_UNKNOWN
    return "tolerated", "the owner made it itself, and later commits passed it before anything started from it"


def _past_end(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("cut_off"):
        return "tolerated", "the log had been longer: the cluster cut it off behind the commit"
    return not_an_operators(claim, attributes)


def _zombie_commit(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("fell") or attributes.get("skipped_record"):
        return VIOLATION
    return "tolerated", "the committed offset did not go back, and no record was skipped"


@invariant(
    "commit-regression",
    family="commits",
    needs=("offsets log",),
    level="none",
    progress_in_kafka=True,
    severity=150,
    rule=Rule(always, _regression),
    message="the committed offset of {place} fell from {from} to {to} and {recovery}",
    deciding=(
        "by_operator",
        "by_stranger",
        "recovered",
        "own",
        "restart_inside",
    ),
    follows={"zombie-commit": sharing_an_event},
)
def commit_regression(batch: Batch) -> Findings:
    """The committed offset fell below where it had been: one anomaly an episode, until it is back where it was.

    "The committed position is the last offset that has been stored securely" (KafkaConsumer, Offsets and Consumer
    Position): a member that starts inside the episode handles records twice, and monitoring shows a lag that does not
    exist. Legal as a wobble: the owner made it itself, later commits passed it, and no member started inside (claim:
    commits = settling).

    Smallest history: committed 12, committed 11.

    Usual cause: An older position was committed after a newer one: an asynchronous commit that was retried, two threads
    that commit, or a member that committed for a partition it had lost.

    Remedy: Commit from one thread and never retry an older position; on revocation wait for commits under way.
    """
    episodes = regressions(batch)
    log = commits_in_effect(batch)
    first, back = episodes["first"], episodes["back"]
    recovered = back >= 0
    ended_ns = np.where(recovered, picked(log["commit_wall_ns"], back, NONE), NONE)
    committer = picked(log["committer"], first, 0)
    owned = np.where(committer == OPERATOR, 0, picked(log["owned"], first, -1))
    rows = table(
        slice=episodes["slice"],
        order=picked(log["log_offset"], first, NONE),
        log_offset=picked(log["log_offset"], first, NONE),
        **{"from": picked(log["peak"], first, NONE), "to": picked(log["committed_offset"], first, NONE)},
        lasted_ms=np.where(recovered, (ended_ns - picked(log["commit_wall_ns"], first, NONE)) // 1_000_000, NONE),
        recovered=recovered,
        own=np.array([None, False, True], dtype=object)[owned + 1],
        **from_outside(committer),
        restart_inside=_restarted_inside(batch, episodes),
    )
    places = (picked(log["peak_row"], first, -1), first, back)
    return Findings(rows, [(picked(log["source"], place, -1), picked(log["seq"], place, -1)) for place in places])


@invariant(
    "zombie-commit",
    family="commits",
    needs=("offsets log", "requests"),
    level="none",
    progress_in_kafka=True,
    severity=140,
    rule=Rule(always, _zombie_commit),
    message="member {member} committed {committed_offset} on {place} without owning it{harm}",
    deciding=(
        "fell",
        "skipped_record",
    ),
)
def zombie_commit(batch: Batch) -> Findings:
    """A member committed for a partition that it did not own at that point of the log, and the broker accepted it.

    "Only the current owner may commit" is what fencing is for (KIP-62, KIP-848); brokers accept a commit of any live
    member for any partition. Legal (counted) while the committed offset does not go back and the commit skips no
    record. For a consumer that prints nothing it is undecided whether the commit skipped one.

    Smallest history: group record gives the partition to m1, OffsetCommit 11 on m0's lane, committed 11.

    Usual cause: A member committed for a partition that another one owned by then; the broker accepts a commit from any
    live member.

    Remedy: Commit only partitions that are assigned right now; forget the positions of a partition when it is revoked
    or lost. Cooperative or KIP-848 rebalancing makes it rarer; a check of ownership before each commit prevents it.
    """
    log = commits_in_effect(batch)
    zombie = log.take((log["committer"] >= 0) & (log["owned"] == 0))
    skips = _lost_between(batch, zombie["slice"], zombie["peak"], zombie["committed_offset"])
    unknown = skips & batch.trial_context.settings.silent
    nobody_knows, zombie, skips = zombie["slice"][unknown], zombie.take(~unknown), skips[~unknown]
    request, asked = requests_of(batch, zombie)
    owner = _owner_record(batch, zombie)
    rows = table(
        slice=zombie["slice"],
        order=zombie["log_offset"],
        log_offset=zombie["log_offset"],
        committed_offset=zombie["committed_offset"],
        member=_member_names(batch, zombie["committer"]),
        fell=zombie["committed_offset"] < zombie["peak"],
        skipped_record=skips,
    )
    proofs = [
        (picked(logged_assignments(batch)["source"], owner, -1), picked(logged_assignments(batch)["seq"], owner, -1)),
        (zombie["source"], zombie["seq"]),
        (picked(asked["source"], request, -1), picked(asked["seq"], request, -1)),
    ]
    strangers = log.take((log["committer"] >= 0) & (log["owned"] < 0))
    owned_by_somebody = np.isin(strangers["slice"], np.unique(logged_assignments(batch)["slice"]))
    strange = Undecided.OWNER_UNKNOWN, strangers["slice"][owned_by_somebody]
    return Findings(rows, proofs, [strange, (Undecided.SKIP_UNKNOWN, nobody_knows)])


@invariant(
    "commit-past-end",
    family="commits",
    needs=("offsets log", "log ends"),
    level="none",
    progress_in_kafka=True,
    severity=160,
    rule=Rule(always, _past_end),
    message="{committed_offset} was committed on {place}, past the log end {log_end}",
    deciding=("by_operator", "by_stranger", "cut_off"),
)
def commit_past_end(batch: Batch) -> Findings:
    """A position beyond the end of the log was committed: a restart there finds no record, and resets by policy.

    "The committed offset is the next record that will be read" (KafkaConsumer): at most the log end. Judged against the
    first log end that was read after the commit was seen. Legal where the log had been as long, and was cut off.

    Smallest history: committed 15, log end 10.

    Usual cause: A position beyond the end of the log was committed: an offset counted twice (+1), or of another topic.

    Remedy: Commit the offset of the last record done plus one, and nothing computed from anything else.
    """
    log = commits_in_effect(batch)
    ends = batch.of(Kind.LOG_END).sorted_by("slice", "time_ns")
    after = at_or_after(ends["slice"], ends["time_ns"], log["slice"], log["time_ns"])
    end = picked(ends["position"], after, NEVER)
    seen = per_group(ends["slice"], ends["position"], batch.size, how="max", start=NONE)
    ever = np.maximum(seen, batch.ends)[log["slice"]]
    beyond = (after >= 0) & (log["committed_offset"] > end)
    undecided = (after < 0) & (log["committed_offset"] > ever)  # what was there once is proof enough
    past = log.take(beyond)
    was_longer = truncated_away(batch, past["slice"], past["committed_offset"] - 1, past["effect_ns"])
    rows = table(
        slice=past["slice"],
        order=past["log_offset"],
        log_offset=past["log_offset"],
        committed_offset=past["committed_offset"],
        log_end=end[beyond],
        **from_outside(past["committer"]),
        cut_off=np.array([None, True], dtype=object)[was_longer.astype(np.int64)],
    )
    read = ends.take(after[beyond])
    proofs = [(past["source"], past["seq"]), (read["source"], read["seq"])]
    return Findings(rows, proofs, [(Undecided.NO_LATER_END, log["slice"][undecided])])


def regressions(batch: Batch) -> Table:
    """Returns slice, first (the commit that fell), back (the one that recovered, -1: none): one row an episode."""
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
    same = (after >= 0) & (picked(log["stretch"], after, -1) == log["stretch"][first])
    return table(slice=log["slice"][first], first=first, back=np.where(same, after, -1))


def _restarted_inside(batch: Batch, episodes: Table) -> Bools:
    """Returns whether an ownership epoch opened, or a member started from an answer below the peak, inside each
    episode."""
    log = commits_in_effect(batch)
    begun_ns = picked(log["effect_ns"], episodes["first"], NONE)
    ended_ns = picked(log["effect_ns"], episodes["back"], NEVER)
    peak = picked(log["peak"], episodes["first"], NONE)
    opened = ownership_epochs(batch).sorted_by("slice", "open_ns")
    opens, held = in_ranges(*between(opened["slice"], opened["open_ns"], episodes["slice"], begun_ns, ended_ns))
    began_ns = np.where(batch.vague(opened["source"]), NONE, batch.earliest(opened["open_ns"]))
    inside = opens[began_ns[held] > begun_ns[opens]]
    answers = answers_with_starts(batch).take(answers_with_starts(batch)["starts"]).sorted_by("slice", "at_ns")
    which, rows = in_ranges(*between(answers["slice"], answers["at_ns"], episodes["slice"], begun_ns + 1, ended_ns))
    below = which[answers["committed_offset"][rows] < peak[which]]
    return np.isin(np.arange(len(episodes)), np.concatenate([inside, below]))


def _owner_record(batch: Batch, commits: Table) -> Ints:
    """Returns the last assignment record of the partition before each commit."""
    return at_or_before(
        logged_assignments(batch)["slice"],
        logged_assignments(batch)["log_offset"],
        commits["slice"],
        commits["log_offset"],
    )


def _member_names(batch: Batch, members: Array) -> Array:
    names = np.array([*batch.trial_context.members, None], dtype=object)
    return names[members]


def _lost_between(batch: Batch, slices: Array, low: Array, high: Array) -> Bools:
    """Returns whether a record with low <= offset < high was never handled."""
    lost = batch.records.take(first_handled_of_records(batch).time_ns == NEVER)
    first, end = between(lost["slice"], lost["offset"], slices, low, high)
    return end > first
