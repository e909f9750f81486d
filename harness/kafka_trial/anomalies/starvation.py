"""Starvation: does a member pass a partition over, round after round, while it works on its others?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import Rule, never
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.model.kernels import (
    Ints,
    between,
    counts,
    first_of,
    in_ranges,
    joined,
    ordered,
)
from kafka_trial.model.progress import machine_stalled, under_fault, window_ns_of
from kafka_trial.model.starvation import ROUNDS_MIN, round_ns, whole_rounds
from kafka_trial.model.table import stacked, table
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

OTHERS_MIN = 2  # with a single other one, a member may still be emptying the one answer that it fetched from it


@invariant(
    "starved-partition",
    family="liveness",
    needs=("records", "own word", "snapshot"),
    level="events",
    of="group",
    severity=370,
    rule=Rule(never),
    message="record {offset} of {place} waited {lasted_ms} ms while {member} handled records of its other partitions",
)
def starved_partition(group: Group) -> Findings:
    """Nothing happened on a partition with records, while its member handled those of two others round after round.

    KIP-387 calls it "unfair patterns of record consumption from multiple partitions". Kafka's consumer empties what it
    fetched of one partition before it turns to the next (KIP-41), so waiting for one fetched answer of each other
    partition is no starvation. A round is a third of W. In at least three whole rounds of the wait the member finished
    records of at least two other partitions: it came back to them again and again, and passed this one over. Not
    counted as waiting are a record in its handler, a record that nobody handles in the end (see skipped,
    stuck-partition, unseen), and one that still waits at the snapshot. Legal while a fault is in force or was healed
    less than W before. Undecided if the machine stood still, and if the lines may belong to several clients of one
    process: a client without other partitions does not prefer others.

    Smallest history: a record in each of three partitions of one member; `processed` on two of them, again and again
    for fourteen seconds; then `processed` on the third.

    Usual cause: A member worked on its other partitions while one waited.

    Remedy: Take turns between partitions; do not drain one before looking at the next.
    """
    waits = group.waits
    starved = _rounds_elsewhere(group) >= ROUNDS_MIN
    window_ns = window_ns_of(group.trial_context)
    starved &= ~under_fault(group.trial_context, waits["since_ns"], waits["until_ns"], window_ns)
    delayed = machine_stalled(group.trial_context, waits["since_ns"], waits["until_ns"])
    unsure = starved & ~delayed & (waits["member"] < 0)
    found = waits.take(starved & ~delayed & ~unsure)
    members = {
        incarnation.source: group.trial_context.members[incarnation.member]
        for incarnation in group.trial_context.incarnations
    }
    rows = table(
        slice=found["slice"],
        order=found["since_ns"],
        offset=found["offset"],
        member=np.array([members.get(source) for source in found["source"].tolist()] + [None], dtype=object)[:-1],
        lasted_ms=(found["until_ns"] - found["since_ns"]) // 1_000_000,
    )
    proofs = [(found[f"{name}_source"], found[f"{name}_seq"]) for name in ("record", "end")]
    undecided = [
        (Undecided.DELAYED, waits["slice"][starved & delayed]),
        (Undecided.UNATTRIBUTED, waits["slice"][unsure]),
    ]
    return Findings(rows, proofs, undecided)


def _rounds_elsewhere(group: Group) -> Ints:
    """Returns in how many whole rounds of each wait its member finished records of enough other partitions."""
    waits, work = group.waits, group.worked
    of_any = work.having(member=np.full(len(work), -1))  # for a wait of nobody knows which client in the process
    work = stacked(work.take(work["member"] >= 0), of_any).sorted_by("source", "member", "round")
    low, high = whole_rounds(waits["since_ns"], waits["until_ns"], round_ns(window_ns_of(group.trial_context)))
    both = joined(*(np.concatenate([work[name], waits[name]]) for name in ("source", "member")))
    mine, wanted = both[: len(work)], both[len(work) :]
    which, row = in_ranges(*between(mine, work["round"], wanted, low, high))
    elsewhere = work["slice"][row] != waits["slice"][which]
    wait, number, other = which[elsewhere], work["round"][row][elsewhere], work["slice"][row][elsewhere]
    order = ordered(wait, number, other)
    order = order[first_of(wait[order], number[order], other[order])]  # two clients may do one partition
    wait, turn = wait[order], joined(wait[order], number[order])
    begins = first_of(turn)
    enough = np.diff(np.append(begins, len(turn))) >= OTHERS_MIN
    return counts(wait[begins][enough], len(waits))
