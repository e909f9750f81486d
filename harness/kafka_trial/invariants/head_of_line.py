"""Head-of-line blocking: a partition that lags although its member has nothing else to do, and does it slowly.

A consumer that asks its partitions one after the other, and waits at each, hands out what one of them holds only when
the empty ones before it had their time. Judged in two steps, as starvation is: inside the pass over the slices,
`idle_waits` finds records that lay there and were handed out late, to a member that held none of their partition;
`lags` finds when a partition had anything to do, `ownership_spans` who had it, and `occupied_intervals.py` when a
process had something in hand, or waited for a broker. Then all slices are looked at together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.claim import Claim
from kafka_trial.invariants.claim_rule import VIOLATION, Attributes, Rule, Weight, convergence_claimed
from kafka_trial.invariants.clients import incarnation_of
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
    counts,
    first_of,
    in_ranges,
    joined,
    ordered,
    per_group,
    picked,
    previous_in,
    running_max,
    starts_of,
)
from kafka_trial.invariants.occupied_intervals import occupied_ns
from kafka_trial.invariants.ownership_epochs import epoch_owners, member_lines, ownership_epochs
from kafka_trial.invariants.request_logs import fetches
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.starvation import in_hand, snapshot_ns_in
from kafka_trial.invariants.table import Table, table
from kafka_trial.invariants.trial_context import TrialContext
from kafka_trial.invariants.undecided import Undecided
from kafka_trial.model.progress import machine_stalled, under_fault, window_ns_of

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch
    from kafka_trial.invariants.liveness import Group

WAITS_MIN = 3
# A fetch of empty partitions stays with its broker for fetch.max.wait.ms, 500 by default, and Java's client sends a
# broker one at a time: what is asked for after it may take as long, and the ways, without anybody's blocking.
WAIT_NS_MIN = 600_000_000
LAG_NS_MIN = 1_000_000_000  # a partition whose records are all done sooner is at lag 0
IDLE_WAITS = (
    *("slice", "source", "member", "since_ns", "until_ns", "asked_ns", "answered_ns", "offset"),
    *("span_since_ns", "span_until_ns", "before_source", "before_seq", "after_source", "after_seq"),
)
LAGS = ("slice", "since_ns", "until_ns")
OWNERSHIP_SPANS = ("slice", "source", "member", "since_ns", "until_ns")


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
    no_processor = blocked & ~delayed & ~_mostly(idle_ns - _waited_for_a_processor(about, since_ns, until_ns), rest_ns)
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


def _waited_for_a_processor(trial_context: TrialContext, since_ns: Array, until_ns: Array) -> Ints:
    """Returns how long threads of members and brokers waited for one, by the samples of each stretch of time."""
    waited = np.zeros(len(since_ns), np.int64)
    for sample in trial_context.cpu_waits:
        inside = (sample.time_ns > since_ns) & (sample.time_ns - sample.over_ns < until_ns)
        waited += np.where(inside, sample.waited_ns, 0)
    return waited


def idle_waits(batch: Batch) -> Table:
    """Returns the waits (columns IDLE_WAITS) of those spans that may be blocked, slices numbered as in the trial
    context.

    A span is a stretch of deliveries of one ownership epoch, one after the other, whose records all lay there when
    the member was done with what it had of the partition before; it lasts for W at least.
    """
    turns = _turns(batch)
    epoch, lagging = turns["ownership_epoch"], turns["readable_ns"] <= turns["since_ns"]
    number = np.cumsum(~lagging | starts_of(epoch))
    turns, number = turns.take(lagging), number[lagging]
    first = first_of(number)
    last = np.append(first[1:], len(number))[: len(first)] - 1
    span = np.cumsum(starts_of(number)) - 1
    spans = turns.having(
        span_since_ns=turns["since_ns"][first][span],
        span_until_ns=turns["until_ns"][last][span],
    )
    long = spans["span_until_ns"] - spans["span_since_ns"] >= window_ns_of(batch.trial_context)
    idle = (spans["until_ns"] - spans["since_ns"] >= WAIT_NS_MIN) & spans["fetches"] & ~in_hand(batch, spans)
    return spans.take(long & idle).having(slice=batch.slices[spans["slice"][long & idle]]).only(*IDLE_WAITS)


def _turns(batch: Batch) -> Table:
    """Returns the deliveries that follow on other work of their ownership epoch: since when (the line before it),
    until when, since when the log end had been read behind the record, and of the last fetch that brought bytes from
    when to when, in that time, it was asked; `fetches`: whether there was one."""
    work = member_lines(batch).take(np.isin(member_lines(batch)["kind"], (Kind.DELIVERED, Kind.PROCESSED)))
    work = work.take((work["ownership_epoch"] >= 0) & (work["time_ns"] <= snapshot_ns_in(batch)))
    previous = previous_in(work["ownership_epoch"])
    took = (work["kind"] == Kind.DELIVERED) & (previous >= 0) & ~batch.vague(work["source"])
    turns, before = work.take(took), work.take(previous[took])
    found = table(
        slice=turns["slice"],
        source=turns["source"].astype(np.int64),
        member=epoch_owners(batch)[turns["ownership_epoch"]],
        ownership_epoch=turns["ownership_epoch"],
        offset=turns["offset"],
        since_ns=before["time_ns"],
        until_ns=turns["time_ns"],
        before_source=before["source"].astype(np.int64),
        before_seq=before["seq"],
        after_source=turns["source"].astype(np.int64),
        after_seq=turns["seq"],
    )
    return _asked(batch, found.having(readable_ns=_readable_ns(batch, found)))


def _readable_ns(batch: Batch, turns: Table) -> Ints:
    """Returns since when the observer knew that the log reached beyond each record; NEVER where it did not."""
    ends = batch.of(Kind.LOG_END).sorted_by("slice", "position", "time_ns")
    row = at_or_after(ends["slice"], ends["position"], turns["slice"], turns["offset"] + 1)
    return picked(ends["time_ns"], row, NEVER)


def _asked(batch: Batch, turns: Table) -> Table:
    """Returns the turns with what is known of their last fetch that brought bytes: its time is none of the member's."""
    asks = fetches(batch).take(fetches(batch)["got"])
    wanted = turns["slice"] * (len(batch.incarnations) + 1) + incarnation_of(batch, turns["source"])
    row = at_or_before(asks["group"], asks["begun_ns"], wanted, turns["until_ns"])
    asked_ns = np.maximum(picked(asks["begun_ns"], row, NONE), turns["since_ns"])
    answered_ns = np.minimum(picked(asks["answered_ns"], row, NONE), turns["until_ns"])
    return turns.having(fetches=row >= 0, asked_ns=asked_ns, answered_ns=np.maximum(asked_ns, answered_ns))


