"""The scenario: what is asked of a consumer, as one frozen value.

A scenario names the topology, the workload, the members, the schedule of faults and the limits. It is registered by
name in a suite (`SCENARIO = Scenario(...)` in `suites/test_*.py`) or read from a TOML file with the same names.
Instants in a schedule are seconds after the start of the faults phase; targets are roles, chosen at run time.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_trial.errors import none_of, reason, shown, unknown_name

SCENARIO_SCHEMA = 1


@dataclass(frozen=True)
class Topic:
    """The topic under trial; `configs` are Kafka's topic configs as strings."""

    partitions: int = 6
    replication_factor: int = 3
    min_insync_replicas: int = 2
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Burst:
    """A burst of records at an instant of the faults phase."""

    at_s: float
    records: int


@dataclass(frozen=True)
class Load:
    """The workload: an opening burst, then a steady rate until the faults are healed.

    keys: uniform | zipf | hot (one key takes half) | runs (every key once, then 200 to 300 records of
    one, and again) over `key_count` keys; `keyed = false` sends records without a key. With `entities` these name the
    entity that they are of, drawn as a key would be: in the header `kt-entity`, and as `entity` in our JSON.
    Sizes are of the value in bytes: uniform between `size_bytes_min` and `size_bytes_max` (equal: fixed).
    `aborted_ratio`: which part of the steady load is written in transactions that are aborted. `quiet_after_s`: so many
    seconds into the faults phase the load ends for good; what is not committed by then, no later record commits.
    `null_values`: which part of all records has no value (in a compacted topic a tombstone: "delete this key");
    `null_keys`: which part of them has no key, beside others that have one; `unreadable_values`: which part has a value
    that nobody can decode, neither as JSON nor as text, evenly. `factor`: which part of its scenario's own
    load this is; opening burst, rate and bursts are multiplied by it already (`trial/load_factor.py`).
    """

    opening_burst: int = 2000
    rate_per_s: float = 300.0
    steady_s: float = 1.0
    records_max: int = 50_000
    keys: str = "uniform"
    key_count: int = 100
    keyed: bool = True
    entities: bool = False
    size_bytes_min: int = 1024
    size_bytes_max: int = 1024
    compression: str = "none"
    format: str = "json"
    bursts: tuple[Burst, ...] = ()
    aborted_ratio: float = 0.0
    null_values: float = 0.0
    null_keys: float = 0.0
    unreadable_values: float = 0.0
    quiet_after_s: float | None = None
    factor: float = 1.0


@dataclass(frozen=True)
class FurtherTopic:
    """A further topic that the group reads: its name is the first one's, a dash, and `name`.

    All else of its load is as [load] says, but for planned bursts: these, and faults that act on a topic, concern only
    the first one. `later`: it is created by a step `topic-created`, and gets its load from then on; who subscribes by
    the pattern {topic_pattern} reads it too.
    """

    name: str
    topic: Topic = Topic()
    opening_burst: int = 500
    rate_per_s: float = 100.0
    keys: str = "uniform"
    key_count: int = 100
    size_bytes_min: int = 1024
    size_bytes_max: int = 1024
    later: bool = False


@dataclass(frozen=True)
class FurtherGroup:
    """A further group beside the one on trial: a consumer of its own on the same topics, with a verdict of its own.

    `consumer`: its consumer.toml, from the folder of the scenario's file, or the name of a fixture. `topics`: which it
    reads, by the names of further topics; "first" is the first one's; None: all. `members` None: as its file says.
    """

    name: str
    consumer: str
    topics: tuple[str, ...] | None = None
    members: int | None = None


@dataclass(frozen=True)
class Mirror:
    """A second cluster, of one broker: MirrorMaker 2 copies the topics of the trial to it, and the group's positions.

    `policy`: default | identity; what a topic is called there: `source.<topic>`, or as on the source. `shift`: so many
    offsets of each partition were taken there before, and their records are gone. `checkpoints_every_s`: how often the
    group's positions are translated. `offset_lag_max`: after so many records of a partition MirrorMaker writes down
    the next pair of offsets, and translates by the last one (offset.lag.max). `source_topics_recreated`: the topics of
    the source are deleted and created again before the trial begins, when MirrorMaker has copied 1,000 records of each
    partition. `both_ways`: MirrorMaker copies to the source, too, what the mirror has of its own.
    """

    policy: str = "default"
    shift: int = 1000
    checkpoints_every_s: int = 1
    offset_lag_max: int = 100
    source_topics_recreated: bool = False
    both_ways: bool = False


