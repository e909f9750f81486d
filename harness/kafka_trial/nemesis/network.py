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

from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import ANSWERS, REQUESTS, Probe
from kafka_trial.process.waiting import wait_until

NETWORK = ("member", "coordinator", "leader", "all")
DOWN, UP = "downstream", "upstream"
LATER_HEALED_WITHIN_S = 600.0
HELD = (Consequence.CUTS_OFF, Consequence.LEAVES_REQUESTS_OPEN)


def _late(injection: Injection, seen: Evidence) -> Evidence:
    """Adds whether the connections lived through it, and which commits took effect after healing."""
    kept = (
        injection.links_before
        and injection.links_after
        and evidence.connections_kept(injection.links_before, injection.links_after)
    )
    return seen.with_details(connections_kept=bool(kept), commits_after=injection.commits_since())


def _accepted(injection: Injection) -> dict[str, Any]:
    """What the brokers accepted meanwhile, as far as their witnesses have come: commits (O), requests by API (R)."""
    return {"commits_inside": injection.commits_since(), "requests_inside": injection.requests_since()}


@fault(
    "latency", targets=NETWORK, scope="members", heals=True, consequences=[Consequence.DELAYS_ANSWERS], complete=_late
)
def latency(injection: Injection, *, latency_ms: int = 400, jitter_ms: int = 0) -> Iterator[Evidence]:
    """Delays answers by latency_ms, give or take jitter_ms."""
    before, calm = injection.links("before"), injection.probes("before", times=8)  # the fastest of them is calm
    slow: list[Probe] = []
    with toxics(injection, "latency", (DOWN,), {"latency": int(latency_ms), "jitter": int(jitter_ms)}):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: slow.extend(injection.probes("inside", times=2))
        )
        rise_ms = 0.75 * max(0, latency_ms - jitter_ms)
        yield evidence.latency(before, inside, calm, slow, rise_ms=rise_ms, clients=injection.clients)


@fault(
    "slow-link", targets=NETWORK, scope="members", heals=True, consequences=[Consequence.DELAYS_ANSWERS], complete=_late
)
def slow_link(injection: Injection, *, rate_kb_per_s: int = 16) -> Iterator[Evidence]:
    """Lets answers through at rate_kb_per_s kilobytes a second and connection."""
    before = injection.links("before")
    probes: list[Probe] = []
    with toxics(injection, "bandwidth", (DOWN,), {"rate": max(1, int(rate_kb_per_s))}):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: probes.extend(injection.probes("inside"))
        )
        rate = 1000.0 * max(1, int(rate_kb_per_s))
        yield evidence.slow_link(before, inside, rate_bytes_per_s=rate, probes_inside=probes, clients=injection.clients)


@fault(
    "stall",
    targets=NETWORK,
    scope="members",
    heals=True,
    consequences=[*HELD, Consequence.LOSES_ANSWERS],
    complete=_late,
)
def stall(injection: Injection) -> Iterator[Evidence]:
    """Holds every byte both ways; what was held arrives when it heals."""
    before = injection.links("before")
    with toxics(injection, "bandwidth", (DOWN, UP), {"rate": 0}):
        inside = injection.hold(lambda: injection.links("inside"))
        yield evidence.stall(before, inside, clients=injection.clients).with_details(**_accepted(injection))


@fault(
    "answers-held",
    targets=NETWORK,
    scope="members",
    heals=True,
    consequences=[*HELD, Consequence.LOSES_ANSWERS],
    complete=_late,
)
def answers_held(injection: Injection) -> Iterator[Evidence]:
    """Holds answers while requests pass: brokers do what the clients never hear of."""
    before = injection.links("before")
    passed: set[tuple[str, int]] = set()
    with toxics(injection, "bandwidth", (DOWN,), {"rate": 0}):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: passed.update(injection.requests_that_pass())
        )
        seen = evidence.one_way(before, inside, held=ANSWERS, probe_passed=frozenset(passed), clients=injection.clients)
        yield seen.with_details(**_accepted(injection))


