"""The suites of a budget: what finds most per minute comes first, nothing is planned that cannot end in time."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial import registry
from kafka_trial.consumers.spec import KafkaSettings
from kafka_trial.errors import InputError
from kafka_trial.trial.suite_budget import budget_seconds, choose_suites, suite_seconds, waits_for_metadata_s


def table(first_s: float = 0, **suites: tuple[float, dict[str, float]]) -> dict[str, Any]:
    rows = {name: {"seconds": seconds, "finds": finds} for name, (seconds, finds) in suites.items()}
    return {"suites": rows, "timed": {"first_s": first_s}}


BROAD, SEEN, HALF = {"skipped": 1.0, "unseen": 1.0}, {"skipped": 1.0}, {"corrupt": 0.5}
FOUR = table(broad=(30, BROAD), seen=(5, SEEN), half=(10, HALF), none=(8, {}))


@pytest.mark.parametrize(
    ("budget_s", "words", "suites"),
    [
        (53, {}, ["seen", "half", "broad", "none"]),  # 1/5, then 0.5/10 > 1/30 (skipped is found already), then nothing
        (52, {}, ["seen", "half", "broad"]),
        (44, {}, ["seen", "half", "none"]),  # no room for broad: a shorter one finds its place
        (13, {}, ["seen", "none"]),
        (25, {"trials_each": 2}, ["seen"]),
        (32, {"side_by_side": 2}, ["seen", "half", "broad", "none"]),  # 10 + (53 - 10) / 2, while broad takes its 30
        (31, {"side_by_side": 2}, ["seen", "half", "broad"]),
        (29, {"side_by_side": 2}, ["seen", "half", "none"]),  # broad alone takes more
        (75, {"side_by_side": 2, "trials_each": 2}, ["seen", "half", "broad", "none"]),  # 30 + (2 * 53 - 30) / 2 = 68
        (67, {"side_by_side": 2, "trials_each": 2}, ["seen", "half", "broad"]),
    ],
)
def test_next_comes_what_adds_most_for_its_seconds_and_still_ends_in_time(
    budget_s: float, words: dict[str, int], suites: list[str]
) -> None:
    """What was found before adds nothing, what is not always found adds less; the rest is left out, each with why."""
    chosen = choose_suites(list(FOUR["suites"]), budget_s=budget_s, table=FOUR, **words)
    assert chosen.suites == suites
    assert chosen.left_out == dict.fromkeys(FOUR["suites"].keys() - set(suites), f"no room in a budget of {budget_s} s")


def test_what_the_first_trial_waits_for_is_in_the_budget() -> None:
    """Brokers and judge have to be up."""
    two = table(first_s=6, one=(10, SEEN), other=(10, {}))
    assert choose_suites(["one", "other"], budget_s=25, table=two).suites == ["one"]
    assert choose_suites(["one", "other"], budget_s=26, table=two).suites == ["one", "other"]


def test_what_a_consumer_waits_for_is_in_the_budget() -> None:
    """On the suite that makes it wait; what is left over is less."""
    two = table(one=(10, SEEN), other=(10, {}))
    assert choose_suites(["one", "other"], budget_s=25, waits_s={"one": 6}, table=two).suites == ["one"]
    assert choose_suites(["one", "other"], budget_s=26, waits_s={"one": 6}, table=two).suites == ["one", "other"]


COME = ("partitions-added", "topic-created")  # suites


@pytest.mark.parametrize(
    ("kafka", "waits_s"),
    [
        (KafkaSettings(), dict.fromkeys(COME, 300)),
        (KafkaSettings(metadata_age_s=30), dict.fromkeys(COME, 30)),
        (KafkaSettings(protocol="none"), dict.fromkeys(COME, 300)),
        (KafkaSettings(protocol="consumer"), {}),
    ],
)
def test_a_client_waits_for_its_metadata_where_partitions_are_added(
    kafka: KafkaSettings, waits_s: dict[str, float]
) -> None:
    """As long as it declares; whom the coordinator tells does not wait."""
    assert waits_for_metadata_s(kafka, registry.scenarios().values()) == waits_s


def test_only_what_is_named_is_chosen_and_what_nobody_timed_is_left_out() -> None:
    """A suite of a plug-in, say."""
    chosen = choose_suites(["none", "mine"], budget_s=1000, table=FOUR)
    assert (chosen.suites, chosen.left_out) == (["none"], {"mine": "nobody has measured how long it takes"})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["broad", "none"], "3 s is too little for any suite: the shortest, none, takes 8 s by the calibration"),
        (["mine"], "none of these suites can be chosen: nobody has measured how long it takes"),
    ],
)
def test_a_budget_for_none_is_an_error_that_names_the_shortest(names: list[str], said: str) -> None:
    """And says what to do."""
    with pytest.raises(InputError, match=said):
        choose_suites(names, budget_s=3, table=FOUR)


@pytest.mark.parametrize(("given", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("10", 600), ("1.5m", 90)])
def test_a_budget_is_a_number_with_a_unit_or_minutes(given: str, seconds: float) -> None:
    """As in a shell."""
    assert budget_seconds(given) == seconds


@pytest.mark.parametrize("given", ["", "0", "0s", "-5m", "10 minutes", "1h30m", "nan", "m"])
def test_what_is_no_length_of_time_is_refused(given: str) -> None:
    """With what to write."""
    with pytest.raises(InputError, match="is no length of time: give 90s, 10m, 2h, or plain minutes"):
        budget_seconds(given)


def test_every_suite_has_its_seconds() -> None:
    """In the table of the wheel: a new suite is timed by `python -m lab.calibration --seconds`."""
    assert suite_seconds().keys() == {*registry.scenarios()}
