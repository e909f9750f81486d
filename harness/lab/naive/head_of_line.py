"""Head-of-line blocking, for the naive checker: who lags, holds nothing, and has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lab.naive.responses import api, begun_ns, error_of, sent_ns

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Work

FOREVER = float("inf")
SECOND_NS = 1_000_000_000
FETCH_WAIT_NS = 600_000_000  # what clients wait for at a broker that has nothing, and a tenth of a second
CLOSE_NS = 10_000_000  # what is as close is one
NOT_WAITED_FOR = ("FETCH", "HEARTBEAT", "CONSUMERGROUPHEARTBEAT", "METADATA", "APIVERSIONS")
COME_AGAIN = (14, 15, 16, 51)  # the coordinator loads, is away or elsewhere, or ends the last transaction first


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
            others = list(_others(p, epoch, since_ns, until_ns)) if until_ns - since_ns >= window_ns else []
            if not others:
                continue
            occupied = [*_answers(p, epoch.source), *_handlings(p, epoch.source)]
            waits = [(turn, _idle_ns(p, epoch, turn, occupied)) for turn in span]
            waits = [(turn, idle_ns) for turn, idle_ns in waits if idle_ns >= FETCH_WAIT_NS]
            waits = [one for one in waits if not _in_hand(p, epoch, one[0].until_ns)]
            waits = [one for one in waits if not any(_lags(q, one[0]) for q in others)]
            idle = sorted(idle_ns for _, idle_ns in waits)
            if len(idle) < 3 or 2 * sum(idle[:-1]) <= until_ns - since_ns - idle[-1]:
                continue
            spare_ns = sum(idle[:-1]) - (until_ns - since_ns - idle[-1]) / 2
            yield waits[0][0].taken.offset, since_ns, until_ns, spare_ns


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


def _in_hand(p: Partition, epoch: OwnershipEpoch, at_ns: int) -> bool:
    """Just before, a record of the partition had been delivered, and nothing said of it since."""
    mine = [w for w in p.deliveries + p.completions if w.event.source == epoch.source]
    for delivery in [w for w in mine if w.event.kind == "delivered" and w.event.time_ns < at_ns]:
        if ended_ns(p, mine, delivery) >= at_ns:
            return True
    return False


def ended_ns(p: Partition, mine: list[Work], delivery: Work) -> float:
    """When the record was out of hand: by the next word of it; where there is none, by the last that the sink heard."""
    later = [w for w in mine if w.offset == delivery.offset and w.event.seq > delivery.event.seq]
    if later:
        return min(later, key=lambda w: w.event.seq).event.time_ns
    heard = [time_ns for time_ns, offset in p.effect_times if offset == delivery.offset]
    return max((time_ns for time_ns in heard if time_ns >= delivery.event.time_ns), default=FOREVER)


def _idle_ns(p: Partition, epoch: OwnershipEpoch, turn: Turn, occupied: list[tuple[float, float]]) -> int:
    """How long it took, less the time in which a broker worked on the last fetch that brought something, or with
    anything else that was asked, and in which the process had a record of any partition in hand."""
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
    began_ns, *_, answered_ns = max(asked)
    taken = [(began_ns, answered_ns), *occupied]
    return turn.until_ns - turn.since_ns - _together_ns(taken, turn.since_ns, turn.until_ns)


def _together_ns(spans: Iterable[tuple[float, float]], since_ns: int, until_ns: int) -> int:
    """How much of a stretch of time some spans take together."""
    reached_ns, taken_ns = float(since_ns), 0.0
    for begin_ns, end_ns in sorted(spans):
        taken_ns += max(0.0, min(end_ns, until_ns) - max(begin_ns, reached_ns))
        reached_ns = max(reached_ns, min(end_ns, until_ns))
    return int(taken_ns)


def _answers(p: Partition, source: str) -> list[tuple[float, float]]:
    """From when to when the process waited for the answer to anything but a fetch or heartbeat, or might not ask."""
    asked: list[tuple[float, float, int]] = []
    for request in p.trial.requests:
        member = p.trial.lane_member(request)
        if member is None or api(request) in NOT_WAITED_FOR:
            continue
        ended_ns = int(sent_ns(p.trial, request))
        began_ns = ended_ns - int((request.details.get("duration_ms") or 0) * 1_000_000)
        if _incarnation(p)(member, began_ns) == source:
            asked.append((began_ns, ended_ns, error_of(request)))
    asked.sort(key=lambda one: one[0])
    spans = []
    for number, (began_at, ended_at, error) in enumerate(asked):
        again_at = asked[number + 1][0] if error in COME_AGAIN and number + 1 < len(asked) else ended_at
        spans.append((began_at, max(ended_at, again_at)))
    return _as_one(spans)


def _handlings(p: Partition, source: str) -> Iterator[tuple[float, float]]:
    """From when to when the process had records in hand, partition by partition."""
    for tp in p.trial.slices() if source not in p.trial.untimed else ():
        q = type(p)(p.trial, tp)
        mine = [w for w in q.deliveries + q.completions if w.event.source == source]
        spans: list[tuple[float, float]] = []
        for delivery in mine:
            epoch = delivery.ownership_epoch
            if delivery.event.kind != "delivered" or epoch is None:
                continue
            closed_ns = FOREVER if epoch.closed is None else epoch.closed.time_ns
            spans.append((delivery.event.time_ns, min(ended_ns(q, mine, delivery), closed_ns)))
        yield from _as_one(spans)


def _as_one(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans, those that are close to each other as one."""
    found: list[tuple[float, float]] = []
    for begin_ns, end_ns in sorted(span for span in spans if span[1] > span[0]):
        if found and begin_ns - CLOSE_NS <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end_ns)
        else:
            found.append((begin_ns, end_ns))
    return found


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
