"""Commits: did the committed position only move forward, by its owner's hand, and never past what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import (
    VIOLATION,
    Attributes,
    Rule,
    Weight,
    always,
    not_an_operators,
    sharing_an_event,
    under,
)
from kafka_trial.anomalies.invariant import Findings, invariant, proof, split_undecided
from kafka_trial.claim import Claim
from kafka_trial.model.kernels import NONE, picked, true_or_none
from kafka_trial.model.table import table
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions


def _regression(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    own = attributes.get("own")
    weight, why = not_an_operators(claim, attributes)
    if weight != "violation":
        return weight, why
    if attributes.get("asked_earlier"):
        return "tolerated", "its client had asked for it before: the broker took it later, from a connection given up"
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
        "asked_earlier",
    ),
    follows={"zombie-commit": sharing_an_event},
)
def commit_regression(partitions: Partitions) -> Findings:
    """The committed offset fell below where it had been: one anomaly an episode, until it is back where it was.

    "The committed position is the last offset that has been stored securely" (KafkaConsumer, Offsets and Consumer
    Position): a member that starts inside the episode handles records twice, and monitoring shows a lag that does not
    exist. Legal as a wobble: the owner made it itself, later commits passed it, and no member started inside (claim:
    commits = settling). Legal as well where its client asked in order, and the broker took the older commit later, over
    a connection that the client had given up: "on a single TCP connection, requests will be processed in the order they
    are sent" (Protocol guide, Network).

    Smallest history: committed 12, committed 11.

    Usual cause: An older position was committed after a newer one: an asynchronous commit that was retried, two threads
    that commit, or a member that committed for a partition it had lost.

    Remedy: Commit from one thread and never retry an older position; on revocation wait for commits under way.
    """
    falls, commits = partitions.commit_regressions, partitions.commits
    fell, back = commits.take(falls.fell_row), falls.recovered_row
    recovered = back >= 0
    lasted_ns = picked(commits.commit_wall_ns, back, NONE) - fell.commit_wall_ns
    rows = table(
        slice=falls.slice,
        order=fell.log_offset,
        log_offset=fell.log_offset,
        **{"from": fell.peak, "to": fell.committed_offset},
        lasted_ms=np.where(recovered, lasted_ns // 1_000_000, NONE),
        recovered=recovered,
        deleted=true_or_none(falls.deleted),
        own=fell.own,
        by_operator=fell.by_operator,
        by_stranger=fell.maybe_operator,
        restart_inside=falls.restart_inside,
        asked_earlier=true_or_none(falls.asked_earlier),
    )
    return Findings(rows, [proof(commits, at=row) for row in (fell.peak_row, falls.fell_row, back)])


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
def zombie_commit(partitions: Partitions) -> Findings:
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
    commits = partitions.commits.take(partitions.commits.committer >= 0)
    zombie = commits.take(commits.owned == 0)
    unknown = zombie.passes_unhandled & partitions.trial_context.settings.silent
    nobody_knows, zombie = zombie.slice[unknown], zombie.take(~unknown)
    rows = table(
        slice=zombie.slice,
        order=zombie.log_offset,
        log_offset=zombie.log_offset,
        committed_offset=zombie.committed_offset,
        member=zombie.member_name,
        fell=zombie.committed_offset < zombie.peak,
        skipped_record=zombie.passes_unhandled,
    )
    nobodys = commits.take((commits.owned < 0) & commits.partition_was_owned)
    undecided = [(Undecided.OWNER_UNKNOWN, nobodys.slice), (Undecided.SKIP_UNKNOWN, nobody_knows)]
    return Findings(rows, [proof(zombie, "owner_"), proof(zombie), proof(zombie, "request_")], undecided)


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
def commit_past_end(partitions: Partitions) -> Findings:
    """A position beyond the end of the log was committed: a restart there finds no record, and resets by policy.

    "The committed offset is the next record that will be read" (KafkaConsumer): at most the log end. Judged against the
    first log end that was read after the commit was seen, and that no acknowledged record refutes: a new leader may
    answer less than there is. Legal where the log had been as long, and was cut off.

    Smallest history: committed 15, log end 10.

    Usual cause: A position beyond the end of the log was committed: an offset counted twice (+1), or of another topic.

    Remedy: Commit the offset of the last record done plus one, and nothing computed from anything else.
    """
    commits = partitions.commits
    past = commits.take((commits.end_seq >= 0) & (commits.committed_offset > commits.log_end))
    rows = table(
        slice=past.slice,
        order=past.log_offset,
        log_offset=past.log_offset,
        committed_offset=past.committed_offset,
        log_end=past.log_end,
        by_operator=past.by_operator,
        by_stranger=past.maybe_operator,
        cut_off=past.cut_off,
    )
    unread = commits.take((commits.end_seq < 0) & (commits.committed_offset > commits.longest_end))
    return Findings(rows, [proof(past), proof(past, "end_")], [(Undecided.NO_LATER_END, unread.slice)])


@invariant(
    "commit-ahead",
    family="commits",
    needs=("records", "handled", "offsets log", "commit times"),
    level="sink",
    progress_in_kafka=True,
    intermediate_too=True,
    severity=170,
    rule=Rule(under("at-least-once", "exactly-once"), not_an_operators, always_for=("at-least-once", "exactly-once")),
    message="{committed_offset} was committed on {place} before record {offset} was processed",
    deciding=("by_operator", "by_stranger"),
)
def commit_ahead(partitions: Partitions) -> Findings:
    """A position was committed before every record below it had been handled: a crash there loses records.

    "The consumer must process records before committing, so that a crash never loses them" (KafkaConsumer, Manual
    Offset Control). By the member's own lines the order is exact. By the brokers' logs it is exact up to the reading
    delay of lines; a commit counts from the arrival of its request, or else from the time of the commit. A line printed
    after a commit, or after its answer, does not show when the commit was made. Legal under at-most-once, where it is
    intended, and for an operator's commits. A record handed on before the commit, into a topic that the group commits
    on too, is not lost: it is judged there. In a transaction positions and outputs take effect together, so only
    records that were never handled count. The same holds for records below an earlier position, if the position fell
    and rises again.

    Smallest history: `delivered` 0, `commit` invoke 1, `processed` 0.

    Usual cause: A position was committed before the records below it were done: auto-commit, or offsets stored at
    hand-out.

    Remedy: Commit after the work. With librdkafka: enable.auto.offset.store=false and store_offsets() after the work.
    """
    ahead, undecided = split_undecided(partitions.commits_ahead)
    rows = table(
        slice=ahead.slice,
        order=ahead.committed_offset,
        committed_offset=ahead.committed_offset,
        offset=ahead.offset,
        seen_by=ahead.shown_by,
        by_operator=ahead.by_operator,
        by_stranger=ahead.maybe_operator,
    )
    return Findings(rows, [proof(ahead, of) for of in ("record_", "commit_", "done_")], undecided)


@invariant(
    "commit-lost",
    family="commits",
    needs=("offsets log", "snapshot"),
    level="none",
    progress_in_kafka=True,
    severity=130,
    rule=Rule(always),
    message="the commit of {committed_offset} on {place} was acknowledged ({acknowledged}), but {instead}",
)
def commit_lost(partitions: Partitions) -> Findings:
    """A commit was acknowledged, to the member or by the request log, and its position is nowhere in the offsets log.

    "The broker sends a successful offset commit response to the consumer only after all the replicas of the offsets
    topic receive the offsets" (Kafka, Implementation, Consumer Offset Tracking). Never legal. Judged up to the
    snapshot, because the witness was asked to read to that point. One anomaly a position. A member that reported a
    commit as stored relies on one that does not exist if the request log shows that it was refused, and that neither
    this position nor a later one was granted to the member until the report. Undecided if the position is in the log,
    but at a time that does not fit the answer, or if it is unknown who committed a later one after the refusal. What a
    transaction committed and then aborted is in the log, so it is not lost; what EndTxn acknowledges is not judged.

    Smallest history: `commit` ok 1, phase snapshot, and the witness read to the end.

    Usual cause: The client said that a position was stored, and it is not there: an error per partition that nobody
    looked at, a refused commit that was swallowed.

    Remedy: Look at the error of each partition in the commit's answer, not only at the call's; ask again or rewind.
    """
    lost, undecided = split_undecided(partitions.lost_commits)
    rows = table(
        slice=lost.slice,
        order=lost.committed_offset,
        committed_offset=lost.committed_offset,
        by=lost.acknowledged_by,
        refused_with=lost.refused_with,
    )
    return Findings(rows, [proof(lost), proof(lost, "word_"), proof(lost, "refusal_")], undecided)
