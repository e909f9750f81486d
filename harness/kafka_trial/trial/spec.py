"""The spec of one trial: which scenario, which consumer, which Kafka, which seed, which load; every word checked.

A scenario may have further groups. The spec of each is that of a trial on the topics it reads: its plan holds the
faults of its own members, and those that the trial beside which it runs plays on brokers and topics, once for all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kafka_trial import registry
from kafka_trial.cluster.tiered_storage import REMOTE_STORAGE_VERSION
from kafka_trial.cluster.versions import CONSUMER_PROTOCOL, DEFAULT_VERSION, KNOWN, find_version
from kafka_trial.consumers.consumer import ConsumerSpec, spec_from_toml
from kafka_trial.consumers.patched_consumer import render_patched_files
from kafka_trial.consumers.process import LaunchContext, dead_letter_topics, intermediate_topics, sink_topic
from kafka_trial.consumers.spec import HOLDS
from kafka_trial.errors import InputError
from kafka_trial.history.consequences import Consequence
from kafka_trial.history.store import GROUPS, read_json
from kafka_trial.nemesis.fail_over import TRANSLATED
from kafka_trial.nemesis.fault import find_fault
from kafka_trial.nemesis.injection import Planned
from kafka_trial.nemesis.schedule import Plan, make_plan, plan_from_table, require_resolved
from kafka_trial.scenario import (
    FAIL_OVER,
    REMOTE_READS,
    REMOTE_STORAGE_ENABLE,
    TOPIC_CREATED,
    FurtherGroup,
    Scenario,
    Step,
    topics_read,
)
from kafka_trial.trial.load_factor import at_load, load_too_small
from kafka_trial.workload.payload import OURS, PayloadFiles, kept_payload
from kafka_trial.workload.payload_checks import load_problem, payload_problems

SPARE_LANES = 2  # for members that join while faults are played


@dataclass(frozen=True)
class TrialSpec:
    """What one trial asks. `exact`: replay the recorded targets of the plan, not their roles.

    `scenario_file`: where the scenario was read from; None for one that is a value of Python. `payload`: what the
    records are made of: what the consumer says, or what an earlier trial has kept. `successors`: what its members are
    moved to by `move-client`, one after the other. `further_groups`: the specs of the groups beside it, by name. In
    these alone, `reads` are the places of the topics that the group reads, among the scenario's, and `shared_faults`
    the numbers of those faults of `plan` that the first group plays.
    """

    scenario: Scenario
    consumer: ConsumerSpec
    kafka_version: str
    seed: int
    plan: Plan
    exact: bool = False
    scenario_file: Path | None = None
    payload: PayloadFiles = OURS
    successors: tuple[ConsumerSpec, ...] = ()
    further_groups: Mapping[str, TrialSpec] = field(default_factory=dict)
    reads: tuple[int, ...] = ()
    shared_faults: frozenset[int] = frozenset()

    @property
    def plan_to_play(self) -> Plan:
        """The faults that this trial plays itself."""
        return replace(self.plan, faults=tuple(one for one in self.plan.faults if one.no not in self.shared_faults))

    @property
    def members(self) -> int:
        return self.scenario.members or self.consumer.members

    @property
    def fails_over(self) -> str | None:
        """By which way its group fails over to the mirror; None: it does not."""
        ways = (str(one.options.get("way", TRANSLATED)) for one in self.plan.faults if one.fault == FAIL_OVER)
        return next(ways, None)

    @property
    def in_containers(self) -> bool:
        """Whether its consumer is an image: then the brokers are containers too."""
        return self.consumer.image is not None

    @property
    def plays_other_steps(self) -> bool:
        """Whether the schedule that it was given is not the one its scenario asks for."""
        asked = make_plan(_steps_of(self.scenario, ""), seed=self.plan.seed, members=self.members)
        return _steps(asked) != _steps(self.plan)

    @property
    def lanes(self) -> int:
        """How many lanes its group takes: one for each member, spare ones, and the workload's."""
        return self.members + SPARE_LANES + 1

    @property
    def lanes_in_all(self) -> int:
        """How many lanes its trial takes, with those of the groups beside it."""
        return self.lanes + sum(one.lanes for one in self.further_groups.values())

    @property
    def images(self) -> list[str]:
        """The container images that it runs, of all groups."""
        specs = [self.consumer, *self.successors, *(one.consumer for one in self.further_groups.values())]
        return [one.image for one in specs if one.image is not None]


