"""Two judges, written independently from the same definitions, must say the same of every history."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

import tiers
from lab.agreement.sample import SMALL, WAY, Sample, every_kind, handing_on, in_two_topics, measured, slept
from lab.agreement.sayings import Sayings, both_say, naive_says, vectorised_says
from lab.naive.checker import ANOMALIES, judge
from lab.naive.handed_on import ON_THE_WAY

pytestmark = pytest.mark.lengthy

CLEAN_EXAMPLES = 198
PARTS = 6
SLEPT_EXAMPLES_PER_SIN = 4
COUNTED_ONLY = {
    "redelivered",
    "retried",
    "zombie-work",
    "duplicate-effect",
    "rogue-reader",
    "false-report",
}  # legal, unless a claim says otherwise


@pytest.fixture(scope="module")
def parts(request: pytest.FixtureRequest) -> int:
    """In how many parts the sample is cut, one of which has its turn; 1: all of it is looked at."""
    return 1 if request.config.getoption("--tier") == tiers.ALL else PARTS


@pytest.fixture(scope="module")
def sample(parts: int) -> Sample:
    """Histories of every sin, and clean ones; of each kind a part: the next kind's is the next one, so that those which
    are drawn first, and show least, are not all in one."""
    kinds: dict[str | None, Sample] = defaultdict(list)
    for history in every_kind(clean=CLEAN_EXAMPLES):
        kinds[history.plan.sin].append(history)
    return [
        history
        for number, kind in enumerate(kinds.values())
        for history in kind[(tiers.rotation() + number) % parts :: parts]
    ]


@pytest.fixture(scope="module")
def sayings(sample: Sample) -> list[Sayings]:
    """What both say of every history of the sample."""
    return both_say(sample)


def test_the_sample_holds_every_anomaly_at_least_twenty_times(sayings: list[Sayings], parts: int) -> None:
    """Each anomaly is found in at least twenty histories, and in some of every part."""
    found = Counter(name for one in sayings for name, (instances, _) in one.naive.items() if instances)
    least = 20 if parts == 1 else 2
    assert {name: found[name] for name in ANOMALIES if found[name] < least} == {}


def test_a_tenth_of_the_sample_is_clean_and_a_fifth_hands_over(sample: Sample) -> None:
    """The sample is not only made of sins and of single members."""
    clean = sum(1 for history in sample if history.plan.sin is None)
    handed_over = sum(1 for history in sample if history.plan.members > 1 and history.handovers)
    assert clean * 10 >= len(sample)
    assert handed_over * 5 >= len(sample)


def test_a_clean_history_breaks_no_promise(sample: Sample) -> None:
    """Nothing that could violate an at-least-once claim is found where no sin was planted."""
    wrong = [
        (history.plan, name, instances)
        for history in sample
        if history.plan.sin is None
        for name, instances in judge(history.events, history.settings).anomalies.items()
        if instances and name not in COUNTED_ONLY
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ANOMALIES)
def test_both_judges_say_the_same(name: str, sayings: list[Sayings]) -> None:
    """Naive and vectorised judge agree on instances, deciding attributes and undecided cases."""
    different = [one.difference(name) for one in sayings if name in one.different]
    assert not different, f"{len(different)} of {len(sayings)} histories, the shortest:\n" + min(different, key=len)


@pytest.mark.rotates(every=3)
def test_both_judges_say_the_same_of_a_harness_that_stood_still(sayings: list[Sayings], parts: int) -> None:
    """For the middle half of a history it heard nothing: what it heard late is undecided for both, and often."""
    begun: Counter[str | None] = Counter()
    late, different = 0, []
    for awake in sayings:
        begun[awake.history.plan.sin] += 1
        if begun[awake.history.plan.sin] > -(-SLEPT_EXAMPLES_PER_SIN // parts):
            continue
        late_heard = slept(awake.history)
        naive, kernel = naive_says(late_heard), vectorised_says(late_heard)
        different += [(name, late_heard.plan) for name in naive if naive[name] != kernel[name]]
        late += sum(said[1] for said in kernel.values()) > sum(said[1] for said in awake.vectorised.values())
    assert different == []
    assert late >= 20 // parts


@pytest.mark.rotates(every=3)
def test_both_judges_say_the_same_of_lines_that_waited_to_be_read(sayings: list[Sayings], parts: int) -> None:
    """Readers were measured, some members buffer what they print, some tell the time: and not all stays as it was."""
    begun: Counter[str | None] = Counter()
    draw, changed, different = random.Random(7), 0, []
    for at_once in sayings:
        begun[at_once.history.plan.sin] += 1
        if begun[at_once.history.plan.sin] > -(-SLEPT_EXAMPLES_PER_SIN // parts):
            continue
        waited = measured(at_once.history, draw)
        naive, kernel = naive_says(waited), vectorised_says(waited)
        different += [(name, waited.plan) for name in naive if naive[name] != kernel[name]]
        changed += naive != at_once.naive
    assert different == []
    assert changed >= 20 // parts


LOSSES = ("skip", "swallow", "unseen", "lost-in-hand")


@pytest.mark.rotates(every=3)
def test_both_judges_say_the_same_of_what_is_handed_on(sayings: list[Sayings], parts: int) -> None:
    """Through a topic of the group's own: what was lost before is often lost there, and not all can be decided."""
    begun: Counter[str | None] = Counter()
    draw, different = random.Random(9), []
    there: Counter[str] = Counter()
    for plain in sayings:
        sin = plain.history.plan.sin
        begun[sin] += 1
        if begun[sin] > -(-SLEPT_EXAMPLES_PER_SIN // parts) and sin not in LOSSES:
            continue
        moved = handing_on(plain.history, draw)
        naive, kernel = naive_says(moved), vectorised_says(moved)
        different += [(name, moved.plan, naive[name], kernel[name]) for name in naive if naive[name] != kernel[name]]
        there.update(name for name in ON_THE_WAY for place in kernel[name][0] if place[0] == WAY)
        there["undecided"] += kernel["commit-ahead"][1] > plain.vectorised["commit-ahead"][1]
    assert different == []
    assert {name for name in (*ON_THE_WAY, "undecided") if not there[name]} <= {"late-convergence"}


@pytest.mark.rotates(every=3)
def test_both_judges_say_the_same_of_two_topics(sayings: list[Sayings], parts: int) -> None:
    """Of two partitions the second is a topic of its own: what was found there is found there still."""
    begun: Counter[str | None] = Counter()
    there: Counter[str] = Counter()
    different = []
    for one_topic in sayings:
        plan = one_topic.history.plan
        begun[plan.sin] += plan.partitions == 2
        if plan.partitions != 2 or plan.sin == "moves" or begun[plan.sin] > -(-SLEPT_EXAMPLES_PER_SIN // parts):
            continue  # partitions are added to one topic
        both = in_two_topics(one_topic.history)
        naive, kernel = naive_says(both), vectorised_says(both)
        different += [(name, plan, naive[name], kernel[name]) for name in naive if naive[name] != kernel[name]]
        there.update({name for name in naive for place in kernel[name][0] if place[0] == SMALL})
    assert different == []
    assert len(there) >= 10
