"""Several groups in one trial: what is asked of each, what they share, and whose verdict is told."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from kafka_trial import registry
from kafka_trial.claim import Claim
from kafka_trial.errors import InputError, UnjudgeableError
from kafka_trial.history.recorder import EventWriter
from kafka_trial.nemesis.schedule import plan_to_table
from kafka_trial.scenario import (
    FurtherGroup,
    FurtherTopic,
    Load,
    Scenario,
    Step,
    Topic,
    scenario_from_toml,
    scenario_problems,
    scenario_to_table,
)
from kafka_trial.trial.all_groups import SharedFaultWriter, for_all_groups
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.verdict.decide import GroupVerdict, Verdict
from kafka_trial.verdict.group_verdicts import verdict_of_all
from kafka_trial.verdict.verdict_input import Violation

SOUND, JOINS = "python-at-least-once", "python-joins-topics"
SMALL = FurtherTopic("small", Topic(partitions=2), rate_per_s=50, opening_burst=70)
STEPS = (
    Step("kill", "member", at_s=1),
    Step("stall", "member", at_s=1, group="audit"),
    Step("broker-restart", "coordinator", at_s=2),
    Step("records-deleted", "all", at_s=3),
)
TWO = Scenario(
    name="x", further_topics=(SMALL,), further_groups=(FurtherGroup("audit", SOUND, ("small",), 2),), schedule=STEPS
)
ALIKE = replace(TWO, further_topics=(), further_groups=(FurtherGroup("audit", SOUND),))


def with_group(**changes: Any) -> Scenario:
    """The scenario with its group changed."""
    return replace(TWO, further_groups=(replace(TWO.further_groups[0], **changes),))


def test_a_scenario_of_one_group_has_the_table_that_it_always_had() -> None:
    """A calibrated trial is known by it."""
    table = scenario_to_table(Scenario(name="x", schedule=(Step("kill", "member"),)))
    assert ("further_groups" in table, "group" in table["schedule"][0]) == (False, False)
    assert scenario_to_table(TWO)["schedule"][1]["group"] == "audit"


def test_a_group_names_a_consumer_beside_the_scenarios_file(tmp_path: Path) -> None:
    """By its path from there, wherever the command is given; a fixture by its name."""
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "consumer.toml").touch()
    words = "".join(
        f'[[further_groups]]\nname = "{name}"\nconsumer = "{consumer}"\n'
        for name, consumer in (("a", "audit/consumer.toml"), ("b", SOUND))
    )
    (tmp_path / "two.toml").write_text(words)
    scenario, problems = scenario_from_toml(tmp_path / "two.toml")
    assert (scenario is not None, problems) == (True, [])
    assert scenario is not None
    named = [one.consumer for one in scenario.further_groups]
    assert named == [str(tmp_path / "audit" / "consumer.toml"), SOUND]


def test_a_cast_that_contradicts_itself_is_told() -> None:
    """With the place and what is allowed."""
    group = TWO.further_groups[0]
    wrong = (replace(group, topics=()), replace(group, name="B", topics=("first", "first", "big"), members=0))
    steps = (Step("kill", "member", group="audits"),)
    assert scenario_problems(replace(TWO, further_groups=(group, *wrong), schedule=steps)) == [
        "further_groups[1].name = 'audit' is another one's already",
        "further_groups[1].topics is empty: leave it out for all topics, or name some of first, small",
        "further_groups[2].name = 'B' must be 1 to 40 of a-z, 0-9 and -",
        "further_groups[2].members must be at least 1",
        "further_groups[2].topics names one twice",
        "further_groups[2].topics = 'big' is none of: first, small",
        "schedule[0] (kill): group = 'audits' is none of: audit, audit, B. Did you mean 'audit'?",
    ]
    named = replace(TWO, further_topics=(replace(SMALL, name="first"),), schedule=())
    told = "further_topics: with further groups no topic may be called first: that is the first one"
    assert told in scenario_problems(named)


def test_a_group_is_asked_what_a_trial_of_its_topics_would_be() -> None:
    """Their partitions and loads, its members and the faults of these, and what acts on brokers or on its topics."""
    first = make_trial_spec(TWO, registry.find_consumer(JOINS), seed=7)
    audit = first.further_groups["audit"]
    assert (audit.scenario.topic, audit.scenario.load.rate_per_s, audit.reads) == (SMALL.topic, 50, (1,))
    assert (audit.scenario.further_topics, audit.scenario.further_groups, audit.members) == ((), (), 2)
    names = {one.no: one.fault for one in audit.plan.faults}
    assert names == {1: "broker-restart", 3: "stall"}
    assert ([one.fault for one in audit.plan_to_play.faults], audit.shared_faults) == (["stall"], {1})
    assert [one.fault for one in first.plan.faults] == ["kill", "broker-restart", "records-deleted"]
    assert first.lanes_in_all == first.lanes + audit.lanes
    everything = make_trial_spec(with_group(topics=None, consumer=JOINS), registry.find_consumer(JOINS), seed=7)
    both = everything.further_groups["audit"]
    assert (both.shared_faults, [topic.partitions for topic in both.scenario.topics]) == ({1, 2}, [6, 2])


def test_a_replay_plays_for_each_group_what_was_played(tmp_path: Path) -> None:
    """Its own faults from its own folder; those shared from the first one's."""
    first = make_trial_spec(TWO, registry.find_consumer(JOINS), seed=7)
    audit = first.further_groups["audit"]
    played = tuple(replace(one, at_s=9.0, resolved="m1") for one in audit.plan.faults)
    folder = tmp_path / "groups" / "audit"
    folder.mkdir(parents=True)
    (tmp_path / "schedule.json").write_text(json.dumps(plan_to_table(first.plan)))
    (folder / "schedule.json").write_text(json.dumps(plan_to_table(replace(audit.plan, faults=played))))
    copied = tmp_path / "copied" / "schedule.json"
    copied.parent.mkdir()
    copied.write_bytes((tmp_path / "schedule.json").read_bytes())
    with pytest.raises(InputError, match=r"group audit has no schedule.json beside it: name the one inside its run"):
        make_trial_spec(TWO, registry.find_consumer(JOINS), seed=7, schedule=copied)
    again = make_trial_spec(TWO, registry.find_consumer(JOINS), seed=7, schedule=tmp_path / "schedule.json")
    plan = again.further_groups["audit"].plan
    assert [(one.no, one.at_s, one.resolved) for one in plan.faults] == [(1, 2, None), (3, 9.0, "m1")]


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        (
            with_group(consumer="nobody"),
            "scenario x, group audit, consumer: no such file, and no consumer of ours is called 'nobody'",
        ),
        (with_group(topics=None, consumer="python-fair-turns"), "group audit of x: its group reads 2 topics"),
        (
            replace(TWO, schedule=(Step("broker-kill", "leader", group="audit"),)),
            "broker-kill acts on brokers or the topic, and so on all groups: leave `group` out of its step",
        ),
        (
            replace(
                with_group(topics=("first",)), schedule=(Step("records-deleted", "all", options={"once_due": True}),)
            ),
            "records-deleted with once_due waits for the first group alone",
        ),
        (
            replace(TWO, schedule=(Step("move-client", "member", group="audit"),)),
            "move-client needs successors to move members to, and a further group has none",
        ),
        (
            replace(with_group(consumer="python-postgres-latest-orders"), load=Load(null_keys=0.1)),
            'group audit of x: it sends "null-keys"',
        ),
    ],
)
def test_a_consumer_that_cannot_be_in_the_cast_is_refused(scenario: Scenario, problem: str) -> None:
    """Before anything starts, with the group's name."""
    file = registry.find_consumer(JOINS)
    with pytest.raises(InputError) as refused:
        make_trial_spec(scenario, file, seed=1)
    assert problem in str(refused.value)


