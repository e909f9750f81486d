"""Faults of handlers, of any consumer that has its effects at our HTTP sink: the service that it calls is slow, refuses
everything, or refuses one record. Judged from what the sink saw of the members' effects (`handler_evidence.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka_trial.consumers.effect_treatment import Arrival, EffectWatch, SinkBehaviour, Treatment
from kafka_trial.errors import UnjudgeableError
from kafka_trial.nemesis import handler_evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import EffectsSnapshot, MemberEffects, MemberStay

MEMBERS = ("member", "all")
REFUSED_NAMED = 10
LEAVES_WITHIN_S = 5.0  # beyond the step: the effect came a while after it began, and others' polls end a rebalance


def _complete(injection: Injection, seen: Evidence) -> Evidence:
    """Adds what the offsets log shows of the group since the injection: whose poll interval expired has left it."""
    return seen.with_details(**injection.group_since())


@fault(
    "handler-slow", targets=MEMBERS, scope="members", heals=True, consequences=(), complete=_complete, sinks=("http",)
)
def handler_slow(
    injection: Injection, *, delay_s: float = 2.0, records: int = 0, expire_poll_interval: bool = False
) -> Iterator[Evidence]:
    """Has effects wait for delay_s before they are done; with records only those of the next so many.

    With `expire_poll_interval` they wait for 1.25 times the poll interval that the members told the brokers, at least:
    whoever polls and works in one thread is out of its group by then, and this must be seen.
    """
    if expire_poll_interval:
        delay_s = injection.outlast_poll_interval(delay_s)
    slow = Treatment(SinkBehaviour.SLOW, delay_s, injection.target.members, records_max=records)
    judge = handler_evidence.some_handlers_slow if records else handler_evidence.handlers_slow
    incarnations = {member.name: member.incarnation for member in injection.context.members()}

    def judged(looks: Sequence[EffectsSnapshot]) -> Evidence:
        seen = judge(looks[-1], delay_s=min(delay_s, injection.for_s / 2))  # one comes when a record does
        if not expire_poll_interval or not seen.took_effect:
            return seen
        return _expired(injection, watch, incarnations).with_details(**seen.details)

    with _treated(injection, slow) as watch:
        looks = injection.hold_until(
            lambda: _look(injection, watch),
            lambda looks: not expire_poll_interval or judged(looks).took_effect,
            within_s=LEAVES_WITHIN_S,
        )
        yield judged(looks)


@fault("handler-failing", targets=MEMBERS, scope="members", heals=True, consequences=(), sinks=("http",))
def handler_failing(injection: Injection) -> Iterator[Evidence]:
    """Refuses every effect (503): nothing is done, and whoever handles a record is told so."""
    with _treated(injection, Treatment(SinkBehaviour.REFUSING, members=injection.target.members)) as watch:
        yield handler_evidence.handlers_failing(injection.hold(lambda: _look(injection, watch))[-1])


@fault("poison-record", targets=MEMBERS, scope="members", heals=True, consequences=(), sinks=("http",))
def poison_record(injection: Injection) -> Iterator[Evidence]:
    """Refuses the effect of one record (503), the next that comes, whenever and from whomever it comes again."""
    poison = Treatment(SinkBehaviour.REFUSING, members=injection.target.members, records_max=1, for_everybody=True)
    with _treated(injection, poison) as watch:
        yield handler_evidence.record_poisoned(injection.hold(lambda: _look_at_refused(injection, watch))[-1])


@contextmanager
def _treated(injection: Injection, treatment: Treatment) -> Iterator[EffectWatch]:
    """Has effects treated so, and yields what comes in from then on.

    Raises:
        UnjudgeableError: the consumer has no sink of ours.
    """
    sink = injection.context.sink
    if sink is None:
        raise UnjudgeableError(f"{injection.fault} is played at the HTTP sink, and this consumer has none")
    with sink.treated(treatment), sink.watched() as watch:
        yield watch


def _look(injection: Injection, watch: EffectWatch) -> EffectsSnapshot:
    return _kept(injection, {name: watch.of(name) for name in injection.target.members})


def _expired(injection: Injection, watch: EffectWatch, incarnations: Mapping[str, int]) -> Evidence:
    """Whether each member is out of its group for its poll interval, by what the brokers have of it."""
    now_s = time.monotonic()
    alive = {
        member.name for member in injection.context.members() if member.incarnation == incarnations.get(member.name)
    }
    waiting = []
    for name in injection.target.members:
        longest = max(watch.of(name), key=lambda one: one.waited_s(now_s), default=None)
        came_ns = None if longest is None else round(longest.came_s * 1e9)
        waiting.append(MemberStay(name, name in alive, came_ns))
    return handler_evidence.poll_interval_expired(
        injection.stays("inside", waiting), interval_s=injection.poll_interval_s, session_s=injection.session_s
    )


def _look_at_refused(injection: Injection, watch: EffectWatch) -> EffectsSnapshot:
    """The effects of the target, and those of others for the records that were refused of the target's."""
    arrivals = {name: watch.of(name) for name in injection.target.members}
    refused = {one.record_id for of_member in arrivals.values() for one in of_member if one.done is False}
    others = {member.name for member in injection.context.members()} - arrivals.keys()
    for name in sorted(others):
        arrivals[name] = [one for one in watch.of(name) if one.record_id in refused]
    return _kept(injection, arrivals)


def _kept(injection: Injection, arrivals: Mapping[str, Sequence[Arrival]]) -> EffectsSnapshot:
    now_s = time.monotonic()
    counted = tuple(_counted(name, of_member, now_s) for name, of_member in arrivals.items())
    return injection.keep("inside", EffectsSnapshot(time.monotonic_ns(), counted))


def _counted(member: str, arrivals: Sequence[Arrival], now_s: float) -> MemberEffects:
    done = [one for one in arrivals if one.done]
    refused = [one for one in arrivals if one.done is False]
    first_refused = {one.record_id: one.came_s for one in reversed(refused)}
    return MemberEffects(
        member,
        done=len(done),
        refused=len(refused),
        waiting=len(arrivals) - len(done) - len(refused),
        waited_s_max=round(max((one.waited_s(now_s) for one in arrivals), default=0.0), 3),
        done_s_min=round(min(one.waited_s(now_s) for one in done), 3) if done else None,
        refused_records=tuple(list(first_refused)[:REFUSED_NAMED]),
        done_after_refusal=sum(one.came_s > first_refused.get(one.record_id, one.came_s) for one in done),
    )