def _steps_of(scenario: Scenario, group: str) -> tuple[Step, ...]:
    """Returns the steps of the schedule that are on a further group's members; by no name, all others."""
    return tuple(step for step in scenario.schedule if step.group == group)


def _steps(plan: Plan) -> list[tuple[Any, ...]]:
    return [(one.fault, one.target, one.at_s, one.for_s, one.options, one.after) for one in plan.faults]


def make_trial_spec(
    scenario: Scenario,
    consumer: Path,
    *,
    kafka_version: str | None = None,
    seed: int | None = None,
    schedule: Path | None = None,
    exact: bool = False,
    scenario_file: Path | None = None,
    image: str | None = None,
    payload: Path | None = None,
    load: float | None = None,
    successors: Sequence[Path] = (),
) -> TrialSpec:
    """Returns a trial spec whose every word has been checked, before anything starts.

    `image`: put this one on trial, with its own command, in the place of what the consumer's file names. `payload`: the
    folder in which an earlier trial has kept what its records were made of. `load`: which part of the scenario's load;
    None: as the consumer's file says. `successors`: see `with_successors`.

    Raises:
        InputError: something in it is wrong; all problems of one input at once.
    """
    spec = spec_from_toml(consumer, image=image)
    render_patched_files(spec.folder)  # that a patch applies is known before anything starts
    version = find_version(kafka_version or DEFAULT_VERSION)
    check_protocol(spec, version)
    scenario = scenario_at_load(spec, scenario, load)
    drawn = random.SystemRandom().randrange(2**31) if seed is None else seed
    if schedule is None:
        members, where = scenario.members or spec.members, f"scenario {scenario.name}"
        plan = make_plan(_steps_of(scenario, ""), seed=drawn, members=members, where=where)
    else:
        plan = plan_from_table(read_json(schedule), where=str(schedule))
    if problem := sink_problem(spec, (planned.fault for planned in plan.faults)):
        raise InputError(str(consumer), problem)
    if problem := holds_problem(spec, scenario):
        raise InputError(str(consumer), f"{scenario.name} cannot be played: {problem}")
    if problem := mirror_problem(spec, scenario):
        raise InputError(str(consumer), f"{scenario.name} cannot be played: {problem}")
    if problem := tier_problem(spec, scenario, [version]):
        raise InputError(str(consumer), f"{scenario.name} cannot be played: {problem}")
    if problems := [
        *_added_problems(scenario, plan),
        *_created_problems(scenario, plan),
        *_remote_problems(scenario, plan),
    ]:
        raise InputError(f"scenario {scenario.name}", problems)
    files = spec.payload_files if payload is None else kept_payload(payload)
    if payload is not None and (problems := payload_problems(files, json_path=spec.identity.json_path)):
        raise InputError(str(payload), problems)
    if problem := load_problem(files, scenario):
        raise InputError(str(payload or consumer), f"{scenario.name} cannot be played: {problem}")
    trial_spec = TrialSpec(scenario, spec, version, drawn, plan, exact, scenario_file, files)
    if scenario.further_groups:
        trial_spec = replace(trial_spec, further_groups=further_specs(trial_spec, replayed=schedule))
    if successors:
        trial_spec = with_successors(trial_spec, successors, kafka_version=version)
    links = max((one.options.get("link", 1) for one in plan.faults if one.fault == "move-client"), default=0)
    if links > len(successors):
        problem = f"move-client needs {links} successors of {consumer} to move members to; {len(successors)} are named"
        raise InputError(f"scenario {scenario.name}", problem)
    if exact:
        require_resolved(plan, _target_names(trial_spec), where=str(schedule or "--exact"))
    return trial_spec