def made_like(tmp_path: Path, name: str, *words: str) -> Path:
    """A consumer.toml with further words; returns its file."""
    file = tmp_path / name / "consumer.toml"
    file.parent.mkdir()
    said = ["schema = 1", 'command = ["true"]', f'name = "{name}"', '[claim]\ndelivery = "at-least-once"', *words]
    file.write_text("\n".join(said))
    return file


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("[load]\nfactor = 0.5", "[load] takes 0.5 of a scenario's load, and 1 are sent: give --load 0.5"),
        ('[payload]\ntemplate = "v.json"', "[payload] makes other records"),
        ('[progress]\nthrough = ["{topics}-retry"]', "would make TOPIC-retry, which is another group's"),
    ],
)
def test_what_groups_of_one_trial_cannot_differ_in_is_told(words: str, problem: str, tmp_path: Path) -> None:
    """Records and load are the same for all of them, and what they make is each one's own."""
    (tmp_path / "v.json").write_text('{"id": "{id}"}')
    first = made_like(tmp_path, "one", '[progress]\nthrough = ["{topics}-retry"]')
    other = made_like(tmp_path, "other", words)
    (other.parent / "v.json").write_text('{"id": "{id}"}')
    with pytest.raises(InputError) as refused:
        make_trial_spec(replace(ALIKE, schedule=(), further_groups=(FurtherGroup("b", str(other)),)), first, seed=1)
    assert problem in str(refused.value)


class Kept:
    """Keeps the events it is given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int | None]] = []

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event."""
        self.events.append((kind, fields.get("fault_no")))
        return len(self.events)


