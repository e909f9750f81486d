"""Faults of members: signals to the process group of one consumer, and a member more or less in the group.

Signals are judged from that process group itself, forced rebalances from the offsets log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import PREDECESSOR, SUCCESSOR, fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import GroupSnapshot, ProcessSnapshot
from kafka_trial.nemesis.targets import member_named
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.consumers.consumer import ConsumerSpec, Member

EXIT_WITHIN_S = 10.0
ASKED_WITHIN_S = 10.0  # a member works in rounds: in so long each has come past its crash points


def _complete(injection: Injection, seen: Evidence) -> Evidence:
    """Adds what the offsets log shows of the group since the injection; expiry may come later than that."""
    return seen.with_details(**injection.group_since())


@fault(
    "pause", targets=("member",), scope="members", heals=True, consequences=[Consequence.FREEZES], complete=_complete
)
def pause(injection: Injection, *, expire_session: bool = False) -> Iterator[Evidence]:
    """Stops a member's process group (SIGSTOP) and continues it; beyond the session it is expelled.

    With `expire_session` it is stopped for so long: for 1.25 times the session that the brokers were told, at least.
    """
    if expire_session:
        injection.outlast_session()
    before = injection.process("before")
    member = injection.member()
    try:
        injection.context.group.pause(member)
        links = []

        def look() -> ProcessSnapshot:
            links.append(injection.links("inside"))
            return injection.process("inside")

        inside = injection.hold(look)
        yield evidence.paused(before, inside, links).with_details(requests_inside=injection.requests_since())
    finally:
        injection.context.group.resume(member)


@fault(
    "kill",
    targets=("member",),
    scope="members",
    heals=True,
    consequences=[Consequence.KILLS, Consequence.LOSES_ANSWERS],
    complete=_complete,
)
def kill(injection: Injection) -> Iterator[Evidence]:
    """Kills a member with -9; its next incarnation starts when it heals."""
    before = injection.process("before")
    with _ended(injection, injection.context.group.kill):
        yield evidence.killed(before, _after_exit(injection))


@fault(
    "terminate", targets=("member",), scope="members", heals=True, consequences=[Consequence.STOPS], complete=_complete
)
def terminate(injection: Injection) -> Iterator[Evidence]:
    """Ends a member with SIGTERM; its next incarnation starts when it heals."""
    before = injection.process("before")
    with _ended(injection, injection.context.group.leave):
        yield evidence.terminated(before, _after_exit(injection))


@fault(
    "restart", targets=("member",), scope="members", heals=True, consequences=[Consequence.STOPS], complete=_complete
)
def restart(injection: Injection) -> Iterator[Evidence]:
    """Ends a member with SIGTERM and starts its next incarnation at once."""
    before = injection.process("before")
    with _ended(injection, injection.context.group.leave):
        ended = evidence.terminated(before, injection.process("inside"))
    if not ended.took_effect:
        injection.hold(lambda: None)
        yield ended
        return
    after = injection.hold(lambda: injection.process("inside"))[-1]
    yield evidence.replaced(before, after)


JOINS_WITHIN_S = 20.0  # of a process: on a busy machine a JVM takes its time


def _link_problems(options: Mapping[str, Any]) -> list[str]:
    return [f"link must be 1 or more, not {options['link']}"] if options.get("link", 1) < 1 else []


@fault(
    "move-client",
    targets=("member",),
    scope="members",
    heals=True,
    consequences=[Consequence.STOPS],
    complete=_complete,
    choices={"to": (SUCCESSOR, PREDECESSOR)},
    check=_link_problems,
)
def move_client(injection: Injection, *, to: str = SUCCESSOR, link: int = 1) -> Iterator[Evidence]:
    """Ends a member as its consumer.toml says; its next incarnation is of its consumer's successor, or back again.

    Of several successors in a chain `link` names the one: 1 is the first, and its predecessor the consumer itself.

    Raises:
        UnjudgeableError: there is no such successor.
    """
    group, before = injection.context.group, injection.process("before")
    spec = _moved_to(group.specs, link if to == SUCCESSOR else link - 1)
    asked, moved = list[tuple[str, int]](), False
    try:
        injection.injected()
        group.leave(injection.member())
        ended = injection.process("inside")
        if ended.exit_code is None:
            yield evidence.terminated(before, ended)
            return
        since_wall_ns = time.time_ns()
        group.move(injection.member(), spec)
        moved = True  # one that ends by itself from now on is not started again

        def look() -> ProcessSnapshot:
            asked.extend(injection.asked_to_join(since_wall_ns=since_wall_ns))
            return injection.process("inside")

        looks = injection.hold_until(
            look, lambda seen: bool(asked) or seen[-1].exit_code is not None, within_s=JOINS_WITHIN_S
        )
        yield evidence.moved_client(before, looks[-1], asked, consumer=spec.name)
    finally:
        if not moved:
            injection.member_again()


def _moved_to(specs: Sequence[ConsumerSpec], place: int) -> ConsumerSpec:
    if place >= len(specs):
        raise UnjudgeableError(f"{specs[0].name} has {len(specs) - 1} successors, and none of the number {place}")
    return specs[place]


def _crash_point_problems(options: Mapping[str, Any]) -> list[str]:
    return [f"nth must be 1 or more, not {options['nth']}"] if options.get("nth", 1) < 1 else []


@fault(
    "crash-point",
    targets=("member",),
    scope="members",
    heals=True,
    consequences=[Consequence.KILLS, Consequence.LOSES_ANSWERS],
    complete=_complete,
    sinks=("http", "postgres"),
    check=_crash_point_problems,
)
def crash_point(injection: Injection, *, point: str = "before-commit", nth: int = 1) -> Iterator[Evidence]:
    """Kills a member with -9 exactly where it asks at a crash point; its next incarnation starts when it heals.

    It asks by `POST {sink_url}/crash-point/<point>`, and gets no answer the nth time.

    Raises:
        UnjudgeableError: the consumer has no sink to ask.
    """
    sink = injection.context.sink
    if sink is None:
        raise UnjudgeableError("crash points are asked for at the sink, and this consumer has none")
    before = injection.process("before")
    armed = sink.arm(point, member=injection.target.name, nth=int(nth))
    try:
        try:
            wait_until(
                lambda: injection.stop.is_set() or sink.was_reached(armed),
                within_s=ASKED_WITHIN_S,
                what=f"{injection.target.name} to ask at the crash point {point}, time {int(nth)}",
                every_s=0.01,
            )
        except WaitTimeout as error:
            injection.injected()
            yield Evidence(False, str(error))
            return
        injection.injected()
        yield evidence.killed(before, _after_exit(injection)).with_details(crash_point=point, nth=int(nth))
    finally:
        sink.disarm(armed)
        injection.member_again()


@contextmanager
def _ended(injection: Injection, end: Callable[[Member], object]) -> Iterator[None]:
    """Ends the member; afterwards its next incarnation runs, unless it never ended."""
    try:
        member = injection.member()
        injection.injected()  # it is hit now; what is journaled after its end comes late for one that is slow to go
        end(member)
        yield
    finally:
        injection.member_again()


def _after_exit(injection: Injection) -> ProcessSnapshot:
    """Waits a moment for the exit to be seen, holds, and looks at what is left of the incarnation."""
    member = member_named(injection.context, injection.target.name)
    with suppress(WaitTimeout):  # the sample says that it still runs
        wait_until(lambda: not member.alive, within_s=min(EXIT_WITHIN_S, injection.for_s), what="the member's exit")
    return injection.hold(lambda: injection.process("inside"))[-1]


REBALANCE_WITHIN_S = 12.0  # a classic group waits for each member's next poll
START_WITHIN_S = 12.0  # of an extra member's process: on a busy machine a JVM takes its time


def _join_complete(injection: Injection, seen: Evidence) -> Evidence:
    return seen.with_details(**injection.group_since())


@fault(
    "join",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=[Consequence.HARMLESS],
    complete=_join_complete,
)
def join(injection: Injection) -> Iterator[Evidence]:
    """Starts a further member; it leaves again when it heals. Two rebalances."""
    before = injection.group_snapshot("before")
    extra_member = injection.context.group.join()
    try:
        yield _rebalanced(injection, before, members_change=1, within_s=START_WITHIN_S + REBALANCE_WITHIN_S)
    finally:
        injection.context.group.leave(extra_member)


@fault(
    "leave", targets=("member",), scope="members", heals=True, consequences=[Consequence.STOPS], complete=_join_complete
)
def leave(injection: Injection) -> Iterator[Evidence]:
    """Has a member leave; its next incarnation joins when it heals. Two rebalances."""
    before = injection.group_snapshot("before")
    member = injection.member()
    injection.injected()  # it is hit now, however long it takes to go
    injection.context.group.leave(member)
    try:
        yield _rebalanced(injection, before, members_change=-1, within_s=REBALANCE_WITHIN_S)
    finally:
        injection.member_again()


def _rebalanced(injection: Injection, before: GroupSnapshot, *, members_change: int, within_s: float) -> Evidence:
    def judge(inside: list[GroupSnapshot]) -> Evidence:
        return evidence.rebalanced(before, inside, members_change=members_change)

    inside = injection.hold_until(
        lambda: injection.group_snapshot("inside"), lambda looks: judge(looks).took_effect, within_s=within_s
    )
    return judge(inside)