@fault("requests-held", targets=NETWORK, scope="members", heals=True, consequences=HELD, complete=_late)
def requests_held(injection: Injection) -> Iterator[Evidence]:
    """Holds requests while answers pass."""
    before = injection.links("before")
    with toxics(injection, "bandwidth", (UP,), {"rate": 0}):
        inside = injection.hold(lambda: injection.links("inside"))
        yield evidence.one_way(before, inside, held=REQUESTS, clients=injection.clients)


@fault(
    "half-open",
    targets=NETWORK,
    scope="members",
    heals=False,
    consequences=[*HELD, Consequence.LOSES_ANSWERS],
    complete=_late,
)
def half_open(injection: Injection) -> Iterator[Evidence]:
    """Drops answers; live connections do not survive its removal."""
    before = injection.links("before")
    passed: set[tuple[str, int]] = set()
    with toxics(injection, "timeout", (DOWN,), {"timeout": 0}):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: passed.update(injection.requests_that_pass())
        )
        yield evidence.dropped(before, inside, lost=ANSWERS, probe_passed=frozenset(passed), clients=injection.clients)


@fault(
    "close",
    targets=NETWORK,
    scope="members",
    heals=True,
    consequences=[Consequence.CUTS_OFF, Consequence.LOSES_ANSWERS],
    complete=_late,
)
def close(injection: Injection) -> Iterator[Evidence]:
    """Closes every connection at its next byte, new ones too, until it heals."""
    before = injection.links("before")
    probes: list[Probe] = []
    with toxics(injection, "reset_peer", (DOWN, UP), {"timeout": 0}):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: probes.extend(injection.probes("inside", before))
        )
        yield evidence.closed(before, inside, probes, clients=injection.clients)


@fault(
    "refused",
    targets=NETWORK,
    scope="members",
    heals=True,
    consequences=[Consequence.CUTS_OFF, Consequence.LOSES_ANSWERS],
    complete=_late,
)
def refused(injection: Injection) -> Iterator[Evidence]:
    """Closes every connection and refuses new ones."""
    before = injection.links("before")
    probes: list[Probe] = []
    with disabled(injection):
        inside = injection.hold(
            lambda: injection.links("inside"), once=lambda: probes.extend(injection.probes("inside", before))
        )
        yield evidence.refused(before, inside, probes, clients=injection.clients)


@contextmanager
def toxics(injection: Injection, kind: str, streams: Sequence[str], attributes: Mapping[str, Any]) -> Iterator[None]:
    """Puts a toxic on each proxy of the target and stream, and takes them away again, the newest first."""
    toxiproxy = injection.context.cluster.toxiproxy
    with ExitStack() as undo:
        with toxiproxy.adding:
            for proxy, stream in product(injection.target.proxies, streams):
                name = f"f{injection.no}-{kind}-{stream}"
                undo.callback(_take_away, injection, proxy, name)  # before adding: adding may fail half-way
                toxiproxy.add_toxic(proxy, name, kind, stream, dict(attributes))
        yield


def _take_away(injection: Injection, proxy: str, name: str) -> None:
    """Takes a toxic away after those that a later fault put behind it; where the run is stopped, together with them."""
    toxiproxy = injection.context.cluster.toxiproxy
    wait_until(
        lambda: injection.stop.is_set() or not toxiproxy.later_toxics(proxy, name),
        within_s=LATER_HEALED_WITHIN_S,
        what=f"the later faults on {proxy} to be healed, so that {name} can be",
        every_s=0.1,
    )
    for later in toxiproxy.later_toxics(proxy, name):
        toxiproxy.remove_toxic(proxy, later)
    toxiproxy.remove_toxic(proxy, name)


@contextmanager
def disabled(injection: Injection) -> Iterator[None]:
    """Disables each proxy of the target, and enables them again, the last first."""
    toxiproxy = injection.context.cluster.toxiproxy
    with ExitStack() as undo:
        for proxy in injection.target.proxies:
            undo.callback(toxiproxy.enable, proxy)
            toxiproxy.disable(proxy)
        yield