def with_successors(trial_spec: TrialSpec, files: Sequence[Path], *, kafka_version: str) -> TrialSpec:
    """Returns the spec of a trial whose members can be moved to other consumers, one after the other; `kafka_version`:
    of the brokers that they will be moved on.

    Raises:
        InputError: a file is wrong, or is of another consumer: it claims or shows something else; all at once.
    """
    successors = tuple(spec_from_toml(file) for file in files)
    for one in successors:
        render_patched_files(one.folder)
        check_protocol(one, kafka_version)
        if problems := list(successor_problems(trial_spec.consumer, one)):
            raise InputError(str(one.path), problems)
    names = [one.name for one in (trial_spec.consumer, *successors)]
    if len({*names}) < len(names):
        raise InputError(str(successors[-1].path), f"each must have a name of its own, these are {', '.join(names)}")
    return replace(trial_spec, successors=successors)


def mirror_problem(consumer: ConsumerSpec, scenario: Scenario) -> str | None:
    """Returns why a consumer cannot be tried where there is a mirror; None: it can, or there is none."""
    problems = {
        "its progress is not in Kafka's committed offsets, which are all that a mirror translates": (
            consumer.progress.kind != "kafka"
        ),
        "it hands records on through topics, which are not mirrored": bool(consumer.progress.through),
        "it claims at-most-once, and where positions are translated records come again": (
            consumer.claim.delivery == "at-most-once"
        ),
        "its output goes to a topic, which is not mirrored": consumer.evidence.sink == "topic",
    }
    found = [problem for problem, holds in problems.items() if holds]
    return found[0] if found and scenario.mirror is not None else None


def tier_problem(consumer: ConsumerSpec, scenario: Scenario, versions: Sequence[str]) -> str | None:
    """Returns why a scenario with a tiered topic cannot be played on some versions of Kafka; None: it can, or it has
    none."""
    if not scenario.tiered:
        return None
    if consumer.image is not None:
        return "it is an image, and brokers in containers have no remote tier"
    others = [version for version in versions if version != REMOTE_STORAGE_VERSION]
    return (
        f"its topic has a remote tier, which is there on Kafka {REMOTE_STORAGE_VERSION} only, not on {others[0]}"
        if others
        else None
    )


# What is judged for the whole trial, by whichever of them worked.
SAME = ("claim", "progress", "evidence", "sink_topic", "sink_postgres", "identity", "payload", "load")


def successor_problems(consumer: ConsumerSpec, successor: ConsumerSpec) -> Iterator[str]:
    """Yields what keeps a consumer from being the successor of another in one trial, as sentences."""
    for name in SAME:
        before, after = getattr(consumer, name), getattr(successor, name)
        for one in fields(before):
            old, new = getattr(before, one.name), getattr(after, one.name)
            if old != new:
                yield f"[{name}] {one.name} is {new!r}, and {old!r} in {consumer.path}: one trial judges both by one"
    if consumer.members != successor.members:
        yield f"members is {successor.members}, and {consumer.members} in {consumer.path}: each member is moved"
    if (consumer.image is None) != (successor.image is None):
        yield f"one of it and {consumer.path} is an image, the other a command: they need other clusters"
    if "none" in (old := consumer.kafka.protocol, new := successor.kafka.protocol) and old != new:
        yield f'[kafka] protocol is "{new}", and "{old}" in {consumer.path}: only members of a group can be moved'


