"""The spec of one trial: which scenario, which consumer, which Kafka, which seed, which load; every word checked.

The load factor makes the same trial with a smaller load, for consumers to which a suite's own load is too much. It
multiplies the opening burst, the rate and the bursts. Faults, times, keys and sizes stay, and so does the least number
of records that a verdict may rest on: a load that cannot reach it is refused.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from kafka_trial.cluster.versions import CONSUMER_PROTOCOL, DEFAULT_VERSION, KNOWN, find_version
from kafka_trial.consumers.consumer import ConsumerSpec, spec_from_toml
from kafka_trial.consumers.patched_consumer import render_patched_files
from kafka_trial.consumers.process import LaunchContext, dead_letter_topics, intermediate_topics, sink_topic
from kafka_trial.consumers.spec import HOLDS
from kafka_trial.errors import InputError
from kafka_trial.history.store import read_json
from kafka_trial.nemesis.fault import find_fault
from kafka_trial.nemesis.schedule import Plan, make_plan, plan_from_table, require_resolved
from kafka_trial.scenario import Load, Scenario, factor_problem
from kafka_trial.workload.payload import OURS, PayloadFiles, kept_payload
from kafka_trial.workload.payload_checks import load_problem, payload_problems

SPARE_LANES = 2  # for members that join while faults are played
STEPS_A_UNIT = 1000  # the least factor is told in thousandths


@dataclass(frozen=True)
class TrialSpec:
    """What one trial asks. `exact`: replay the recorded targets of the plan, not their roles.

    `scenario_file`: where the scenario was read from; None for one that is a value of Python. `payload`: what the
    records are made of: what the consumer says, or what an earlier trial has kept. `successors`: what its members are
    moved to by `move-client`, one after the other.
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

    @property
    def members(self) -> int:
        return self.scenario.members or self.consumer.members

    @property
    def in_containers(self) -> bool:
        """Whether its consumer is an image: then the brokers are containers too."""
        return self.consumer.image is not None

    @property
    def plays_other_steps(self) -> bool:
        """Whether the schedule that it was given is not the one its scenario asks for."""
        return _steps(make_plan(self.scenario.schedule, seed=self.plan.seed, members=self.members)) != _steps(self.plan)

    @property
    def lanes(self) -> int:
        """How many lanes its trial takes: one for each member, spare ones, and the workload's."""
        return self.members + SPARE_LANES + 1


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
        plan = make_plan(scenario.schedule, seed=drawn, members=members, where=where)
    else:
        plan = plan_from_table(read_json(schedule), where=str(schedule))
    if problem := sink_problem(spec, (planned.fault for planned in plan.faults)):
        raise InputError(str(consumer), problem)
    if problem := holds_problem(spec, scenario):
        raise InputError(str(consumer), f"{scenario.name} cannot be played: {problem}")
    if problems := _added_problems(scenario, plan):
        raise InputError(f"scenario {scenario.name}", problems)
    files = spec.payload_files if payload is None else kept_payload(payload)
    if payload is not None and (problems := payload_problems(files, json_path=spec.identity.json_path)):
        raise InputError(str(payload), problems)
    for each in scenario.loads:
        if problem := load_problem(files, each):
            raise InputError(str(payload or consumer), f"{scenario.name} cannot be played: {problem}")
    trial_spec = TrialSpec(scenario, spec, version, drawn, plan, exact, scenario_file, files)
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


def scenario_at_load(spec: ConsumerSpec, scenario: Scenario, load: float | None) -> Scenario:
    """Returns the scenario with as much of its load as is asked for, or else as its consumer takes; a scenario.json
    that has a factor keeps it where nothing is asked for.

    Raises:
        InputError: see `load_factor.at_load`.
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
    return sink_problem(spec, (step.fault for step in scenario.schedule)) or holds_problem(spec, scenario)


def _topics_of_both(spec: ConsumerSpec, scenario: Scenario) -> list[str]:
    """Returns what would be a further topic and one that the consumer makes or writes to, with {topics} as `TOPIC`."""
    topics = topic_names("TOPIC", scenario)
    context = LaunchContext(topics[0], "GROUP", 0, "", 0, further_topics=topics[1:])
    output = sink_topic(spec, context)
    own = {*intermediate_topics(spec, context), *dead_letter_topics(spec, context), *([output] if output else [])}
    return sorted(own & {*topics[1:]})


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


def at_load(scenario: Scenario, factor: float) -> Scenario:
    """Returns the scenario with `factor` of its load; one that has that factor already (a scenario.json) as it is.

    Raises:
        InputError: the factor is not above 0 and at most 1, the scenario was scaled by another one, or too few records
            would be sent.
    """
    if scenario.load.factor == factor:
        return scenario
    if scenario.load.factor != 1:
        raise InputError("--load", f"{scenario.name} is at a load of {scenario.load.factor:g} already; leave it out")
    if problem := factor_problem(factor):
        raise InputError("--load", problem)
    if problem := load_too_small(scenario, factor):
        raise InputError(f"scenario {scenario.name}", problem)
    return _scaled(scenario, factor)


def load_too_small(scenario: Scenario, factor: float) -> str | None:
    """Returns why a verdict cannot rest on so little of a scenario's load, and the least factor; None where it can."""
    least, planned = scenario.limits.records_judged_min, records_planned(_scaled(scenario, factor))
    if factor == 1 or scenario.load.factor != 1 or planned >= least:
        return None
    what = "its smallest topic has" if scenario.further_topics else "it plans"
    few = f"at a load of {factor:g} {what} {planned} records, and a verdict takes {least}"
    if (needed := _least_factor(scenario)) is None:
        return f"{few}: its load cannot be made smaller"
    return f"{few}: give at least {needed:g}"


def records_planned(scenario: Scenario) -> int:
    """Returns how many records are sent at least, if the trial takes no longer than its schedule says: to the topic
    that gets the fewest."""
    faults_s = max([scenario.min_faults_s, *(step.at_s + step.for_s for step in scenario.schedule)])
    return min(_records_planned(load, faults_s) for load in scenario.loads)


def _records_planned(load: Load, faults_s: float) -> int:
    steady_s = load.steady_s + min(faults_s, math.inf if load.quiet_after_s is None else load.quiet_after_s)
    steady = int(load.rate_per_s * steady_s * (1 - load.aborted_ratio))
    bursts = sum(burst.records for burst in load.bursts if burst.at_s <= faults_s)
    return min(load.opening_burst + steady + bursts, load.records_max)


def _scaled(scenario: Scenario, factor: float) -> Scenario:
    load = scenario.load
    smaller = replace(
        load,
        factor=factor,
        opening_burst=_times(load.opening_burst, factor),
        rate_per_s=load.rate_per_s * factor,
        bursts=tuple(replace(burst, records=_times(burst.records, factor)) for burst in load.bursts),
    )
    further = tuple(
        replace(one, opening_burst=_times(one.opening_burst, factor), rate_per_s=one.rate_per_s * factor)
        for one in scenario.further_topics
    )
    return replace(scenario, load=smaller, further_topics=further)


def _times(records: int, factor: float) -> int:
    return max(1, round(records * factor))


def _least_factor(scenario: Scenario) -> float | None:
    """Returns the least factor, in thousandths, with which enough records are sent; None where only the whole is."""
    factors = (thousandths / STEPS_A_UNIT for thousandths in range(1, STEPS_A_UNIT))
    least = scenario.limits.records_judged_min
    return next((factor for factor in factors if records_planned(_scaled(scenario, factor)) >= least), None)
