"""The trial spec: every word of it is checked before anything starts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import orjson
import pytest

from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.errors import InputError
from kafka_trial.nemesis.schedule import plan_to_table
from kafka_trial.scenario import Load, Scenario, Step
from kafka_trial.trial.spec import make_trial_spec, scenario_consumer_problem
from kafka_trial.workload.payload import keep_payload

CONSUMER = registry.find_consumer("python-at-least-once")


def test_a_seed_is_drawn_where_none_is_given() -> None:
    """And is kept in the spec, so that the trial can be repeated; a given one stays."""
    drawn = {make_trial_spec(Scenario(name="s"), CONSUMER).seed for _ in range(5)}
    assert (len(drawn) > 1, make_trial_spec(Scenario(name="s"), CONSUMER, seed=7).seed) == (True, 7)


@pytest.mark.parametrize(
    ("resolved", "said"),
    [("m9", "m9"), ("b3", "b3"), (None, "no target was recorded")],
    ids=["no such member", "no such broker", "never recorded"],
)
def test_an_exact_replay_of_names_that_do_not_exist_is_refused(tmp_path: Path, resolved: str | None, said: str) -> None:
    """Naming the fault; a member that joins meanwhile is one of those that exist."""
    scenario = Scenario(name="s", schedule=(Step("join", "all", for_s=1), Step("kill", "member", for_s=1)))
    table = plan_to_table(make_trial_spec(scenario, CONSUMER, seed=1).plan)
    table["faults"][0]["resolved"], table["faults"][1]["resolved"] = "all", "m3"
    schedule = tmp_path / "schedule.json"
    schedule.write_bytes(orjson.dumps(table))
    asked = make_trial_spec(scenario, CONSUMER, schedule=schedule, exact=True)
    assert [fault.resolved for fault in asked.plan.faults] == ["all", "m3"]
    table["faults"][1]["resolved"] = resolved
    schedule.write_bytes(orjson.dumps(table))
    with pytest.raises(InputError, match=said):
        make_trial_spec(scenario, CONSUMER, schedule=schedule, exact=True)


def test_the_load_is_that_which_is_asked_for_or_the_consumers(tmp_path: Path) -> None:
    """`--load` stands for [load] in consumer.toml; a scenario.json keeps the factor it was played with."""
    slow = tmp_path / "slow"
    shutil.copytree(CONSUMER.parent, slow)
    (slow / "consumer.toml").write_text(f"{CONSUMER.read_text()}\n[load]\nfactor = 0.5\n")
    played = make_trial_spec(Scenario(name="s"), slow / "consumer.toml").scenario
    assert (played.load.factor, played.load.opening_burst) == (0.5, 1000)
    assert make_trial_spec(Scenario(name="s"), slow / "consumer.toml", load=1).scenario == Scenario(name="s")
    assert make_trial_spec(Scenario(name="s"), CONSUMER, load=0.5).scenario == played
    assert make_trial_spec(played, CONSUMER).scenario == played
    with pytest.raises(InputError, match=r"scenario hot-runs: at a load of 0\.1 it plans"):
        make_trial_spec(registry.scenarios()["hot-runs"], CONSUMER, load=0.1)


def test_a_suite_needs_a_sink_that_serves_its_faults() -> None:
    """By one sentence: that by which a trial is refused, on the command line and in a test of one's own."""
    suite = registry.scenarios()["slow-handlers"]
    sentence = 'the fault handler-slow needs [evidence] sink = "http": it is played there'
    told, silent = spec_from_toml(CONSUMER), spec_from_toml(registry.find_consumer("python-hand-off/quiet"))
    assert (scenario_consumer_problem(told, suite), scenario_consumer_problem(silent, suite)) == (sentence, None)
    assert [scenario_consumer_problem(told, registry.scenarios()[name]) for name in ("control", "rebalance-storm")] == [
        None,
        None,
    ]
    with pytest.raises(InputError) as refused:
        make_trial_spec(suite, CONSUMER)
    assert str(refused.value) == f"{CONSUMER}: {sentence}"


def test_odd_records_go_to_who_is_ready_for_them(tmp_path: Path) -> None:
    """A team says what its topic may hold; to others such a suite, or a scenario of one's own, is not given."""
    ready, not_ready = (tmp_path / f"{name}.toml" for name in ("ready", "not-ready"))
    ready.write_text(CONSUMER.read_text().replace('"null-keys", ', ""))
    not_ready.write_text(re.sub(r"holds = .+", "holds = []", CONSUMER.read_text()))
    suites, said = registry.scenarios(), "if its topic may hold them, write [payload] holds ="
    told = {
        "tombstones": f'it sends "null-keys": {said} ["null-values", "unreadable-values", "null-keys"]',
        "poison-record": None,
        "control": None,
    }
    assert {name: scenario_consumer_problem(spec_from_toml(ready), suites[name]) for name in told} == told
    assert make_trial_spec(suites["poison-record"], ready).scenario.load.unreadable_values > 0
    with pytest.raises(InputError) as refused:
        make_trial_spec(suites["poison-record"], not_ready)
    because = f'it sends "unreadable-values": {said} ["unreadable-values"]'
    assert str(refused.value) == f"{not_ready}: poison-record cannot be played: {because}"


