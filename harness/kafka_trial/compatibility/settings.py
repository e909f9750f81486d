"""What another version makes of settings: those that are set, and those whose default is another one.

A value that is set stays what it is; brokers of the other version may refuse it (out of range, no longer a choice) or
not know the setting any more. Where nothing is set, the default counts, and it may have changed. Defaults of consumers,
producers and admin clients are those of the Java client: they change when the client's library does, not with brokers.

Why a setting or a behaviour changed, and what that means for consumers, is told by KIP, issue or release note. Read in
Kafka's upgrade notes (docs/getting-started/upgrade.md), in its sources and in the KIPs named. A change that the table
of defaults finds and that does not stand here is said to be unexplained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from kafka_trial.compatibility.tables import NO_VALUE, Change, ConfigKey, changes, minor, order

REFUSED, GONE, CHANGES = "refused", "gone", "changes"
WEIGHTS: Final = (REFUSED, GONE, CHANGES)
REQUIRED: Final = "(required)"
UNEXPLAINED: Final = "unexplained"
RANGE: Final = re.compile(r"\[(-?[\d.]+)?,\.\.\.(?:,(-?[\d.]+))?\]")
CHOICES: Final = re.compile(r"(\(case insensitive\) )?\[(\w+(?:, \w+)*)\]")
NOTES_4_0: Final = "upgrade notes of 4.0"
KRAFT: Final = ("broker",)
CLIENTS: Final = ("consumer", "producer", "admin")


@dataclass(frozen=True)
class ConfigFinding:
    """What becomes of one setting, as a sentence with its source."""

    role: str
    name: str
    weight: str
    message: str


def judge_settings(role: str, given: Mapping[str, str], *, now: str, to: str) -> list[ConfigFinding]:
    """Returns what version `to` makes of a role's settings: `given` are those that are set; others have defaults."""
    found = [finding for change in changes(role, now, to) if (finding := _judged(change, given, to=to))]
    return sorted(found, key=lambda finding: (WEIGHTS.index(finding.weight), finding.name))


def behaviours(*, now: str, to: str, whom: Iterable[str]) -> Iterator[Behaviour]:
    """Yields what brokers of `to` do otherwise than those of `now`, for those whom it concerns; both ways."""
    lower, upper = sorted((order(minor(now)), order(minor(to))))
    concerned = {*whom, "everyone"}
    yield from (one for one in BEHAVIOURS if lower < order(one.since) <= upper and one.whom in concerned)


def new_settings(role: str, *, now: str, to: str) -> list[str]:
    """Returns the settings that only version `to` has, and of which nothing is to be said."""
    told = {finding.name for finding in judge_settings(role, {}, now=now, to=to)}
    return [change.name for change in changes(role, now, to) if change.before is None and change.name not in told]


def _judged(change: Change, given: Mapping[str, str], *, to: str) -> ConfigFinding | None:
    value = given.get(change.name)
    if value is None:
        return _by_default(change)
    if change.after is None:
        told = f"{change.name} = {value} is set, and {to} has no such setting"
        return _finding(change, GONE, told)
    if refused(value, change.after):
        told = f"{change.name} = {value} is set, and {to} takes {change.after.valid} only"
        return _finding(change, REFUSED, told)
    return None


def _by_default(change: Change) -> ConfigFinding | None:
    why = explanation(change.role, change.name)
    if change.after is None:
        return None
    if change.before is None:
        if why is None or not why.new:
            return None
        return _finding(change, CHANGES, f"{change.name}: new, {_shown(change.after)} by default")
    if _same(change.before.default, change.after.default):
        return None
    if change.after.default == REQUIRED:
        return _finding(change, CHANGES, f"{change.name}: {_shown(change.before)} → must be set")
    return _finding(change, CHANGES, f"{change.name}: {_shown(change.before)} → {_shown(change.after)}")


def _finding(change: Change, weight: str, told: str) -> ConfigFinding:
    why = explanation(change.role, change.name)
    more = UNEXPLAINED if why is None else f"{why.source}: {why.means}"
    return ConfigFinding(change.role, change.name, weight, f"{told} (since {minor(change.since)}; {more})")


