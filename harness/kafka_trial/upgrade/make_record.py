"""Makes the record of a rehearsal: what its stages' run folders say, joined with what was asked and what came of it.

Times are read from the histories: a stage begins with its first phase, and the first phase of all is where every time
counts from. When a broker's turn in a roll began follows from how long those before it took.

What the consumers sent, and what brokers of the other version make of that, is joined from the whole history of each
trial: `api_version` events (library, version of each API, what was offered) and refusals by the brokers' own logs;
judged as `preflight --to` judges request logs (compatibility/clients.py), both for the way there and for the way back.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from kafka_trial import __version__, registry
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
from kafka_trial.compatibility.paths import RULES
from kafka_trial.compatibility.settings import CHANGES
from kafka_trial.errors import InputError
from kafka_trial.history.event import Event
from kafka_trial.history.refused_requests import refusal_in_words, refused_of_run
from kafka_trial.history.store import HistoryTail, RunFolder
from kafka_trial.report.certificate import trial_times
from kafka_trial.report.event_text import bounded
from kafka_trial.report.explain import explanations
from kafka_trial.report.run_metadata import clients_by_library, start_ns
from kafka_trial.report.sealed_files import file_digests
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.provenance import git_state
from kafka_trial.trial.spec import TrialSpec
from kafka_trial.upgrade.availability import Availability, availability
from kafka_trial.upgrade.broker_changes import REPLACE, ROLL
from kafka_trial.upgrade.cluster_state import SETTING, ClusterState
from kafka_trial.upgrade.outcome import CONSUMER, NO_GO, StageOutcome
from kafka_trial.upgrade.play import TRIALS, PlayedStage
from kafka_trial.upgrade.record import (
    BrokerRoll,
    NotTried,
    RecordedClient,
    RecordedConsumer,
    RecordedOutcome,
    RecordedPath,
    RecordedStage,
    ToldOfClient,
    UpgradeRecord,
)
from kafka_trial.upgrade.rehearsal import Rehearsal
from kafka_trial.upgrade.request import IN_PLACE, UpgradeRequest

NS_PER_S = 1e9
JAVA: Final = "apache-kafka-java"
REFUSED: Final = "refused"
LIBRARY_MAX: Final = 80
Told = tuple[str, str, str]  # the version of brokers, the weight, the sentence without subject


def make_record(rehearsal: Rehearsal) -> UpgradeRecord:
    """Returns the record of a rehearsal.

    Raises:
        InputError: a run folder of a stage is missing or damaged.
    """
    request, out = rehearsal.request, rehearsal.request.out.absolute()
    played = {one.stage.name: one for one in rehearsal.played}
    stages = [_stage(name, played.get(name), request.after) for name in rehearsal.planned]
    costs = _availability(rehearsal)
    stages = [replace(stage, availability=costs.get(stage.name, ())) for stage in stages]
    run = _run_json(out, request)
    states = [one.state for one in rehearsal.played]
    ended_s = [stage.began_s + stage.lasted_s for stage in stages if stage.began_s is not None and stage.lasted_s]
    first = next((folder for one in rehearsal.played for folder in one.folders.values()), None)
    reason = rehearsal.ended_early or "the rehearsal ended before it"
    clients = {name: _clients(name, request, out) for name in request.specs}
    return UpgradeRecord(
        before=request.before,
        after=request.after,
        seed=request.seed,
        consumers=[_consumer(name, rehearsal, clients[name]) for name in request.specs],
        clients=[client for own in clients.values() for client in own],
        stages=stages,
        path=RecordedPath(
            list(RULES),
            str(request.way_back),
            notes=[f"{flaw.issue}: {flaw.what}. {flaw.remedy}." for flaw in request.open_flaws],
        ),
        outcomes=[_outcome(one, played, out) for one in rehearsal.outcomes],
        not_tried=[*(NotTried(one, reason) for one in rehearsal.planned if one not in played), *_not_meant(request)],
        to_change=list(dict.fromkeys(changes_needed(rehearsal.outcomes))),
        shape=request.shape,
        brokers=sorted({broker for state in states for broker in state.features}),
        began="" if first is None else trial_times(first)[0],
        lasted_s=max(ended_s, default=None),
        finalised_before=_finalised(states[:1]),
        finalised_after=_finalised(states[-1:]),
        host=str(run.get("host", "")),
        kafka_trial=str(run.get("kafka_trial", "")),
        harness_digest=folder_digest(registry.PACKAGE),
        commit=run.get("commit"),
    )


def refused_record(
    before: str, after: str, refusals: Sequence[str], *, seed: int, shape: str, out: Path
) -> UpgradeRecord:
    """Returns the record of a move whose path is refused: nothing was begun."""
    return UpgradeRecord(
        before=before,
        after=after,
        seed=seed,
        consumers=[],
        stages=[],
        path=RecordedPath(list(RULES), "", refusals),
        not_tried=[NotTried("all stages", "the path is refused, so that nothing was started")],
        shape=shape,
        host=platform.node(),
        kafka_trial=__version__,
        harness_digest=folder_digest(registry.PACKAGE),
        commit=git_state(registry.PACKAGE, run=out),
    )


def _not_meant(request: UpgradeRequest) -> Iterator[NotTried]:
    """Yields what the stages never try, and why."""
    for name, spec in request.specs.items():
        if not spec.successors:
            yield NotTried(f"clients of {name} moved", "it names no successor")
    if not request.added:
        yield NotTried("partitions added to topics", "--add-partitions was not given")
    if request.shape == IN_PLACE:
        yield NotTried("brokers replaced by new ones", "each broker is restarted on its data, under its address")
    else:
        yield NotTried("brokers restarted on their data", "new brokers take their place")


def changes_needed(outcomes: Sequence[StageOutcome]) -> Iterator[str]:
    """Yields what to change before the upgrade, by what no-go rests on: the remedy of an anomaly, or the setting."""
    remedies = {one.name: one.remedy for one in explanations()}
    for one in outcomes:
        anomaly = one.reason.partition(": ")[0]
        if one.outcome == NO_GO and one.accused == CONSUMER and anomaly in remedies:
            yield f"{one.subject}: {remedies[anomaly]} ({anomaly})"
        elif one.outcome == NO_GO and one.accused == SETTING:
            lasting = "name an address that lasts, or start its members again before the last old broker goes"
            again = f"Set again what the upgrade takes away: {one.reason}"
            yield f"{one.subject}: {lasting}" if one.subject else again


def _run_json(out: Path, request: UpgradeRequest) -> Mapping[str, Any]:
    """Returns what the first trial says of itself; nothing where it was not begun."""
    for name in request.specs:
        with suppress(InputError):
            run: Mapping[str, Any] = RunFolder(out / TRIALS / name).read_json("run.json")
            return run
    return {}


def _clients(name: str, request: UpgradeRequest, out: Path) -> list[RecordedClient]:
    """Returns what brokers saw of a consumer's clients in the whole rehearsal; nothing where it was not begun."""
    return clients_of(name, out / TRIALS / name / "history", before=request.before, after=request.after)


