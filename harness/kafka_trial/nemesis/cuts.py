"""The cut: a fault at the nth request of one API of one member, exactly there.

The toxics on the member's proxies read Kafka's frames (`cluster/kafka_cut.py`). Where: before the broker has the
request; answered, when the broker has done it and the member does not know; after the answer has reached the member's
socket. What then happens to its connection is the action; what happens besides, while the connection stands still, is
`then`.

The evidence has two witnesses. The toxics say which request it was and for how long the cut acted. The broker's own
request log says, by the correlation id, whether that broker took it and when. A cut that is never reached did not
bite, and says how many requests it saw.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kafka_trial.cluster.kafka_cut import (
    ACTIONS,
    AFTER,
    ANSWERED,
    API_KEYS,
    BEFORE,
    CLOSE,
    DELAY,
    DROP,
    HOLD,
    PASS,
    WHERE,
    Arming,
    CutRequest,
    LaneCuts,
    LaneSeen,
)
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.broker_log import CLOCKS_NS
from kafka_trial.nemesis.brokers import isr_whole_within
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault, find_fault
from kafka_trial.nemesis.injection import Actor, Injection
from kafka_trial.nemesis.samples import ProcessSnapshot
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.consumers.consumer import Member

NOTHING, KILL, PAUSE, KILL_BROKER = "nothing", "kill", "pause", "kill-broker"
THEN: Final = (NOTHING, KILL, PAUSE, KILL_BROKER)
LEAVE_GROUP = "LeaveGroup"
GONE_WITHIN_S = 5.0  # on a busy machine; otherwise milliseconds
LOOK_EVERY_S = 0.005
LOGGED_WITHIN_S = 5.0
LOGGED_LATE_NS: Final = 1_000_000_000  # a line is written, and stamped, after its answer: on a busy machine much later
LOOKED_AFTER_NS: Final = 150_000_000  # a hit is seen by looking; from so long before it on its answer may be unheard
DELAY_SEEN_S = 0.3
NOT_REACHED = "not reached"
STARTED_WITHIN_S = 60.0
NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True)
class CutSpec:
    """What a cut is to do; `for_s` how long a hold lasts, in seconds."""

    api: str
    nth: int
    where: str
    action: str
    then: str
    delay_ms: int
    for_s: float

    @property
    def lasts_ns(self) -> int:
        """How long the request must have been stopped, at least."""
        return {HOLD: round(self.for_s * NS_PER_S), DELAY: self.delay_ms * 1_000_000, CLOSE: 0}[self.action]

    @property
    def ends_by(self) -> str:
        """What becomes of what was held: who is dead sends nothing, and hears nothing."""
        return DROP if self.action == CLOSE or self.then in (KILL, KILL_BROKER) else PASS


def _complete(injection: Injection, seen: Evidence) -> Evidence:
    """Adds what became of the request: by the toxics, and by the log of the broker that it was sent to."""
    if not seen.took_effect:
        return seen.with_details(**injection.group_since())
    spec = CutSpec(**seen.details["spec"])
    cut = injection.lane_after.cut if injection.lane_after else None
    if cut is None:
        return Evidence(False, "what became of the cut was not seen: its healing failed", seen.details)
    logged = _logged(injection, cut, spec)
    found = judge(spec, cut, logged, seen).with_details(**injection.group_since())
    if spec.then != KILL_BROKER:
        return found
    return found.with_details(isr_whole_again=isr_whole_within(injection, cut.broker, injection.topic_before))


def _problems(options: Mapping[str, Any]) -> list[str]:
    found = []
    if options.get("nth", 1) < 1:
        found.append(f"nth must be 1 or more, not {options['nth']}")
    if options.get("answer_bytes_min", 0) > 0 and options.get("where", BEFORE) == BEFORE:
        found.append(f"answer_bytes_min needs an answer: where must be {' or '.join(WHERE[1:])}")
    if options.get("action") == DELAY and options.get("delay_ms", 1) < 1:
        found.append("delay_ms must be 1 or more")
    then = options.get("then", NOTHING)
    if options.get("action") == DELAY and then in (KILL, KILL_BROKER):
        found.append(f"a request is delayed to go on, and after {then} it does not: take the action {HOLD}")
    if then == KILL_BROKER and options.get("where", BEFORE) == ANSWERED:
        found.append(
            f"{KILL_BROKER} needs where = {BEFORE} or {AFTER}: what a broker had answered would be lost with it"
        )
    return found


def _consequences(options: Mapping[str, Any]) -> Collection[Consequence]:
    """Returns those of the cut, or of what follows on it. What was held goes on after a pause, and is dropped with a
    connection that is closed: then its answer is lost, whatever follows."""
    closes, then = options["action"] == CLOSE, options["then"]
    if then == NOTHING:
        return find_fault("close" if closes else "stall").consequences_of({})
    follows = find_fault({KILL: "kill", PAUSE: "pause", KILL_BROKER: "broker-kill"}[then]).consequences_of({})
    return follows | {Consequence.LOSES_ANSWERS} if closes and then == PAUSE else follows


@fault(
    "cut",
    targets=("member",),
    scope="members",
    heals=True,
    consequences=_consequences,
    complete=_complete,
    choices={"api": tuple(API_KEYS), "where": WHERE, "action": ACTIONS, "then": THEN},
    broker_choices={"then": KILL_BROKER},
    waits=True,
    check=_problems,
)
def cut(
    injection: Injection,
    *,
    api: str = "OffsetCommit",
    nth: int = 1,
    where: str = BEFORE,
    action: str = HOLD,
    then: str = NOTHING,
    delay_ms: int = 1000,
    answer_bytes_min: int = 0,
    fresh: bool = False,
    within_s: float = 20.0,
) -> Iterator[Evidence]:
    """Cuts a member off at its nth request of an API: before, answered or after; holds, closes or delays it.

    It is armed when the step begins and waited for `within_s` seconds; held for as long as the step lasts. With
    `answer_bytes_min` only requests count whose answer has so many bytes: a Fetch that brought records. With `fresh`
    the member is ended and started again when the step begins, for what one sends only as it leaves and as it starts.
    """
    if action == DELAY:
        injection.for_s = max(injection.for_s, delay_ms / 1000 + DELAY_SEEN_S)
    spec = CutSpec(api, int(nth), where, action, then, int(delay_ms), injection.for_s)
    began_ns = time.monotonic_ns()
    cuts = LaneCuts(injection.context.cluster.toxiproxy, injection.member().lane)
    name = f"{injection.context.group_name}-f{injection.no}-{secrets.token_hex(4)}"
    arming = Arming(name, API_KEYS[api], spec.nth, where, action, spec.delay_ms, int(answer_bytes_min))
    with _acting(injection, spec) as act:
        if fresh:
            injection.injecting()  # from here on it is hindered: it has no partition any more when it is cut
            victim = injection.member()
            if api != LEAVE_GROUP:
                injection.context.group.leave(victim)  # what it sends as it leaves is not what is meant
        with (
            ThreadGroup(f"cut {injection.no}", join_within_s=STARTED_WITHIN_S) as thread_group,
            cuts.armed(arming, by=spec.ends_by),
        ):
            if fresh:
                thread_group.start("again", _start_afresh, injection, spec)
            with suppress(WaitTimeout):
                wait_until(
                    lambda: injection.stop.is_set() or _hit(cuts.seen(name)),
                    within_s=within_s,
                    what=f"request {nth} of {api}",
                    every_s=LOOK_EVERY_S,
                )
            seen = injection.lane_seen("inside", name)
            hit_ns = seen.cut.hit_ns if seen.cut else time.monotonic_ns()
            injection.injecting(time_ns=max(began_ns, hit_ns - LOOKED_AFTER_NS))
            injection.injected(**_whom(spec, seen.cut))
            if seen.cut is None or not seen.cut.hit_ns:
                yield not_reached(spec, seen, within_s=within_s)
                return
            if not (fresh and api == LEAVE_GROUP):
                victim = injection.member()
            struck: Actor = victim
            if then == KILL_BROKER:
                injection.topic_before = injection.topic("before")
                struck = injection.context.cluster.brokers[seen.cut.broker]
            process = injection.process_of("before", struck)
            if then == KILL and not victim.alive:
                yield Evidence(False, f"{NOT_REACHED}: {victim.name} had gone by itself before it could be killed")
                return
            act(seen.cut, victim)
            after = injection.hold(lambda: injection.process_of("inside", struck))
            yield _acted(spec, process, after, seen.cut).with_details(spec=asdict(spec))
        with suppress(WaitTimeout):  # the connection lets go a moment after it is told to
            wait_until(
                lambda: _gone(cuts.seen(name)),
                within_s=GONE_WITHIN_S,
                what=f"the end of the cut of {api}",
                every_s=LOOK_EVERY_S,
            )
        injection.lane_after = injection.lane_seen("after", name)  # the next cut of this lane forgets it


def not_reached(spec: CutSpec, seen: LaneSeen, *, within_s: float) -> Evidence:
    """The request never came; or it came, and its answer did not."""
    told = f"{NOT_REACHED}: {seen.matched} of {spec.nth} {spec.api} came in {within_s:g} s"
    if seen.cut is not None:
        told = f"{NOT_REACHED}: request {spec.nth} of {spec.api} came, and its answer did not arrive in {within_s:g} s"
    return Evidence(False, told, {"matched": seen.matched, "strange": seen.strange, "connections": seen.connections})


def judge(spec: CutSpec, cut: CutRequest, answered_ns: Sequence[int], seen: Evidence) -> Evidence:
    """Tells whether the request was cut as asked: `answered_ns` is when its broker logged it as answered, if it did.

    All times are of CLOCK_MONOTONIC. `seen` is what was known before healing, of what `then` did too.
    """
    lasted_ns = cut.gone_ns - cut.hit_ns
    details = {**seen.details, **asdict(cut), "answered_ns": list(answered_ns), "lasted_s": lasted_ns / NS_PER_S}
    request = f"request {spec.nth} of {spec.api} (correlation id {cut.correlation_id}, broker {cut.broker})"
    if cut.api != API_KEYS[spec.api]:
        return Evidence(False, f"another request was cut: api {cut.api}", details)
    if not cut.gone_ns or cut.ended != spec.ends_by:
        return Evidence(
            False, f"{request} was to end by {spec.ends_by}, its cut says {cut.ended or 'nothing'}", details
        )
    if lasted_ns < spec.lasts_ns:
        lasts_s = spec.lasts_ns / NS_PER_S
        return Evidence(False, f"{request} was stopped for {lasted_ns / NS_PER_S:.3f} s of {lasts_s:g}", details)
    if spec.where == BEFORE:
        limit_ns = cut.gone_ns - CLOCKS_NS
        early = [at_ns for at_ns in answered_ns if at_ns < limit_ns or spec.ends_by == DROP]
        if len(early) > cut.alike:
            return Evidence(False, f"{request} reached the broker all the same: its log has it", details)
        where = "before the broker had it"
    else:
        if not any(at_ns <= cut.hit_ns + LOGGED_LATE_NS for at_ns in answered_ns):
            return Evidence(False, f"{request}: the broker's log does not have it as answered by then", details)
        where = "when it was answered" if spec.where == ANSWERED else "after its answer had arrived"
    did = {HOLD: f"held for {lasted_ns / NS_PER_S:.1f} s", CLOSE: "closed", DELAY: f"held for {spec.delay_ms} ms"}
    besides = "" if spec.then == NOTHING else f"; {seen.message}"
    return Evidence(True, f"{request} was cut {where}, its connection {did[spec.action]}{besides}", details)


def _whom(spec: CutSpec, cut: CutRequest | None) -> dict[str, Any]:
    """Whom it hits besides its member: a broker that dies is lost to all of them."""
    return {"member": None, "broker": cut.broker} if cut is not None and spec.then == KILL_BROKER else {}


def _gone(seen: LaneSeen) -> bool:
    return seen.cut is None or bool(seen.cut.gone_ns)


def _hit(seen: LaneSeen) -> bool:
    return seen.cut is not None and seen.cut.hit_ns > 0


def _acted(spec: CutSpec, before: ProcessSnapshot, after: Sequence[ProcessSnapshot], cut: CutRequest) -> Evidence:
    """What `then` did, by the process it was done to."""
    if spec.then == KILL:
        return evidence.killed(before, after[-1])
    if spec.then == PAUSE:
        return evidence.paused(before, after)
    if spec.then == KILL_BROKER:
        found = evidence.killed(before, after[-1])
        return replace(found, message=f"broker {cut.broker}: {found.message}")
    return Evidence(True, "cut, and still in force")


@contextmanager
def _acting(injection: Injection, spec: CutSpec) -> Iterator[Any]:
    """Yields what does to the member or the broker what `then` asks; undone afterwards."""
    group, brokers = injection.context.group, injection.context.cluster.brokers
    killed: list[int] = []
    paused: list[Member] = []

    def act(cut: CutRequest, victim: Member) -> None:
        if spec.then == KILL:
            group.kill(victim)
        elif spec.then == PAUSE:
            paused.append(victim)
            group.pause(victim)
        elif spec.then == KILL_BROKER:
            killed.append(cut.broker)
            brokers[cut.broker].kill()

    try:
        yield act
    finally:
        for member in paused:
            group.resume(member)
        for broker in killed:
            if not brokers[broker].alive:
                brokers[broker].start()
        injection.member_again()


def _start_afresh(injection: Injection, spec: CutSpec) -> None:
    """Starts the member again; one that is to be cut as it leaves is ended first, and where it is killed then it starts
    when the fault is healed."""
    group, member = injection.context.group, injection.member()
    leaving = spec.api == LEAVE_GROUP
    if leaving:
        group.leave(member)
    if not (leaving and spec.then == KILL) and not injection.stop.is_set():
        group.restart(member)


def _logged(injection: Injection, cut: CutRequest, spec: CutSpec) -> list[int]:
    """Returns when the broker logged the request as answered, on CLOCK_MONOTONIC; waits where it must have."""
    found: list[int] = []

    def look() -> bool:
        found[:] = injection.answered_ns(cut)
        return bool(found)

    if spec.where == BEFORE and spec.ends_by == DROP:
        look()
        return found
    with suppress(WaitTimeout):  # one that never comes is told by the judge
        wait_until(look, within_s=LOGGED_WITHIN_S, what="the request log to have the request that was cut", every_s=0.5)
    return found
