"""Several topics in one trial: what is asked, sent, waited for and judged of each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from pathlib import Path

import pytest

from histories import (
    EXAMPLE,
    TOPIC,
    Line,
    assigned,
    committed,
    effect,
    finding,
    handled,
    judgement,
    log_end,
    processed,
    sent,
    there,
)
from kafka_trial import registry
from kafka_trial.claim import Claim
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.process import LaunchContext, dead_letter_topics, intermediate_topics, sink_topic
from kafka_trial.consumers.spec import ConsumerSpec, EvidenceGiven, ProgressPlace, SinkTopic
from kafka_trial.errors import InputError
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import create_run_folder
from kafka_trial.judge.judgement import Coverage, SliceCoverage
from kafka_trial.model.drain_backlog import rate_of
from kafka_trial.scenario import (
    Burst,
    FurtherTopic,
    Load,
    Scenario,
    Topic,
    scenario_from_table,
    scenario_problems,
    scenario_to_table,
)
from kafka_trial.trial.load_factor import at_load, load_too_small
from kafka_trial.trial.progress import Progress
from kafka_trial.trial.spec import make_trial_spec, scenario_consumer_problem
from kafka_trial.verdict.collect import collect
from kafka_trial.verdict.unknown_reasons import coverage_gaps
from kafka_trial.verdict.verdict_input import Scope
from kafka_trial.workload.workload import OPENING_BURST, STEADY, TopicLoad, all_ops

SMALL = f"{TOPIC}-small"
TWO = Scenario(
    name="x", load=Load(compression="zstd"), further_topics=(FurtherTopic("small", Topic(partitions=2), rate_per_s=50),)
)


def test_a_further_topic_has_a_load_of_its_own_in_the_scenarios_manner() -> None:
    """Rate, burst, keys and sizes are its own; compression, format and shares are the first one's. Bursts are not."""
    first, small = replace(TWO, load=replace(TWO.load, null_values=0.3)).loads
    assert (small.rate_per_s, small.opening_burst, small.compression, small.null_values) == (50, 500, "zstd", 0.3)
    assert (first.rate_per_s, [topic.partitions for topic in TWO.topics]) == (300, [6, 2])


def test_a_scenario_of_one_topic_has_the_table_that_it_always_had() -> None:
    """A calibrated trial is known by it; one of two comes back as it was."""
    assert "further_topics" not in scenario_to_table(Scenario(name="x"))
    table = scenario_to_table(TWO)
    del table["schema"]
    assert scenario_from_table(table) == (TWO, [])


def test_further_topics_that_make_no_sense_are_told() -> None:
    """With the place and what is allowed."""
    wrong = FurtherTopic("Small!", Topic(partitions=0, min_insync_replicas=4), keys="gauss", rate_per_s=0)
    scenario = replace(TWO, further_topics=(*TWO.further_topics, wrong, TWO.further_topics[0]))
    assert scenario_problems(scenario) == [
        "further_topics[1].keys = 'gauss' is none of: uniform, zipf, hot, runs",
        "further_topics[1].rate_per_s must be above 0",
        "further_topics[1].topic.partitions must be at least 1",
        "further_topics[1].topic.min_insync_replicas must be between 1 and further_topics[1].topic.replication_factor",
        "further_topics[1].name = 'Small!' must be 1 to 40 of a-z, 0-9 and -",
        "further_topics[2].name = 'small' is another one's already",
    ]


def test_a_part_of_the_load_is_that_part_on_every_topic() -> None:
    """And is refused where the smallest of them would not have enough."""
    whole = registry.scenarios()["several-topics"]
    half = at_load(whole, 0.5)
    assert [(load.opening_burst, load.rate_per_s) for load in half.loads] == [(1000, 150), (500, 30)]
    assert load_too_small(whole, 0.01) == (
        "at a load of 0.01 its smallest topic has 15 records, and a verdict takes 100: give at least 0.065"
    )


def test_a_consumer_of_one_topic_is_given_one(tmp_path: Path) -> None:
    """It must say that it takes several; states by key would be of several topics at once."""
    one = spec_from_toml(registry.find_consumer("python-fair-turns"))
    several = spec_from_toml(registry.find_consumer("python-joins-topics"))
    told = "its group reads 2 topics: if it takes the list in {topics}, names with commas between, or in {topics_json},"
    assert str(scenario_consumer_problem(one, TWO)).startswith(told)
    assert scenario_consumer_problem(several, TWO) is None
    states = replace(several, evidence=EvidenceGiven(sink="http", effects="state"))
    assert "states by key" in str(scenario_consumer_problem(states, TWO))
    with pytest.raises(InputError, match="x cannot be played: its group reads 2 topics"):
        make_trial_spec(TWO, one.path)


