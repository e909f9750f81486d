"""Scenarios: what a TOML file may say, and what is said of one that is wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.scenario import (
    FurtherGroup,
    Load,
    Mirror,
    Scenario,
    Step,
    Topic,
    scenario_from_table,
    scenario_from_toml,
    scenario_problems,
    scenario_to_table,
)


def test_a_toml_file_becomes_a_scenario(tmp_path: Path) -> None:
    """Names are the dataclasses' own; the file's stem is the default name."""
    file = tmp_path / "mine.toml"
    file.write_text('[load]\nkeys = "hot"\n[[schedule]]\nfault = "stall"\ntarget = "member"\nfor_s = 2\n')
    assert scenario_from_toml(file) == (
        Scenario(name="mine", load=Load(keys="hot"), schedule=(Step("stall", "member", for_s=2),)),
        [],
    )


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    """Unknown keys list the valid ones, wrong types name the place, and one does not hide the other."""
    file = tmp_path / "bad.toml"
    file.write_text('memebrs = 3\n[load]\nrate_per_s = "fast"\n[[schedule]]\ntarget = "member"\n')
    scenario, problems = scenario_from_toml(file)
    assert scenario is None
    assert [problem.split(".")[0] for problem in problems] == [
        "unknown key 'memebrs'",
        "load",
        "schedule[0]",
    ]
    assert "members" in problems[0]


def test_values_that_make_no_sense_are_told() -> None:
    """Types are right, values are not: replication beyond the brokers, an unknown key distribution."""
    load = {"keys": "gauss", "aborted_ratio": 1.0, "entities": True, "null_values": 1, "null_keys": -0.1}
    load |= {"unreadable_values": 1.5}
    steps = [{"fault": "kill", "target": "member", "at_s": -1, "after": "ready"}]
    table = {"name": "x", "topic": {"replication_factor": 4}, "load": load, "schedule": steps}
    _, problems = scenario_from_table(table)
    assert problems == [
        "load.keys = 'gauss' is none of: uniform, zipf, hot, runs",
        "load.aborted_ratio must be at least 0 and below 1",
        "load.null_values must be at least 0 and below 1",
        "load.null_keys must be at least 0 and below 1",
        "load.unreadable_values must be at least 0 and below 1",
        "load.entities needs load.keyed = false: a record with a key is of that",
        "topic.replication_factor must be between 1 and brokers",
        "schedule[0] (kill): at_s and for_s must not be negative",
        "schedule[0] (kill): after = 'ready' is none of: stable, healed",
    ]


def test_broken_toml_says_where(tmp_path: Path) -> None:
    """The parser's line and column stand in the message."""
    file = tmp_path / "broken.toml"
    file.write_text("members = \n")
    _, problems = scenario_from_toml(file)
    assert "line 1" in problems[0]


def test_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    """What is newer than the reader is not half understood."""
    file = tmp_path / "new.toml"
    file.write_text("schema = 2\n")
    assert scenario_from_toml(file) == (None, ["schema = 2, this version reads 1; upgrade kafka-trial"])


def test_a_scenario_survives_the_way_through_plain_data() -> None:
    """scenario.json gives back the same frozen value."""
    steps = (Step("stall", "member", options={"ms": 3}), Step("kill", "member", after="stable"))
    scenario = Scenario(name="x", schedule=steps, members=2)
    table = scenario_to_table(scenario)
    table.pop("schema")
    assert scenario_from_table(table) == (scenario, [])


def test_what_a_scenario_does_not_ask_for_is_not_in_its_table() -> None:
    """A calibrated trial is known by this table: it stays what it was when scenarios learn to ask for more."""
    assert "aborted_ratio" not in scenario_to_table(Scenario(name="x"))["load"]
    assert "after" not in scenario_to_table(Scenario(name="x", schedule=(Step("stall", "member"),)))["schedule"][0]
    asking = scenario_to_table(Scenario(name="x", load=Load(aborted_ratio=0.05)))
    assert asking["load"]["aborted_ratio"] == 0.05
    asking.pop("schema")
    assert scenario_from_table(asking) == (Scenario(name="x", load=Load(aborted_ratio=0.05)), [])


def test_a_single_broker_is_tried_by_the_same_scenario() -> None:
    """The two files of quick trials differ in name, brokers and topic alone."""
    live = Path(__file__).parent / "live"
    quick, single = (scenario_from_toml(live / name)[0] for name in ("quick.toml", "one-broker.toml"))
    assert quick is not None
    assert single is not None
    assert (single.brokers, single.topic.replication_factor) == (1, 1)
    assert replace(single, name=quick.name, brokers=quick.brokers, topic=quick.topic) == quick


def test_a_load_that_goes_quiet_has_no_step_that_waits_for_records() -> None:
    """A step after "stable" waits for records on every partition: none would come."""
    steps = (Step("pause", "member", at_s=1), Step("kill", "member", after="stable"))
    scenario = Scenario(name="x", load=Load(quiet_after_s=2.0), schedule=steps)
    said = 'schedule[1] (kill): after = "stable" waits for records, and with load.quiet_after_s none may come'
    assert scenario_problems(scenario) == [said]
    assert scenario_problems(replace(scenario, load=Load(quiet_after_s=-1.0)))[0] == (
        "load.quiet_after_s must not be negative"
    )


