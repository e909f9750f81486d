"""Disagreements that are understood, and in which the judge is wrong by its own definitions or by Kafka's words.

Each has the smallest history that shows it, and what explains the same in a drawn one. `tests/lab/test_worlds.py` holds
that each still disagrees in exactly this way: whoever mends the judge takes the entry out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise

from lab.worlds.compare import BY_CHOICE, Disagreement
from lab.worlds.story import Story, StoryStep

HOLDS = (StoryStep("give", "m0"), StoryStep("assigned", "m0"))
TAKES_OVER = (StoryStep("give", "m1"), StoryStep("assigned", "m1"))


@dataclass(frozen=True)
class KnownDisagreement:
    """One disagreement: its name, the smallest story, all differences there, and which side is right and why.

    `explains`: whether a difference of these anomalies and kinds in another story is the same.
    """

    name: str
    story: Story
    differences: frozenset[Disagreement]
    why: str
    explains: Callable[[Story, Hashable], bool]


def known_disagreement_of(story: Story, difference: Disagreement) -> str | None:
    """Returns the name of what explains a difference in a story; None if nothing does."""
    for one in KNOWN:
        kinds = {(other.name, other.kind) for other in one.differences}
        if (difference.name, difference.kind) in kinds and one.explains(story, difference.key):
            return one.name
    return None


def _differ(kind: str, **anomalies: Hashable) -> frozenset[Disagreement]:
    return frozenset(Disagreement(name.replace("_", "-"), key, kind) for name, key in anomalies.items())


def _never_took_effect(story: Story, key: Hashable) -> bool:
    """Whether a member asked for the position and was refused, or asked more often than its commits took effect."""
    times = Counter((step.what, step.who) for step in story.steps if step.value == key)
    return any(times["refuse", who] > 0 or times["ask", who] > times["commit", who] for who in story.members)


def _was_done_elsewhere(story: Story, key: Hashable) -> bool:
    """Whether who asked for the position had begun a record below it that another member ended, or was killed with."""
    done = {(step.who, step.value) for step in story.steps if step.what in ("end", "unsaid")} | _left_in_hand(story)
    askers = {step.who for step in story.steps if step.what in ("ask", "commit") and step.value == key}
    begun = [step for step in story.steps if step.what == "begin" and step.who in askers]
    return any(
        isinstance(key, int) and offset < key and step.value == offset and step.who != who
        for step in begun
        for who, offset in done
    )


def _left_in_hand(story: Story) -> set[tuple[str, int]]:
    """Returns who was killed with which records in hand."""
    killed = {step.who for step in story.steps if step.what == "kill"}
    work = [step for step in story.steps if step.who in killed and step.what in ("begin", "end")]
    last = {(step.who, step.value): step.what for step in work}
    return {place for place, what in last.items() if what == "begin"}


def _was_killed_in_hand(story: Story, key: Hashable) -> bool:
    """Whether a member was killed with a record in hand."""
    return bool(_left_in_hand(story))


def _was_committed_by_two(story: Story, key: Hashable) -> bool:
    """Whether two members committed one position."""
    commits = [step for step in story.steps if step.what == "commit"]
    return any(len({one.who for one in commits if one.value == step.value}) > 1 for step in commits)


def _fell_there(story: Story, key: Hashable) -> bool:
    """Whether the committed offset fell to that position."""
    positions = [step.value for step in story.steps if step.what == "commit"]
    return any(one > other == key for one, other in pairwise(positions))


def _was_told_unseen(story: Story, key: Hashable) -> bool:
    """Whether a member was told of its loss, and the request log holds no fetches."""
    steps = {step.what for step in story.steps}
    return "tell" in steps and "fetch" not in steps


def _was_told_in_fault(story: Story, key: Hashable) -> bool:
    """Whether the answer that told a member of its loss may have been lost in a fault."""
    return {"cut", "tell"} <= {step.what for step in story.steps}


KNOWN = (
    KnownDisagreement(
        "a commit that never took effect counts as ahead",
        Story((*HOLDS, StoryStep("begin", "m0", 0), StoryStep("ask", "m0", 1)), ("a",)),
        _differ("convicted", commit_ahead=1),
        "The worlds are right: the position is not in the offsets log, because the broker refused the commit "
        '(ILLEGAL_GENERATION, 22) or never received it. "The committed position is the last offset that has been '
        'stored securely" (KafkaConsumer): it never passed the record, and a crash loses nothing. The judge takes the '
        "`commit` invoke of the member for a commit, even if the answer `fail` follows it.",
        _never_took_effect,
    ),
    KnownDisagreement(
        "what another member has handled counts as not done",
        Story(
            (
                *(*HOLDS, StoryStep("begin", "m0", 0), StoryStep("end", "m0", 0), *TAKES_OVER),
                *(StoryStep("begin", "m1", 0), StoryStep("ask", "m1", 1), StoryStep("commit", "m1", 1, 10)),
            ),
            ("a",),
        ),
        _differ("convicted", commit_ahead=1),
        "The worlds are right by the definition: every record below the position had been handled when it was "
        'committed, by m0, and "a crash never loses them" (KafkaConsumer, Manual Offset Control). The judge looks for '
        "the completion in the file of the member that commits. The habit of the member is unsound all the same.",
        _was_done_elsewhere,
    ),
    KnownDisagreement(
        "a commit to which the position falls is ahead by lines, and not by the log",
        Story(
            (
                *(*HOLDS, StoryStep("commit", "m1", 2), StoryStep("begin", "m0", 0)),
                *(StoryStep("ask", "m0", 1), StoryStep("commit", "m0", 1, 10)),
            ),
            ("a", "a"),
        ),
        _differ("convicted", commit_ahead=1),
        "The worlds look at what lies between a position and the one before, as the judge does by the log: m1 had "
        "passed the record already, and the position fell. By its lines the judge convicts m0 too, which commits a "
        "record in hand. It should say the same of both.",
        _fell_there,
    ),
    KnownDisagreement(
        "what a killed member may have handled counts as not done",
        Story(
            (
                *(*HOLDS, StoryStep("begin", "m0", 0), StoryStep("kill", "m0"), *TAKES_OVER),
                *(StoryStep("begin", "m1", 0), StoryStep("commit", "m1", 1), StoryStep("end", "m1", 0)),
            ),
            ("a",),
        ),
        _differ("convicted too soon", commit_ahead=1),
        "The worlds are right: undecided. As above, but m0 was killed with the record in hand, and the evidence does "
        "not show whether it had ended it.",
        _was_done_elsewhere,
    ),
    KnownDisagreement(
        "a record in hand at a kill counts as never handled",
        Story(
            (
                *HOLDS,
                StoryStep("begin", "m0", 0),
                StoryStep("kill", "m0"),
                StoryStep("give", "m1"),
                StoryStep("commit", "m1", 1),
            ),
            ("a", "a"),
        ),
        _differ("convicted too soon", commit_ahead=1) | _differ("convicted too soon", skipped=0),
        "The worlds are right: undecided. A member killed with -9 cannot report that it ended the record, whoever "
        "commits past it afterwards, or did so before its last line. The judge knows this only of what the killed "
        "member itself committed after its last line (UNCERTAIN_AFTER_KILL).",
        _was_killed_in_hand,
    ),
    KnownDisagreement(
        "a zombie's commit past a record in hand at a kill counts as a skip",
        Story(
            (
                *HOLDS,
                StoryStep("begin", "m0", 0),
                StoryStep("kill", "m0"),
                StoryStep("give", "m1"),
                StoryStep("commit", "m2", 1),
            ),
            ("a", "a"),
        ),
        _differ("convicted too soon", commit_ahead=1, skipped=0, zombie_commit=3),
        "The worlds are right: undecided. The harm of the commit is that a record was passed which nobody handled, and "
        "m0 may have handled it.",
        _was_killed_in_hand,
    ),
    KnownDisagreement(
        "what a killed member may have ended does not count for the order",
        Story(
            (
                *HOLDS,
                StoryStep("begin", "m0", 1),
                StoryStep("kill", "m0"),
                *TAKES_OVER,
                *(StoryStep(w, "m1", 0) for w in ("begin", "end")),
            ),
            ("a", "a"),
        ),
        _differ(BY_CHOICE, reordered_key=(0, True)),
        "The worlds are right: undecided. If m0 had ended record 1 before it was killed, record 0 was handled later: "
        '"Kafka guarantees the order of records within a partition" (Introduction). The judge says nothing.',
        _was_killed_in_hand,
    ),
    KnownDisagreement(
        "a handler that a kill left without an end overlaps nothing",
        Story(
            (
                *HOLDS,
                *(StoryStep("begin", "m0", offset) for offset in (0, 1)),
                StoryStep("end", "m0", 1),
                StoryStep("kill", "m0"),
            ),
            ("a", "a"),
        ),
        _differ(BY_CHOICE, reordered_key=(0, True))
        | {Disagreement("overlapping-handlers", offset, BY_CHOICE) for offset in (0, 1)},
        "The worlds are right: undecided. m0 began record 1 beside record 0, or had given record 0 up. The judge looks "
        "only at handlers that ended.",
        _was_killed_in_hand,
    ),
    KnownDisagreement(
        "an answer that a fault may have lost counts as not received",
        Story(
            (
                *(
                    *HOLDS,
                    StoryStep("cut", "m0"),
                    StoryStep("give", "m1"),
                    StoryStep("tell", "m0", 0),
                    StoryStep("heal", "m0"),
                ),
                StoryStep("begin", "m0", 0),
            ),
            ("a",),
        ),
        _differ(BY_CHOICE, split_ownership=("told", 0)) | _differ("convicted too soon", zombie_work=(0, "delivered")),
        "The worlds are right: undecided. If the answer (UNKNOWN_MEMBER_ID, 25) arrived before the record was fetched, "
        "the member worked on beside the owner though it knew, and was no zombie. The judge convicts only for what was "
        "surely received, and takes the rest for the work of a zombie, instead of leaving both undecided.",
        _was_told_in_fault,
    ),
    KnownDisagreement(
        "work after an answer counts as a zombie's where no fetch is seen",
        Story(
            (
                *(*HOLDS, *TAKES_OVER, StoryStep("begin", "m1", 1), StoryStep("end", "m1", 1)),
                *(StoryStep("tell", "m0", 1), StoryStep("begin", "m0", 0), StoryStep("end", "m0", 0)),
            ),
            ("a", "a"),
        ),
        _differ(BY_CHOICE, reordered_key=(0, True))
        | {Disagreement("zombie-work", (0, what), "convicted too soon") for what in ("delivered", "processed")},
        "The worlds are right: undecided. The member was told before it began the record. If it fetched it only "
        "afterwards, it knew, and neither worked as a zombie nor may complete out of order. The judge leaves only "
        "`split-ownership` undecided, and takes the work for that of a zombie.",
        _was_told_unseen,
    ),
    KnownDisagreement(
        "a zombie's commit is nobody's beside another's of the same position",
        Story((StoryStep("give", "m1"), StoryStep("commit", "m0", 1), StoryStep("commit", "m1", 1, 8)), ("a",)),
        _differ(BY_CHOICE, zombie_commit=2),
        "The worlds are right: undecided. Either request may have made the first commit, which passed a record that "
        "was never handled, and one of them is the zombie's. The judge takes the committer for unknown, and leaves the "
        "case out of `zombie-commit`, instead of counting it as undecided.",
        _was_committed_by_two,
    ),
)