def test_a_consumer_is_told_all_topics_and_its_own_are_of_each() -> None:
    """Those that it hands records on through, or gives up in; its output has one."""
    progress, evidence = (
        ProgressPlace(through=("{topics}-retry",)),
        EvidenceGiven(sink="topic", dead_letter_topic="{topics}-dlt"),
    )
    output = SinkTopic("{topics}-out")
    spec = ConsumerSpec(
        Path("c.toml"), "c", ("true",), Claim("unclaimed"), progress=progress, evidence=evidence, sink_topic=output
    )
    context = LaunchContext("t", "g", 1, "4.3.1", 3, further_topics=("t-small",))
    assert intermediate_topics(spec, context) == ("t-retry", "t-small-retry")
    assert (dead_letter_topics(spec, context), sink_topic(spec, context)) == (("t-dlt", "t-small-dlt"), "t-out")


def test_what_a_topic_gets_does_not_follow_from_the_others() -> None:
    """The first one's records are those of a trial without the others; each part is sent in the order of its dues."""
    loads = Load(opening_burst=4, rate_per_s=10, records_max=40), Load(opening_burst=2, rate_per_s=5, records_max=20)
    topic_loads = [TopicLoad("t", loads[0]), TopicLoad("t-small", loads[1], "small")]
    ops = list(all_ops(topic_loads, partitions=(6, 2), seed=7))
    alone = list(all_ops(topic_loads[:1], partitions=(6,), seed=7))
    assert [op for op in ops if op.topic == 0] == alone
    assert [op.id for op in ops if op.topic == 1][:3] == ["small.r0000000", "small.r0000001", "small.r0000002"]
    parts = {part: [op.at_s for op in ops if op.part == part] for part in (OPENING_BURST, STEADY)}
    assert all(dues == sorted(dues) for dues in parts.values())
    assert Counter(op.topic for op in islice((op for op in ops if op.part == STEADY), 15)) == {0: 10, 1: 5}
    assert ops.index(next(op for op in ops if op.part == STEADY)) == 6


def test_positions_of_topics_are_apart(tmp_path: Path) -> None:
    """What is committed or handled of one topic is nothing of the other's partition with that number."""
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Recorder(folder.history, "offsets") as offsets, Recorder(folder.history, "consumer-m0-0") as member:
        offsets.record("committed", topic="t", partition=0, committed_offset=4)
        offsets.record("committed", topic="t-small", partition=0, committed_offset=1)
        for topic, offset in (("t", 0), ("t", 1), ("t", 2), ("t", 3), ("t-small", 0)):
            member.record("processed", member="m0", topic=topic, partition=0, offset=offset)
    progress, ends = Progress(folder, ("t", "t-small"), "g").update(), {("t", 0): 4, ("t-small", 0): 3}
    assert (progress.lag(ends), progress.handled_total(), progress.records(ends)) == (2, 5, 7)
    assert progress.backlog(ends) == {("t", 0): 0, ("t-small", 0): 2}
    assert (progress.is_left(ends), progress.committed_by_partition("t-small")) == (True, {0: 1})


def record(offset: int) -> Line:
    return Line("observer", "record", {"topic": SMALL, "partition": 0, "offset": offset, "id": f"small.r{offset}"})


def of_two(*lines: Line | list[Line], read: bool = True) -> list[Line | list[Line]]:
    """Returns the lines of a trial of two topics, with two records in each; `read`: the control read has both."""
    about = {"topic": SMALL, "topic_id": "S", "partitions": 1, "cleanup_policy": "delete"}
    named = [Line("run", "topic_named", {"topic": SMALL}), Line("observer", "topic", about)]
    found = [record(0), record(1), Line("observer", "control_read", {"topic": SMALL, "state": "complete", "count": 2})]
    return [*named, log_end(2), *there([log_end(2)], topic=SMALL), *lines, *(found if read else [])]


def test_a_record_of_one_topic_is_not_handled_with_the_others() -> None:
    """All of the first are; of the small one nobody handled any, and a sentence names it."""
    lines = of_two([assigned("m0")], handled("m0", 0, 1), committed(2), there(committed(2), topic=SMALL))
    found = finding("skipped", lines)
    assert [(one.topic, one.attributes["on_topic"]) for one in found.instances] == [(SMALL, SMALL)] * 2


