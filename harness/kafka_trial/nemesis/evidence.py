"""Did the network fault bite? Pure functions from samples to evidence; they never see the plan or Toxiproxy.

A toxic that Toxiproxy reports as present proves nothing: it may have toxicity 0, sit on somebody else's proxy, or the
client may have gone around it. So each function asks what the kernel counted on the target's own connections (S) and
what an own round trip through the same proxies met (P). Each route (client, broker) is a *hit* (the effect was there),
a *miss* (traffic passed that should not have), or idle (nothing was offered, nothing can be said). A fault bit when
there are hits, no misses, and, for each of the `clients` it had to reach, at least one hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_trial.nemesis.measures import Route, all_rates, figures, kept_routes, rises, saturated_rates
from kafka_trial.nemesis.samples import ANSWERS, REFUSED, REQUESTS, Flow, LinkSnapshot, Probe, flows

NO_CONNECTION = "the target had no live connection through its proxies: nothing that the fault could act on"


@dataclass(frozen=True)
class Evidence:
    """Whether a fault bit, in a sentence, with the figures that show it."""

    bit: bool
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def with_details(self, **more: Any) -> Evidence:
        """Returns the same evidence with further figures."""
        return replace(self, details={**self.details, **more})


@dataclass(frozen=True)
class Hits:
    """What was found on the routes of a target; a route with a hit and a miss counts as a miss."""

    hits: frozenset[Route]
    misses: frozenset[Route]

    def evidence(self, *, clients: Sequence[str], hit: str, miss: str, idle: str, **details: object) -> Evidence:
        """Returns the evidence: `hit`, `miss` and `idle` are the sentences for each case."""
        hits = self.hits - self.misses
        unreached = sorted(set(clients) - {client for client, _ in hits})
        details = {"hits": _names(hits), "misses": _names(self.misses), "unreached": unreached, **details}
        if self.misses:
            return Evidence(False, f"{miss} ({', '.join(_names(self.misses))})", details)
        if not hits:
            return Evidence(False, idle, details)
        if unreached:
            return Evidence(False, f"no effect measured for {', '.join(unreached)}: {idle}", details)
        return Evidence(True, f"{hit} ({', '.join(_names(hits))})", details)


def latency(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    probes_before: Sequence[Probe],
    probes_inside: Sequence[Probe],
    *,
    rise_ms: float,
    clients: Sequence[str] = (),
) -> Evidence:
    """P rises by at least `rise_ms`; bytes still flow; the connections are kept."""
    risen = rises(probes_before, probes_inside)
    live = before.routes()
    if not live or not inside:
        return Evidence(False, NO_CONNECTION)
    kept = kept_routes(inside)
    found = Hits(
        hits=frozenset(r for r in live if r in risen and risen[r] >= rise_ms and r in kept),
        misses=frozenset(r for r in live if r in risen and risen[r] < rise_ms),
    )
    flowed = sum(f.passed_bytes for direction in (ANSWERS, REQUESTS) for f in flows(inside, direction))
    evidence = found.evidence(
        clients=clients,
        hit=f"round trips take at least {rise_ms:.0f} ms longer",
        miss=f"round trips did not take {rise_ms:.0f} ms longer",
        idle="no connection lived through it, or no probe was answered",
        rise_ms={_name(route): round(rise, 1) for route, rise in sorted(risen.items())},
        bytes=flowed,
    )
    if evidence.bit and flowed == 0:
        return Evidence(False, "no bytes flowed while round trips were slow: idle, or cut off", evidence.details)
    return evidence


def stall(before: LinkSnapshot, inside: Sequence[LinkSnapshot], *, clients: Sequence[str] = ()) -> Evidence:
    """Both ways: bytes were offered, none passed, what was offered is held."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    both = [*flows(inside, ANSWERS), *flows(inside, REQUESTS)]
    return _held_back(both).evidence(
        clients=clients,
        hit="no byte passed while bytes were held",
        miss="bytes passed",
        idle="no bytes were offered: nothing to hold",
        **figures(inside),
    )


def one_way(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    held: str,
    probe_passed: frozenset[Route] = frozenset(),
    clients: Sequence[str] = (),
) -> Evidence:
    """`held` (answers or requests) is held, the other direction passes: nothing is held there and bytes did pass.

    Passing answers are measured from just before the injection: they answer requests that were already under way.
    `probe_passed` are routes on which an own request was seen to reach the broker, for a client that waits for an
    answer before it asks again.
    """
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    other = REQUESTS if held == ANSWERS else ANSWERS
    found = _held_back(flows(inside, held))
    open_flows = flows([before, *inside] if other == ANSWERS else inside, other)
    blocked = frozenset(f.route for f in flows(inside, other) if f.held_bytes and f.passed_bytes == 0)
    passed = frozenset(f.route for f in open_flows if f.passed_bytes > 0) | probe_passed
    found = Hits(hits=(found.hits & passed) - blocked, misses=found.misses)
    return found.evidence(
        clients=clients,
        hit=f"{held} were held while the other direction passed",
        miss=f"{held} passed",
        idle=f"no {held} were offered, or the other direction did not pass either",
        blocked_both_ways=_names(blocked),
        **figures(inside),
    )


