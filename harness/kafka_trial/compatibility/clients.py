"""What brokers of another version answer to the clients that were seen: request by request, from the tables.

How it is decided. A client that asks brokers what they know (ApiVersions, KIP-35) sends the highest version that both
know, and one that does not ask sends the version that it was built or configured with. So a version below the highest
that its broker offered is the highest that the client speaks: where the other version serves it no more, the client is
too old, be it by its library (librdkafka with `api.version.request=false`) or by a setting (sarama's `Config.Version`).
A version that equals the offer says nothing of what the client could speak besides: that is *unknown*. A client that
also speaks a version which is served *may be rejected*: two programs may share a name, or one asks in several ways.
Where brokers are to know less than now, a client that asks goes down by itself.

Requests between brokers are judged alike, and come out right: they are made for the versions of the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from kafka_trial.compatibility.tables import Api, apis, minor, order, versions
from kafka_trial.history.event import Event, from_line

ASKS: Final = "ApiVersions"  # answered whatever its version is: the client asks again in a lower one
REJECTED, PERHAPS, UNDECIDED, DEPRECATED = "rejected", "may be rejected", "unknown", "deprecated"
WEIGHTS: Final = (REJECTED, PERHAPS, UNDECIDED, DEPRECATED)
SAYING: Final = tuple(f'"kind":"{kind}"'.encode() for kind in ("api_version", "started", "client_named"))
NAMELESS: Final = "it does not name its library"
NAMED_MAX: Final = 4  # APIs in one sentence


@dataclass(frozen=True)
class Client:
    """Who sent a request: a member's name or a client id with its address, and the library where it tells itself.

    `library` None: its requests do not tell; empty: nothing of it was seen.
    """

    name: str
    library: str | None = None

    def __str__(self) -> str:
        return self.name if self.library == "" else f"{self.name} ({self.library or NAMELESS})"


@dataclass(frozen=True)
class Sighting:
    """A client was seen to send one version of an API, which is called as its message definition is.

    `offered`: the highest version that its broker offered; None: not seen. `asks`: it was seen to ask for versions.
    `deprecated`: the broker marked the request as one that a later Kafka removes.
    """

    client: Client
    api: str
    version: int
    offered: int | None = None
    asks: bool = False
    deprecated: bool = False


@dataclass(frozen=True)
class ClientFinding:
    """What brokers of the other version make of some requests of a client; `told`: the sentence without subject."""

    client: Client
    weight: str
    apis: tuple[str, ...]
    told: str

    @property
    def message(self) -> str:
        """The whole sentence."""
        return f"{self.client} {self.told}"


@dataclass(frozen=True)
class _Decided:
    """What becomes of one API of a client: the weight, the version seen, and the words that explain it."""

    weight: str
    api: str
    version: int
    because: str


def judge_clients(
    sightings: Iterable[Sighting], *, to: str, now: str | None = None, expected: Iterable[str] = ()
) -> list[ClientFinding]:
    """Returns what brokers of version `to` make of the clients that were seen, the worst first.

    `now` is the version that the brokers have, for what they offer where that was not seen. Of `expected` clients no
    request may have been seen: that is unknown, by name.
    """
    by_client: dict[Client, dict[str, list[Sighting]]] = defaultdict(lambda: defaultdict(list))
    for sighting in sightings:
        by_client[sighting.client][sighting.api].append(sighting)
    found = [finding for client in by_client for finding in _of_client(client, by_client[client], to=to, now=now)]
    seen = {client.name for client in by_client}
    found += [
        ClientFinding(Client(name, ""), UNDECIDED, (), "was not seen: what it sends is unknown")
        for name in sorted(set(expected) - seen)
    ]
    return sorted(found, key=lambda finding: (WEIGHTS.index(finding.weight), finding.client.name, finding.message))


def sightings_of_run(history: Path) -> list[Sighting]:
    """Returns what a run's folder `history` says; only the lines that say it are parsed.

    One of an earlier harness has no such lines: then nothing was seen.
    """
    files = (*sorted(history.glob("consumer-*.jsonl")), *sorted(history.glob("requests-*.jsonl")))
    return sightings_of_history(event for file in files for event in _events_of(file))


def _events_of(file: Path) -> Iterator[Event]:
    with file.open("rb") as lines:
        for raw in lines:
            if any(kind in raw for kind in SAYING) and raw.endswith(b"\n"):  # else it is being written
                yield from_line(raw)


def sightings_of_history(events: Iterable[Event]) -> list[Sighting]:
    """Returns what the `api_version` events of a history say; a member's name stands for its lane.

    `started` events (of members) and `client_named` ones (of an audit) may come in any order among them.
    """
    members: dict[int, str] = {}
    seen: list[Event] = []
    for event in events:
        lane = event.details.get("lane")
        if event.kind == "api_version":
            seen.append(event)
        elif event.kind in ("started", "client_named") and isinstance(lane, int) and event.member:
            members[lane] = event.member
    return [_sighting(event, members) for event in seen]


def _sighting(event: Event, members: Mapping[int, str]) -> Sighting:
    told = event.details
    name = members.get(told.get("lane", -1)) or str(told.get("client_id") or "a client without an id")
    return Sighting(
        Client(name, told.get("library")),
        api_named(int(told.get("key", -1)), str(told["api"])),
        int(told["version"]),
        told.get("offered_highest"),
        bool(told.get("asks")),
        bool(told.get("deprecated")),
    )


def api_named(key: int, name: str) -> str:
    """Returns an API's name as its message definition has it: OffsetCommit for OFFSET_COMMIT.

    Its key finds it first, which stays where an API is renamed; what the tables do not know keeps the name given.
    """
    return _by_key().get(key) or _by_name().get(name.replace("_", "").upper(), name)


def _of_client(
    client: Client, seen: Mapping[str, Sequence[Sighting]], *, to: str, now: str | None
) -> Iterator[ClientFinding]:
    """Yields a sentence for each reason, with all APIs that it holds for."""
    by_reason: dict[tuple[str, str], list[_Decided]] = defaultdict(list)
    for api in sorted(seen, key=_key):
        if api != ASKS and (decided := _decide(api, seen[api], to=to, now=now)):
            by_reason[decided.weight, decided.because].append(decided)
    for (weight, because), parts in by_reason.items():
        requests = _listed([f"{part.api} v{part.version}" for part in parts])
        yield ClientFinding(client, weight, tuple(part.api for part in parts), f"sends {requests}, {because}")


def _decide(api: str, seen: Sequence[Sighting], *, to: str, now: str | None) -> _Decided | None:
    if all(api not in apis(version) for version in versions()):
        return None  # of controllers, or newer than the tables: no broker listener's
    served = apis(to).get(api)
    highest = max(sighting.version for sighting in seen)
    if served is None:
        return _Decided(REJECTED, api, highest, f"which brokers of {to} do not answer in any version")
    chosen = [sighting for sighting in seen if sighting.version < served.lowest]
    if highest >= served.lowest:  # what it sent where the offer ended says nothing of the client
        chosen = [sighting for sighting in chosen if _offered(sighting, now) != sighting.version]
    if chosen:
        return _too_low(served, chosen, highest, to=to, now=now)
    if highest > served.highest and not any(sighting.asks for sighting in seen):
        why = f"and brokers of {to} know v{served.highest} at most; it was not seen to ask which versions they know"
        return _Decided(PERHAPS, api, highest, why)
    return _marked(api, seen, to=to, now=now)


def _too_low(served: Api, chosen: Sequence[Sighting], highest: int, *, to: str, now: str | None) -> _Decided:
    version = max(sighting.version for sighting in chosen)
    gone = f"which {_removed_in(served.name, version, to)} removed: "
    cut = f"brokers of {minor(to)} close the connection without an answer"
    offers = [_offered(sighting, now) for sighting in chosen]
    if highest >= served.lowest:
        return _Decided(PERHAPS, served.name, version, f"{gone}{cut}; it also sends v{highest}, which they serve")
    if any(offer is not None and offer > version for offer in offers):
        return _Decided(REJECTED, served.name, version, gone + cut)
    if all(offer is None for offer in offers):
        why = "whether it could send more is unknown: what its brokers offered was not seen (say --from)"
        return _Decided(UNDECIDED, served.name, version, gone + why)
    if any(sighting.asks for sighting in chosen):
        why = "whether it could send more is unknown: its brokers offered no more"
        return _Decided(UNDECIDED, served.name, version, gone + why)
    return _Decided(PERHAPS, served.name, version, f"{gone}{cut}; it was not seen to ask which versions they know")


def _marked(api: str, seen: Sequence[Sighting], *, to: str, now: str | None) -> _Decided | None:
    """Returns what is served still, and deprecated: by the broker's own mark, or by the table of either version."""
    for sighting in sorted(seen, key=lambda one: one.version):
        where = [version for version in (now, to) if version and _deprecates(version, api, sighting.version)]
        if sighting.version == max(one.version for one in seen) and (sighting.deprecated or where):
            by = minor(where[0]) if where else "its brokers"
            told = f"deprecated in {by} (requestApiVersionDeprecated); brokers of {to} still answer it"
            return _Decided(DEPRECATED, api, sighting.version, told)
    return None