@dataclass(frozen=True)
class Step:
    """One planned fault: `fault` on `target` (a role), from `at_s` for `for_s` seconds of the faults phase.

    `after = "stable"`: `at_s` counts from the instant at which the steps before it are over and the group is stable
    again, with as many members as when the faults began and a few more records on every partition. `after = "healed"`:
    from the instant at which the last of them is healed, whatever has become of the group. `group`: the further group
    whose members it is on, and whose steps before it count; empty: the one on trial.
    """

    fault: str
    target: str
    at_s: float = 0.0
    for_s: float = 5.0
    options: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""
    group: str = ""


@dataclass(frozen=True)
class Limits:
    """Bounds of a trial, in seconds, and the least number of records a verdict may rest on."""

    drain_s: float = 300.0
    ready_s: float = 60.0
    records_judged_min: int = 100


@dataclass(frozen=True)
class Scenario:
    """What is asked in one trial. `members` None: as many as consumer.toml says."""

    name: str
    summary: str = ""
    brokers: int = 3
    topic: Topic = Topic()
    load: Load = Load()
    members: int | None = None
    schedule: tuple[Step, ...] = ()
    limits: Limits = Limits()
    min_faults_s: float = 0.0
    further_topics: tuple[FurtherTopic, ...] = ()
    further_groups: tuple[FurtherGroup, ...] = ()
    mirror: Mirror | None = None

    @property
    def topics(self) -> tuple[Topic, ...]:
        """All topics of the group, the first one first."""
        return self.topic, *(one.topic for one in self.further_topics)

    @property
    def later(self) -> tuple[bool, ...]:
        """Which of all topics come later, in their order."""
        return False, *(one.later for one in self.further_topics)

    @property
    def tiered(self) -> bool:
        """Whether brokers must have a remote tier for one of its topics (KIP-405)."""
        return any(topic.configs.get(REMOTE_STORAGE_ENABLE) == "true" for topic in self.topics)

    @property
    def loads(self) -> tuple[Load, ...]:
        """What each topic gets, in their order."""
        return self.load, *(_further_load(self.load, one) for one in self.further_topics)


def topics_read(scenario: Scenario, group: FurtherGroup) -> list[int]:
    """Returns which topics of a scenario a further group reads, by their places among all."""
    names = [FIRST_TOPIC, *(one.name for one in scenario.further_topics)]
    return [place for place, name in enumerate(names) if group.topics is None or name in group.topics]


LOAD_KEYS_PER_TOPIC = ("opening_burst", "rate_per_s", "keys", "key_count", "size_bytes_min", "size_bytes_max")


def _further_load(load: Load, further: FurtherTopic) -> Load:
    return dataclasses.replace(load, bursts=(), **{name: getattr(further, name) for name in LOAD_KEYS_PER_TOPIC})


KEYS = ("uniform", "zipf", "hot", "runs")
COMPRESSION = ("none", "gzip", "snappy", "lz4", "zstd")
FORMATS = ("json", "bytes")
STABLE, HEALED = "stable", "healed"
WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
CONDITIONS = ("", STABLE, HEALED)  # of `Step.after`
SIZE_BYTES_LIMIT = 10 * 1024 * 1024
FURTHER_NAME_MAX = 40
FURTHER_NAME = f"[a-z0-9-]{{1,{FURTHER_NAME_MAX}}}"
MIRROR_POLICIES = ("default", "identity")
FAIL_OVER = "fail-over"  # the step that moves the group to the mirror
FAIL_BACK = "fail-back"  # the step that moves it to its first cluster again
REMOTE_STORAGE_ENABLE = "remote.storage.enable"  # the config of a topic with a remote tier
REMOTE_READS = "remote-reads"  # the step that has members read from it
TOPIC_CREATED = "topic-created"  # the step that creates a later topic
FIRST_TOPIC = "first"  # how further groups name the first topic