def refused(value: str, setting: ConfigKey) -> bool:
    """Tells whether a value is certainly none that a setting takes: out of its range, or none of its choices."""
    if (limits := RANGE.fullmatch(setting.valid)) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        least, most = limits[1], limits[2]
        return (least is not None and float(value) < float(least)) or (most is not None and float(value) > float(most))
    if (choices := CHOICES.fullmatch(setting.valid)) and value:
        allowed = choices[2].split(", ")
        words = value.split(",") if setting.type == "LIST" else [value]
        folded = [str.casefold(one) for one in allowed] if choices[1] else allowed
        return any((word.strip().casefold() if choices[1] else word.strip()) not in folded for word in words)
    return False


def _same(before: str, after: str) -> bool:
    """Nothing and an empty list say the same (KIP-1161)."""
    return before == after or {before, after} == {NO_VALUE, ""}


def _shown(setting: ConfigKey) -> str:
    return {NO_VALUE: "none", "": "empty"}.get(setting.default, setting.default)


@dataclass(frozen=True)
class Explanation:
    """What a change of a setting means; `names` are patterns, `source` is where it is said.

    `new`: that the setting came, and what it is by default, is itself the change.
    """

    roles: tuple[str, ...]
    names: tuple[str, ...]
    means: str
    source: str
    new: bool = False

    def explains(self, role: str, name: str) -> bool:
        """Whether this is about a setting of a role."""
        return role in self.roles and any(fnmatchcase(name, pattern) for pattern in self.names)


@dataclass(frozen=True)
class Behaviour:
    """What brokers do otherwise from a version on, whatever is set; `whom` it concerns.

    `whom`: everyone, classic, consumer (members of KIP-848) or transactions.
    """

    since: str
    whom: str
    means: str
    source: str


