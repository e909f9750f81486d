"""A topic that comes while the group is at work: who may be asked for it, its load, and what is judged by."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from histories import Line, assigned, handled, judgement
from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.process import LaunchContext
from kafka_trial.consumers.spec import ProgressPlace
from kafka_trial.errors import InputError
from kafka_trial.model.liveness_bounds import timing_in
from kafka_trial.nemesis.schedule import make_plan, plan_to_table
from kafka_trial.scenario import (
    FurtherGroup,
    FurtherTopic,
    Load,
    Mirror,
    Scenario,
    Step,
    scenario_from_table,
    scenario_problems,
    scenario_to_table,
)
from kafka_trial.trial.spec import make_trial_spec, scenario_consumer_problem
from kafka_trial.verdict.collect import _partitions_at_first
from kafka_trial.verdict.verdict_input import Scope
from kafka_trial.workload.send_scheduler import SendScheduler
from kafka_trial.workload.workload import Op, TopicLoad, all_ops, topic_ops

NEW = FurtherTopic("new", opening_burst=3, rate_per_s=50, later=True)
CREATED = Step("topic-created", "all", options={"topic": "new"})
COMES = Scenario(name="x", further_topics=(NEW,), schedule=(CREATED,))


def test_a_later_topic_is_created_by_one_step() -> None:
    """And nothing else is; it comes back from its table, where a topic that is there says nothing of it."""
    twice, never = (replace(COMES, schedule=steps) for steps in ((CREATED, CREATED), ()))
    other = replace(COMES, schedule=(replace(CREATED, options={"topic": "nwe"}),))
    told = 'schedule: one step topic-created with topic = "new" creates the topic that comes later'
    assert [scenario_problems(one) for one in (COMES, twice, never, other)] == [[], [told], [told], [told]]
    there = replace(COMES, further_topics=(replace(NEW, later=False),))
    assert scenario_problems(there) == ["schedule: topic-created needs a further topic with later = true"]
    table = scenario_to_table(COMES)
    assert ("later" in scenario_to_table(there)["further_topics"][0], table.pop("schema")) == (False, 1)
    assert scenario_from_table(table) == (COMES, [])


REFUSED = {
    "mirror: not with a topic that comes later": {"mirror": Mirror()},
    "further_topics: only one may come later, the last": {"further_topics": (replace(NEW, name="newer"), NEW)},
    "further_groups: not with a topic that comes later": {"further_groups": (FurtherGroup("audit", "any"),)},
    "load.aborted_ratio: not with a topic that comes later": {"load": Load(aborted_ratio=0.1)},
    "load.quiet_after_s: not with a topic that comes later, whose load would never begin": {
        "load": Load(quiet_after_s=1.0)
    },
}


@pytest.mark.parametrize(("told", "asked"), REFUSED.items(), ids=[told.partition(":")[0] for told in REFUSED])
def test_where_nobody_would_read_or_see_it_no_topic_comes(told: str, asked: dict[str, Any]) -> None:
    """Further groups, MirrorMaker and the witness of transactions are told their topics at the start."""
    assert scenario_problems(replace(COMES, **asked)) == [told]


def test_a_schedule_without_the_step_is_refused(tmp_path: Path) -> None:
    """Of another trial, say."""
    file = tmp_path / "schedule.json"
    file.write_bytes(orjson.dumps(plan_to_table(make_plan([Step("kill", "member")], seed=1))))
    with pytest.raises(InputError, match="1 topics come later, and the schedule has 0 × topic-created"):
        make_trial_spec(COMES, registry.find_consumer("python-by-pattern"), schedule=file)


def test_only_who_subscribes_by_the_pattern_is_asked() -> None:
    """Whoever takes the list of topics would never hear of it."""
    by_list, by_pattern = map(
        spec_from_toml, map(registry.find_consumer, ("python-at-least-once", "python-by-pattern"))
    )
    assert str(scenario_consumer_problem(by_list, COMES)).startswith("a topic comes while its group is at work")
    assert scenario_consumer_problem(by_pattern, COMES) is None


def test_whose_transactions_are_followed_is_not_asked() -> None:
    """The witness of transactions reads the topics that are there at the start."""
    spec = replace(spec_from_toml(registry.find_consumer("python-by-pattern")), progress=ProgressPlace("transaction"))
    assert str(scenario_consumer_problem(spec, COMES)).startswith("its transactions are followed in topics that are")


def test_who_has_a_topic_beside_each_of_its_topics_is_not_asked() -> None:
    """Nobody would know of the one beside a topic that comes."""
    spec = spec_from_toml(registry.find_consumer("python-by-pattern"))
    beside = replace(spec, progress=replace(spec.progress, through=("{topics}-retry",)))
    told = "it has a topic for each that it reads, by {topics}, and would have none for one that comes later"
    assert [scenario_consumer_problem(one, COMES) for one in (spec, beside)] == [None, told]


def test_the_pattern_is_of_these_topics_alone() -> None:
    """Of those that come later too, and not of what the group makes beside them; a dot is a dot."""
    context = LaunchContext("s.t", "g", 1, "4.3.1", 3, further_topics=("s.t-a",), later_topics=("s.t-new",))
    names = ["s.t", "s.t-a", "s.t-new", "s.t-new-retry", "sxt", "other"]
    assert [name for name in names if re.match(context.topic_pattern, name)] == names[:3]
    assert context.topics == ("s.t", "s.t-a")


LOADS = [
    TopicLoad("t", Load(opening_burst=1, rate_per_s=100, records_max=40)),
    TopicLoad("t-new", Load(opening_burst=3, rate_per_s=50, records_max=40), "new", later_partitions=2),
]


def _later(count: int) -> list[Op]:
    return list(islice(topic_ops(LOADS, 1, partitions=2, seed=7), count))


def test_its_load_is_none_of_the_others() -> None:
    """It has an opening burst of its own, and what the others get is the same without it."""
    assert {op.topic for op in all_ops(LOADS, partitions=(6, 2), seed=7)} == {0}
    assert list(all_ops(LOADS, partitions=(6, 2), seed=7)) == list(all_ops(LOADS[:1], partitions=(6,), seed=7))
    assert [(op.topic, op.id, op.at_s) for op in _later(4)] == [
        *((1, f"new.r000000{number}", 0.0) for number in range(3)),
        (1, "new.r0000003", 0.0),
    ]


def test_its_load_begins_when_it_has_come() -> None:
    """Not before, and once; it is held with the steady load, and ends with it."""
    sent, answers = list[Op](), list[dict[str, Any]]()
    log = SimpleNamespace(load=lambda *_: None, counts={}, close=lambda: None)
    reader, writer = os.pipe()
    turns = iter([b"topic t-new\nsteady\n", b"", b"topic t-new\n", b"topic t-new\n", b"", b"hold\n", b"", b"stop 0\n"])
    before = list[int]()

    def polled(within_s: float) -> None:
        before.append(sum(op.topic for op in sent))
        os.write(writer, next(turns, b""))

    sender: Any = SimpleNamespace(log=log, full=False, idle=True, send=sent.extend, poll=polled, drop=lambda: None)
    ops = all_ops(LOADS, partitions=(6, 2), seed=7)
    scheduler = SendScheduler(
        sender, ops, later={"t-new": topic_ops(LOADS, 1, partitions=2, seed=7)}, answer=answers.append
    )
    scheduler.run(reader, broken=lambda: None)
    assert [next(iter(answer)) for answer in answers] == ["error", "steady", "topic", "error", "held", "stopped"]
    assert before[:3] == [0, 0, 0]
    assert [op.id for op in sent if op.topic == 1][:3] == ["new.r0000000", "new.r0000001", "new.r0000002"]


@pytest.mark.parametrize("later", [True, False], ids=["came later", "was there"])
def test_clients_may_take_their_time_to_notice_a_topic_that_came(*, later: bool) -> None:
    """As long as they declare; no partition was added to a topic for that, and no key has moved."""
    named = Line("run", "topic_named", {"topic": "t-new"} | ({"later": True} if later else {}))
    about = judgement([named, assigned("m0"), *handled("m0", 0)]).trial_context
    assert (about.topics_added, about.partitions_come, about.partitions_added) == (later, later, False)
    assert timing_in(about).noticing_s == (about.settings.metadata_age_s if later else 0.0)


def test_a_member_may_be_left_without_what_is_not_there_yet() -> None:
    """Of six partitions seven members have all, whatever comes later."""
    scope = Scope(partitions=6, further_topic_partitions=(2, 4), later_topics=1)
    assert _partitions_at_first(scope) == [6, 2]