def _consumer(name: str, rehearsal: Rehearsal, clients: Sequence[RecordedClient]) -> RecordedConsumer:
    request, spec = rehearsal.request, rehearsal.request.specs[name]
    folders = [one.folders[name] for one in rehearsal.played if name in one.folders]
    run: Mapping[str, Any] = folders[-1].read_json("run.json") if folders else {}
    seen = clients_by_library(folders[-1]) if folders else {}
    image = run.get("consumer_image")
    return RecordedConsumer(
        name=name,
        digest=str(run.get("consumer_digest", "")),
        claim=asdict(spec.consumer.claim),
        command=list(spec.consumer.command),
        clients={library: sorted(ids) for library, ids in seen.items()},
        image={"name": image, "id": str(run.get("images", {}).get(image, ""))} if image else None,
        changes=changes_of(spec, clients, before=request.before, after=request.after),
    )


def _outcome(told: StageOutcome, played: Mapping[str, PlayedStage], out: Path) -> RecordedOutcome:
    folder = played[told.stage].folders.get(told.subject) if told.stage in played else None
    if folder is None or not (folder.path / "verdict.json").exists():  # played, and the judge was not to be had
        return RecordedOutcome(**asdict(told))
    run = folder.path.relative_to(out).as_posix()
    return RecordedOutcome(**asdict(told), run=run, files=file_digests(folder.path))