def test_a_fault_is_told_to_those_whom_it_concerns() -> None:
    """And to the first group each."""
    own, audit = Kept(), Kept()
    recorder = SharedFaultWriter(own, [(cast(EventWriter, audit), frozenset({1}))])
    for number in (0, 1):
        recorder.record("injected", fault_no=number)
    recorder.record("evidence")
    assert (own.events, audit.events) == ([("injected", 0), ("injected", 1), ("evidence", None)], [("injected", 1)])


@dataclass
class Played:
    """An environment, as far as waiting for one another goes."""

    name: str
    abandoned: str | None = None


def a_cast() -> dict[str, TrialEnvironment]:
    """Two groups."""
    return {name: cast(TrialEnvironment, Played(name or "first")) for name in ("", "audit")}


def test_groups_go_through_a_phase_at_once() -> None:
    """Each waits for the other, and what each returned is told in their order."""
    barrier = threading.Barrier(2, timeout=5)
    assert for_all_groups(a_cast(), lambda one: (barrier.wait() >= 0, cast(Any, one).name)) == [
        (True, "first"),
        (True, "audit"),
    ]


def test_where_one_fails_the_others_wait_no_longer() -> None:
    """The error that came first is raised, and each is told why it is over."""
    groups = a_cast()

    def work(environment: TrialEnvironment) -> None:
        if cast(Any, environment).name == "audit":
            raise UnjudgeableError("the witness died")
        while environment.abandoned is None:
            threading.Event().wait(0.01)
        raise UnjudgeableError(environment.abandoned)

    with pytest.raises(UnjudgeableError, match=r"^the witness died$"):
        for_all_groups(groups, work, within_s=5)
    assert [one.abandoned for one in groups.values()] == ["the trial of group audit ended: the witness died"] * 2


def test_what_is_no_error_of_ours_ends_all_of_them_too() -> None:
    """A full disk, for instance: nobody waits for the others to come to their ends."""
    groups = a_cast()

    def work(environment: TrialEnvironment) -> None:
        if cast(Any, environment).name == "first":
            raise OSError("no space left")
        while environment.abandoned is None:
            threading.Event().wait(0.01)

    with pytest.raises(OSError, match=r"^no space left$"):
        for_all_groups(groups, work, within_s=5)
    assert groups["audit"].abandoned == "no space left"


def test_ctrl_c_ends_all_of_them() -> None:
    """It comes to the first one's thread."""
    groups = a_cast()

    def work(environment: TrialEnvironment) -> None:
        if cast(Any, environment).name == "first":
            raise KeyboardInterrupt
        while environment.abandoned is None:
            threading.Event().wait(0.01)

    with pytest.raises(KeyboardInterrupt):
        for_all_groups(groups, work, within_s=5)
    assert groups["audit"].abandoned == "interrupted by Ctrl-C"


def verdict_of(word: str, *reasons: str, retriable: bool = False) -> Verdict:
    """A verdict; one that fails has a violation."""
    violations = (Violation("skipped", 2, "two were", ("m0#1",)),) if word == "fail" else ()
    exit_status = {"pass": 0, "fail": 1, "unknown": 4}[word]
    return Verdict(
        *(word, exit_status, Claim("at-least-once"), (), (), violations, (), {}, (), reasons), retriable=retriable
    )


@pytest.mark.parametrize(
    ("first", "audit", "worst"),
    [("pass", "pass", "pass"), ("pass", "unknown", "unknown"), ("unknown", "fail", "fail"), ("fail", "pass", "fail")],
)
def test_the_verdict_of_a_trial_is_the_worst_of_its_groups(first: str, audit: str, worst: str) -> None:
    """With the exit status of that."""
    found = verdict_of_all(verdict_of(first), "one", {"audit": ("other", verdict_of(audit))})
    assert (found.verdict, found.exit) == (worst, verdict_of(worst).exit)
    assert found.groups == (GroupVerdict("", "one", first), GroupVerdict("audit", "other", audit))


def test_what_further_groups_broke_is_told_with_their_names() -> None:
    """Without events, which are in their own histories; and what is not known of them."""
    further = {"audit": ("other", verdict_of("fail", "no end")), "c": ("third", verdict_of("unknown", "busy"))}
    found = verdict_of_all(verdict_of("pass"), "one", further)
    (violation,) = found.violations
    assert (violation.sentence, violation.events) == ("group audit (other): two were", ())
    assert found.reasons == ("group audit (other): no end", "group c (third): busy")
    assert verdict_of_all(verdict_of("pass"), "one", {}) == verdict_of("pass")


@pytest.mark.parametrize(("others", "retriable"), [((True, True), True), ((True, False), False)])
def test_a_trial_is_tried_again_where_that_may_decide_all_of_it(others: tuple[bool, ...], retriable: bool) -> None:
    """A group that lacks evidence would lack it again."""
    further = {str(n): ("x", verdict_of("unknown", "busy", retriable=one)) for n, one in enumerate(others)}
    assert verdict_of_all(verdict_of("pass"), "one", further).retriable is retriable
