"""`preflight --to VERSION`: what brokers of that version would mean for a cluster, its clients and a consumer.

NO where a client that was seen is rejected, or a value that is set is refused; UNKNOWN where something that was looked
at could not be decided; else OK, with what changes. What was not looked at is named: about that nothing is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from kafka_trial.compatibility import clients, settings
from kafka_trial.compatibility.clients import ClientFinding, judge_clients
from kafka_trial.compatibility.live import ClusterNow
from kafka_trial.compatibility.request_logs import LogsRead
from kafka_trial.compatibility.settings import behaviours, judge_settings, new_settings
from kafka_trial.compatibility.tables import minor, versions
from kafka_trial.compatibility.tables import settings as settings_of
from kafka_trial.errors import FAIL, PASS, UNKNOWN, unknown_name

AGAINST: Final = (clients.REJECTED, settings.REFUSED)
OPEN: Final = (clients.PERHAPS, clients.UNDECIDED)
STATUSES: Final = {"ok": PASS, "no": FAIL, "unknown": UNKNOWN}
NAMED_MAX: Final = 3
OF_WHOM: Final = {
    "everyone": "everyone",
    "classic": "classic groups",
    "consumer": "groups with group.protocol=consumer",
    "transactions": "transactions",
}
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
ADDRESS: Final = re.compile(r"\[?[^\s,\]]+\]?:\d{1,5}")
OF_UPGRADE: Final = ("to", "from_version", "request_log", "consumer")
LOOKED_AT: Final = ("bootstrap", "request_log", "consumer")
COMMON: Final = ("bootstrap", "command_config", "json", "debug", "plugin", "verb", "verb_function")


@dataclass(frozen=True)
class ConsumerPlan:
    """What a consumer.toml says that an upgrade may touch; `given` are settings of the Java client that it names."""

    name: str
    protocol: str
    transactional: bool
    given: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """One thing that version `to` makes of what was looked at; `about` is its section."""

    about: str
    weight: str
    message: str


@dataclass(frozen=True)
class Outlook:
    """All that is said; `features`: finalised level, and the lowest and highest that every broker supports."""

    to: str
    now: str | None
    findings: tuple[Finding, ...]
    features: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """no, unknown or ok."""
        weights = {one.weight for one in self.findings}
        if weights & {*AGAINST}:
            return "no"
        return "unknown" if weights & {*OPEN} or self.untold else "ok"

    @property
    def exit_status(self) -> int:
        return STATUSES[self.verdict]


def make_outlook(
    *, to: str, now: str | None, cluster: ClusterNow | None, logs: LogsRead | None, consumer: ConsumerPlan | None
) -> Outlook:
    """Returns what brokers of `to` mean for what was looked at; `now` is None where only request logs are."""
    findings: list[Finding] = []
    untold = [] if cluster is None else [f"not told by the cluster: {one}" for one in cluster.untold]
    if logs is not None:
        findings += _of_clients(judge_clients(logs.sightings, to=to, now=now))
    if cluster is not None and now is not None:
        findings += _of_brokers(cluster, now=now, to=to)
        findings += _of_topics(cluster, now=now, to=to)
        findings += _of_groups(cluster, now=now, to=to)
    if consumer is not None and now is not None:
        findings += of_consumer(consumer, now=now, to=to)
        if cluster is None:
            findings += _where_nothing_is_set(now=now, to=to)
    return Outlook(
        to,
        now,
        tuple(findings),
        {} if cluster is None else _features(cluster),
        tuple(_notes(cluster, logs, now=now, to=to)),
        tuple(untold),
        tuple(_not_looked_at(cluster, logs, consumer)),
    )


def consumer_plan(
    name: str, *, protocol: str, transactional: bool, command: Sequence[str], env: Mapping[str, str]
) -> ConsumerPlan:
    """Returns what a consumer.toml names of the Java client's settings: NAME=VALUE in its command, or in its [env].

    A variable names one in capitals with underscores, with KAFKA_ before it or not. Placeholders are left out.
    """
    known = {setting for version in versions() for setting in settings_of(version, "consumer")}
    words = [word.partition("=") for one in (*command, *env.values()) for word in one.split()]
    pairs = [(name.lstrip("-"), value) for name, _, value in words]
    pairs += [(key.lower().replace("_", ".").removeprefix("kafka."), value) for key, value in env.items()]
    given = {setting: value for setting, value in pairs if setting in known and value and "{" not in value}
    return ConsumerPlan(name, protocol, transactional, given)


def as_json(outlook: Outlook) -> dict[str, Any]:
    """Returns what `--json` prints."""
    return {
        "schema": 1,
        "verdict": outlook.verdict,
        "from": outlook.now,
        "to": outlook.to,
        "findings": [asdict(one) for one in outlook.findings],
        "features": {
            name: {"finalized": finalized, "lowest": lowest, "highest": highest}
            for name, (finalized, lowest, highest) in outlook.features.items()
        },
        "notes": [*outlook.notes],
        "untold": [*outlook.untold],
        "not_looked_at": [*outlook.not_looked_at],
    }


def as_text(outlook: Outlook) -> str:
    """Returns the answer in words: the verdict with the worst reason, then each section."""
    lines = [_first_line(outlook), *outlook.notes]
    by_section: dict[str, list[Finding]] = defaultdict(list)
    for finding in outlook.findings:
        by_section[finding.about].append(finding)
    for about, found in by_section.items():
        width = max(len(one.weight) for one in found)
        lines += ["", about, *(f"  {_weight(one):{width}}  {one.message}" for one in found)]
    if outlook.features:
        lines += ["", "features", *(f"  {line}" for line in _feature_lines(outlook.features))]
    more = [*outlook.untold, *(f"not looked at: {one}" for one in outlook.not_looked_at)]
    return "\n".join([*lines, *(["", *more] if more else [])])


def _weight(finding: Finding) -> str:
    return finding.weight.upper() if finding.weight in AGAINST else finding.weight


def _first_line(outlook: Outlook) -> str:
    reasons = {"no": AGAINST, "unknown": OPEN}.get(outlook.verdict, ())
    told = next((one.message for one in outlook.findings if one.weight in reasons), None)
    if outlook.verdict == "ok":
        return f"OK: nothing that was looked at stands against brokers of {outlook.to}"
    return f"{outlook.verdict.upper()}: {told or outlook.untold[0]}"


def _of_clients(found: Sequence[ClientFinding]) -> Iterator[Finding]:
    """Yields a sentence for all clients of one library of which the same is said."""
    alike: dict[tuple[str, str | None, str], list[str]] = defaultdict(list)
    for one in found:
        alike[one.weight, one.client.library, one.told].append(one.client.name)
    for (weight, library, told), names in alike.items():
        client = clients.Client(listed(names), library)
        yield Finding("clients", weight, f"{client} {'each ' if len(names) > 1 else ''}{told}")


def _of_brokers(cluster: ClusterNow, *, now: str, to: str) -> Iterator[Finding]:
    yield from _together("brokers", "broker", "broker", cluster.set_of_brokers, now=now, to=to)


def _of_topics(cluster: ClusterNow, *, now: str, to: str) -> Iterator[Finding]:
    yield from _together("topics", "topic", "topic", cluster.set_of_topics, now=now, to=to)


def _of_groups(cluster: ClusterNow, *, now: str, to: str) -> Iterator[Finding]:
    given = {name: values for name, values in cluster.set_of_groups.items() if values}
    set_there = {setting for values in given.values() for setting in values}
    yield from _together("groups", "group", "group", given, now=now, to=to, only=set_there)
    kinds = {one.kind or "classic" for one in cluster.groups}
    yield from _behaviours("groups", [*kinds, "transactions"], now=now, to=to)


def of_consumer(consumer: ConsumerPlan, *, now: str, to: str) -> Iterator[Finding]:
    """Yields what brokers of `to` mean for a consumer; of its Java client's defaults under a section of their own."""
    about = f"consumer {consumer.name}"
    spoken = settings_of(to, "broker")[PROTOCOLS].default
    if consumer.protocol == "consumer" and "consumer" not in spoken.split(","):
        told = f"it speaks group.protocol=consumer, and brokers of {to} do not by default ({PROTOCOLS} = {spoken})"
        yield Finding(about, settings.REFUSED, told)
    whom = [consumer.protocol, *(["transactions"] if consumer.transactional else [])]
    yield from _behaviours(about, whom, now=now, to=to)
    moved = f"{about}, where its Java client moves to {to} too"
    for one in judge_settings("consumer", consumer.given, now=now, to=to):
        weight = settings.CHANGES if one.weight == settings.REFUSED else one.weight  # brokers do not refuse it
        yield Finding(moved, weight, one.message)


