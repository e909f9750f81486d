"""Head-of-line blocking, for the naive checker: who lags, holds nothing, and has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lab.naive.told import COMMITS, TOLERANCE_NS, api, begun_ns, sent_ns

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Work

FOREVER = float("inf")
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Turn:
    """A delivery, and what its member had last done of the partition before."""

    before: Work
    taken: Work

    @property
    def since_ns(self) -> int:
        return self.before.event.time_ns

    @property
    def until_ns(self) -> int:
        return self.taken.event.time_ns


def blocked(p: Partition, window_ns: int) -> Iterator[tuple[int, int, int, float]]:
    """The offset of the first record that waited, from when to when the partition lagged, and how much more of it the
    member was idle than not: less than that long it must have waited for a processor."""
    for epoch in p.ownership_epochs:
        for span in _spans(p, epoch) if epoch.source not in p.trial.untimed else ():
            since_ns, until_ns = span[0].since_ns, span[-1].until_ns
            if until_ns - since_ns < window_ns:
                continue
            others = list(_others(p, epoch, since_ns, until_ns))
            waits = [turn for turn in span if _counts(p, epoch, turn) and others]
            waits = [turn for turn in waits if not any(_lags(q, turn) for q in others)]
            idle = sorted(_idle_ns(p, epoch, turn) for turn in waits)
            if len(idle) < 3 or 2 * sum(idle[:-1]) <= until_ns - since_ns - idle[-1]:
                continue
            spare_ns = sum(idle[:-1]) - (until_ns - since_ns - idle[-1]) / 2
            yield waits[0].taken.offset, since_ns, until_ns, spare_ns


def waited_ns(p: Partition, begin_ns: int, end_ns: int) -> int:
    """What threads of members and brokers waited for a processor, by the samples of a stretch of time."""
    samples = [e for e in p.trial.of_kind("cpu_wait") if e.time_ns > begin_ns]
    return sum(
        min(e.details["over_ns"], e.details["member_ns"] + e.details["broker_ns"])
        for e in samples
        if e.time_ns - e.details["over_ns"] < end_ns
    )


def _spans(p: Partition, epoch: OwnershipEpoch) -> Iterator[list[Turn]]:
    """Deliveries one after the other, each of a record that lay there when the member had ended what came before."""
    lines = [w for w in p.deliveries + p.completions if w.ownership_epoch == epoch]
    lines = [w for w in lines if w.event.time_ns <= (p.trial.snapshot_ns or FOREVER)]
    lines.sort(key=lambda w: w.event.seq)
    span: list[Turn] = []
    for before, taken in pairwise(lines):
        if taken.event.kind != "delivered":
            continue
        if _readable_ns(p, taken.offset) <= before.event.time_ns:
            span.append(Turn(before, taken))
        elif span:
            yield span
            span = []
    if span:
        yield span


def _readable_ns(p: Partition, offset: int) -> float:
    """When the observer first read a log end behind the record: the lowest of those."""
    ends = [((e.offset or 0), e.details.get("asked_ns", e.time_ns)) for e in p.own("log_end")]
    return float(min((end for end in ends if end[0] > offset), default=(0, FOREVER))[1])


def _counts(p: Partition, epoch: OwnershipEpoch, turn: Turn) -> bool:
    return _idle_ns(p, epoch, turn) >= TOLERANCE_NS and not _in_hand(p, epoch, turn.until_ns)


def _in_hand(p: Partition, epoch: OwnershipEpoch, at_ns: int) -> bool:
    """Just before, a record of the partition had been delivered, and nothing said of it since."""
    mine = [w for w in p.deliveries + p.completions if w.event.source == epoch.source]
    for delivery in [w for w in mine if w.event.kind == "delivered" and w.event.time_ns < at_ns]:
        later = [w for w in mine if w.offset == delivery.offset and w.event.seq > delivery.event.seq]
        if not later or min(later, key=lambda w: w.event.seq).event.time_ns >= at_ns:
            return True
    return False


def _idle_ns(p: Partition, epoch: OwnershipEpoch, turn: Turn) -> int:
    """How long it took, less the time in which a broker was busy with the last fetch that brought something, or with
    commits."""
    asked: list[tuple[int, str, int, int]] = []
    for request in p.trial.requests:
        if api(request) != "FETCH" or p.trial.lane_member(request) is None:
            continue
        began_ns = int(begun_ns(p.trial, request))
        answered_ns = began_ns + int(request.details.get("duration_ms", 0) * 1_000_000)
        mine = _incarnation(p)(str(p.trial.lane_member(request)), began_ns) == epoch.source
        for entry in p.trial.entries(request, p.tp) if mine and began_ns <= turn.until_ns else ():
            if entry.get("size_bytes", 0) > 0 and not entry.get("error"):
                asked.append((began_ns, request.source, request.seq, answered_ns))
    if not asked:
        return 0
    lasted_ns = turn.until_ns - turn.since_ns - _committing_ns(p, epoch, turn)
    began_ns, *_, answered_ns = max(asked)
    broker_ns = min(answered_ns, turn.until_ns) - max(began_ns, turn.since_ns)
    return lasted_ns - max(0, broker_ns)


def _committing_ns(p: Partition, epoch: OwnershipEpoch, turn: Turn) -> int:
    """How long brokers were busy with its member's commits here that were answered in the meantime."""
    return sum(
        int((request.details.get("duration_ms") or 0) * 1_000_000)
        for request in p.trial.requests
        if api(request) in COMMITS and p.trial.lane_member(request) == epoch.member
        if turn.since_ns <= sent_ns(p.trial, request) <= turn.until_ns
        for _ in p.trial.entries(request, p.tp)
    )


def _incarnation(p: Partition) -> Callable[[str, float], str | None]:
    """The file of the incarnation of a member that lived at some time."""

    def found(member: str, time_ns: float) -> str | None:
        started = [e for e in p.trial.of_kind("started") if e.member == member and e.time_ns <= time_ns]
        return max(started, key=lambda e: e.time_ns).source if started else None

    return found


def _others(p: Partition, epoch: OwnershipEpoch, begin_ns: int, end_ns: int) -> Iterator[Partition]:
    """The other partitions that its member had all the while."""
    for tp in p.trial.slices():
        q = type(p)(p.trial, tp)
        mine = [one for one in q.ownership_epochs if one.source == epoch.source] if tp != p.tp else []
        ends = [FOREVER if one.closed is None else one.closed.time_ns for one in mine]
        if any(one.opened.time_ns <= begin_ns and end_ns <= end for one, end in zip(mine, ends, strict=True)):
            yield q


def _lags(q: Partition, turn: Turn) -> bool:
    """In the wait it had something to do that took a second or longer, record upon record."""
    spans = sorted(
        (q.trial.mono_ns(e.source_wall_ns, e.time_ns), q.first_handled.get(offset, FOREVER))
        for offset, e in q.records.items()
    )
    merged: list[tuple[float, float]] = []
    for begin_ns, end_ns in [span for span in spans if span[1] > span[0]]:
        if merged and begin_ns <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end_ns)
        else:
            merged.append((begin_ns, end_ns))
    long = [one for one in merged if one[1] - one[0] >= SECOND_NS]
    return any(begin_ns <= turn.until_ns and end_ns > turn.since_ns for begin_ns, end_ns in long)
