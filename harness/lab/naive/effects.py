"""Effects beside lines, for the naive checker: what a sink tells of order and of what was done again.

The sink's file is one order of what reached it; of an output topic the order is that of each of its partitions. Only
the first effect of a record has a place in it; any beyond those that lines tell of is a redelivery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_trial.history.event import Event
from lab.naive import assignments as naive_assignments
from lab.naive import responses as naive_responses
from lab.naive.responses import TOLERANCE_NS

if TYPE_CHECKING:
    from lab.naive.checker import Handler, OwnershipEpoch, Partition, Trial

FOREVER = float("inf")
WORK = ("delivered", "processed")


def says_its_time(trial: Trial, event: Event) -> bool:
    """An output whose broker or database says when it was written."""
    output = event.source == "sink" and event.kind == "effect"
    return output and event.source_wall_ns is not None and bool(trial.clocks)


def written_by_a_broker(trial: Trial, event: Event) -> bool:
    """One that had its effect then; in transactions outputs take effect with their end."""
    return says_its_time(trial, event) and not trial.progress_in_transactions


def at_its_time(trial: Trial, event: Event) -> Event:
    """The effect when its broker wrote it, which was before it was read."""
    return replace(event, time_ns=min(event.time_ns, trial.mono_ns(event.source_wall_ns, event.time_ns)))


def line_may_stand_for(p: Partition, offset: int) -> bool:
    """Somebody's word may tell of the effect of a record before it was heard of: nobody knows when it was."""
    if p.trial.settings.get("sink") == "http":
        return False
    effects = [effect for effect, of in p.effects_seen if of == offset]
    return not effects or not all(effect.name in p.trial.written_by_brokers for effect in effects)


# --- order ---------------------------------------------------------------------------------------------------------


def late_firsts(p: Partition) -> dict[int, bool]:
    """Offset → whether a later record of its key came before it: of records whose first effect came too late."""
    in_faith = firsts(p)
    late: dict[int, bool] = {}
    for offset in in_faith:
        before = [o for o in in_faith if o > offset and stands_before(in_faith[o], in_faith[offset])]
        key = p.key(offset)
        if before:
            late[offset] = key is not None and any(p.key(other) == key for other in before)
    return late


def firsts(p: Partition) -> dict[int, Event]:
    """Offset → the first effect of its record, unless a zombie made it."""
    found = {offset: effects[0] for offset, effects in _by_offset(p).items()}
    return {offset: effect for offset, effect in found.items() if not _excused(p, offset, effect)}


def _by_offset(p: Partition) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    if p.trial.settings.get("effects") == "state" and p.trial.of_kind(*WORK):
        return found  # a state may be written anew, and lines tell of the work
    homes = Counter(effect.name for effect, _ in p.effects_seen)  # an id of several records is nobody's
    heard = [(effect, offset) for effect, offset in p.effects_seen if homes[effect.name] == 1]
    for effect, offset in sorted(heard, key=lambda one: (one[0].time_ns, one[0].seq)):
        found.setdefault(offset, []).append(effect)
    return found


def stands_before(one: Event, other: Event) -> bool:
    """In the same file, or the same partition of an output topic."""
    if not of_one_file(one, other):
        return False
    return one.seq < other.seq if _is_of_a_file(one) else (one.offset or 0) < (other.offset or 0)


def of_one_file(one: Event, other: Event) -> bool:
    """They have an order there: lines and effects in the same file, or in the same partition of an output topic."""
    if one.source != other.source or _is_of_a_file(one) != _is_of_a_file(other):
        return False
    return _is_of_a_file(one) or (one.topic, one.partition) == (other.topic, other.partition)


def _is_of_a_file(event: Event) -> bool:
    return event.kind != "effect" or event.topic is None


def _excused(p: Partition, offset: int, effect: Event) -> bool:
    """It falls into the time in which the member that made it had lost the partition untold, or it can have: whatever
    is read of two is read a little apart."""
    at_ns = effect.time_ns
    made_in, times = _made_in(p, offset, effect), (at_ns, at_ns - TOLERANCE_NS)
    if any(p.excused(ownership_epoch, offset, ns, ns) for ownership_epoch in made_in for ns in times):
        return True
    return any(_went_down_over(p, ownership_epoch, offset, at_ns) for ownership_epoch in made_in)


def _went_down_over(p: Partition, ownership_epoch: OwnershipEpoch, offset: int, at_ns: float) -> bool:
    """It was the last that its member began there, and in its hand when the partition was lost; its process went down
    before it said more, and after the effect."""
    loss, closed = p.loss(ownership_epoch), ownership_epoch.closed
    if loss is None or closed is None or closed.kind != "lost" or at_ns < loss.time_ns - TOLERANCE_NS:
        return False
    down = [e for e in p.trial.of_kind("exited") if e.source == ownership_epoch.source and _is_a_crash(e)]
    work = [e for e in p.trial.of_kind(*WORK) if e.source == ownership_epoch.source and (e.topic, e.partition) == p.tp]
    last = max(work, key=lambda e: e.seq, default=None)
    refused_ns = naive_responses.commit_refused(p, ownership_epoch, loss.time_ns)[1]
    knew = (offset >= loss.fetched and at_ns > loss.told_ns) or at_ns >= refused_ns
    in_hand = last is not None and (last.kind, last.offset) == ("delivered", offset) and ownership_epoch.holds(last)
    return in_hand and not knew and any(at_ns <= e.time_ns + TOLERANCE_NS for e in down)