def test_a_position_of_one_topic_is_past_the_end_of_another() -> None:
    """It is told of that one."""
    passed = there([*committed(7), log_end(2)], topic=SMALL)
    lines = of_two([assigned("m0")], handled("m0", 0, 1), committed(2), passed)
    found = finding("commit-past-end", lines)
    assert [(one.topic, one.attributes["committed_offset"]) for one in found.instances] == [(SMALL, 7)]


def test_a_topic_that_nobody_read_to_its_end_is_not_judged() -> None:
    """The first one's control read says nothing of it."""
    lines = of_two([assigned("m0")], handled("m0", 0, 1), committed(2), read=False)
    missing = finding("skipped", lines).not_judged
    assert missing is not None
    assert missing.because == "the control read of the topic is missing"


def test_the_shares_of_the_opening_burst_are_by_topic() -> None:
    """Partition 0 of the one is not partition 0 of the other."""
    shares = [{"topic": topic, "partition": 0, "count": count} for topic, count in ((TOPIC, 30), (SMALL, 10))]
    told = Line("run", "calibrated", {"rate": 8.0, "entries": shares})
    about = judgement(of_two(told, [assigned("m0")], handled("m0", 0, 1))).trial_context
    assert {about.slices[number]: count for number, count in about.opening_burst.items()} == {
        (TOPIC, 0): 30,
        (SMALL, 0): 10,
    }
    assert about.topics == (TOPIC, SMALL)


def test_every_topic_must_have_given_enough_to_judge() -> None:
    """A large topic makes up for nothing; its name is told."""

    def part(topic: str, partition: int, records: int, handled: int) -> SliceCoverage:
        return SliceCoverage(topic, partition, records, handled, handled, 0, handled, 3, done=handled)

    parts = Coverage((part("t", 0, 500, 500), part("t", 1, 500, 500), part(SMALL, 0, 60, 60), part(SMALL, 1, 70, 0)))
    gaps = coverage_gaps(parts, Scope(2, further_topic_partitions=(3,)), topics=("t", SMALL))
    assert gaps == [
        "60 of 130 records were handled, fewer than the 100 needed (topic t-small)",
        "no record was judged on partition 2 (topic t-small)",
        "no record was handled on partition 1 (topic t-small)",
    ]
    assert len(coverage_gaps(parts, Scope(2, further_topic_partitions=(2,)), topics=("t",))) == 1


def test_bursts_go_to_the_first_topic() -> None:
    """A further topic's load has none, whatever the scenario's has."""
    loads = replace(TWO, load=Load(bursts=(Burst(1, 100),))).loads
    assert [len(load.bursts) for load in loads] == [1, 0]


def test_a_topic_of_the_consumers_own_has_another_name() -> None:
    """Its retries would be records of the trial."""
    several = spec_from_toml(registry.find_consumer("python-joins-topics"))
    retrying = replace(several, progress=ProgressPlace(through=("{topics}-small",)))
    assert scenario_consumer_problem(retrying, TWO) == (
        "TOPIC-small would be a topic of the scenario and one of the consumer's own: rename either"
    )


@pytest.mark.parametrize(("policy", "lost"), [("delete", 1), ("compact", 1)])
def test_a_compacted_topic_excuses_nothing_in_another(policy: str, lost: int) -> None:
    """What was acknowledged in the first one and is not there is lost, though a later record there has its key."""
    about = Line("observer", "topic", {"topic": SMALL, "topic_id": "S", "partitions": 1, "cleanup_policy": policy})
    sends = [line for offset in (0, 1, 2) for line in sent(offset, key="k")]
    lines = [Line("run", "topic_named", {"topic": SMALL}), about, *sends, assigned("m0"), handled("m0", 0, 2)]
    read = [record(0), Line("observer", "control_read", {"topic": SMALL, "state": "complete", "count": 1})]
    found = finding("lost-write", [*lines, *read], records=["k", "k", "k"], control={1: None})
    assert found.count == lost
    assert (
        finding("lost-write", [*sends, assigned("m0")], records=["k"] * 3, control={1: None}, policy="compact").count
        == 0
    )


def test_the_pace_of_a_topic_is_its_own() -> None:
    """A partition that had little of the burst is as quick as the mean of its topic, and no quicker."""
    burst = {("t", 0): 1000, ("t", 1): 500, ("t-small", 0): 6, ("t-small", 1): 4}
    rates = [rate_of(one, 151.0, burst, topic_of=itemgetter(0)) for one in burst]
    assert rates == pytest.approx([100.0, 75.0, 0.6, 0.5], rel=0.01)
    assert rate_of(("t-new", 0), 151.0, burst, topic_of=itemgetter(0)) == pytest.approx(151 / 4, rel=0.01)


