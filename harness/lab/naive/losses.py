"""Losses that can be so, for the naive checker: when a member's line `lost` is believed.

A client loses its partitions without giving them up where its session ended, or where it was told that it is out of
the group. Where the request log can tell that there was nothing of the kind, it gave them up: the line is a `revoked`.
A log that lacks the answer that gave them may lack the one that took them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from lab.naive.assignments import are_known, assigns
from lab.naive.responses import (
    COMMITS,
    OF_GROUP,
    TOLERANCE_NS,
    api,
    begun_ns,
    does,
    error_of,
    received_if_open_ns,
)

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Trial

SECOND_NS = 1_000_000_000
REBALANCE_IN_PROGRESS = 27
# No error, a rebalance, MEMBER_ID_REQUIRED, STALE_MEMBER_EPOCH: the member goes on in its group.
LEAVE_IT_IN = (0, REBALANCE_IN_PROGRESS, 79, 113)
KEEPS_FROM_ITS_GROUP = ("freezes", "cuts-off", "delays-answers")


def is_a_loss(p: Partition, line: Event) -> bool:
    """The member may have lost the partition when it says so, as far as the brokers' logs can tell."""
    ended = [ownership_epoch for ownership_epoch in p.ownership_epochs if ownership_epoch.closed == line]
    if not ended or not are_known(p.trial, line):
        return True
    return (
        _sent_away(p.trial, ended[0], line)
        or _without_answers(p.trial, ended[0], line)
        or _kept_from_its_group(p.trial, line)
        or _given_to_others(p, ended[0], line)
        or _no_longer_a_member(p.trial, ended[0], line)
        or _closed_in_a_rebalance(p.trial, ended[0], line)
    )


def _between(trial: Trial, ownership_epoch: OwnershipEpoch, line: Event, at_ns: float) -> bool:
    return trial.written_ns(ownership_epoch.opened) <= at_ns <= line.time_ns + trial.uncertain_ns(line)


def _read_ns(trial: Trial, line: Event) -> float:
    """By when a broker had begun what a member says: it stamps an answer when that has been sent."""
    return line.time_ns + max(trial.uncertain_ns(line), SECOND_NS)


def _group_requests(trial: Trial, member: str) -> list[Event]:
    return [r for r in trial.requests if api(r) in OF_GROUP and trial.lane_member(r) == member]


def _sent_away(trial: Trial, ownership_epoch: OwnershipEpoch, line: Event) -> bool:
    """A broker refused it anything of its group, be it only for now, or it left itself."""
    for request in _group_requests(trial, ownership_epoch.member):
        leaves = api(request) == "LEAVEGROUP" or (
            api(request) == "CONSUMERGROUPHEARTBEAT" and request.details.get("epoch", 0) < 0
        )
        told = leaves or error_of(request) not in LEAVE_IT_IN
        if told and trial.written_ns(ownership_epoch.opened) <= begun_ns(trial, request) <= _read_ns(trial, line):
            return True
    return False


def _without_answers(trial: Trial, ownership_epoch: OwnershipEpoch, line: Event) -> bool:
    """For a session, less the tolerance, it received no answer of its group but to commits; or none at all by then."""
    asked = [r for r in _group_requests(trial, ownership_epoch.member) if api(r) not in ("LEAVEGROUP", *COMMITS)]
    received = sorted(at_ns for r in asked if (at_ns := received_if_open_ns(trial, r)) <= line.time_ns)
    opened_ns = trial.written_ns(ownership_epoch.opened)
    since = [
        *[at_ns for at_ns in received if at_ns <= opened_ns][-1:],
        *(at_ns for at_ns in received if at_ns > opened_ns),
    ]
    session_ns = trial.session_s * SECOND_NS - TOLERANCE_NS
    return not received or any(later - before >= session_ns for before, later in pairwise([*since, line.time_ns]))


def _kept_from_its_group(trial: Trial, line: Event) -> bool:
    """A fault that stops the member, or holds or cuts its traffic, was in force within a session before the line."""
    since_ns = line.time_ns - trial.session_s * SECOND_NS
    for fault in trial.of_kind("injected"):
        its = fault.member in (None, line.member) and does(fault, *KEEPS_FROM_ITS_GROUP)
        if its and fault.time_ns <= line.time_ns + TOLERANCE_NS and trial.healed_ns(fault) >= since_ns:
            return True
    return False


def _closed_in_a_rebalance(trial: Trial, ownership_epoch: OwnershipEpoch, line: Event) -> bool:
    """Its group rebalanced, and it was given nothing more: a client that is closed then calls what it has lost."""
    asked = _group_requests(trial, ownership_epoch.member)
    rebalancing = [r for r in asked if error_of(r) == REBALANCE_IN_PROGRESS or api(r) == "JOINGROUP"]
    since = [at_ns for r in rebalancing if (at_ns := begun_ns(trial, r)) <= line.time_ns + trial.uncertain_ns(line)]
    given = [at_ns for r in asked if assigns(r) and (at_ns := begun_ns(trial, r)) < trial.exit_ns(line.source)]
    return bool(since) and not any(at_ns >= max(since) for at_ns in given)


def _given_to_others(p: Partition, ownership_epoch: OwnershipEpoch, line: Event) -> bool:
    """By the offsets log; to whom, need not be known."""
    return any(
        {p.trial.member_of_id.get(member_id) for member_id in owning.owners} != {ownership_epoch.member}
        for owning in p.ownership
        if owning.names_it and _between(p.trial, ownership_epoch, line, owning.time_ns)
    )


def _no_longer_a_member(trial: Trial, ownership_epoch: OwnershipEpoch, line: Event) -> bool:
    """The offsets log ends its membership, or lists the members without it."""
    mine = {member_id for member_id, member in trial.member_of_id.items() if member == ownership_epoch.member}
    for record in trial.offsets_log:
        if not _between(trial, ownership_epoch, line, trial.mono_ns(record.source_wall_ns, record.time_ns)):
            continue
        if record.kind == "group_tombstone" and record.details.get("member_id") in (None, *mine):
            return True
        listed = record.details.get("members") if record.kind == "group" else None
        if listed is not None and not any(one["member_id"] in mine for one in listed):
            return True
    return False