def further_specs(first: TrialSpec, *, replayed: Path | None = None) -> dict[str, TrialSpec]:
    """Returns the specs of the further groups of a trial's scenario, by name; `replayed`: the schedule.json of the
    trial that this one repeats.

    Raises:
        InputError: a consumer is wrong, or cannot be in one trial with the first; all problems of one at once.
    """
    specs: dict[str, TrialSpec] = {}
    topics = topic_names("TOPIC", first.scenario)
    made = _topics_made(first.consumer, topics, "GROUP")
    for group in first.scenario.further_groups:
        numbered_from = len(first.plan.faults) + sum(len(one.plan_to_play.faults) for one in specs.values())
        one = specs[group.name] = _further_spec(first, group, numbered_from, replayed)
        own = _topics_made(one.consumer, [topics[place] for place in one.reads], group.name)
        if clashing := sorted((own & made) | (own & {*topics})):
            problem = (
                f"group {group.name} would make {', '.join(clashing)}, which is another group's: put {{group}} in it"
            )
            raise InputError(str(one.consumer.path), problem)
        made |= own
    return specs


def _further_spec(first: TrialSpec, group: FurtherGroup, numbered_from: int, replayed: Path | None) -> TrialSpec:
    try:
        spec = spec_from_toml(registry.find_consumer(group.consumer))
    except InputError as error:
        raise InputError(
            f"scenario {first.scenario.name}, group {group.name}, {error.where}", error.problems
        ) from error
    render_patched_files(spec.folder)
    check_protocol(spec, first.kafka_version)
    reads = topics_read(first.scenario, group)
    scenario = _scenario_of(first.scenario, group, reads)
    shared = tuple(one for one in first.plan.faults if _is_shared(one, reads_first=0 in reads))
    schedule = replayed.parent / GROUPS / group.name / "schedule.json" if replayed else None
    if schedule is not None:
        if not schedule.exists():
            problem = f"group {group.name} has no schedule.json beside it: name the one inside its run folder"
            raise InputError(str(replayed), problem)
        plan = plan_from_table(read_json(schedule), where=str(schedule))
        own = tuple(one for one in plan.faults if one.no >= numbered_from)
    else:
        members, where = scenario.members or spec.members, f"scenario {scenario.name}, group {group.name}"
        plan = make_plan(scenario.schedule, seed=first.seed + numbered_from, members=members, where=where)
        own = tuple(replace(one, no=one.no + numbered_from) for one in plan.faults)
    if problems := list(_further_problems(first, spec, scenario, shared, own)):
        raise InputError(str(spec.path), [f"group {group.name} of {scenario.name}: {problem}" for problem in problems])
    trial_spec = TrialSpec(
        *(scenario, spec, first.kafka_version, first.seed, Plan(first.plan.seed, (*shared, *own)), first.exact),
        payload=first.payload,
        reads=tuple(reads),
        shared_faults=frozenset(one.no for one in shared),
    )
    if first.exact:
        require_resolved(trial_spec.plan_to_play, _target_names(trial_spec), where=str(schedule or "--exact"))
    return trial_spec


def _scenario_of(scenario: Scenario, group: FurtherGroup, reads: Sequence[int]) -> Scenario:
    """Returns what a further group alone is asked: the topics that it reads, and the faults of its own members."""
    begin, *others = reads
    steps = tuple(replace(step, group="") for step in _steps_of(scenario, group.name))
    return replace(
        scenario,
        topic=scenario.topics[begin],
        load=scenario.loads[begin],
        members=group.members,
        schedule=steps,
        further_topics=tuple(scenario.further_topics[number - 1] for number in others),
        further_groups=(),
    )


def _is_shared(planned: Planned, *, reads_first: bool) -> bool:
    """Whether a fault that the first group's trial plays is one of other groups as well: it breaks brokers, or, where
    they read the first topic, acts on that. What is on members and their network is not."""
    fault = find_fault(planned.fault)
    if Consequence.CHANGES_TOPIC in fault.consequences_of(planned.options) or fault.targets == ("leader",):
        return reads_first
    return fault.scope_of(planned.options) == "brokers"