def scenario_problems(scenario: Scenario) -> list[str]:
    """Returns every value that makes no sense, as sentences naming the place; empty when the scenario is sound."""
    load = scenario.load
    checks = _load_checks("load", load) | {
        none_of("load.compression", load.compression, COMPRESSION): load.compression in COMPRESSION,
        none_of("load.format", load.format, FORMATS): load.format in FORMATS,
        "load.aborted_ratio must be at least 0 and below 1": 0 <= load.aborted_ratio < 1,
        "load.null_values must be at least 0 and below 1": 0 <= load.null_values < 1,
        "load.null_keys must be at least 0 and below 1": 0 <= load.null_keys < 1,
        "load.unreadable_values must be at least 0 and below 1": 0 <= load.unreadable_values < 1,
        "load.null_keys needs load.keyed = true: without it no record has a key": load.keyed or not load.null_keys,
        "load.quiet_after_s must not be negative": load.quiet_after_s is None or load.quiet_after_s >= 0,
        "load.entities needs load.keyed = false: a record with a key is of that": not (load.entities and load.keyed),
        "load.factor must be above 0 and at most 1": 0 < load.factor <= 1,
        "members must be at least 1": scenario.members is None or scenario.members >= 1,
        "limits must be above 0": min(scenario.limits.drain_s, scenario.limits.ready_s) > 0,
    }
    checks |= _topic_checks("topic", scenario.topic, brokers=scenario.brokers)
    for number, further in enumerate(scenario.further_topics):
        place = f"further_topics[{number}]"
        checks |= _load_checks(place, scenario.loads[number + 1])
        checks |= _topic_checks(f"{place}.topic", further.topic, brokers=scenario.brokers)
        checks |= _name_checks(place, further.name, [one.name for one in scenario.further_topics[:number]])
    checks |= _later_checks(scenario)
    checks |= _group_checks(scenario)
    checks |= _mirror_checks(scenario)
    checks |= _tier_checks(scenario)
    for number, step in enumerate(scenario.schedule):
        place = f"schedule[{number}] ({step.fault})"
        checks[f"{place}: at_s and for_s must not be negative"] = step.at_s >= 0 and step.for_s >= 0
        checks[none_of(f"{place}: after", step.after, (STABLE, HEALED))] = step.after in CONDITIONS
        waits_for_records = step.after == STABLE and load.quiet_after_s is not None
        checks[
            f'{place}: after = "{STABLE}" waits for records, and with load.quiet_after_s none may come'
        ] = not waits_for_records
    return [message for message, holds in checks.items() if not holds]


def _name_checks(place: str, name: str, earlier: Sequence[str]) -> dict[str, bool]:
    allowed = bool(re.fullmatch(FURTHER_NAME, name))
    return {
        f"{place}.name = {shown(name)} must be 1 to {FURTHER_NAME_MAX} of a-z, 0-9 and -": allowed,
        f"{place}.name = {shown(name)} is another one's already": name not in earlier,
    }


def _later_checks(scenario: Scenario) -> dict[str, bool]:
    created = [step.options.get("topic") for step in scenario.schedule if step.fault == TOPIC_CREATED]
    if not any(scenario.later):
        return {f"schedule: {TOPIC_CREATED} needs a further topic with later = true": not created}
    name = scenario.further_topics[-1].name
    told = f'schedule: one step {TOPIC_CREATED} with topic = "{name}" creates the topic that comes later'
    return {
        "further_topics: only one may come later, the last": not any(scenario.later[:-1]),
        told: created == [name],
        "further_groups: not with a topic that comes later": not scenario.further_groups,
        "load.aborted_ratio: not with a topic that comes later": not scenario.load.aborted_ratio,
        "load.quiet_after_s: not with a topic that comes later, whose load would never begin": (
            scenario.load.quiet_after_s is None
        ),
    }


def _group_checks(scenario: Scenario) -> dict[str, bool]:
    groups, known = scenario.further_groups, [FIRST_TOPIC, *(one.name for one in scenario.further_topics)]
    checks: dict[str, bool] = {}
    for number, group in enumerate(groups):
        place = f"further_groups[{number}]"
        checks |= _name_checks(place, group.name, [one.name for one in groups[:number]])
        checks[f"{place}.members must be at least 1"] = group.members is None or group.members >= 1
        topics = known if group.topics is None else group.topics
        checks[f"{place}.topics is empty: leave it out for all topics, or name some of {', '.join(known)}"] = bool(
            topics
        )
        checks[f"{place}.topics names one twice"] = len({*topics}) == len(topics)
        for topic in topics:
            checks[none_of(f"{place}.topics", topic, known)] = topic in known
    if groups:
        name_taken = f"further_topics: with further groups no topic may be called {FIRST_TOPIC}: that is the first one"
        checks[name_taken] = FIRST_TOPIC not in known[1:]
    names = ["", *(one.name for one in groups)]
    for number, step in enumerate(scenario.schedule):
        checks[none_of(f"schedule[{number}] ({step.fault}): group", step.group, names[1:] or ["none"])] = (
            step.group in names
        )
    return checks