def test_what_is_not_asked_of_the_quiet_is_left_out_of_a_table() -> None:
    """A scenario without it has the table it always had; one with it comes back as it was."""
    assert {"quiet_after_s", "entities"}.isdisjoint(scenario_to_table(Scenario(name="x"))["load"])
    asking = scenario_to_table(Scenario(name="x", load=Load(quiet_after_s=3.0)))
    del asking["schema"]
    assert scenario_from_table(asking) == (Scenario(name="x", load=Load(quiet_after_s=3.0)), [])


MOVE = Step("fail-over", "all")
RETURN = Step("fail-back", "all", after="stable")
ONE_RETURN = 'schedule: fail-back can be played once, listed after fail-over, with after = "stable"'
OTHERS_OVER = "schedule: all other steps must be over when fail-over begins"
MIRRORED = Scenario("moves", mirror=Mirror(), schedule=(MOVE,))


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        (replace(MIRRORED, mirror=None), "schedule: fail-over needs a cluster to go to: add [mirror]"),
        (replace(MIRRORED, schedule=(MOVE, MOVE)), "schedule: fail-over can be played once"),
        (replace(MIRRORED, schedule=(MOVE, Step("kill", "member"))), OTHERS_OVER),
        (replace(MIRRORED, schedule=(Step("kill", "member", for_s=3), replace(MOVE, at_s=2))), OTHERS_OVER),
        (
            replace(MIRRORED, topic=Topic(configs={"cleanup.policy": "compact"})),
            "mirror: not with a topic that is compacted, on either side by itself",
        ),
        (replace(MIRRORED, further_groups=(FurtherGroup("b", "c"),)), "mirror: not with further_groups"),
        (replace(MIRRORED, mirror=Mirror(policy="same")), "mirror.policy = 'same' is none of: default, identity"),
        (replace(MIRRORED, schedule=(RETURN,)), ONE_RETURN),
        (replace(MIRRORED, schedule=(RETURN, MOVE)), ONE_RETURN),
        (replace(MIRRORED, schedule=(MOVE, RETURN, RETURN)), ONE_RETURN),
        (replace(MIRRORED, schedule=(MOVE, replace(RETURN, after="", at_s=20))), ONE_RETURN),
        (replace(MIRRORED, schedule=(MOVE, replace(RETURN, after="healed"))), ONE_RETURN),
        (
            replace(MIRRORED, mirror=Mirror(policy="identity"), schedule=(MOVE, RETURN)),
            'schedule: fail-back: not with mirror.policy = "identity", by which topics have one name on both sides',
        ),
        (
            replace(MIRRORED, mirror=Mirror(policy="identity", both_ways=True)),
            'mirror.both_ways: not with policy = "identity", by which MirrorMaker copies its copies for ever (KIP-690)',
        ),
        (replace(MIRRORED, mirror=Mirror(shift=-1)), "mirror.shift must not be negative"),
        (replace(MIRRORED, mirror=Mirror(checkpoints_every_s=0)), "mirror.checkpoints_every_s must be at least 1"),
        (
            replace(MIRRORED, load=Load(aborted_ratio=0.1)),
            "mirror: not with load.aborted_ratio, whose records a mirror copies too",
        ),
    ],
)
def test_a_mirror_that_makes_no_sense_is_refused(scenario: Scenario, problem: str) -> None:
    """In a sentence each; a sound one is not."""
    assert scenario_problems(MIRRORED) == []
    assert scenario_problems(replace(MIRRORED, schedule=(Step("kill", "member"), replace(MOVE, at_s=9)))) == []
    assert scenario_problems(replace(MIRRORED, schedule=(MOVE, RETURN), mirror=Mirror(both_ways=True))) == []
    assert problem in scenario_problems(scenario)


TIERED = Scenario(
    "tiered", topic=Topic(configs={"remote.storage.enable": "true"}), schedule=(Step("remote-reads", "all"),)
)


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        (replace(TIERED, topic=Topic()), "schedule: remote-reads needs a remote tier to read from"),
        (
            replace(TIERED, further_groups=(FurtherGroup("b", "c"),)),
            "remote-reads cannot be played with further_groups",
        ),
        (replace(TIERED, mirror=Mirror()), 'mirror: not with a topic that has "remote.storage.enable"'),
        (
            replace(TIERED, topic=Topic(configs=TIERED.topic.configs | {"cleanup.policy": "compact"})),
            'topic.configs: "remote.storage.enable" is not for compacted topics',
        ),
    ],
    ids=["no tier", "further groups", "mirror", "compacted"],
)
def test_a_tier_that_makes_no_sense_is_refused(scenario: Scenario, problem: str) -> None:
    """Each with its place."""
    assert (TIERED.tiered, scenario_problems(TIERED)) == (True, [])
    assert any(problem in said for said in scenario_problems(scenario)), scenario_problems(scenario)


def test_a_scenario_without_a_mirror_does_not_name_one() -> None:
    """A trial is known by its table; one that has a mirror comes back as it was."""
    assert "mirror" not in scenario_to_table(Scenario("plain"))
    table = scenario_to_table(MIRRORED)
    assert table["mirror"]["policy"] == "default"
    assert scenario_from_table({name: value for name, value in table.items() if name != "schema"}) == (MIRRORED, [])
