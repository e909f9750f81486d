"""The worlds of small histories: what is enumerated, what the textbook finds, and where the judge differs."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress

import pytest

from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from lab.worlds.__main__ import main
from lab.worlds.compare import BY_CHOICE, BY_ORDER, KINDS, Disagreement, compare, misses_truth, must_and_may_of
from lab.worlds.draw import draw
from lab.worlds.known_disagreements import KNOWN, KnownDisagreement, known_disagreement_of
from lab.worlds.shrink import is_possible, shrunk_story
from lab.worlds.story import Story, StoryStep, events_of, true_world
from lab.worlds.textbook import TEXTBOOK, keys_in
from lab.worlds.uncertainty import uncertainty_of
from lab.worlds.worlds import Instant, NoWorldError, TooManyWorldsError, Uncertainty, orders_of, worlds_of

HOLDS = (StoryStep("give", "m0"), StoryStep("assigned", "m0"))
TAKES_OVER = (StoryStep("give", "m1"), StoryStep("assigned", "m1"))
COMMITS = (StoryStep("begin", "m0", 0), StoryStep("commit", "m0", 1))
MOVES = (StoryStep("revoked", "m0"), *TAKES_OVER)


def handled(who: str, *offsets: int) -> tuple[StoryStep, ...]:
    """A member begins and ends records, one after the other."""
    return tuple(StoryStep(what, who, offset) for offset in offsets for what in ("begin", "end"))


def story(*steps: StoryStep, keys: str = "aab", measured: bool = False, buffered: bool = False) -> Story:
    return Story(steps, tuple(keys), measured, buffered)


def instant(witness: str, rank: float = 0, *, lo: int = 0, hi: int = 9, what: str = "end") -> Instant:
    return Instant(what, witness, 0, witness, rank, lo, hi, lo)


def open_questions(given: Story) -> list[int]:
    """Returns how many alternatives each choice of a story has, of those that have several."""
    choices = uncertainty_of(events_of(given), buffered=given.buffered).choices
    return [len(choice) for choice in choices if len(choice) > 1]


def count_worlds(given: Story) -> int:
    return must_and_may_of(given, events_of(given))[0]


# --- orders and worlds ---------------------------------------------------------------------------------------------


def test_three_instants_that_overlap_have_six_orders() -> None:
    """Which their earliest and latest times alone would not reach."""
    assert len({*orders_of([instant("a"), instant("b"), instant("c")])}) == 6


@pytest.mark.parametrize(
    ("instants", "orders"),
    [
        ([instant("a", 0), instant("a", 1), instant("b")], 3),
        ([instant("a", hi=3), instant("b", lo=4)], 1),
        ([instant("a", hi=4), instant("b", lo=4)], 2),
        ([instant("a", what="ask"), instant("log", 5, what="commit")], 2),
        ([Instant("ask", "a", 0, "a", 0, 0, 9, 0, pair=5), instant("log", 5, what="commit")], 1),
        ([], 1),
    ],
    ids=["one witness tells two", "one is over", "they touch", "of another commit", "ask and commit", "none"],
)
def test_an_order_keeps_ranks_times_and_causes(instants: list[Instant], orders: int) -> None:
    """The rest is free."""
    assert len([*orders_of(instants)]) == orders


def test_worlds_are_orders_times_choices() -> None:
    """Of an event that may not have happened there are worlds with it and worlds without."""
    evidence = Uncertainty((instant("a"), instant("b")), (((), (instant("c"),)),), ("k",))
    assert [len(orders) for orders in worlds_of(evidence)] == [2, 6]
    with pytest.raises(TooManyWorldsError, match="more than 7"):
        worlds_of(evidence, most=7)


def test_witnesses_that_contradict_each_other_have_no_world() -> None:
    """A member said first what was over before, and was read in the other order."""
    evidence = Uncertainty((instant("a", 0, lo=5), instant("a", 1, hi=3), instant("b", lo=4, hi=4)), (), ())
    with pytest.raises(NoWorldError):
        worlds_of(evidence)


# --- the evidence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "alternatives"),
    [
        (story(*HOLDS, *handled("m0", 0)), []),
        (story(*HOLDS, *handled("m0", 0), StoryStep("begin", "m0", 1), StoryStep("kill", "m0")), [2]),
        (story(*HOLDS, StoryStep("begin", "m0", 0), StoryStep("begin", "m0", 1), StoryStep("kill", "m0")), [2, 2]),
        (story(*HOLDS, *handled("m0", 0), StoryStep("kill", "m0")), []),
        (story(*HOLDS, StoryStep("begin", "m0", 0), StoryStep("exit", "m0")), []),
        (story(*HOLDS, StoryStep("fetch", "m0", 0), StoryStep("tell", "m0", 1)), []),
        (story(*HOLDS, StoryStep("tell", "m0", 1)), [2]),
        (
            story(
                *HOLDS,
                StoryStep("fetch", "m0", 0),
                StoryStep("cut", "m0"),
                StoryStep("tell", "m0", 0),
                StoryStep("heal", "m0"),
            ),
            [2],
        ),
        (
            story(
                *HOLDS,
                StoryStep("cut", "m0"),
                StoryStep("tell", "m0", 1),
                StoryStep("heal", "m0"),
                StoryStep("fetch", "m0", 0),
            ),
            [],
        ),
        (story(*HOLDS, *TAKES_OVER, StoryStep("commit", "m0", 1), StoryStep("commit", "m1", 1, 20)), [2]),
        (story(*HOLDS, *TAKES_OVER, StoryStep("commit", "m0", 1), StoryStep("commit", "m1", 1)), []),
    ],
    ids=[
        "nothing",
        "a kill in a handler",
        "a kill in two handlers",
        "a kill between handlers",
        "an exit in a handler",
        "an answer",
        "an answer, and no fetch is seen",
        "an answer in a fault",
        "an answer in a fault that its connection outlived",
        "two requests for one position at once",
        "two requests for one position",
    ],
)
def test_what_the_files_leave_open(given: Story, alternatives: list[int]) -> None:
    """So many alternatives each question has."""
    assert open_questions(given) == alternatives


@pytest.mark.parametrize(
    ("given", "worlds"),
    [
        (story(*HOLDS, *handled("m0", 0), StoryStep("commit", "m0", 1)), 1),
        (story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0, 200)), 3),
        (story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0, 200), measured=True), 1),
        (story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0, 20), measured=True), 3),
        (
            story(
                *HOLDS,
                StoryStep("begin", "m0", 0),
                StoryStep("ask", "m0", 1),
                StoryStep("commit", "m0", 1),
                StoryStep("end", "m0", 0, 200),
            ),
            2,
        ),
        (story(*HOLDS, *COMMITS, StoryStep("stall", value=300)), 1),
        (story(*HOLDS, *COMMITS, StoryStep("stall", value=4000, gap_ms=9)), 6),
        (story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0), buffered=True), 20),
    ],
    ids=[
        "far",
        "near",
        "near, and reading was measured",
        "nearer than was measured",
        "the member says that it asks",
        "a stall of the harness later",
        "a stall of the harness",
        "out of a buffer",
    ],
)
def test_how_many_worlds_a_history_has(given: Story, worlds: int) -> None:
    """By the order of what different witnesses tell."""
    assert count_worlds(given) == worlds


@pytest.mark.lengthy
def test_what_truly_happened_is_one_of_the_worlds() -> None:
    """What must be there is there in truth, and what is there in truth may be there: else the evidence is misread."""
    misread, enumerated = {}, 0
    for seed in range(60):
        with suppress(TooManyWorldsError):
            misread[seed] = misses_truth(draw(seed))
            enumerated += 1
    assert {seed: names for seed, names in misread.items() if names} == {}
    assert enumerated > 40


# --- the textbook --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "steps", "keys"),
    [
        ("skipped", [*handled("m0", 0, 2), StoryStep("commit", "m0", 3)], {1}),
        ("skipped", [*handled("m0", 0, 2), StoryStep("commit", "m0", 1)], set()),
        (
            "skipped",
            [
                StoryStep("begin", "m0", 0),
                StoryStep("unsaid", "m0", 0),
                StoryStep("kill", "m0"),
                StoryStep("commit", "m0", 1),
            ],
            set(),
        ),
        ("commit-ahead", [StoryStep("begin", "m0", 0), StoryStep("commit", "m0", 1), StoryStep("end", "m0", 0)], {1}),
        ("commit-ahead", [StoryStep("ask", "m0", 1), *handled("m0", 0), StoryStep("commit", "m0", 1)], {1}),
        ("commit-ahead", [*handled("m0", 0), StoryStep("commit", "m0", 1)], set()),
        ("commit-ahead", [StoryStep("begin", "m0", 0), StoryStep("refuse", "m0", 1), StoryStep("end", "m0", 0)], set()),
        ("commit-ahead", [StoryStep("commit", "m0", 1), StoryStep("commit", "m0", 2)], {1, 2}),
        ("commit-regression", [*(StoryStep("commit", "m0", position) for position in (2, 1, 2))], set()),
        ("commit-regression", [StoryStep("commit", "m0", 2), StoryStep("commit", "m0", 1)], {3}),
        (
            "commit-regression",
            [StoryStep("commit", "m0", 2), StoryStep("commit", "m1", 1), StoryStep("commit", "m0", 2)],
            {3},
        ),
        (
            "commit-regression",
            [
                StoryStep("commit", "m0", 2),
                StoryStep("commit", "m0", 1),
                StoryStep("start", "m0", 1),
                StoryStep("commit", "m0", 2),
            ],
            {3},
        ),
        (
            "commit-regression",
            [
                StoryStep("commit", "m0", 2),
                StoryStep("commit", "m0", 1),
                StoryStep("start", "m1", 1),
                StoryStep("commit", "m0", 2),
            ],
            set(),
        ),
        (
            "zombie-commit",
            [*handled("m0", 0, 1), *TAKES_OVER, StoryStep("commit", "m1", 2), StoryStep("commit", "m0", 1)],
            {4},
        ),
        ("zombie-commit", [*handled("m0", 0), *TAKES_OVER, StoryStep("commit", "m0", 1)], set()),
        ("zombie-commit", [*TAKES_OVER, StoryStep("commit", "m0", 1)], {3}),
        ("redelivered", [*handled("m0", 0), *MOVES, *handled("m1", 0)], {0}),
        ("redelivered", [StoryStep("begin", "m0", 0), *handled("m0", 0)], set()),
        ("redelivered", [*handled("m0", 0, 0)], {0}),
        ("illegal-redelivery", [*handled("m0", 0), StoryStep("start", "m1", 1), *MOVES, *handled("m1", 0)], {0}),
        ("illegal-redelivery", [*handled("m0", 0), StoryStep("commit", "m0", 1), *MOVES, *handled("m1", 0)], {0}),
        ("illegal-redelivery", [*handled("m0", 0), StoryStep("start", "m1", -1), *MOVES, *handled("m1", 0)], set()),
        ("reordered-key", [*handled("m0", 1, 0)], {(0, True)}),
        ("reordered-key", [*handled("m0", 2, 0)], {(0, False)}),
        ("reordered-key", [*handled("m0", 0, 1), *MOVES, *handled("m1", 0, 1)], set()),
        ("overlapping-handlers", [StoryStep("begin", "m0", 0), *handled("m0", 1), StoryStep("end", "m0", 0)], {0, 1}),
        (
            "overlapping-handlers",
            [StoryStep("begin", "m0", 0), *TAKES_OVER, *handled("m1", 1), StoryStep("end", "m0", 0)],
            set(),
        ),
        (
            "overlapping-handlers",
            [StoryStep("begin", "m0", 0), *MOVES, *handled("m1", 1), StoryStep("end", "m0", 0)],
            {0, 1},
        ),
        ("split-ownership", [StoryStep("hold", "m0", 1), StoryStep("hold", "m1", 1)], {("log", 3)}),
        (
            "split-ownership",
            [StoryStep("hold", "m0", 1), StoryStep("hold", "m0", 0), StoryStep("hold", "m1", 1)],
            set(),
        ),
        (
            "split-ownership",
            [*TAKES_OVER, StoryStep("tell", "m0", 1), StoryStep("fetch", "m0", 0), *handled("m0", 0)],
            {("told", 0)},
        ),
        (
            "split-ownership",
            [*TAKES_OVER, StoryStep("tell", "m0", 1), *handled("m0", 0), StoryStep("fetch", "m0", 1)],
            set(),
        ),
        (
            "work-after-revoke",
            [StoryStep("begin", "m0", 0), StoryStep("revoked", "m0"), StoryStep("end", "m0", 0)],
            {(0, "processed")},
        ),
        ("work-after-revoke", [StoryStep("begin", "m0", 0), StoryStep("lost", "m0"), StoryStep("end", "m0", 0)], set()),
        ("work-after-revoke", [StoryStep("lost", "m0"), StoryStep("begin", "m0", 0)], {(0, "delivered")}),
        ("work-after-revoke", [StoryStep("revoked", "m0"), StoryStep("assigned", "m0"), *handled("m0", 0)], set()),
        ("retried", [StoryStep("begin", "m0", 0), *handled("m0", 0)], {0}),
        ("retried", [StoryStep("begin", "m0", 0), *handled("m0", 1), StoryStep("begin", "m0", 0)], set()),
        ("retried", [StoryStep("begin", "m0", 0), *MOVES, *handled("m1", 0)], set()),
        ("nonmonotonic-poll", [*handled("m0", 1, 0)], {0}),
        ("nonmonotonic-poll", [*handled("m0", 0, 0)], {0}),
        ("nonmonotonic-poll", [StoryStep("begin", "m0", 0), *handled("m0", 0)], set()),
        ("nonmonotonic-poll", [*handled("m0", 1), *MOVES, *handled("m1", 0)], set()),
        ("poll-skip", [*handled("m0", 0, 2)], {1}),
        ("poll-skip", [*handled("m0", 0, 2, 1)], set()),
        ("poll-skip", [*handled("m0", 0), *MOVES, *handled("m1", 2)], set()),
        ("poll-skip", [*handled("m0", 2, 0)], set()),
        ("zombie-work", [*TAKES_OVER, *handled("m0", 0)], {(0, "delivered"), (0, "processed")}),
        ("zombie-work", [StoryStep("begin", "m0", 0), *TAKES_OVER, StoryStep("end", "m0", 0)], {(0, "processed")}),
        (
            "zombie-work",
            [*TAKES_OVER, StoryStep("tell", "m0", 1), StoryStep("fetch", "m0", 0), *handled("m0", 0)],
            set(),
        ),
        ("zombie-work", [*MOVES, *handled("m0", 0)], set()),
        ("commit-past-end", [StoryStep("commit", "m0", 4)], {2}),
        ("commit-past-end", [StoryStep("commit", "m0", 3)], set()),
        ("commit-lost", [StoryStep("vanish", "m0", 1)], {1}),
        ("commit-lost", [StoryStep("commit", "m0", 1), StoryStep("vanish", "m0", 1)], set()),
    ],
)
def test_the_textbook(name: str, steps: list[StoryStep], keys: set[Hashable]) -> None:
    """Of one exact world."""
    assert keys_in(true_world(story(*HOLDS, *steps)))[name] == keys


# --- the comparison ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "agreed"),
    [
        (
            [
                *handled("m0", 0, 1),
                StoryStep("commit", "m0", 2),
                *MOVES,
                *handled("m1", 2),
                StoryStep("commit", "m1", 3),
            ],
            {},
        ),
        ([StoryStep("begin", "m0", 0), StoryStep("commit", "m0", 1), StoryStep("end", "m0", 0)], {"commit-ahead": 1}),
        ([*handled("m0", 0, 1), *MOVES, *handled("m1", 0)], {"redelivered": 1}),
    ],
    ids=["sound", "ahead", "redelivered"],
)
def test_both_say_the_same(steps: list[StoryStep], agreed: dict[str, int]) -> None:
    """Of sound members, and of one that is not."""
    comparison = compare(story(*HOLDS, *steps))
    assert (comparison.differences, {name: n for name, n in comparison.agreed.items() if n}) == ([], agreed)


def test_a_judge_that_is_blind_or_convicts_too_soon_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one passes what is in all worlds; the other finds in one order what another order refutes."""
    guilty = story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0))
    near = story(*HOLDS, *COMMITS, StoryStep("end", "m0", 0, 200))
    convicted = judge_events(events_of(guilty), Settings(**guilty.settings()))
    acquitted = judge_events(events_of(near), Settings(**near.settings()))
    monkeypatch.setattr("lab.worlds.compare.judge_events", lambda *_: acquitted)
    assert compare(guilty).differences == [Disagreement("commit-ahead", 1, "passed")]
    monkeypatch.setattr("lab.worlds.compare.judge_events", lambda *_: convicted)
    assert compare(near).differences == [Disagreement("commit-ahead", 1, "convicted too soon")]
    assert compare(story(*HOLDS, *handled("m0", 0))).differences == [Disagreement("commit-ahead", 1, "convicted")]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_what_is_known_still_differs(known: KnownDisagreement) -> None:
    """Exactly as it says: where the judge was mended, its entry in `known_disagreements.py` must go."""
    assert is_possible(known.story)
    assert frozenset(compare(known.story).differences) == known.differences
    assert known.name in {known_disagreement_of(known.story, one) for one in known.differences}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_what_is_known_is_as_small_as_it_can_be(known: KnownDisagreement) -> None:
    """Without any of its steps it cannot have happened, or differs in another way."""
    for number in range(len(known.story.steps)):
        less = Story(known.story.steps[:number] + known.story.steps[number + 1 :], known.story.keys)
        same = is_possible(less) and known.differences == {*compare(less).differences}
        assert not same or {known_disagreement_of(less, one) for one in known.differences} != {known.name}