def _stage(name: str, played: PlayedStage | None, after: str) -> RecordedStage:
    if played is None:
        return RecordedStage(name, "", after)
    folder = next(iter(played.folders.values()), None)
    began_s, rolls = (None, []) if folder is None else _times(folder, name)
    stage = played.stage
    lasted_s = round(played.seconds, 1)
    return RecordedStage(name, stage.summary, stage.version, began_s, lasted_s, rolls, played.losses)


def _availability(rehearsal: Rehearsal) -> Mapping[str, list[Availability]]:
    """Returns by stage what it cost each consumer, by the last history of each, which has all stages before it too."""
    costs: dict[str, list[Availability]] = {}
    if not rehearsal.played:
        return costs
    folders, trials = rehearsal.played[-1].folders, rehearsal.request.out.absolute() / TRIALS
    base_ns = min(map(start_ns, list(folders.values())[:1]), default=0)  # of the first one, as in `_times`
    for name, folder in folders.items():
        with suppress(ValueError):  # a history that is damaged tells nothing of this
            of_stages = availability(name, folder, RunFolder(trials / name).logs, rehearsal.planned, base_ns=base_ns)
            for stage, cost in of_stages.items():
                costs.setdefault(stage, []).append(cost)
    return costs


def _times(folder: RunFolder, stage: str) -> tuple[float | None, list[BrokerRoll]]:
    """Returns when a stage began, and the restarts of brokers in it, by its history."""
    base_ns = start_ns(folder)
    phases = (event.time_ns for event in _events(folder, "run") if event.details.get("stage") == stage)
    begins_ns = min(phases, default=None)
    if begins_ns is None:
        return None, []
    rolls = [roll for roll in _rolls(folder, base_ns) if base_ns + roll.at_s * NS_PER_S >= begins_ns]
    return round((begins_ns - base_ns) / NS_PER_S, 1), rolls


def _rolls(folder: RunFolder, base_ns: int) -> Iterator[BrokerRoll]:
    injected_ns: dict[object, int] = {}
    for event in _events(folder, "nemesis"):
        if event.details.get("fault") not in (ROLL, REPLACE):
            continue
        number = event.details.get("fault_no")
        if event.kind == "injected":
            injected_ns[number] = event.time_ns
        elif event.kind == "evidence" and number in injected_ns:
            yield from _turns(event, (injected_ns[number] - base_ns) / NS_PER_S)


def _turns(evidence: Event, at_s: float) -> Iterator[BrokerRoll]:
    for turn in evidence.details.get("details", {}).get("brokers", ()):
        if {"broker", "by", "version"} <= turn.keys():
            old, gone_s = turn["broker"], turn.get("gone_s")
            yield BrokerRoll(turn["by"], turn["version"], round(at_s, 1), gone_s, turn.get("moved_s"), instead_of=old)
            at_s += gone_s or 0.0
        elif {"broker", "version"} <= turn.keys():
            whole = turn.get("in_sync_s") if turn.get("isr_whole_again") else None
            yield BrokerRoll(turn["broker"], turn["version"], round(at_s, 1), turn.get("exit_s"), whole)
        at_s += turn.get("in_sync_s") or 0.0


def _events(folder: RunFolder, source: str) -> Iterator[Event]:
    yield from HistoryTail(folder.history, f"{source}.jsonl").new_events()


def _finalised(states: Sequence[ClusterState]) -> Mapping[str, int] | None:
    """Returns the levels in force, as the broker says that has read the most; None where nobody was asked."""
    answers = [one for state in states for one in state.features.values()]
    return dict(max(answers, key=lambda one: one.epoch).finalized) if answers else None


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
