"""Did a fault of handlers bite? From what the HTTP sink saw of a member's effects while it was in force, to evidence.

A handler is broken from outside: by the service that it calls. So what counts is that its calls came, and waited or
were refused; and where its poll interval is to expire, that it is out of its group for that. Where all members are
meant, one without any effect has no work in hand (a single key takes all records to another): the others prove the
fault. Pure functions, as in `evidence.py`; what they see holds no plan and no treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.samples import EffectsSnapshot, MemberEffects, MemberStay, StaysSnapshot

NEARLY: Final = 0.9  # of a delay: the clocks of two threads
NS_PER_S: Final = 1_000_000_000


def handlers_slow(look: EffectsSnapshot, *, delay_s: float) -> Evidence:
    """An effect waited for `delay_s`, and none was done sooner."""
    sooner = [one.member for one in look.members if one.done_s_min is not None and one.done_s_min < NEARLY * delay_s]
    if sooner:
        return Evidence(False, f"effects were done within {delay_s:g} s ({', '.join(sooner)})", _details(look))
    return _all_waited(look, delay_s=delay_s)


def some_handlers_slow(look: EffectsSnapshot, *, delay_s: float) -> Evidence:
    """Of each member with effects one waited for `delay_s`; others may have been done."""
    return _all_waited(look, delay_s=delay_s)


def _all_waited(look: EffectsSnapshot, *, delay_s: float) -> Evidence:
    waited = [one for one in look.members if one.waited_s_max >= NEARLY * delay_s]
    rest = [one for one in look.members if one not in waited]
    if not waited or any(map(_had_effects, rest)):
        missing = _of([one.member for one in rest])
        return Evidence(False, f"no effect waited for {delay_s:g} s{missing}: nothing to slow", _details(look))
    longest = max(one.waited_s_max for one in waited)
    said = f"effects of {_names(waited)} waited for up to {longest:.2f} s{_without_effects(rest)}"
    return Evidence(True, said, _details(look))


def poll_interval_expired(look: StaysSnapshot, *, interval_s: float | None, session_s: float | None) -> Evidence:
    """Each member left its group, or was removed from it, for its poll interval: while its process lived, an effect of
    it waited, and its heartbeats had gone on within the session before.

    Its last poll came before that effect, by a batch at most: so half an interval of waiting is asked for, no more.
    """
    details = {"stays": [asdict(one) for one in look.members], "poll_interval_s": interval_s, "session_s": session_s}
    if interval_s is None or session_s is None:
        return Evidence(False, "the brokers were told of no poll interval that could expire", details)
    stayed = [f"{one.member} {why}" for one in look.members if (why := _stayed(one, interval_s, session_s))]
    if stayed or not look.members:
        return Evidence(
            False, f"no poll interval of {interval_s:g} s expired: {', '.join(stayed) or 'nobody'}", details
        )
    left = [f"{one.member} {'was removed' if one.left_ns is None else 'left'}" for one in look.members]
    return Evidence(True, f"the poll interval of {interval_s:g} s expired: {', '.join(left)}", details)


def _stayed(stay: MemberStay, interval_s: float, session_s: float) -> str:
    """Why it was not its poll interval that expired; empty where it was."""
    if not stay.alive:
        return "ended, or was started again"
    if stay.waits_since_ns is None:
        return "had no effect that waited"
    if stay.out_ns is None:
        return "stayed in its group: it polls while its handler waits"
    waited_s = (stay.out_ns - stay.waits_since_ns) / NS_PER_S
    if waited_s < interval_s / 2:
        return f"was out of its group after {waited_s:.1f} s of waiting"
    if stay.kept_ns is None or stay.out_ns - stay.kept_ns >= session_s * NS_PER_S:
        return f"was out of its group, but without a heartbeat in the {session_s:g} s before"
    return ""


def handlers_failing(look: EffectsSnapshot) -> Evidence:
    """An effect was refused, and none was done."""
    done = [one.member for one in look.members if one.done]
    if done:
        return Evidence(False, f"effects were done all the same ({', '.join(done)})", _details(look))
    refused = [one for one in look.members if one.refused]
    rest = [one for one in look.members if not one.refused]
    if not refused or any(map(_had_effects, rest)):
        missing = _of([one.member for one in rest])
        return Evidence(False, f"no effect came in{missing}: nothing to refuse", _details(look))
    times = sum(one.refused for one in refused)
    said = f"{times} effects of {_names(refused)} were refused, none was done{_without_effects(rest)}"
    return Evidence(True, said, _details(look))


def record_poisoned(look: EffectsSnapshot) -> Evidence:
    """One record was refused whenever it came, by whomever; others may have been done."""
    records = sorted({record for one in look.members for record in one.refused_records})
    if not records:
        return Evidence(False, "no effect was refused: no record to be poison", _details(look))
    if len(records) > 1:
        return Evidence(False, f"{len(records)} records were refused, not one: {', '.join(records)}", _details(look))
    if any(one.done_after_refusal for one in look.members):
        return Evidence(False, f"the effect of {records[0]} was done, after it had been refused", _details(look))
    times = sum(one.refused for one in look.members)
    return Evidence(True, f"the effect of {records[0]} was refused {times} times", _details(look))


def _details(look: EffectsSnapshot) -> dict[str, Any]:
    return {"effects": [asdict(one) for one in look.members]}


def _had_effects(one: MemberEffects) -> bool:
    return bool(one.done or one.waiting or one.refused)


def _without_effects(idle: Sequence[MemberEffects]) -> str:
    return f"; none came{_of([one.member for one in idle])}" if idle else ""


def _names(members: Sequence[MemberEffects]) -> str:
    return ", ".join(one.member for one in members)


def _of(members: Sequence[str]) -> str:
    return f" of {', '.join(members)}" if members else ""