def test_lines_that_tell_no_beginnings_on_one_topic_are_told() -> None:
    """Whether its handlers overlap cannot be seen, whatever the lines on the other one tell."""
    ends = there([processed("m0", 0), processed("m0", 1)], topic=SMALL)
    given = there([assigned("m0")], topic=SMALL)
    lines = of_two([assigned("m0"), *given], handled("m0", 0, 1), ends, committed(2), there(committed(2), topic=SMALL))
    assert judgement(lines).coverage.members["m0"].never_begun == 2


@pytest.mark.parametrize(("offset", "found"), [(0, 0), (1, 1)])
def test_a_place_that_an_effect_names_is_one_of_its_own_topic(offset: int, found: int) -> None:
    """The headers name partition and offset; the topic is that in which the record lies."""
    claims = [
        effect(0, partition=0, offset=0),
        Line("sink", "effect", {"id": "small.r0", "outcome": "ok", "partition": 0, "offset": offset}),
    ]
    settings = replace(EXAMPLE, sink="http")
    lines = of_two([assigned("m0")], handled("m0", 0, 1), committed(2), claims)
    assert finding("misplaced", lines, settings=settings).count == found


@pytest.mark.parametrize("told_on_both", [True, False])
def test_ids_must_be_told_on_every_topic(told_on_both: bool) -> None:
    """What the lines of one topic name says nothing of those of the other."""
    named = [replace(line, fields=line.fields | {"id": f"r{line.fields['offset']}"}) for line in handled("m0", 0, 1)]
    small = there(handled("m0", 0, 1), topic=SMALL)
    if told_on_both:
        small = [replace(line, fields=line.fields | {"id": f"small.r{line.fields['offset']}"}) for line in small]
    missing = finding("misplaced", of_two([assigned("m0")], named, small, committed(2))).not_judged
    assert (missing is None) is told_on_both


def with_forwarded(*lines: Line | list[Line]) -> list[Line | list[Line]]:
    """Returns the same history, in which the group has written r0 anew into the small topic, behind the two of that."""
    copy = Line("observer", "record", {"topic": SMALL, "partition": 0, "offset": 2, "id": "r0", "checksum": 99})
    ended = Line("observer", "control_read", {"topic": SMALL, "state": "complete", "count": 3})
    return of_two(*lines, copy, record(0), record(1), ended, read=False)


@pytest.mark.parametrize(("as_read", "found"), [(0, 0), (5, 1)])
def test_a_record_that_is_forwarded_may_be_made_anew(as_read: int, found: int) -> None:
    """It was sent to the other topic: there it must be as it was sent."""
    lines = with_forwarded(sent(0), sent(1), assigned("m0"), handled("m0", 0, 1))
    assert finding("corrupt", lines, control={0: {"checksum": as_read}}).count == found


@pytest.mark.parametrize(("control", "found"), [({}, 0), ({0: None}, 1)])
def test_a_record_that_was_forwarded_is_lost_all_the_same(control: dict[int, None], found: int) -> None:
    """It was acknowledged in the topic to which it was sent."""
    lines = with_forwarded(sent(0), sent(1), assigned("m0"), handled("m0", 0, 1))
    assert finding("lost-write", lines, control=control).count == found


@pytest.mark.parametrize(("offset", "found"), [(0, 0), (1, 1)])
def test_the_effect_of_a_forwarded_record_is_one_of_its_home(offset: int, found: int) -> None:
    """A place that names no topic is of that to which it was sent, wherever copies of it lie."""
    lines = with_forwarded(sent(0), sent(1), assigned("m0"), handled("m0", 0, 1), effect(0, partition=0, offset=offset))
    assert finding("misplaced", lines, settings=replace(EXAMPLE, sink="http")).count == found


@pytest.mark.parametrize(
    ("forwards", "told"), [(True, ["1 effects are of records that lie in several topics"]), (False, [])]
)
def test_effects_of_forwarded_records_decide_nothing(forwards: bool, told: list[str]) -> None:
    """Nobody knows which of the two was done; another try would not tell either."""
    work = (sent(0), sent(1), assigned("m0"), handled("m0", 0, 1), effect(0), effect(1))
    found = judgement((with_forwarded if forwards else of_two)(*work), settings=replace(EXAMPLE, sink="http"))
    collected = collect(found, [], Scope())
    assert [ground[:51] for ground in collected.ground if "several topics" in ground] == told
    assert [ground[:51] for ground in collected.lasting if "several topics" in ground] == told