def _is_a_crash(exited: Event) -> bool:
    """By signal 9; or, unless it was asked to stop, with a status that is not 0, or by itself through a signal."""
    signal, code, asked = (exited.details.get(name) for name in ("signal", "code", "asked"))
    if signal == 9 or asked == "stop":
        return bool(signal == 9)
    return (asked == "no" and signal is not None) or code not in (None, 0)


def _made_in(p: Partition, offset: int, effect: Event) -> list[OwnershipEpoch]:
    """The ownership epoch of the handling that lies nearest to an effect; else those by the logs of members that are
    silent, where they had fetched the record."""
    apart = [
        (_apart_ns(handler, effect), handler.begun.ownership_epoch)
        for handler in _handlings(p, offset)
        if _may_be_of(effect, handler.begun.event.member)
    ]
    nearest = min((ns for ns, _ in apart), default=None)
    told = [ownership_epoch for ns, ownership_epoch in apart if ns == nearest and ownership_epoch is not None]
    if apart:
        return told
    silent = [one for one in _ownership_epochs_of_silent(p) if _may_be_of(effect, one.member)]
    return [one for one in silent if _had_fetched(p, one, offset, effect)]


def _may_be_of(effect: Event, member: str | None) -> bool:
    return effect.member is None or effect.member == str(member).split("|")[0]


def _handlings(p: Partition, offset: int) -> Iterator[Handler]:
    """Every time that lines tell of a record in hand: a delivery with its end, or an end alone."""
    yield from (handler for handler in p.handlers if handler.begun.offset == offset)
    alone = [work for work in p.begun if work.event.kind == "processed" and work.offset == offset]
    yield from (p.handler_of(work) for work in alone)


def _apart_ns(handler: Handler, effect: Event) -> float:
    begun_ns = handler.begun.event.time_ns
    ended_ns = handler.ended.event.time_ns if handler.ended else FOREVER
    return max(0, begun_ns - effect.time_ns, effect.time_ns - ended_ns)


def _ownership_epochs_of_silent(p: Partition) -> Iterator[OwnershipEpoch]:
    """Of members that print nothing of their work: those of their callbacks, else from the record that gives them the
    partition on."""
    telling = {e.source for e in p.trial.of_kind(*WORK)}
    for started in p.trial.of_kind("started"):
        if started.source not in telling:
            yield from (one for one in p.ownership_epochs if one.source == started.source)
        ends = [e for e in p.trial.of_kind("exited") if e.source == started.source]
        ended_ns = ends[0].time_ns if ends else FOREVER
        before: frozenset[str] = frozenset()
        for owning in p.ownership if started.source not in telling and not p.callbacks_of(started.source) else ():
            mine = {one for one in owning.owners if p.trial.member_of_id.get(one) == started.member}
            if mine and not mine & before and started.time_ns <= owning.time_ns < ended_ns:
                opened = replace(started, time_ns=int(owning.time_ns))
                yield p.ownership_epoch_of(str(started.member), opened, ends[0] if ends else None)
            before = owning.owners


def _had_fetched(p: Partition, ownership_epoch: OwnershipEpoch, offset: int, effect: Event) -> bool:
    """It may have: the request log says so, or tells of no fetch of its member at all."""
    if not naive_responses.fetches_are_known(p.trial, ownership_epoch.member):
        return True
    asked = naive_responses.fetches(p.trial, p.tp, ownership_epoch.member)
    return any(ownership_epoch.opened.time_ns <= at_ns <= effect.time_ns and place <= offset for at_ns, place in asked)


# --- what was done again -------------------------------------------------------------------------------------------


def further(p: Partition) -> Iterator[tuple[int, Event]]:
    """The effects of a record beyond those of the handlings that lines tell of; the first one is no redelivery."""
    told: Counter[int] = Counter(work.offset for work in p.begun)
    for offset, effects in _by_offset(p).items():
        yield from ((offset, effect) for effect in effects[max(1, told[offset]) :])