def _deprecates(version: str, api: str, number: int) -> bool:
    row = apis(version).get(api)
    return row is not None and row.deprecates(number)


def _offered(sighting: Sighting, now: str | None) -> int | None:
    """Returns the highest version that the broker offered: as it said, else as the table has it."""
    if sighting.offered is not None or now is None:
        return sighting.offered
    row = apis(now).get(sighting.api)
    return None if row is None else row.highest


def _removed_in(api: str, version: int, to: str) -> str:
    """Returns since which minor version, up to `to`, brokers serve this version of an API no more."""
    gone = to
    for known in sorted(versions(), key=order, reverse=True):
        row = apis(known).get(api)
        if order(known) <= order(to) and row is not None:
            if row.lowest <= version:
                break
            gone = known
    return minor(gone)


def _listed(words: Sequence[str]) -> str:
    named = [*words[:NAMED_MAX], *([f"{len(words) - NAMED_MAX} more"] if len(words) > NAMED_MAX else [])]
    return " and ".join([", ".join(named[:-1]), named[-1]]) if len(named) > 1 else named[0]


def _key(api: str) -> int:
    return next((row.key for version in versions() if (row := apis(version).get(api))), -1)


@cache
def _by_name() -> dict[str, str]:
    return {name.upper(): name for version in versions() for name in apis(version)}


@cache
def _by_key() -> dict[int, str]:
    return {row.key: name for version in versions() for name, row in apis(version).items()}
