"""Faults of the network: toxics on the proxies between the target's clients and the brokers.

A bandwidth of 0 holds bytes and lets them go when it is removed, so it can heal; `timeout` drops and `reset_peer`
closes, and both close connections for good. The evidence never rests on the toxic being there (`evidence.py`).
Directions are Toxiproxy's: downstream carries answers to the client, upstream carries requests to the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any

from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.fault import Evidence, fault
from kafka_trial.nemesis.samples import ANSWERS, REQUESTS, Probe
from kafka_trial.nemesis.scene import Scene
from kafka_trial.process.waiting import wait_until

NETWORK = ("member", "coordinator", "leader", "all")
DOWN, UP = "downstream", "upstream"
LATER_HEALED_WITHIN_S = 600.0


def _late(scene: Scene, seen: Evidence) -> Evidence:
    """Adds whether the connections lived through it, and which commits took effect after healing."""
    kept = scene.links_before and scene.links_after and evidence.connections_kept(scene.links_before, scene.links_after)
    return seen.with_details(connections_kept=bool(kept), commits_after=scene.commits_since())


def _accepted(scene: Scene) -> dict[str, Any]:
    """What the brokers accepted meanwhile, as far as their witnesses have come: commits (O), requests by API (R)."""
    return {"commits_inside": scene.commits_since(), "requests_inside": scene.requests_since()}


@fault("latency", targets=NETWORK, blast="members", heals=True, complete=_late)
def latency(scene: Scene, *, latency_ms: int = 400, jitter_ms: int = 0) -> Iterator[Evidence]:
    """Delays answers by latency_ms, give or take jitter_ms."""
    before, calm = scene.links("before"), scene.probes("before", times=8)  # the fastest of them is calm
    slow: list[Probe] = []
    with toxics(scene, "latency", (DOWN,), {"latency": int(latency_ms), "jitter": int(jitter_ms)}):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: slow.extend(scene.probes("inside", times=2)))
        rise_ms = 0.75 * max(0, latency_ms - jitter_ms)
        yield evidence.latency(before, inside, calm, slow, rise_ms=rise_ms, clients=scene.clients)


@fault("slow-link", targets=NETWORK, blast="members", heals=True, complete=_late)
def slow_link(scene: Scene, *, rate_kb_per_s: int = 16) -> Iterator[Evidence]:
    """Lets answers through at rate_kb_per_s kilobytes a second and connection."""
    before = scene.links("before")
    probes: list[Probe] = []
    with toxics(scene, "bandwidth", (DOWN,), {"rate": max(1, int(rate_kb_per_s))}):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: probes.extend(scene.probes("inside")))
        rate = 1000.0 * max(1, int(rate_kb_per_s))
        yield evidence.slow_link(before, inside, rate_bytes_per_s=rate, probes_inside=probes, clients=scene.clients)


@fault("stall", targets=NETWORK, blast="members", heals=True, complete=_late)
def stall(scene: Scene) -> Iterator[Evidence]:
    """Holds every byte both ways; what was held arrives when it heals."""
    before = scene.links("before")
    with toxics(scene, "bandwidth", (DOWN, UP), {"rate": 0}):
        inside = scene.hold(lambda: scene.links("inside"))
        yield evidence.stall(before, inside, clients=scene.clients).with_details(**_accepted(scene))


@fault("answers-held", targets=NETWORK, blast="members", heals=True, complete=_late)
def answers_held(scene: Scene) -> Iterator[Evidence]:
    """Holds answers while requests pass: brokers do what the clients never hear of."""
    before = scene.links("before")
    passed: set[tuple[str, int]] = set()
    with toxics(scene, "bandwidth", (DOWN,), {"rate": 0}):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: passed.update(scene.requests_that_pass()))
        seen = evidence.one_way(before, inside, held=ANSWERS, probe_passed=frozenset(passed), clients=scene.clients)
        yield seen.with_details(**_accepted(scene))


@fault("requests-held", targets=NETWORK, blast="members", heals=True, complete=_late)
def requests_held(scene: Scene) -> Iterator[Evidence]:
    """Holds requests while answers pass."""
    before = scene.links("before")
    with toxics(scene, "bandwidth", (UP,), {"rate": 0}):
        inside = scene.hold(lambda: scene.links("inside"))
        yield evidence.one_way(before, inside, held=REQUESTS, clients=scene.clients)


@fault("half-open", targets=NETWORK, blast="members", heals=False, complete=_late)
def half_open(scene: Scene) -> Iterator[Evidence]:
    """Drops answers; live connections do not survive its removal."""
    before = scene.links("before")
    passed: set[tuple[str, int]] = set()
    with toxics(scene, "timeout", (DOWN,), {"timeout": 0}):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: passed.update(scene.requests_that_pass()))
        yield evidence.dropped(before, inside, lost=ANSWERS, probe_passed=frozenset(passed), clients=scene.clients)


@fault("close", targets=NETWORK, blast="members", heals=True, complete=_late)
def close(scene: Scene) -> Iterator[Evidence]:
    """Closes every connection at its next byte, new ones too, until it heals."""
    before = scene.links("before")
    probes: list[Probe] = []
    with toxics(scene, "reset_peer", (DOWN, UP), {"timeout": 0}):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: probes.extend(scene.probes("inside", before)))
        yield evidence.closed(before, inside, probes, clients=scene.clients)


@fault("refused", targets=NETWORK, blast="members", heals=True, complete=_late)
def refused(scene: Scene) -> Iterator[Evidence]:
    """Closes every connection and refuses new ones."""
    before = scene.links("before")
    probes: list[Probe] = []
    with disabled(scene):
        inside = scene.hold(lambda: scene.links("inside"), once=lambda: probes.extend(scene.probes("inside", before)))
        yield evidence.refused(before, inside, probes, clients=scene.clients)


@contextmanager
def toxics(scene: Scene, kind: str, streams: Sequence[str], attributes: Mapping[str, Any]) -> Iterator[None]:
    """Puts a toxic on each proxy of the target and stream, and takes them away again, the newest first."""
    toxiproxy = scene.ground.cluster.toxiproxy
    with ExitStack() as undo:
        with toxiproxy.adding:
            for proxy, stream in product(scene.target.proxies, streams):
                name = f"f{scene.no}-{kind}-{stream}"
                undo.callback(_take_away, scene, proxy, name)  # before adding: adding may fail half-way
                toxiproxy.add_toxic(proxy, name, kind, stream, dict(attributes))
        yield


def _take_away(scene: Scene, proxy: str, name: str) -> None:
    """Takes a toxic away after those that a later fault put behind it; where the run is stopped, together with them."""
    toxiproxy = scene.ground.cluster.toxiproxy
    wait_until(
        lambda: scene.stop.is_set() or not toxiproxy.later_toxics(proxy, name),
        within_s=LATER_HEALED_WITHIN_S,
        what=f"the later faults on {proxy} to be healed, so that {name} can be",
        every_s=0.1,
    )
    for later in toxiproxy.later_toxics(proxy, name):
        toxiproxy.remove_toxic(proxy, later)
    toxiproxy.remove_toxic(proxy, name)


@contextmanager
def disabled(scene: Scene) -> Iterator[None]:
    """Disables each proxy of the target, and enables them again, the last first."""
    toxiproxy = scene.ground.cluster.toxiproxy
    with ExitStack() as undo:
        for proxy in scene.target.proxies:
            undo.callback(toxiproxy.enable, proxy)
            toxiproxy.disable(proxy)
        yield
