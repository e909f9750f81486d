"""Faults of brokers: process and leadership, judged from the process and from what the other brokers say."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kafka_trial.cluster.broker_exits import last_error
from kafka_trial.cluster.cluster import node_in_words, node_name
from kafka_trial.cluster.versions import DEFAULT_VERSION, find_version, is_of, said_version
from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import ProcessSnapshot, TopicSnapshot
from kafka_trial.process.waiting import wait_until

if TYPE_CHECKING:
    from kafka_trial.cluster.cluster import BrokerHandle

ROLES = ("leader", "coordinator", "controller")
EXIT_WITHIN_S = 60.0  # of a busy machine: 12 s were not enough for one to shut down in
BACK_WITHIN_S = 30.0
SAID_WITHIN_S = 60.0  # of a busy machine: 37 s were not enough for one to start in
FAILOVER_WITHIN_S = 12.0
AWAY = (Consequence.STOPS_BROKER, Consequence.LEAVES_REQUESTS_OPEN)
FROZEN = (*AWAY, Consequence.FREEZES_BROKER)


def _isr_back(injection: Injection, seen: Evidence) -> Evidence:
    """Adds whether the broker came back into the ISR of every partition it was in before."""
    assert injection.target.broker is not None
    return seen.with_details(
        isr_whole_again=isr_whole_within(injection, injection.target.broker, injection.topic_before)
    )


@fault("broker-kill", targets=ROLES, scope="brokers", heals=True, consequences=AWAY, complete=_isr_back)
def broker_kill(injection: Injection) -> Iterator[Evidence]:
    """Kills a broker with -9; it starts again when it heals."""
    handle, was, before = _before(injection)
    try:
        handle.kill()
        inside = _until_moved(injection, before)
        yield _down(injection, evidence.killed(was, injection.process("inside")), before, inside)
    finally:
        _start_again(handle)


@fault("broker-restart", targets=ROLES, scope="brokers", heals=True, consequences=AWAY, complete=_isr_back)
def broker_restart(injection: Injection) -> Iterator[Evidence]:
    """Ends a broker with SIGTERM and starts it again at once."""
    handle, was, before = _before(injection)
    try:
        handle.terminate()
        down = _topic_looks_until_exit(injection, handle)
        ended = evidence.terminated(was, injection.process("inside"))
    finally:
        _start_again(handle)
    if not ended.took_effect:
        injection.hold(lambda: injection.topic("inside"))
        yield ended
        return
    inside = [*down, *_until_moved(injection, before)]
    yield _down(injection, evidence.replaced(was, injection.process("inside")), before, inside)


@fault("broker-pause", targets=ROLES, scope="brokers", heals=True, consequences=FROZEN, complete=_isr_back)
def broker_pause(injection: Injection) -> Iterator[Evidence]:
    """Stops a broker's process (SIGSTOP) beyond its session with the controllers, and continues it."""
    handle, was, before = _before(injection)
    states: list[ProcessSnapshot] = []
    try:
        handle.pause()
        inside = _until_moved(injection, before, also=lambda: states.append(injection.process("inside")))
        yield _down(injection, evidence.paused(was, states), before, inside)
    finally:
        handle.resume()


@fault("leader-move", targets=("leader",), scope="members", heals=True, consequences=[Consequence.HARMLESS])
def leader_move(injection: Injection) -> Iterator[Evidence]:
    """Moves a partition's leader to another in-sync replica, and back when it heals."""
    before = injection.topic("before")
    leader = next(one for one in before.leaders if one.partition == injection.target.partition)
    others = sorted(set(leader.isr) - {leader.broker})
    if not others:
        raise UnjudgeableError(f"partition {leader.partition} has no other in-sync replica to move its leader to")
    try:
        injection.context.move_leader(leader.partition, injection.rng.choice(others))
        inside = injection.hold(lambda: injection.topic("inside"))
        yield evidence.leader_moved(before, inside, leader.partition)
    finally:
        injection.context.move_leader(leader.partition, leader.broker)