def _mirror_checks(scenario: Scenario) -> dict[str, bool]:
    mirror, faults = scenario.mirror, [one.fault for one in scenario.schedule]
    moves, returns = ([one for one in scenario.schedule if one.fault == fault] for fault in (FAIL_OVER, FAIL_BACK))
    others = [one for one in scenario.schedule if one.fault not in (FAIL_OVER, FAIL_BACK)]
    checks = {
        f"schedule: {FAIL_OVER} needs a cluster to go to: add [mirror]": mirror is not None or not moves,
        f"schedule: {FAIL_OVER} can be played once": len(moves) <= 1,
        f"schedule: all other steps must be over when {FAIL_OVER} begins": not moves
        or all(_is_over_before(one, moves[0]) for one in others),
        f'schedule: {FAIL_BACK} can be played once, listed after {FAIL_OVER}, with after = "{STABLE}"': (
            not returns or (FAIL_OVER in faults and faults[faults.index(FAIL_OVER) + 1 :] == [FAIL_BACK])
        )
        and all(one.after == STABLE for one in returns),
    }
    if mirror is None:
        return checks
    return checks | {
        none_of("mirror.policy", mirror.policy, MIRROR_POLICIES): mirror.policy in MIRROR_POLICIES,
        "mirror.shift must not be negative": mirror.shift >= 0,
        "mirror.checkpoints_every_s must be at least 1": mirror.checkpoints_every_s >= 1,
        "mirror.offset_lag_max must not be negative": mirror.offset_lag_max >= 0,
        f'schedule: {FAIL_BACK}: not with mirror.policy = "identity", by which topics have one name on both sides': (
            mirror.policy == MIRROR_POLICIES[0] or not returns
        ),
        'mirror.both_ways: not with policy = "identity", by which MirrorMaker copies its copies for ever (KIP-690)': (
            mirror.policy == MIRROR_POLICIES[0] or not mirror.both_ways
        ),
        "mirror: not with a topic that is compacted, on either side by itself": all(
            "compact" not in topic.configs.get("cleanup.policy", "") for topic in scenario.topics
        ),
        "mirror: not with further_groups": not scenario.further_groups,
        "mirror: not with a topic that comes later": not any(scenario.later),
        "mirror: not with load.aborted_ratio, whose records a mirror copies too": not scenario.load.aborted_ratio,
    }


def _tier_checks(scenario: Scenario) -> dict[str, bool]:
    needs_tier = any(step.fault == REMOTE_READS for step in scenario.schedule)
    told = f"schedule: {REMOTE_READS} needs a remote tier to read from"
    told = f'{told}: topic.configs has no "{REMOTE_STORAGE_ENABLE}" = "true"'
    return {
        told: not needs_tier or scenario.topic.configs.get(REMOTE_STORAGE_ENABLE) == "true",
        f"schedule: {REMOTE_READS} cannot be played with further_groups, which it would not stop": not (
            needs_tier and scenario.further_groups
        ),
        f'mirror: not with a topic that has "{REMOTE_STORAGE_ENABLE}"': scenario.mirror is None or not scenario.tiered,
        f'topic.configs: "{REMOTE_STORAGE_ENABLE}" is not for compacted topics': not any(
            "compact" in topic.configs.get("cleanup.policy", "") and topic.configs.get(REMOTE_STORAGE_ENABLE) == "true"
            for topic in scenario.topics
        ),
    }


def _is_over_before(step: Step, last: Step) -> bool:
    if last.after:
        return not step.after  # it waits for those that are listed before it
    return not step.after and step.at_s + step.for_s <= last.at_s


def _load_checks(place: str, load: Load) -> dict[str, bool]:
    sizes = f"{place} sizes must hold 64 <= min <= max <= {SIZE_BYTES_LIMIT}"
    return {
        none_of(f"{place}.keys", load.keys, KEYS): load.keys in KEYS,
        sizes: 64 <= load.size_bytes_min <= load.size_bytes_max <= SIZE_BYTES_LIMIT,
        f"{place}.rate_per_s must be above 0": load.rate_per_s > 0,
        f"{place}.key_count must be at least 1": load.key_count >= 1,
        f"{place}.opening_burst must be at least 1": load.opening_burst >= 1,
    }


def _topic_checks(place: str, topic: Topic, *, brokers: int) -> dict[str, bool]:
    return {
        f"{place}.partitions must be at least 1": topic.partitions >= 1,
        f"{place}.replication_factor must be between 1 and brokers": 1 <= topic.replication_factor <= brokers,
        f"{place}.min_insync_replicas must be between 1 and {place}.replication_factor": 1
        <= topic.min_insync_replicas
        <= topic.replication_factor,
    }


def factor_problem(factor: float) -> str | None:
    """Returns why a number is no load factor; None where it is one."""
    return None if 0 < factor <= 1 else f"{factor:g} must be above 0 and at most 1"


