"""Head-of-line blocking: does a partition lag although its member has nothing else to do?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.anomalies.claim_rule import VIOLATION, Attributes, Rule, Weight, convergence_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.claim import Claim
from kafka_trial.model.head_of_line import WAIT_NS_MIN
from kafka_trial.model.kernels import (
    NONE,
    Array,
    Bools,
    Ints,
    at_or_before,
    between,
    counts,
    first_of,
    in_ranges,
    joined,
    ordered,
    per_group,
    picked,
    starts_of,
)
from kafka_trial.model.occupied_intervals import occupied_ns
from kafka_trial.model.progress import machine_stalled, under_fault, waited_for_a_processor, window_ns_of
from kafka_trial.model.table import Table, table
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

WAITS_MIN = 3


def _longer_than_claimed(claim: Claim, attributes: Attributes) -> tuple[Weight, str]:
    if attributes.get("lasted_ms", 0) <= (claim.converge_within_s or 0.0) * 1000:
        return "tolerated", "it lasted no longer than the group may take to converge"
    return VIOLATION


@invariant(
    "head-of-line-blocking",
    family="liveness",
    needs=("records", "own word", "turns", "snapshot"),
    level="events",
    of="group",
    severity=205,
    rule=Rule(convergence_claimed, _longer_than_claimed),
    message="{place} lagged for {lasted_ms} ms, from record {offset} on; for {idle_ms} ms of that {member} held no "
    "record of it, and its other partitions had nothing to do",
)
def head_of_line_blocking(group: Group) -> Findings:
    """A partition lagged for W or longer, and most of that time its member held no record at all, and its other
    partitions had nothing to do.

    "If a consumer is assigned multiple partitions to fetch data from, it will try to consume from all of them at the
    same time, effectively giving these partitions the same priority for consumption" (KafkaConsumer, Consumption Flow
    Control). Here the records of one partition wait behind empty partitions. A wait counts if it lasts 0.6 s or more (a
    fetch of empty partitions may wait 0.5 s, by fetch.max.wait.ms), the member had finished the record before, and by
    the observer the log held the next one. Left out is the time in which the member had a record of another partition
    in hand, or a broker worked on its fetch or on another request of it (a commit, the end of a transaction), and any
    wait in which one of its other partitions lagged. There must be three such waits, and without the longest (it may be
    a rebalance) they must fill over half the time. A slow handler holds a record (if no line shows its end, until its
    last effect), and so does one that is tried again later; a member without another partition has nothing to wait for.
    Legal while a fault is in force or was healed less than W before, and if the lag lasted no longer than
    `converge_within_s`; without that claim it is only reported. Undecided if the machine stood still, or the member may
    have waited for a processor.

    Smallest history: a record in each second at the end of partition 0; `delivered`, `processed` one by one, each two
    seconds after the other, for fourteen seconds; partition 1 of the same member is empty.

    Usual cause: A blocking fetch or poll of one partition after the other: each empty one costs its whole timeout, and
    a fetch size that holds one large record gives one record a turn. A pause on purpose between two polls (a rate
    limit) looks the same.

    Remedy: Poll all partitions together; shorten the timeout of a poll, and let a fetch hold many records
    (max.partition.fetch.bytes, max.poll.records). More partitions make it worse.
    """
    spans, about = _spans(group), group.trial_context
    since_ns, until_ns = spans["span_since_ns"], spans["span_until_ns"]
    idle_ns, rest_ns = spans["idle_ns"] - spans["longest_ns"], until_ns - since_ns - spans["longest_ns"]
    blocked = (spans["waits"] >= WAITS_MIN) & _mostly(idle_ns, rest_ns)
    blocked &= ~under_fault(about, since_ns, until_ns, window_ns_of(about))
    delayed = blocked & machine_stalled(about, since_ns, until_ns)
    no_processor = blocked & ~delayed & ~_mostly(idle_ns - waited_for_a_processor(about, since_ns, until_ns), rest_ns)
    unsure = blocked & ~delayed & ~no_processor & (spans["member"] < 0)
    found = spans.take(blocked & ~delayed & ~no_processor & ~unsure)
    members = {incarnation.source: about.members[incarnation.member] for incarnation in about.incarnations}
    rows = table(
        slice=found["slice"],
        order=found["span_since_ns"],
        offset=found["offset"],
        member=np.array([members.get(source) for source in found["source"].tolist()] + [None], dtype=object)[:-1],
        lasted_ms=(found["span_until_ns"] - found["span_since_ns"]) // 1_000_000,
        idle_ms=found["idle_ns"] // 1_000_000,
    )
    proofs = [
        (found[f"{name}_source"], found[f"{name}_seq"]) for name in ("before", "after", "last_before", "last_after")
    ]
    undecided = [
        (Undecided.DELAYED, spans["slice"][delayed]),
        (Undecided.NO_PROCESSOR, spans["slice"][no_processor]),
        (Undecided.UNATTRIBUTED, spans["slice"][unsure]),
    ]
    return Findings(rows, proofs, undecided)


def _spans(group: Group) -> Table:
    """Returns the first wait of each span, with what its waits come to: `waits` (how many), `idle_ns` of all,
    `longest_ns`, and the lines around the last one (`last_before_*`, `last_after_*`)."""
    waits = _beside_idle_ones(group)
    span = joined(waits["slice"], waits["source"], waits["span_since_ns"])
    order = ordered(span, waits["since_ns"])
    waits, span = waits.take(order), span[order]
    first = first_of(span)
    ends = waits.take(np.append(first[1:], len(waits))[: len(first)] - 1)
    number = np.cumsum(starts_of(span)) - 1
    idle_ns = np.zeros(len(first), np.int64)
    np.add.at(idle_ns, number, waits["idle_ns"])
    return waits.take(first).having(
        waits=counts(number, len(first)),
        idle_ns=idle_ns,
        longest_ns=per_group(number, waits["idle_ns"], len(first), how="max", start=0),
        **{f"last_{name}": ends[name] for name in ("before_source", "before_seq", "after_source", "after_seq")},
    )


def _mostly(part_ns: Ints, whole_ns: Ints) -> Bools:
    return 2 * part_ns > whole_ns


def _beside_idle_ones(group: Group) -> Table:
    """Returns the waits during which no other partition of their member lagged, and in whose span it had another."""
    waits, held, lags = _idle(group), group.ownership_spans, group.lags.sorted_by("slice", "since_ns")
    held = held.sorted_by("source", "member", "since_ns")
    both = joined(*(np.concatenate([held[name], waits[name]]) for name in ("source", "member")))
    mine, wanted = both[: len(held)], both[len(held) :]
    early = np.full(len(waits), NONE)
    which, row = in_ranges(*between(mine, held["since_ns"], wanted, early, waits["span_since_ns"] + 1))
    other = (held["slice"][row] != waits["slice"][which]) & (held["until_ns"][row] >= waits["span_until_ns"][which])
    which, slices = which[other], held["slice"][row][other]
    lag = at_or_before(lags["slice"], lags["since_ns"], slices, waits["until_ns"][which])
    lagged = picked(lags["until_ns"], lag, NONE) > waits["since_ns"][which]
    return waits.take((counts(which, len(waits)) > 0) & (counts(which[lagged], len(waits)) == 0))


def _idle(group: Group) -> Table:
    """Returns the waits that count, with `idle_ns`: for how long the process had nothing in hand, nor to expect."""
    waits, held = group.idle_waits, group.occupied
    whole_ns = _less_occupied(held, waits["source"], waits["since_ns"], waits["until_ns"])
    idle_ns = whole_ns - _less_occupied(held, waits["source"], waits["asked_ns"], waits["answered_ns"])
    return waits.having(idle_ns=idle_ns).take(idle_ns >= WAIT_NS_MIN)


def _less_occupied(held: Table, sources: Array, since_ns: Array, until_ns: Array) -> Ints:
    return until_ns - since_ns - occupied_ns(held, sources, since_ns, until_ns)