def _further_problems(
    first: TrialSpec, spec: ConsumerSpec, scenario: Scenario, shared: Sequence[Planned], own: Sequence[Planned]
) -> Iterator[str]:
    """Yields what keeps a consumer from being a further group of a trial, as sentences; `shared`: the faults that the
    first group plays for it too, `own`: those of its own members."""
    if (problem := sink_problem(spec, (one.fault for one in own))) or (problem := holds_problem(spec, scenario)):
        yield problem
    if any(one.fault == "move-client" for one in own):
        yield "move-client needs successors to move members to, and a further group has none"
    if any(one.options.get("once_due") for one in shared):
        yield "records-deleted with once_due waits for the first group alone, and may take what this one has yet to do"
    for name in sorted({one.fault for one in own if _is_shared(one, reads_first=True)}):
        yield f"{name} acts on brokers or the topic, and so on all groups: leave `group` out of its step"
    if spec.payload_files != first.consumer.payload_files:
        yield f"[payload] makes other records than that of {first.consumer.path}, which all groups of a trial read"
    if (takes := spec.load.factor) < (sent := first.scenario.load.factor):
        yield f"[load] takes {takes:g} of a scenario's load, and {sent:g} are sent: give --load {takes:g}"
    if (spec.image is None) != (first.consumer.image is None):
        yield f"one of it and {first.consumer.path} is an image, the other a command: they need other clusters"


def scenario_at_load(spec: ConsumerSpec, scenario: Scenario, load: float | None) -> Scenario:
    """Returns the scenario with as much of its load as is asked for, or else as its consumer takes; a scenario.json
    that has a factor keeps it where nothing is asked for.

    Raises:
        InputError: see `at_load`.
    """
    if load is None and scenario.load.factor != 1:
        return scenario
    return at_load(scenario, spec.load.factor if load is None else load)


def scenario_load_problem(spec: ConsumerSpec, scenario: Scenario, load: float | None) -> str | None:
    """Returns why a scenario cannot be judged with so little of its load; None where it can."""
    return load_too_small(scenario, spec.load.factor if load is None else load)


def _added_problems(scenario: Scenario, plan: Plan) -> list[str]:
    """Returns why partitions cannot be added in this trial, as sentences: it would be judged by less than it seems."""
    if not any(planned.fault == "partitions-added" for planned in plan.faults):
        return []
    if scenario.load.keyed:
        return []
    return ["partitions-added needs keyed records (load.keyed): others go to the partitions of the start"]


def _remote_problems(scenario: Scenario, plan: Plan) -> list[str]:
    """Returns why a schedule that has members read from a remote tier does not go with a scenario."""
    reads = any(planned.fault == REMOTE_READS for planned in plan.faults)
    tiered = scenario.topic.configs.get(REMOTE_STORAGE_ENABLE) == "true" and not scenario.further_groups
    told = f"the schedule has {REMOTE_READS}, for which the topic must be tiered, and without further groups"
    return [told] if reads and not tiered else []


def _created_problems(scenario: Scenario, plan: Plan) -> list[str]:
    """Returns why a schedule does not go with a scenario of which a topic comes later."""
    created = sum(planned.fault == TOPIC_CREATED for planned in plan.faults)
    later = sum(scenario.later)
    return [] if created == later else [f"{later} topics come later, and the schedule has {created} × {TOPIC_CREATED}"]


def sink_problem(spec: ConsumerSpec, faults: Iterable[str]) -> str | None:
    """Returns why some faults, by their names, cannot be played with a consumer: at a sink that it does not have; None
    where they can."""
    for name in faults:
        sinks = find_fault(name).sinks
        if sinks and spec.evidence.sink not in sinks:
            needed = " or ".join(f'"{sink}"' for sink in sinks)
            return f"the fault {name} needs [evidence] sink = {needed}: it is played there"
    return None


