"""Faults of members: signals to the process group of one consumer, judged from that group itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.nemesis import evidence_processes as evidence
from kafka_trial.nemesis.fault import Evidence, fault
from kafka_trial.nemesis.samples import ProcessLook
from kafka_trial.nemesis.scene import Scene
from kafka_trial.nemesis.targets import member_named
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.consumers.consumer import Member

EXIT_WITHIN_S = 10.0
ASKED_WITHIN_S = 10.0  # a member works in rounds: in so long each has come past its crash points


def _complete(scene: Scene, seen: Evidence) -> Evidence:
    """Adds what the offsets log shows of the group since the injection; expiry may come later than that."""
    return seen.with_details(**scene.group_since())


@fault("pause", targets=("member",), blast="members", heals=True, complete=_complete)
def pause(scene: Scene, *, expire_session: bool = False) -> Iterator[Evidence]:
    """Stops a member's process group (SIGSTOP) and continues it; beyond the session it is expelled.

    With `expire_session` it is stopped for so long: for 1.25 times the session that the brokers were told, at least.
    """
    if expire_session:
        scene.outlast_session()
    before = scene.process("before")
    member = scene.member()
    try:
        scene.ground.group.pause(member)
        links = []

        def look() -> ProcessLook:
            links.append(scene.links("inside"))
            return scene.process("inside")

        inside = scene.hold(look)
        yield evidence.paused(before, inside, links).with_details(requests_inside=scene.requests_since())
    finally:
        scene.ground.group.resume(member)


@fault("kill", targets=("member",), blast="members", heals=True, complete=_complete)
def kill(scene: Scene) -> Iterator[Evidence]:
    """Kills a member with -9; its next incarnation starts when it heals."""
    before = scene.process("before")
    with _ended(scene, scene.ground.group.kill):
        yield evidence.killed(before, _after_exit(scene))


@fault("terminate", targets=("member",), blast="members", heals=True, complete=_complete)
def terminate(scene: Scene) -> Iterator[Evidence]:
    """Ends a member with SIGTERM; its next incarnation starts when it heals."""
    before = scene.process("before")
    with _ended(scene, scene.ground.group.leave):
        yield evidence.terminated(before, _after_exit(scene))


@fault("restart", targets=("member",), blast="members", heals=True, complete=_complete)
def restart(scene: Scene) -> Iterator[Evidence]:
    """Ends a member with SIGTERM and starts its next incarnation at once."""
    before = scene.process("before")
    with _ended(scene, scene.ground.group.leave):
        ended = evidence.terminated(before, scene.process("inside"))
    if not ended.bit:
        scene.hold(lambda: None)
        yield ended
        return
    after = scene.hold(lambda: scene.process("inside"))[-1]
    yield evidence.replaced(before, after)


@fault("crash-point", targets=("member",), blast="members", heals=True, complete=_complete)
def crash_point(scene: Scene, *, point: str = "before-commit") -> Iterator[Evidence]:
    """Kills a member with -9 exactly where it asks at a crash point; its next incarnation starts when it heals.

    It asks by `POST {sink_url}/crash-point/<point>` and gets no answer.

    Raises:
        UnjudgeableError: the consumer has no sink to ask.
    """
    sink = scene.ground.sink
    if sink is None:
        raise UnjudgeableError("crash points are asked for at the sink, and this consumer has none")
    before = scene.process("before")
    armed = sink.arm(point, member=scene.target.name)
    try:
        try:
            wait_until(
                lambda: scene.stop.is_set() or sink.was_reached(armed),
                within_s=ASKED_WITHIN_S,
                what=f"{scene.target.name} to ask at the crash point {point}",
                every_s=0.01,
            )
        except WaitTimeout as error:
            scene.injected()
            yield Evidence(False, str(error))
            return
        scene.injected()
        yield evidence.killed(before, _after_exit(scene)).with_details(crash_point=point)
    finally:
        sink.disarm(armed)
        scene.member_again()


@contextmanager
def _ended(scene: Scene, end: Callable[[Member], object]) -> Iterator[None]:
    """Ends the member; afterwards its next incarnation runs, unless it never ended."""
    try:
        member = scene.member()
        scene.injected()  # it is hit now; what is journaled after its end comes late for one that is slow to go
        end(member)
        yield
    finally:
        scene.member_again()


def _after_exit(scene: Scene) -> ProcessLook:
    """Waits a moment for the exit to be seen, holds, and looks at what is left of the incarnation."""
    member = member_named(scene.ground, scene.target.name)
    with suppress(WaitTimeout):  # the sample says that it still runs
        wait_until(lambda: not member.alive, within_s=min(EXIT_WITHIN_S, scene.for_s), what="the member's exit")
    return scene.hold(lambda: scene.process("inside"))[-1]