def _where_nothing_is_set(*, now: str, to: str) -> Iterator[Finding]:
    for role in ("broker", "topic"):
        for one in judge_settings(role, {}, now=now, to=to):
            yield Finding(f"{role}s, where nothing else is set", one.weight, one.message)


def _behaviours(about: str, whom: Iterable[str], *, now: str, to: str) -> Iterator[Finding]:
    for one in behaviours(now=now, to=to, whom=whom):
        told = f"{OF_WHOM[one.whom]}: {one.means} (since {one.since}; {one.source})"
        yield Finding(about, settings.CHANGES, told)


def _together(
    about: str,
    role: str,
    word: str,
    given: Mapping[Any, Mapping[str, str]],
    *,
    now: str,
    to: str,
    only: Iterable[str] | None = None,
) -> Iterator[Finding]:
    """Yields what version `to` makes of the settings of several, each sentence once, with those that it is true of."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, values in given.items():
        for one in judge_settings(role, values, now=now, to=to):
            if only is None or one.name in only:
                alike[one.weight, one.message].append(str(name))
    for (weight, message), names in sorted(alike.items(), key=lambda item: settings.WEIGHTS.index(item[0][0])):
        many = f"{len(names)} {word}s" if len(names) > 1 else word
        yield Finding(about, weight, f"{message}: {many} {listed(names)}")


def _features(cluster: ClusterNow) -> dict[str, tuple[int, int, int]]:
    """Returns of each feature the level that is finalised (0: none), and what all brokers support."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    levels: dict[str, int] = {}
    for one in cluster.features.values():
        levels |= one.finalized
        for name, span in one.supported.items():
            spans[name].append(span)
    return {
        name: (levels.get(name, 0), max(low for low, _ in found), min(high for _, high in found))
        for name, found in sorted(spans.items())
    }