@pytest.mark.lengthy
def test_drawn_histories_differ_only_in_known_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever else differs is printed with its seeds, and ends in 1."""
    assert main(["--seeds", "1-40"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in TEXTBOOK)
    assert "NOT KNOWN" not in out


def test_what_is_not_known_is_told_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the number of the seed, and without the steps that have no part in it."""
    monkeypatch.setattr("lab.worlds.known_disagreements.KNOWN", ())
    monkeypatch.setattr(
        "lab.worlds.__main__.draw", lambda _: story(*HOLDS, StoryStep("begin", "m0", 0), StoryStep("ask", "m0", 1))
    )
    assert main(["--seeds", "7", "--shrink"]) == 1
    out = capsys.readouterr().out
    assert "NOT KNOWN: commit-ahead, convicted × 1: seeds [7]" in out
    assert out.count("    StoryStep(what=") == 4


def test_a_story_is_made_smaller() -> None:
    """What has no part in the difference goes."""
    known = KNOWN[0]
    longer = Story((*known.story.steps, *MOVES, *handled("m1", 0)), ("a", "a"))
    (difference,) = known.differences
    assert shrunk_story(longer, difference).steps == known.story.steps


def test_seeds_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """Else it says what it expected."""
    with pytest.raises(SystemExit):
        main(["--seeds", "all"])
    assert "expected two numbers, such as 1-100, found 'all'" in capsys.readouterr().err


def test_every_kind_of_difference_is_described() -> None:
    """The kinds that known ones have are among them."""
    assert {one.kind for known in KNOWN for one in known.differences} <= KINDS.keys()
    assert {BY_ORDER, BY_CHOICE} <= KINDS.keys()