def scenario_from_toml(path: Path) -> tuple[Scenario | None, list[str]]:
    """Returns the scenario of a TOML file, or None and every problem found in it."""
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return None, [f"cannot be read as TOML: {reason(error)}"]
    if isinstance(table.get("load"), dict) and "factor" in table["load"]:
        return None, ["load.factor says what a run has done: lessen the load with --load, or [load] in consumer.toml"]
    scenario, problems = _of_our_schema({"name": path.stem} | table)
    return (None if scenario is None else _with_consumers_beside(scenario, path.parent)), problems


def _with_consumers_beside(scenario: Scenario, folder: Path) -> Scenario:
    """Returns a scenario whose further groups name their consumers by absolute paths where these lie in `folder`."""
    groups = scenario.further_groups
    places = [(folder / one.consumer).absolute() for one in groups]
    found = [
        dataclasses.replace(one, consumer=str(place)) if place.exists() else one
        for one, place in zip(groups, places, strict=True)
    ]
    return dataclasses.replace(scenario, further_groups=tuple(found))


def scenario_from_json(path: Path) -> tuple[Scenario | None, list[str]]:
    """Returns the scenario of a run folder's scenario.json, or None and every problem found in it."""
    try:
        table = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        return None, [f"cannot be read as JSON: {reason(error)}"]
    return _of_our_schema(table) if isinstance(table, dict) else (None, ["is no JSON object"])


def _of_our_schema(table: dict[str, Any]) -> tuple[Scenario | None, list[str]]:
    schema = table.pop("schema", SCENARIO_SCHEMA)
    if schema != SCENARIO_SCHEMA:
        return None, [f"schema = {schema}, this version reads {SCENARIO_SCHEMA}; upgrade kafka-trial"]
    return scenario_from_table(table)


def scenario_from_table(table: Mapping[str, Any]) -> tuple[Scenario | None, list[str]]:
    """Returns the scenario of a parsed table (TOML or scenario.json), or None and every problem found in it."""
    problems: list[str] = []
    scenario = _built(Scenario, table, "", problems)
    if not problems:
        problems = scenario_problems(scenario)
    return (None if problems else scenario), problems


def scenario_to_table(scenario: Scenario) -> dict[str, Any]:
    """Returns the scenario as plain data, for scenario.json.

    What came after the first calibrations is left out where nothing is asked of it: a trial is known by this table.
    """
    table = {"schema": SCENARIO_SCHEMA} | dataclasses.asdict(scenario)
    for later in ("aborted_ratio", "entities", "null_values", "null_keys", "unreadable_values"):
        if not table["load"][later]:
            del table["load"][later]
    if scenario.load.quiet_after_s is None:
        del table["load"]["quiet_after_s"]
    if scenario.load.factor == 1:
        del table["load"]["factor"]
    for step in table["schedule"]:
        for later in ("after", "group"):
            if not step[later]:
                del step[later]
    for topic in table["further_topics"]:
        if not topic["later"]:
            del topic["later"]
    for later in ("further_topics", "further_groups", "mirror"):
        if not table[later]:
            del table[later]
    for later in ("source_topics_recreated", "both_ways"):
        if scenario.mirror is not None and not table["mirror"][later]:
            del table["mirror"][later]
    return table


def _built(kind: Any, table: Mapping[str, Any], place: str, problems: list[str]) -> Any:
    hints = typing.get_type_hints(kind)
    for key in table:
        if key not in hints:
            problems.append(unknown_name("key", place + key, [place + name for name in hints]))
    values = {key: _value(hints[key], value, place + key, problems) for key, value in table.items() if key in hints}
    missing = [
        place + item.name
        for item in dataclasses.fields(kind)
        if item.name not in values
        and item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    ]
    problems.extend(f"{name} is missing" for name in missing)
    return None if missing else kind(**values)


def _value(hint: Any, value: Any, place: str, problems: list[str]) -> Any:
    if dataclasses.is_dataclass(hint):
        if isinstance(value, Mapping):
            return _built(hint, value, place + ".", problems)
        problems.append(f"{place} must be a table")
    elif typing.get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            inner = typing.get_args(hint)[0]
            return tuple(_value(inner, part, f"{place}[{n}]", problems) for n, part in enumerate(value))
        problems.append(f"{place} must be a list")
    elif typing.get_origin(hint) is types.UnionType:
        if value is not None:
            return _value(typing.get_args(hint)[0], value, place, problems)
    elif not _fits(hint, value):
        problems.append(f"{place} = {shown(value)} must be {WORDS.get(hint, 'a table')}")
    return value


def _fits(hint: Any, value: Any) -> bool:
    if typing.get_origin(hint) is not None:
        return isinstance(value, Mapping)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
