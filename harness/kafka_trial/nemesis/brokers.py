"""Faults of brokers: process and leadership, judged from the process and from what the other brokers say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.nemesis import evidence_processes as evidence
from kafka_trial.nemesis.fault import Evidence, fault
from kafka_trial.nemesis.samples import ProcessLook, TopicLook
from kafka_trial.nemesis.scene import Scene
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.cluster.cluster import BrokerHandle

ROLES = ("leader", "coordinator", "controller")
EXIT_WITHIN_S = 12.0
BACK_WITHIN_S = 30.0
FAILOVER_WITHIN_S = 12.0


def _isr_back(scene: Scene, seen: Evidence) -> Evidence:
    """Adds whether the broker came back into the ISR of every partition it was in before."""
    assert scene.target.broker is not None
    return seen.with_details(isr_whole_again=_isr_whole_within(scene, scene.target.broker, scene.topic_before))


@fault("broker-kill", targets=ROLES, blast="brokers", heals=True, complete=_isr_back)
def broker_kill(scene: Scene) -> Iterator[Evidence]:
    """Kills a broker with -9; it starts again when it heals."""
    handle, was, before = _before(scene)
    try:
        handle.kill()
        inside = _until_moved(scene, before)
        yield _down(scene, evidence.killed(was, scene.process("inside")), before, inside)
    finally:
        _start_again(handle)


@fault("broker-restart", targets=ROLES, blast="brokers", heals=True, complete=_isr_back)
def broker_restart(scene: Scene) -> Iterator[Evidence]:
    """Ends a broker with SIGTERM and starts it again at once."""
    handle, was, before = _before(scene)
    try:
        handle.terminate()
        down = _topic_looks_until_exit(scene, handle)
        ended = evidence.terminated(was, scene.process("inside"))
    finally:
        _start_again(handle)
    if not ended.bit:
        scene.hold(lambda: scene.topic("inside"))
        yield ended
        return
    inside = [*down, *_until_moved(scene, before)]
    yield _down(scene, evidence.replaced(was, scene.process("inside")), before, inside)


@fault("broker-pause", targets=ROLES, blast="brokers", heals=True, complete=_isr_back)
def broker_pause(scene: Scene) -> Iterator[Evidence]:
    """Stops a broker's process (SIGSTOP) beyond its session with the controllers, and continues it."""
    handle, was, before = _before(scene)
    states: list[ProcessLook] = []
    try:
        handle.pause()
        inside = _until_moved(scene, before, also=lambda: states.append(scene.process("inside")))
        yield _down(scene, evidence.paused(was, states), before, inside)
    finally:
        handle.resume()


@fault("leader-move", targets=("leader",), blast="members", heals=True)
def leader_move(scene: Scene) -> Iterator[Evidence]:
    """Moves a partition's leader to another in-sync replica, and back when it heals."""
    before = scene.topic("before")
    leader = next(one for one in before.leaders if one.partition == scene.target.partition)
    others = sorted(set(leader.isr) - {leader.broker})
    if not others:
        raise UnjudgeableError(f"partition {leader.partition} has no other in-sync replica to move its leader to")
    try:
        scene.ground.move_leader(leader.partition, scene.rng.choice(others))
        inside = scene.hold(lambda: scene.topic("inside"))
        yield evidence.leader_moved(before, inside, leader.partition)
    finally:
        scene.ground.move_leader(leader.partition, leader.broker)


@fault("rolling-restart", targets=("all",), blast="brokers", heals=True)
def rolling_restart(scene: Scene) -> Iterator[Evidence]:
    """Restarts every broker with SIGTERM, one after the other, each when the ISR is whole."""
    before = scene.topic("before")
    scene.injected()
    turns: list[Evidence] = []
    for _, handle in sorted(scene.ground.cluster.brokers.items()):
        turns.append(_turn(scene, handle, before))
        if not turns[-1].bit or scene.stop.is_set():
            break
    details = {"brokers": [dict(turn.details) for turn in turns]}
    if not turns[-1].bit:
        yield Evidence(False, turns[-1].message, details)
    else:
        yield Evidence(True, f"{len(turns)} brokers were replaced one after the other", details)


def _turn(scene: Scene, handle: BrokerHandle, before: TopicLook) -> Evidence:
    was = scene.process_of("before", handle)
    try:
        handle.terminate()
        _topic_looks_until_exit(scene, handle)
        ended = evidence.terminated(was, scene.process_of("inside", handle))
    finally:
        _start_again(handle)
    if not ended.bit:
        return ended
    whole = _isr_whole_within(scene, handle.id, before)
    seen = evidence.replaced(was, scene.process_of("inside", handle))
    return seen.with_details(broker=handle.id, isr_whole_again=whole)


def _before(scene: Scene) -> tuple[BrokerHandle, ProcessLook, TopicLook]:
    assert scene.target.broker is not None
    handle = scene.ground.cluster.brokers[scene.target.broker]
    before = scene.topic("before")
    scene.topic_before = before
    return handle, scene.process("before"), before


def _down(scene: Scene, process: Evidence, before: TopicLook, inside: Sequence[TopicLook]) -> Evidence:
    assert scene.target.broker is not None
    return evidence.broker_down(process, before, inside, scene.target.broker, role=_role(scene))


def _role(scene: Scene) -> str:
    """What has to move away from the broker: a fault on the leader is about its partition."""
    role = scene.target.role.partition(":")[0]
    return f"partition {scene.target.partition}" if role == "leader" else role


def _until_moved(scene: Scene, before: TopicLook, *, also: Callable[[], object] | None = None) -> list[TopicLook]:
    """Holds, and looks on until something moved away from the broker, for detection may outlast the step."""
    broker = scene.target.broker
    assert broker is not None

    def look() -> TopicLook:
        if also:
            also()
        return scene.topic("inside")

    return scene.hold_until(
        look, lambda looks: _role(scene) in evidence.moved(before, looks, broker), within_s=FAILOVER_WITHIN_S
    )


def _topic_looks_until_exit(scene: Scene, handle: BrokerHandle) -> list[TopicLook]:
    """Looks at leaders while a broker shuts down: a controlled shutdown moves them before the exit."""
    looks: list[TopicLook] = []

    def gone() -> bool:
        looks.append(scene.topic("inside"))
        return not handle.alive

    with suppress(WaitTimeout):  # the process sample says that it still runs
        wait_until(gone, within_s=EXIT_WITHIN_S, what=f"broker {handle.id} to exit", every_s=0.25)
    return looks


def _isr_whole_within(scene: Scene, broker: int, before: TopicLook) -> bool:
    try:
        wait_until(
            lambda: evidence.isr_whole(scene.topic("after"), broker, before),
            within_s=BACK_WITHIN_S,
            what=f"broker {broker} to be in sync again",
            every_s=0.25,
        )
    except WaitTimeout:
        return False
    return True


def _start_again(handle: BrokerHandle) -> None:
    if not handle.alive:
        handle.start()
