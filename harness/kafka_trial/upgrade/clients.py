"""What the consumers of a rehearsal sent, as brokers saw it, and what brokers of the other version make of that.

Joined from the whole history of each trial: `api_version` events (library, version of each API, what was offered) and
refusals by the brokers' own logs; judged as `preflight --to` judges request logs (compatibility/clients.py), both for
the way there and for the way back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kafka_trial.compatibility.clients import (
    ASKS,
    DEPRECATED,
    Client,
    ClientFinding,
    Sighting,
    judge_clients,
    sightings_of_run,
)
from kafka_trial.compatibility.outlook import consumer_plan, listed, of_consumer
from kafka_trial.compatibility.settings import CHANGES
from kafka_trial.history.refused_requests import refusal_in_words, refused_of_run
from kafka_trial.report.event_text import bounded
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.upgrade.record import RecordedClient, ToldOfClient

JAVA: Final = "apache-kafka-java"
REFUSED: Final = "refused"
LIBRARY_MAX: Final = 80
Told = tuple[str, str, str]  # the version of brokers, the weight, the sentence without subject


def clients_of(consumer: str, history: Path, *, before: str, after: str) -> list[RecordedClient]:
    """Returns the clients of a consumer by their library, the members that used each, and what is to be told of it.

    `history` is the folder of the whole trial. A request counts where it came through a member's lane. What brokers
    refused has no library: it is told with the only one of its member, else apart.
    """
    sightings = _of_members(sightings_of_run(history), {path.stem.split("-")[1] for path in _of_consumers(history)})
    members: dict[str, set[str]] = defaultdict(set)
    for one in sightings:
        members[_library(one.client)].add(one.client.name)
    told: dict[str, dict[Told, set[str]]] = defaultdict(lambda: defaultdict(set))
    for version, found in _judged(sightings, before=before, after=after):
        told[_library(found.client)][version, found.weight, found.told].add(found.client.name)
    for member, words in _refused(history).items():
        own = [library for library, names in members.items() if member in names]
        library = own[0] if len(own) == 1 else ""
        members[library].add(member)
        told[library]["", REFUSED, words].add(member)
    return [
        RecordedClient(consumer, library, sorted(names), list(_sentences(library, told[library])))
        for library, names in sorted(members.items())
    ]


def changes_of(spec: TrialSpec, clients: Iterable[RecordedClient], *, before: str, after: str) -> list[str]:
    """Returns what brokers of the version `after` do otherwise for a consumer and its successors; the defaults of the
    Java client count where brokers saw one."""
    java = any(one.library.startswith(JAVA) for one in clients)
    found = []
    for consumer in (spec.consumer, *spec.successors):
        plan = consumer_plan(
            consumer.name,
            protocol=consumer.kafka.protocol,
            transactional=consumer.progress.kind == "transaction",
            command=consumer.command,
            env=consumer.env,
        )
        about = f"consumer {consumer.name}"
        for one in of_consumer(plan, now=before, to=after):
            if one.about == about:
                found.append(one.message if one.weight == CHANGES else f"{one.weight}: {one.message}")
            elif java:
                found.append(f"where its Java client moves to {after} too: {one.message}")
    return list(dict.fromkeys(found))


def _of_consumers(history: Path) -> Iterator[Path]:
    yield from history.glob("consumer-*-*.jsonl")


def _of_members(sightings: Sequence[Sighting], members: set[str]) -> list[Sighting]:
    """Returns what members were seen to send; what a connection sends before it names its library is its library's."""
    own = [one for one in sightings if one.client.name in members]
    named = {one.client.name for one in own if one.client.library}
    return [one for one in own if one.client.library or one.client.name not in named or one.api != ASKS]


def _judged(sightings: Sequence[Sighting], *, before: str, after: str) -> Iterator[tuple[str, ClientFinding]]:
    """Yields what brokers of each version make of the clients; what is deprecated matters on the way there alone."""
    yield from ((after, one) for one in judge_clients(sightings, to=after, now=before))
    back = judge_clients(sightings, to=before, now=after)
    yield from ((before, one) for one in back if one.weight != DEPRECATED)


def _refused(history: Path) -> dict[str, str]:
    found = refused_of_run(history)
    return {
        member: refusal_in_words(one for one in found if one.member == member)
        for member in sorted({one.member for one in found})
    }


def _sentences(library: str, told: dict[Told, set[str]]) -> Iterator[ToldOfClient]:
    for (version, weight, words), names in told.items():
        client = Client(listed(sorted(names)), library or None)
        each = "each " if len(names) > 1 else ""
        sentence = f"{client}: {words}" if weight == REFUSED else f"{client} {each}{words}"
        yield ToldOfClient(version, weight, bounded(sentence, most=600))


def _library(client: Client) -> str:
    return bounded(client.library or "", most=LIBRARY_MAX)
