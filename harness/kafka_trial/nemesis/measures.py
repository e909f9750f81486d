"""What samples of a network fault come to in numbers: round trips that rose, rates of connections, bytes held back.

Pure functions from samples to numbers by route; what the numbers prove is judged in `evidence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kafka_trial.nemesis.samples import ANSWERS, REQUESTS, LinkSnapshot, Probe, flow, flows

Route = tuple[str, int]  # client, broker


def rises(before: Sequence[Probe], inside: Sequence[Probe]) -> dict[Route, float]:
    """Returns by how many ms each route's fastest round trip rose: a busy machine slows some, hardly the fastest."""
    calm, slow = _fastest(before), _fastest(inside)
    return {route: slow[route] - calm[route] for route in calm.keys() & slow.keys()}


def _fastest(probes: Sequence[Probe]) -> dict[Route, float]:
    fastest: dict[Route, float] = {}
    for probe in probes:
        if probe.answer_ms is not None:
            route = (probe.client, probe.broker)
            fastest[route] = min(fastest.get(route, probe.answer_ms), probe.answer_ms)
    return fastest


def kept_routes(inside: Sequence[LinkSnapshot]) -> set[Route]:
    """Returns the routes with a connection that lived from the first look to the last."""
    return {port[:2] for port in inside[0].ports() & inside[-1].ports()}


def _connection_rates(first: LinkSnapshot, last: LinkSnapshot, route: Route) -> list[float]:
    start, end = first.side("client", route), last.side("client", route)
    seconds = (last.time_ns - first.time_ns) / 1e9
    return [(end[p].sent_bytes - start[p].sent_bytes) / seconds for p in start.keys() & end.keys() if seconds > 0]


def all_rates(looks: Sequence[LinkSnapshot]) -> dict[Route, float]:
    """Returns the fastest connection of each route over the whole window, in bytes/s."""
    rates = {r: _connection_rates(looks[0], looks[-1], r) for r in looks[0].routes()} if looks else {}
    return {route: max(found) for route, found in rates.items() if found}


def saturated_rates(looks: Sequence[LinkSnapshot]) -> dict[Route, float]:
    """Returns the fastest connection of each route, in bytes/s, over its longest stretch that was full all along.

    Full is a stretch all of whose looks, two or more, found answers held by the proxy: a single one may have met bytes
    that were just being passed on, on a link that nobody slows.
    """
    rates: dict[Route, float] = {}
    for route in sorted({route for look in looks for route in look.routes()}):
        full = max(_held_throughout(looks, route), key=len, default=[])
        if len(full) > 1 and (found := _connection_rates(full[0], full[-1], route)):
            rates[route] = max(found)
    return rates


def _held_throughout(looks: Sequence[LinkSnapshot], route: Route) -> list[list[LinkSnapshot]]:
    runs = groupby(looks, key=lambda look: flow(look, look, route, ANSWERS).held)
    return [list(run) for held, run in runs if held]


def figures(inside: Sequence[LinkSnapshot]) -> dict[str, object]:
    """Returns the bytes offered, passed and (at most) held in each direction, for the reader of the evidence."""
    table: dict[str, object] = {}
    for direction in (ANSWERS, REQUESTS):
        found = flows(inside, direction)
        table[direction] = {
            "offered_bytes": sum(f.offered_bytes for f in found),
            "passed_bytes": sum(f.passed_bytes for f in found),
            "held_bytes_max": max((f.held_bytes or 0 for f in found), default=0),
            "queue_bytes_max": max((f.queue_bytes for f in found), default=0),
        }
    return table