def lags(batch: Batch) -> Table:
    """Returns slice, since_ns, until_ns of each stretch in which a partition had a record that was not done, for a
    second or longer; apart, and in order."""
    records = batch.records.having(done_ns=first_handled_of_records(batch).time_ns)
    records = records.take(records["done_ns"] > records["appended_ns"]).sorted_by("slice", "appended_ns")
    slices, since_ns, done_ns = (records[name] for name in ("slice", "appended_ns", "done_ns"))
    until_ns = done_ns[running_max(slices, done_ns)] if len(slices) else done_ns
    before = previous_in(slices)
    begins = np.flatnonzero((before < 0) | (since_ns > picked(until_ns, before, NONE)))
    last = np.append(begins[1:], len(slices))[: len(begins)] - 1
    long = until_ns[last] - since_ns[begins] >= LAG_NS_MIN
    return table(
        slice=batch.slices[slices[begins]][long], since_ns=since_ns[begins][long], until_ns=until_ns[last][long]
    )


def ownership_spans(batch: Batch) -> Table:
    """Returns the ownership epochs: slice (as in the trial context), source, member (see
    `client_attribution.group_members`), since_ns, until_ns."""
    held = ownership_epochs(batch)
    return table(
        slice=batch.slices[held["slice"]],
        source=held["source"].astype(np.int64),
        member=epoch_owners(batch),
        since_ns=held["open_ns"],
        until_ns=held["close_ns"],
    )