def dropped(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    lost: str,
    probe_passed: frozenset[Route] = frozenset(),
    clients: Sequence[str] = (),
) -> Evidence:
    """Half-open: `lost` reach the proxy and go nowhere, and nothing queues: they were dropped, not held."""
    evidence = one_way(before, inside, held=lost, probe_passed=probe_passed, clients=clients)
    queued = sum(f.queue_bytes for f in flows(inside, lost))
    if evidence.bit and queued:
        return Evidence(False, f"{queued} bytes wait in a queue: held, not dropped", evidence.details)
    message = evidence.message.replace(f"{lost} were held", f"{lost} were dropped")
    return Evidence(evidence.bit, message, {**evidence.details, "queue_bytes": queued})


def slow_link(
    before: LinkSnapshot,
    inside: Sequence[LinkSnapshot],
    *,
    rate_bytes_per_s: float,
    probes_inside: Sequence[Probe] = (),
    clients: Sequence[str] = (),
) -> Evidence:
    """Answers come at about `rate_bytes_per_s` a connection while more was offered all along; P is still answered."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    rates = saturated_rates(inside)
    fast = frozenset(route for route, rate in all_rates(inside).items() if rate > 1.6 * rate_bytes_per_s)
    near = frozenset(route for route, rate in rates.items() if 0.6 <= rate / rate_bytes_per_s <= 1.6) - fast
    evidence = Hits(hits=near, misses=fast).evidence(
        clients=clients,
        hit=f"answers came at about {rate_bytes_per_s:.0f} bytes/s a connection while more was offered",
        miss=f"answers came faster than {rate_bytes_per_s:.0f} bytes/s",
        idle="no more was offered than the link carries: nothing to slow",
        rates_bytes_per_s={_name(route): round(rate) for route, rate in rates.items()},
        **figures(inside),
    )
    unanswered = [probe for probe in probes_inside if probe.answer_ms is None]
    if evidence.bit and unanswered:
        return Evidence(False, f"a probe was not answered ({unanswered[0].error}): cut off, not slow", evidence.details)
    return evidence


def closed(
    before: LinkSnapshot, inside: Sequence[LinkSnapshot], probes_inside: Sequence[Probe], *, clients: Sequence[str] = ()
) -> Evidence:
    """No connection that carried bytes was kept, and new ones do not last either: no probe is answered.

    Connections that stayed idle (bootstrap) are counted and prove nothing.
    """
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    last = inside[-1] if inside else before
    gone = {port[:2] for port in before.ports() - last.ports()}
    carrying = frozenset(f.route for f in _flows_across(inside) if f.passed_bytes > 0)
    answered = frozenset((probe.client, probe.broker) for probe in probes_inside if probe.answer_ms is not None)
    return Hits(hits=frozenset(gone), misses=carrying | answered).evidence(
        clients=clients,
        hit=f"{len(before.ports() - last.ports())} connections were closed",
        miss="connections were kept and carried bytes, or a new one did",
        idle="every connection was kept, and idle",
        kept_idle=len(before.ports() & last.ports()),
    )


def refused(
    before: LinkSnapshot, inside: Sequence[LinkSnapshot], probes_inside: Sequence[Probe], *, clients: Sequence[str] = ()
) -> Evidence:
    """No connection was kept, and new ones are refused."""
    if not before.routes():
        return Evidence(False, NO_CONNECTION)
    kept = frozenset(port[:2] for look in inside for port in look.ports() & before.ports())
    answered = frozenset((p.client, p.broker) for p in probes_inside if p.error != REFUSED)
    probed = frozenset((p.client, p.broker) for p in probes_inside if p.error == REFUSED)
    return Hits(hits=frozenset(before.routes()) & probed, misses=kept | answered).evidence(
        clients=clients,
        hit="every connection was closed and new ones are refused",
        miss="connections were kept or accepted",
        idle="no new connection was tried",
    )


def connections_kept(before: LinkSnapshot, after: LinkSnapshot) -> bool:
    """Whether every connection that lived before still lives after."""
    return before.ports() <= after.ports()


def traffic_again(base: LinkSnapshot, now: LinkSnapshot, *, each: Iterable[str] = ()) -> bool:
    """Whether bytes moved both ways since `base`, on kept or new connections: for each client of `each`, else any."""
    moved = {client for client, broker in now.routes() if _moved(base, now, (client, broker))}
    return bool(moved) and set(each) <= moved


def _moved(base: LinkSnapshot, now: LinkSnapshot, route: Route) -> bool:
    old = base.side("client", route)
    ends = [(half, old.get(port)) for port, half in now.side("client", route).items()]
    received = sum(half.received_bytes - (start.received_bytes if start else 0) for half, start in ends)
    sent = sum(half.sent_bytes - (start.sent_bytes if start else 0) for half, start in ends)
    return received > 0 and sent > 0


def _held_back(pairs: Sequence[Flow]) -> Hits:
    return Hits(
        hits=frozenset(f.route for f in pairs if f.held),
        misses=frozenset(f.route for f in pairs if f.passed_bytes > 0),
    )


def _flows_across(looks: Sequence[LinkSnapshot]) -> list[Flow]:
    return [*flows(looks, ANSWERS), *flows(looks, REQUESTS)]


def _name(route: Route) -> str:
    return f"{route[0]}-b{route[1]}"


def _names(routes: Iterable[Route]) -> list[str]:
    return sorted(_name(route) for route in routes)
