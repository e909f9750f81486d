"""Resources: what members took of the machine's memory, and what the kernel did about it.

Judged from the harness's samples of each member's process tree (about one a second) and of the kernel's counter of its
out-of-memory killer. A peak between two samples is not seen: these anomalies may be missed, not invented.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import VIOLATION, Attributes, Rule, Weight, memory_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.claim import Claim
from kafka_trial.model.table import of_group
from kafka_trial.model.trial_context import TOLERANCE_NS, Incarnation, OomRise
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

SECOND_NS = 1_000_000_000
UNSAMPLED_NS = 5 * SECOND_NS  # who lived for so long must have been sampled
TEARDOWN_NS = 2 * SECOND_NS  # a large process is gone so much later than it was killed, at most


@invariant(
    "memory-over-limit",
    family="resources",
    needs=("memory limit", "samples", "processes", "snapshot"),
    level="none",
    of="group",
    severity=340,
    rule=Rule(memory_claimed),
    message="member {member} took {rss_bytes} bytes of memory, over the {limit_bytes} claimed",
)
def memory_over_limit(group: Group) -> Findings:
    """A member's process tree held more memory than its team claims (`memory_max_bytes`): one finding an incarnation.

    What a consumer buffers is bounded by its settings ("the maximum amount of data the server should return for a fetch
    request", fetch.max.bytes; max.partition.fetch.bytes: Kafka, Consumer Configs), and a container is killed at its
    limit. Exactly the limit is allowed. Undecided for an incarnation that ran for long and was never sampled.

    Smallest history: a claim of 100 bytes; `resources` of m0, 101 bytes.

    Usual cause: The process took more memory than claimed: queues without a bound, large fetches.

    Remedy: Bound what waits between poll and work (pause the partition); lower fetch.max.bytes and queued.max.messages.
    """
    limit = group.trial_context.settings.memory_max_bytes or 0
    peaks = group.trial_context.peaks
    over: dict[tuple[str, int], list[int]] = {}
    for place, peak in enumerate(peaks):
        if peak.rss_bytes > limit and group.trial_context.settings.memory_max_bytes is not None:
            over.setdefault((peak.member, peak.incarnation), []).append(place)
    found = sorted(over)
    rows = of_group(
        len(found),
        {
            "member": [member for member, _ in found],
            "incarnation": [number for _, number in found],
            "rss_bytes": [peaks[over[incarnation][-1]].rss_bytes for incarnation in found],
            "limit_bytes": [limit for _ in found],
        },
    )
    proofs = [[peaks[over[incarnation][place]] for incarnation in found] for place in (0, -1)]
    columns = [
        tuple(np.array([getattr(p, name) for p in some], np.int64) for name in ("source", "seq")) for some in proofs
    ]
    return Findings(
        rows, [(source, seq) for source, seq in columns], [(Undecided.UNSAMPLED, np.full(_unsampled(group), -1))]
    )


def _oom_killed(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("over_limit"):
        return VIOLATION
    return "undecided", Undecided.OUT_OF_MEMORY


@invariant(
    "oom-killed",
    family="resources",
    needs=("processes", "exits", "oom counter"),
    level="none",
    of="group",
    severity=350,
    rule=Rule(memory_claimed, _oom_killed),
    message="member {member} was killed by the kernel for want of memory",
    deciding=("over_limit",),
)
def oom_killed(group: Group) -> Findings:
    """A member ended by a signal 9 that the harness had not sent, when the kernel killed for want of memory.

    `oom_kill` in /proc/vmstat counts the processes that the kernel killed for want of memory (proc(5), since Linux
    4.13): it rose between two readings around the exit. `over_limit` says whether this incarnation had been seen above
    the claimed limit. Undecided if more members ended by signal 9 than the kernel killed.

    Smallest history: `oom_kills` 0, `exited` signal 9 asked no, `oom_kills` 1.

    Usual cause: The kernel killed the process for its memory.

    Remedy: As for memory-over-limit; and give the process the limit that it needs.
    """
    incarnations = [
        incarnation
        for incarnation in group.trial_context.incarnations
        if incarnation.signal == 9 and incarnation.asked == "no"
    ]
    rises = [_rise(group, incarnation) for incarnation in incarnations]
    struck = [(incarnation, rise) for incarnation, rise in zip(incarnations, rises, strict=True) if rise is not None]
    found = [
        (incarnation, rise) for incarnation, rise in struck if sum(other == rise for _, other in struck) <= rise.by
    ]
    rows = of_group(
        len(found),
        {
            "member": [group.trial_context.members[incarnation.member] for incarnation, _ in found],
            "incarnation": [incarnation.number for incarnation, _ in found],
            "over_limit": [_over_limit(group, incarnation) for incarnation, _ in found],
        },
    )
    exits = (
        np.array([incarnation.source for incarnation, _ in found], np.int64),
        np.array([incarnation.exited_seq for incarnation, _ in found], np.int64),
    )
    risen = np.array([rise.source for _, rise in found], np.int64), np.array([rise.seq for _, rise in found], np.int64)
    return Findings(rows, [exits, risen], [(Undecided.SIGKILL_AMBIGUOUS, np.full(len(struck) - len(found), -1))])


def _unsampled(group: Group) -> int:
    """Returns how many incarnations lived for long without a sample."""
    if group.trial_context.settings.memory_max_bytes is None:
        return 0
    sampled = {(peak.member, peak.incarnation) for peak in group.trial_context.peaks}
    members = group.trial_context.members
    lasting = [
        incarnation for incarnation in group.trial_context.incarnations if _lived_ns(group, incarnation) >= UNSAMPLED_NS
    ]
    return sum((members[incarnation.member], incarnation.number) not in sampled for incarnation in lasting)


def _lived_ns(group: Group, incarnation: Incarnation) -> int:
    return (group.snapshot_ns if incarnation.exited_ns is None else incarnation.exited_ns) - incarnation.started_ns


def _rise(group: Group, incarnation: Incarnation) -> OomRise | None:
    """Returns the first rise of the counter that the member's end falls into, None where there is none."""
    ended_ns = incarnation.exited_ns or 0
    return next(
        (
            rise
            for rise in group.trial_context.oom_rises
            if rise.before_ns <= ended_ns + TOLERANCE_NS and rise.at_ns >= ended_ns - TEARDOWN_NS
        ),
        None,
    )


def _over_limit(group: Group, incarnation: Incarnation) -> bool:
    limit = group.trial_context.settings.memory_max_bytes
    name = group.trial_context.members[incarnation.member]
    return limit is not None and any(
        peak.rss_bytes > limit
        for peak in group.trial_context.peaks
        if (peak.member, peak.incarnation) == (name, incarnation.number)
    )