EXPLANATIONS: Final = (
    Explanation(
        ("broker", "topic"),
        ("log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms"),
        "a record stamped more than an hour ahead is refused where timestamps are the producer's (CreateTime)",
        "KIP-1030",
    ),
    Explanation(("broker", "topic"), ("log.segment.bytes", "segment.bytes"), "less than 1 MiB is refused", "KIP-1030"),
    Explanation(
        ("broker", "topic"),
        ("log.message.timestamp.difference.max.ms", "message.timestamp.difference.max.ms"),
        "set …timestamp.before.max.ms and …timestamp.after.max.ms in its place",
        "KIP-937",
    ),
    Explanation(
        ("broker", "topic"),
        ("log.message.downconversion.enable", "message.downconversion.enable"),
        "brokers convert records for old consumers no more: those that fetch below v4 are cut off",
        "KIP-896",
    ),
    Explanation(
        ("broker", "topic"),
        ("log.message.format.version", "message.format.version"),
        "there is one format of records left (v2)",
        NOTES_4_0,
    ),
    Explanation(
        ("broker",), ("group.coordinator.threads",), "the new group coordinator runs on several threads", "KIP-848"
    ),
    Explanation(
        ("broker",),
        ("group.coordinator.append.linger.ms",),
        "a commit waits so long for others that are written with it (-1: as long as that pays)",
        "KIP-848",
    ),
    Explanation(
        ("broker",),
        ("group.coordinator.rebalance.protocols",),
        "members may speak the new protocols; with the features group.version and streams.version finalised",
        "KIP-848, KIP-1071, KIP-1237",
    ),
    Explanation(
        ("broker",),
        ("group.consumer.migration.policy",),
        "the first member with group.protocol=consumer converts a classic group, and the last one back",
        "KIP-848",
        new=True,
    ),
    Explanation(
        ("broker", "group"),
        ("group.consumer.assignment.interval.ms", "consumer.assignment.interval.ms"),
        "rebalances of groups with group.protocol=consumer come together, up to a second later (0: at once, as before)",
        "KIP-1263",
        new=True,
    ),
    Explanation(("broker",), ("group.consumer.assignors",), "the same assignors by their short names", NOTES_4_0),
    Explanation(
        ("broker",),
        ("num.recovery.threads.per.data.dir", "remote.log.manager.*pool.size"),
        "more, or fewer, threads by default",
        "KIP-1030",
    ),
    Explanation(
        ("broker",), ("offsets.commit.required.acks",), "commits always wait for all in-sync replicas", "KIP-1041"
    ),
    Explanation(
        KRAFT,
        ("zookeeper.*", "inter.broker.protocol.version", "control.plane.listener.name", "broker.id.generation.enable"),
        "ZooKeeper is gone",
        NOTES_4_0,
    ),
    Explanation(
        KRAFT,
        ("reserved.broker.max.id", "controlled.shutdown.*", "password.encoder.*", "leader.imbalance.per.broker.*"),
        "ZooKeeper is gone",
        NOTES_4_0,
    ),
    Explanation(
        KRAFT,
        ("node.id", "process.roles", "controller.listener.names"),
        "KRaft is all there is: it must be set",
        NOTES_4_0,
    ),
    Explanation(
        ("broker",),
        ("eligible.leader.replicas.enable",),
        "the feature eligible.leader.replicas.version stands for it, which ends min.insync.replicas of single brokers",
        "KIP-966",
    ),
    Explanation(
        ("broker",),
        ("delegation.token.master.key",),
        "set delegation.token.secret.key in its place",
        NOTES_4_0,
    ),
    Explanation(("broker",), ("num.replica.fetchers",), "0 is refused", "upgrade notes of 4.2"),
    Explanation(
        ("broker", *CLIENTS),
        ("auto.include.jmx.reporter", "metric.reporters"),
        "the JMX reporter is in the list by default: a list of one's own must name it",
        "KIP-830",
    ),
    Explanation(
        ("broker", *CLIENTS),
        (
            "bootstrap.servers",
            "interceptor.classes",
            "partition.assignment.strategy",
            "listeners",
            "advertised.listeners",
        ),
        "lists are checked: an empty one may be refused, an entry that stands twice counts once",
        "KIP-1161",
    ),
    Explanation(("producer",), ("linger.ms",), "a record waits up to 5 ms for others of its batch", "KIP-1030"),
    Explanation(
        CLIENTS,
        ("metadata.recovery.strategy",),
        "a client whose brokers are all unknown or unreachable starts again from bootstrap.servers",
        "KIP-899, KIP-1102",
    ),
    Explanation(
        CLIENTS,
        ("metadata.recovery.rebootstrap.trigger.ms",),
        "a client without metadata for so long starts again from bootstrap.servers",
        "KIP-1102",
        new=True,
    ),
    Explanation(
        ("consumer",),
        ("auto.offset.reset",),
        "by_duration is a choice too: it reads records of new partitions that latest passes over",
        "KIP-1106",
    ),
)

BEHAVIOURS: Final = (
    Behaviour(
        "4.0",
        "classic",
        "all groups are kept by the new group coordinator, which loads them from __consumer_offsets at the roll",
        "KIP-848",
    ),
    Behaviour(
        "4.0",
        "transactions",
        "once transaction.version 2 is finalised, each transaction of a newer client has an epoch of its own",
        "KIP-890",
    ),
    Behaviour(
        "4.1",
        "everyone",
        "committed offsets are written in value version 4: tools that decode __consumer_offsets must know it",
        "message definition OffsetCommitValue",
    ),
    Behaviour(
        "4.1",
        "everyone",
        "finalising eligible.leader.replicas.version deletes min.insync.replicas where it is set for single brokers",
        "KIP-966",
    ),
    Behaviour(
        "4.2",
        "everyone",
        "clients that know OffsetCommit v10 commit by topic id: a topic that was deleted and made again is another one",
        "KIP-848, OffsetCommitRequest",
    ),
    Behaviour(
        "4.3",
        "consumer",
        "a commit with an older member epoch is taken where the member owns the partition still",
        "KIP-1251",
    ),
)


def explanation(role: str, name: str) -> Explanation | None:
    """Returns what a change of a setting means, where that is known."""
    return next((one for one in EXPLANATIONS if one.explains(role, name)), None)