def holds_problem(spec: ConsumerSpec, scenario: Scenario) -> str | None:
    """Returns why a consumer cannot be given a scenario's topics, or some of its records: its team does not say that it
    is ready for them; None where it can."""
    if scenario.further_topics and not spec.kafka.several_topics:
        topics = len(scenario.topics)
        return (
            f"its group reads {topics} topics: if it takes the list in {{topics}}, names with commas between, or "
            "in {topics_json}, write [kafka] several_topics = true"
        )
    if any(scenario.later) and "topic_pattern" not in spec.placeholders:
        return (
            "a topic comes while its group is at work: subscribe by the regular expression {topic_pattern}, of the "
            "topics that are there and of those that come"
        )
    if any(scenario.later) and spec.progress.kind == "transaction":
        return "its transactions are followed in topics that are there from the beginning, and one comes later"
    beside = (*spec.progress.through, spec.evidence.dead_letter_topic or "")
    if any(scenario.later) and any("{topics}" in name for name in beside):
        return "it has a topic for each that it reads, by {topics}, and would have none for one that comes later"
    if clashing := _topics_of_both(spec, scenario):
        return f"{', '.join(clashing)} would be a topic of the scenario and one of the consumer's own: rename either"
    if scenario.further_topics and spec.evidence.effects == "state":
        return "its group reads several topics, which have keys in common, and [evidence] effects are states by key"
    sent = [name for name in HOLDS if getattr(scenario.load, name.replace("-", "_"))]
    if not (missing := [name for name in sent if name not in spec.payload.holds]):
        return None
    what, all_held = " and ".join(f'"{name}"' for name in missing), [*spec.payload.holds, *missing]
    return f"it sends {what}: if its topic may hold them, write [payload] holds = {json.dumps(all_held)}"


def scenario_consumer_problem(spec: ConsumerSpec, scenario: Scenario) -> str | None:
    """Returns why a scenario as it stands cannot be played with a consumer: its sink, or what it is ready for; None
    where it can."""
    by_sink = sink_problem(spec, (step.fault for step in scenario.schedule))
    return by_sink or holds_problem(spec, scenario) or mirror_problem(spec, scenario)


def _topics_of_both(spec: ConsumerSpec, scenario: Scenario) -> list[str]:
    """Returns what would be a further topic and one that the consumer makes or writes to, with {topics} as `TOPIC`."""
    topics = topic_names("TOPIC", scenario)
    return sorted(_topics_made(spec, topics, "GROUP") & {*topics[1:]})


def _topics_made(spec: ConsumerSpec, topics: Sequence[str], group: str) -> set[str]:
    """Returns the topics that a consumer makes or writes to, of a group that reads some topics."""
    context = LaunchContext(topics[0], group, 0, "", 0, further_topics=tuple(topics[1:]))
    output = sink_topic(spec, context)
    return {*intermediate_topics(spec, context), *dead_letter_topics(spec, context), *([output] if output else [])}


def topic_names(first: str, scenario: Scenario) -> tuple[str, ...]:
    """Returns the names of the topics of a scenario; those of further ones begin with the first one's."""
    return first, *(f"{first}-{further.name}" for further in scenario.further_topics)


def check_protocol(spec: ConsumerSpec, version: str) -> None:
    """Makes sure that brokers of a version speak the consumer's group protocol.

    Raises:
        InputError: they do not.
    """
    if spec.kafka.protocol == "consumer" and not KNOWN[version].consumer_protocol:
        raise InputError(
            str(spec.path),
            f'protocol = "consumer" (KIP-848) needs Kafka {CONSUMER_PROTOCOL.line} or newer brokers, not {version}',
        )


def _target_names(trial_spec: TrialSpec) -> list[str]:
    """Returns every name a fault of a trial can be on: members, those that join meanwhile, brokers, all."""
    members = trial_spec.members + sum(planned.fault == "join" for planned in trial_spec.plan.faults)
    brokers = (f"b{number}" for number in range(trial_spec.scenario.brokers))
    return [*(f"m{number}" for number in range(members)), *brokers, "all"]