def test_crash_points_want_a_sink(tmp_path: Path) -> None:
    """Members ask at its URL: a consumer without one is refused, with what to write."""
    scenario = Scenario(name="s", schedule=(Step("crash-point", "member", for_s=1),))
    with pytest.raises(InputError, match='sink = "http" or "postgres"'):
        make_trial_spec(scenario, CONSUMER, seed=1)
    assert make_trial_spec(scenario, registry.find_consumer("python-postgres-positions"), seed=1).plan.faults
    with_sink = tmp_path / "consumer.toml"
    text = CONSUMER.read_text().replace('events = "jsonl"', 'events = "jsonl"\nsink = "http"')
    with_sink.write_text(text.replace('"main.py"', f'"{CONSUMER.parent / "main.py"}"'))
    assert make_trial_spec(scenario, with_sink, seed=1).plan.faults[0].fault == "crash-point"


def test_a_schedule_of_other_steps_is_told_from_the_scenarios_own(tmp_path: Path) -> None:
    """A replay of the scenario plays its steps, whoever its roles were; another schedule does not."""
    steps = (Step("kill", "member", for_s=2), Step("pause", "member", after="stable"))
    consumer = registry.find_consumer("python-at-least-once")
    drawn = make_trial_spec(Scenario("x", schedule=steps), consumer, seed=7)
    table = plan_to_table(drawn.plan)
    table["faults"][0]["resolved"], table["faults"][1]["reached_s"] = "m1", 7.5
    (tmp_path / "schedule.json").write_bytes(orjson.dumps(table))
    for scenario, other in ((Scenario("x", schedule=steps), False), (Scenario("x", schedule=steps[:1]), True)):
        replayed = make_trial_spec(scenario, consumer, seed=7, schedule=tmp_path / "schedule.json")
        assert (drawn.plays_other_steps, replayed.plays_other_steps) == (False, other)


def test_a_rolling_deploy_is_replayed_with_its_members_in_their_order(tmp_path: Path) -> None:
    """As many as the consumer has; the replay, whose seed is another, plays the scenario's own steps."""
    scenario = Scenario("x", schedule=(Step("terminate", "each-member", after="stable"),))
    consumer = registry.find_consumer("python-at-least-once")
    drawn = make_trial_spec(scenario, consumer, seed=7)
    assert sorted(one.target for one in drawn.plan.faults) == ["member:0", "member:1", "member:2"]
    (tmp_path / "schedule.json").write_bytes(orjson.dumps(plan_to_table(drawn.plan)))
    replayed = make_trial_spec(scenario, consumer, seed=8, schedule=tmp_path / "schedule.json")
    assert (replayed.plan, replayed.plays_other_steps) == (drawn.plan, False)


def test_a_scenario_about_sizes_is_refused_to_values_that_do_not_have_them() -> None:
    """Before anything starts, naming scenario, sizes and what to do; others are played."""
    forwards = registry.find_consumer("forwards-avro-bytes")
    said = (
        "large-records cannot be played: its load asks for values of 100000 to 5000000 bytes, and by .payload. samples"
    )
    with pytest.raises(InputError, match=said + r" they have 19 to 1014; write a template with \$\{padding\}"):
        make_trial_spec(registry.find_scenario("large-records"), forwards)
    assert make_trial_spec(registry.find_scenario("control"), forwards).payload.samples is not None


def test_the_payload_of_a_run_is_checked_as_any_other(tmp_path: Path) -> None:
    """It stands for what the consumer says; a folder in which something is missing is named."""
    kept = keep_payload(
        make_trial_spec(Scenario("s"), registry.find_consumer("forwards-avro-bytes")).payload, tmp_path / "p"
    )
    assert make_trial_spec(Scenario("s"), CONSUMER, payload=tmp_path / "p").payload == kept
    shutil.rmtree(tmp_path / "p" / "samples")
    with pytest.raises(InputError, match=r"p: \[payload\] samples .* cannot be read: No such file"):
        make_trial_spec(Scenario("s"), CONSUMER, payload=tmp_path / "p")


@pytest.mark.parametrize(
    ("load", "order", "said"),
    [
        (Load(), "partition", None),
        (Load(keyed=False), "partition", "needs keyed records"),
        (Load(), "key", None),
        (Load(), "key-across-partitions", None),
    ],
)
def test_partitions_are_added_only_where_all_of_it_is_judged(
    tmp_path: Path, load: Load, order: str, said: str | None
) -> None:
    """Records without a key would not come there; order per key is judged in a partition, and across them."""
    shutil.copytree(CONSUMER.parent, tmp_path / "consumer")
    toml = tmp_path / "consumer" / "consumer.toml"
    toml.write_text(toml.read_text().replace('order = "partition"', f'order = "{order}"'))
    scenario = Scenario(name="s", load=load, schedule=(Step("partitions-added", "all"),))
    if said is None:
        assert make_trial_spec(scenario, toml).plan.faults
        return
    with pytest.raises(InputError, match=said):
        make_trial_spec(scenario, toml)
