"""The successors of a consumer: how they are named, what they must share, and the stages in which clients are moved."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from kafka_trial.errors import InputError
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.nemesis.schedule import make_plan
from kafka_trial.registry import find_consumer
from kafka_trial.scenario import Scenario, Step
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.upgrade.successors import OWN, OWN_WRONG, Chain, along, moved_stages, own_steps, parse_chain

SOUND = find_consumer("python-at-least-once")
COOPERATIVE = find_consumer("python-at-least-once/cooperative")
MOVED = Scenario("moved", schedule=(Step("move-client", "each-member", for_s=1, options={"link": 2}),))


def test_a_chain_is_named_with_signs_between() -> None:
    """Each name or path is looked up; without a sign there is no successor."""
    names = "python-at-least-once=python-at-least-once/cooperative"
    assert parse_chain(names, find_consumer) == Chain(SOUND, (COOPERATIVE,))
    assert parse_chain(f"{SOUND}={COOPERATIVE}={SOUND}", Path) == Chain(SOUND, (COOPERATIVE, SOUND))
    assert parse_chain("python-at-least-once", find_consumer) == Chain(SOUND)


def test_a_path_may_hold_the_sign(tmp_path: Path) -> None:
    """What exists as it is named is one consumer."""
    file = tmp_path / "a=b.toml"
    file.touch()
    assert parse_chain(str(file), Path) == Chain(file)


@pytest.mark.parametrize("text", ["python-at-least-once=", "=python-at-least-once", "python-at-least-once==x"])
def test_a_name_that_is_missing_is_refused(text: str) -> None:
    """With what to write."""
    with pytest.raises(InputError, match="write CONSUMER=SUCCESSOR"):
        parse_chain(text, find_consumer)


@pytest.mark.parametrize("names", [*OWN.values(), *OWN_WRONG.values()])
def test_groups_of_our_own_are_chains(names: tuple[str, ...]) -> None:
    """Each successor claims and shows what the first consumer does."""
    first, *others = map(find_consumer, names)
    spec = along(make_trial_spec(Scenario("s"), first, seed=1), Chain(first, tuple(others)), after="4.3.1")
    assert [one.path for one in spec.successors] == others


CHANGES = {
    'order = "partition"': ('order = "none"', "[claim] order is 'none', and 'partition' in"),
    '[progress]\nkind = "kafka"\ninterval_s = 1': ("[progress]\ninterval_s = 5", "[progress] interval_s is 5"),
    'events = "jsonl"': ('events = "none"\nsink = "http"', "[evidence] events is 'none', and 'jsonl' in"),
    "members = 3": ("members = 2", "members is 2, and 3 in"),
    'protocol = "classic"': ('protocol = "none"', '[kafka] protocol is "none", and "classic" in'),
    'command = ["{python}", "main.py"]': ('image = "orders:2"', "is an image, the other a command"),
    'name = "python-at-least-once-cooperative"': (
        'name = "python-at-least-once"',
        "each must have a name of its own, these are python-at-least-once, python-at-least-once",
    ),
}


@pytest.mark.parametrize(("old", "new", "sentence"), [(old, *new) for old, new in CHANGES.items()])
def test_what_is_judged_otherwise_is_no_successor(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    """Wrong input, before anything starts; it says where both differ."""
    text = COOPERATIVE.read_text()
    assert text.count(old) == 1
    text = text.replace(old, new)
    if "image" in new:
        text = "\n".join(line for line in text.splitlines() if "{python}" not in line)
    other = tmp_path / "other.toml"
    other.write_text(text)
    os.symlink(SOUND.parent / "main.py", tmp_path / "main.py")
    with pytest.raises(InputError) as refused:
        make_trial_spec(Scenario("s"), SOUND, seed=1, successors=[other])
    assert (str(other) in str(refused.value), sentence in str(refused.value)) == (True, True), str(refused.value)


def test_a_move_needs_its_successor() -> None:
    """As many as the links of its steps."""
    with pytest.raises(InputError, match=r"move-client needs 2 successors of .* to move members to; 1 are named"):
        make_trial_spec(MOVED, SOUND, seed=1, successors=[COOPERATIVE])


def test_a_successor_must_be_spoken_to_by_the_brokers_it_comes_to() -> None:
    """Not by those of before the upgrade."""
    asked = make_trial_spec(Scenario("s"), SOUND, kafka_version="3.9.2", seed=1)
    chain = Chain(SOUND, (find_consumer("python-at-least-once/consumer-protocol"),))
    assert len(along(asked, chain, after="4.3.1").successors) == 1
    with pytest.raises(InputError, match="needs Kafka"):
        along(asked, chain, after="3.9.2")


def test_all_go_along_the_chain_and_back() -> None:
    """One for a while, beside a kill; then each member by each link, as a plan that can be played."""
    stages = list(moved_stages("4.3.1", 2))
    assert [one.name for one in stages] == [
        *("clients-mixed", "clients-moved-1", "clients-moved-2", "clients-back-2", "clients-back-1"),
    ]
    plans = [make_plan(one.steps, seed=1, members=3).faults for one in stages]
    assert [[one.fault for one in plan] for plan in plans] == [
        ["move-client", "kill", "move-client"],
        *([["move-client"] * 3] * 4),
    ]
    assert [(one.target, one.options["to"]) for one in plans[0] if one.fault == "move-client"] == [
        ("member:0", "successor"),
        ("member:0", "predecessor"),
    ]
    assert all(one.after == "stable" for plan in plans for one in plan)
    assert list(moved_stages("4.3.1", 0)) == []


def test_a_trial_plays_its_own_links() -> None:
    """Where another consumer has more successors, the rest of a stage is played alone."""
    alone = make_trial_spec(Scenario("s"), SOUND, seed=1)
    moved = make_trial_spec(Scenario("s"), SOUND, seed=1, successors=[COOPERATIVE])
    mixed, first, second, *_ = moved_stages("4.3.1", 2)
    assert [one.fault for one in own_steps(mixed.steps, alone)] == ["kill"]
    assert (own_steps(first.steps, moved), own_steps(second.steps, moved)) == (first.steps, ())


def test_of_all_consumers_the_longest_times_count(tmp_path: Path) -> None:
    """Where a successor lies beside; one that says nothing has its defaults, and the rest is the first one's."""
    kafka = '[kafka]\nprotocol = "{}"\nsession_timeout_s = {}\npoll_interval_s = {}\n'
    toml = tmp_path / "consumer.toml"
    toml.write_text(kafka.format("consumer", 3, 20))
    assert settings_of(toml).session_timeout_s == 3
    (tmp_path / "successor-1.toml").write_text(kafka.format("classic", 9, 10) + "request_timeout_s = 7")
    (tmp_path / "successor-2.toml").write_text("[ready]\nwithin_s = 90")
    found = settings_of(toml)
    assert (found.protocol, found.session_timeout_s, found.poll_interval_s) == ("consumer", 9, 20)
    assert (found.request_timeout_s, found.ready_within_s, found.metadata_age_s) == (7, 90, 300)


def test_the_two_steps_name_both_assignors_in_between() -> None:
    """The first step's clients can do both, and prefer the cooperative one."""
    tables = [tomllib.loads(find_consumer(name).read_text()) for name in OWN["eager to cooperative, in two steps"][1:]]
    named = [table["command"][table["command"].index("--assignment-strategy") + 1].split(",") for table in tables]
    assert [[one.rpartition(".")[2] for one in names] for names in named] == [
        ["CooperativeStickyAssignor", "RangeAssignor"],
        ["CooperativeStickyAssignor"],
    ]