def _feature_lines(features: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    for name, (finalized, lowest, highest) in features.items():
        level = f"{finalized} is finalised" if finalized else "not finalised"
        yield f"{name}: {level}, the brokers support {lowest} to {highest}"


def _notes(cluster: ClusterNow | None, logs: LogsRead | None, *, now: str | None, to: str) -> Iterator[str]:
    if now is not None:
        yield f"from {now} to {to}; the settings that {to} brings are listed where they change what is now"
    if cluster is not None:
        if cluster.is_mixed:
            yield f"the brokers answer as different versions ({', '.join(cluster.candidates)}): a roll is under way"
        elif now is not None and cluster.candidates and minor(now) not in map(minor, cluster.candidates):
            yield f"the brokers answer as {' or '.join(cluster.candidates)} does, and not as --from {now}"
        kinds = [one.kind or "classic" for one in cluster.groups]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        yield (
            f"{len(cluster.features)} brokers, {len(cluster.set_of_topics)} topics, {len(kinds)} groups"
            f"{f' ({counted})' if counted else ''}"
        )
        if now is not None and (new := new_settings("broker", now=now, to=to)):
            yield f"{len(new)} settings of brokers are new and change nothing by default that is known"
    if logs is not None:
        seen = {one.client for one in logs.sightings}
        yield f"{logs.requests} requests of {len(seen)} clients in the request logs, files: {logs.files}"
        if logs.unread:
            yield f"{len(logs.unread)} lines of request logs could not be read, the first: {logs.unread[0]}"


def _not_looked_at(cluster: ClusterNow | None, logs: LogsRead | None, consumer: ConsumerPlan | None) -> Iterator[str]:
    if logs is None:
        yield "clients: brokers do not tell which versions a client sends; say --request-log FOLDER"
    else:
        yield "clients and requests that the request logs do not hold"
    if cluster is None:
        yield "the cluster: features, and what is set for brokers, topics and groups; say --bootstrap"
    if consumer is None:
        yield "what consumers set themselves; say --consumer FILE"
    yield "whether the path is allowed, and whether it can be gone back"


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    if len(names) <= NAMED_MAX:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED_MAX])} and {len(names) - NAMED_MAX} more"


def is_upgrade(options: Mapping[str, Any]) -> bool:
    """Tells whether the words ask about an upgrade, be they whole or not."""
    return any(options.get(name) for name in OF_UPGRADE)


def upgrade_problems(options: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the words, each as a sentence."""
    if not options.get("to"):
        given = ", ".join(_option(name) for name in OF_UPGRADE if options.get(name))
        return [f"an upgrade to which version? Say --to beside {given}"]
    others = [_option(name) for name, value in options.items() if value and name not in (*OF_UPGRADE, *COMMON)]
    problems = _version_problems(to=options["to"], now=options.get("from_version"))
    if others:
        problems.append(f"it asks about an upgrade, not about records: leave out {', '.join(others)}")
    if not any(options.get(name) for name in LOOKED_AT):
        problems.append("what is to be looked at? Say --bootstrap, --request-log or --consumer")
    if options.get("consumer") and not options.get("bootstrap") and not options.get("from_version"):
        problems.append("which version have the brokers now? Say --from, or --bootstrap")
    problems += [
        f"--bootstrap: {part!r} is no host:port"
        for part in (options.get("bootstrap") or "").split(",")
        if options.get("bootstrap") and not ADDRESS.fullmatch(part)
    ]
    if options.get("command_config") and not options.get("bootstrap"):
        problems.append("--command-config asks a cluster: which one? Say --bootstrap")
    return problems


def _version_problems(*, to: str, now: str | None) -> list[str]:
    """Returns what is wrong with the two versions: that the tables do not know one, or that it is one."""
    given = {"--to": to} | ({} if now is None else {"--from": now})
    problems = [
        f"{option}: {unknown_name('Kafka version', number, versions())}"
        for option, number in given.items()
        if number not in versions()
    ]
    return problems + ([f"--from and --to are both {to}: nothing changes"] if to == now else [])


def _option(name: str) -> str:
    return "--from" if name == "from_version" else f"--{name.replace('_', '-')}"