@fault("rolling-restart", targets=("all",), scope="brokers", heals=True, consequences=AWAY)
def rolling_restart(injection: Injection) -> Iterator[Evidence]:
    """Restarts every broker with SIGTERM, one after the other, each when the ISR is whole."""
    before = injection.topic("before")
    injection.injected()
    yield _turns(injection, sorted(injection.context.cluster.brokers), before)


@fault("version-roll", targets=("all",), scope="brokers", heals=True, consequences=AWAY)
def version_roll(injection: Injection, *, version: str = DEFAULT_VERSION, brokers: str = "") -> Iterator[Evidence]:
    """Restarts nodes as another version of Kafka, on their own data: all, the controller last, or some in order."""
    find_version(version)
    before = injection.topic("before")
    nodes = {**injection.context.cluster.brokers, **injection.context.cluster.controllers}
    last = [] if before.controller is None else [before.controller]
    in_order = [*sorted(nodes.keys() - {*last}), *last]
    injection.injected()
    yield _turns(injection, nodes_named(brokers, nodes) if brokers else in_order, before, version=version)
    injection.context.cluster.ruin(f"its brokers became {version}")


def nodes_named(names: str, nodes: Collection[int]) -> list[int]:
    """Returns the ids of the nodes with some names, as in `b0,c1`.

    Raises:
        UnjudgeableError: one of them is not there.
    """
    by_name = {node_name(node): node for node in nodes}
    if strange := [name for name in names.split(",") if name not in by_name]:
        raise UnjudgeableError(f"there is no {', '.join(strange)}; there are {', '.join(sorted(by_name))}")
    return [by_name[name] for name in names.split(",")]


def isr_whole_within(injection: Injection, broker: int, before: TopicSnapshot) -> bool:
    """Waits until the broker is in sync wherever it was before; False where that takes too long."""
    try:
        wait_until(
            lambda: evidence.isr_whole(injection.topic("after"), broker, before),
            within_s=BACK_WITHIN_S,
            what=f"broker {broker} to be in sync again",
            every_s=0.1,
        )
    except WaitTimeout:
        return False
    return True


def _turns(
    injection: Injection, brokers: Sequence[int], before: TopicSnapshot, *, version: str | None = None
) -> Evidence:
    """Restarts brokers one after the other, each when the one before is in sync again; as another version, if named."""
    turns: list[Evidence] = []
    for broker in brokers:
        cluster = injection.context.cluster
        node = cluster.brokers[broker] if broker in cluster.brokers else cluster.controllers[broker]
        turns.append(_turn(injection, node, before, version=version))
        if not turns[-1].took_effect or injection.stop.is_set():
            break
    details = {"brokers": [dict(turn.details) for turn in turns]}
    if not turns[-1].took_effect:
        return Evidence(False, turns[-1].message, details)
    as_version = f" by such of Kafka {version}" if version else ""
    return Evidence(True, f"{len(turns)} processes were replaced one after the other{as_version}", details)


def _turn(injection: Injection, handle: BrokerHandle, before: TopicSnapshot, *, version: str | None = None) -> Evidence:
    was = injection.process_of("before", handle)
    logged_bytes = handle.server_log.stat().st_size if handle.server_log.exists() else 0
    began_s, began_wall_s = time.monotonic(), time.time()
    try:
        ended = ended_in_order(injection, handle, was)
        exit_s = time.monotonic() - began_s
        if ended.took_effect and version is not None:
            handle.become(version)
    finally:
        _start_again(handle)
    if not ended.took_effect:
        return ended
    if handle.id in injection.context.cluster.controllers:
        whole = injection.context.caught_up_within(handle.id, since_wall_s=began_wall_s, within_s=BACK_WITHIN_S)
    else:
        whole = isr_whole_within(injection, handle.id, before)
    seen = evidence.replaced(was, injection.process_of("inside", handle))
    took = {"exit_s": round(exit_s, 3), "in_sync_s": round(time.monotonic() - began_s, 3)}
    seen = seen.with_details(broker=handle.id, isr_whole_again=whole, **took)
    if version is None:
        return seen
    return as_version(seen, handle.id, version, said=_said(handle, logged_bytes))