def is_below_floor(p: Partition, offset: int, effect: Event, *, of_owners: bool = False) -> bool:
    """The member that had the partition alone began to fetch below where it had to start: at the record, or before.
    `of_owners`: where it was one that somebody had given it."""
    held = p.opened_last(effect.time_ns, of_owners=of_owners)
    claims = p.claims if of_owners else p.mere_claims
    if held is None or not _may_be_of(effect, held.member) or not _alone(p, held, claims):
        return False
    closed_ns = held.closed.time_ns if held.closed else FOREVER
    asked = naive_responses.fetches(p.trial, p.tp, held.member)
    begun_at = [place for at_ns, place in asked if _assigned_ns(p, held) <= at_ns < closed_ns][:1]
    floor = p.floor(held)
    return floor is not None and bool(begun_at) and begun_at[0] <= offset < floor


def _assigned_ns(p: Partition, held: OwnershipEpoch) -> float:
    """When it can have opened at the earliest: its line is read late, but after its file's one before was over."""
    before = [one for one in p.ownership_epochs if one.source == held.source and one.number < held.number]
    ended_ns = [one.closed.time_ns for one in before if one.closed]
    return min(held.opened.time_ns, max([p.trial.written_ns(held.opened), *ended_ns]))


def _alone(p: Partition, held: OwnershipEpoch, claims: list[OwnershipEpoch]) -> bool:
    """Everybody else's ownership epoch was over when it opened; what somebody only claimed does not count."""
    earlier = [one for one in p.ownership_epochs if one.opened.time_ns <= held.opened.time_ns and one != held]
    earlier = [one for one in earlier if one not in claims]
    return all(one.closed is not None and one.closed.time_ns <= held.opened.time_ns for one in earlier)


# --- what came too late --------------------------------------------------------------------------------------------


def after_revoked(p: Partition) -> Iterator[tuple[int, str, bool]]:
    """Record and file of the first effects of members that came after they had said `revoked`, and whether a fault may
    have held each back: before the next callback; or after it, where others had the partition in between and the member
    has asked for nothing up to the record since. Not of what may be done by who reads another topic of the group."""
    elsewhere = {event.id for event in p.trial.of_kind("handed_on")}
    own = {offset: effects for offset, effects in _by_offset(p).items() if effects[0].id not in elsewhere}
    for offset, effects in own.items():
        for member in sorted({str(effect.member) for effect in effects if effect.member is not None}):
            effect = next(one for one in effects if one.member == member)
            source = naive_assignments.file_at(p.trial, member, effect.time_ns)
            if source is None or source in p.trial.untimed or source in p.trial.nameless:
                continue
            revoked = _revoked_before(p, source, member, offset, effect)
            if revoked is not None:
                yield offset, source, _may_be_held(p.trial, member, revoked.time_ns, effect.time_ns)


def _revoked_before(p: Partition, source: str, member: str, offset: int, effect: Event) -> Event | None:
    said = [e for e in p.callbacks_of(source) if e not in p.never_given and e.time_ns <= effect.time_ns]
    surely = [e for e in said if e.time_ns <= effect.time_ns - TOLERANCE_NS]
    if not said or said != surely:
        return None
    if said[-1].kind == "revoked":
        return None if _has_it_again(p, member, said, effect) else said[-1]
    before = said[-2] if said[-1].kind == "assigned" and len(said) > 1 else None
    if before is None or before.kind != "revoked":
        return None
    return before if _was_away(p, member, before, said[-1], offset, effect) else None


def _has_it_again(p: Partition, member: str, said: list[Event], effect: Event) -> bool:
    """The group gave it the partition since: the line of that is still to be read."""
    given = max((ns for ns, owner in p.owners_in_turn if owner == member and ns <= effect.time_ns), default=-FOREVER)
    assigned = max((e.time_ns for e in said if e.kind == "assigned"), default=-FOREVER)
    return given >= max(assigned, p.trial.written_ns(said[-1]) - naive_responses.LOG_TOLERANCE_NS)


def _was_away(p: Partition, member: str, revoked: Event, assigned: Event, offset: int, effect: Event) -> bool:
    begin_ns, end_ns = p.trial.written_ns(revoked), p.trial.written_ns(assigned)
    others = [owner for ns, owner in p.owners_in_turn if begin_ns <= ns < end_ns and owner not in (None, member)]
    asked = naive_responses.fetches(p.trial, p.tp, member)
    since = [place for ns, place in asked if revoked.time_ns <= ns < effect.time_ns]
    stopped = any(naive_responses.does(e, "stops-broker") for e in p.trial.of_kind("injected"))
    known = p.trial.request_logs_complete and not stopped
    return known and bool(others) and bool(since) and min(since) > offset


def _may_be_held(trial: Trial, member: str, since_ns: float, at_ns: float) -> bool:
    for fault in trial.of_kind("injected"):
        if fault.member not in (None, member) or naive_responses.does(fault, "harmless"):
            continue
        number = fault.details.get("fault_no")
        began = [e.time_ns for e in trial.of_kind("injecting") if e.details.get("fault_no") == number]
        if (began[-1] if began else fault.time_ns) <= at_ns and trial.healed_ns(fault) + TOLERANCE_NS >= since_ns:
            return True
    return False