def _said(handle: BrokerHandle, from_byte: int) -> str | None:
    """Returns the version that a node says it is of, in its log from a byte on; it does so once it has started up
    (KafkaRaftServer.startup), which may be after it is in sync. None: it says none in time."""
    with suppress(WaitTimeout):
        return wait_until(
            lambda: said_version(handle.server_log, from_byte=from_byte),
            within_s=SAID_WITHIN_S,
            what=f"{node_in_words(handle.id)} to say its version",
            every_s=0.25,
        )
    return None


def as_version(seen: Evidence, node: int, version: str, *, said: str | None) -> Evidence:
    """Returns the evidence of a restart as a version; it took no effect where the node says that it is of another, as
    with an image that is not what its name says."""
    seen = seen.with_details(version=version, said_version=said)
    if is_of(said, version):
        return seen
    return Evidence(False, f"{node_in_words(node)} says that it is Kafka {said}, not {version}", seen.details)


def _before(injection: Injection) -> tuple[BrokerHandle, ProcessSnapshot, TopicSnapshot]:
    assert injection.target.broker is not None
    handle = injection.context.cluster.brokers[injection.target.broker]
    before = injection.topic("before")
    injection.topic_before = before
    return handle, injection.process("before"), before


def _down(injection: Injection, process: Evidence, before: TopicSnapshot, inside: Sequence[TopicSnapshot]) -> Evidence:
    assert injection.target.broker is not None
    return evidence.broker_down(process, before, inside, injection.target.broker, role=_role(injection))


def _role(injection: Injection) -> str:
    """What has to move away from the broker: a fault on the leader is about its partition."""
    role = injection.target.role.partition(":")[0]
    return f"partition {injection.target.partition}" if role == "leader" else role


def _until_moved(
    injection: Injection, before: TopicSnapshot, *, also: Callable[[], object] | None = None
) -> list[TopicSnapshot]:
    """Holds, and looks on until something moved away from the broker, for detection may outlast the step."""
    broker = injection.target.broker
    assert broker is not None

    def look() -> TopicSnapshot:
        if also:
            also()
        return injection.topic("inside")

    return injection.hold_until(
        look, lambda looks: _role(injection) in evidence.moved(before, looks, broker), within_s=FAILOVER_WITHIN_S
    )


def ended_in_order(injection: Injection, handle: BrokerHandle, was: ProcessSnapshot) -> Evidence:
    """Asks a node to end, and waits for its exit; one that outlives its bound is named, with its last error."""
    handle.terminate()
    _topic_looks_until_exit(injection, handle)
    now = injection.process_of("inside", handle)
    ended = evidence.terminated(was, now).with_details(broker=handle.id)
    if now.exit_code is not None or not was.states:
        return ended
    bound = f"{node_in_words(handle.id)} had not exited {EXIT_WITHIN_S:.0f} s after it was asked to"
    return Evidence(False, f"{bound}{last_error(handle.server_log)}", {**ended.details, "exit_within_s": EXIT_WITHIN_S})


def _topic_looks_until_exit(injection: Injection, handle: BrokerHandle) -> list[TopicSnapshot]:
    """Looks at leaders while a broker shuts down: a controlled shutdown moves them before the exit."""
    looks: list[TopicSnapshot] = []

    def gone() -> bool:
        looks.append(injection.topic("inside"))
        return not handle.alive

    with suppress(WaitTimeout):  # the process sample says that it still runs
        wait_until(gone, within_s=EXIT_WITHIN_S, what=f"broker {handle.id} to exit", every_s=0.1)
    return looks


def _start_again(handle: BrokerHandle) -> None:
    if not handle.alive:
        handle.start()
