"""Members that do not get back into their group: literal histories, on which both judges say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from group_lines import beat, heartbeat, joined, left
from histories import (
    GROUP,
    Line,
    after,
    exited,
    fault,
    finding,
    gone,
    healed,
    holds,
    owner,
    phase,
    started,
    stood_still,
    waited,
    with_settings,
)
from histories import history as framed
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from kafka_trial.verdict.messages import message
from lab.naive.checker import Trial
from lab.naive.rejoins import never_rejoined

Lines = Sequence[Line | list[Line]]
NAME = "never-rejoined"
SETTINGS = {"events": "none", "session_timeout_s": 3, "poll_interval_s": 5}  # together the eight seconds of a bound


def listed(*member_ids: str) -> Line:
    """A classic group record that lists these member ids."""
    members = [{"member_id": f"id-{name}"} for name in member_ids]
    return Line("offsets", "group", {"group": GROUP, "protocol": "classic", "epoch": 1, "members": members})


def newly(line: Line, name: str = "again") -> Line:
    """The same of another member id: of the next process, or of a client that joined anew."""
    return replace(line, fields=line.fields | {"member_id": f"id-{name}"})


def outcome(lines: Lines, settings: dict[str, Any] | None = None) -> tuple[list[str], int]:
    """Returns who never rejoined, and how many cases are undecided; both judges must say the same."""
    events, asked = framed(lines), settings or SETTINGS
    found = judge_events(events, Settings(**asked), gated=False, only=NAME).findings[NAME]
    vectorised = sorted(one.attributes["member"] for one in found.instances), sum(found.undecided.values())
    told = list(never_rejoined(Trial(events, asked)))
    assert (sorted(str(one[2]) for one in told if one), told.count(None)) == vectorised
    return vectorised


BOTH = [listed("m0", "m1"), phase("steady"), phase("faults")]
KILLED = [fault("kill", "m0"), exited("m0", signal=9, asked="kill"), after(1), started("m0-1"), healed()]
REFUSED = newly(joined("m0", error=23))
LONG = after(9)  # a session and a rebalance, and a second more
ALONE = listed("m1")
BACK = [newly(joined("m0")), listed("again", "m1"), newly(heartbeat("m0"))]


def test_a_member_that_is_refused_by_its_group_never_rejoins() -> None:
    """Killed, started again and refused: the sentence's facts and the events that prove them."""
    found = finding(NAME, [*BOTH, *KILLED, REFUSED, REFUSED, ALONE, LONG], settings=with_settings(events="none"))
    assert [(one.topic, one.attributes, one.events) for one in found.instances] == [
        (
            None,
            {
                "member": "m0",
                "incarnation": 1,
                "how": "was started again",
                "lasted_s": 9.1,
                "within": "8.0 s (a session of 3 s and a rebalance of 5.0 s)",
                "answers": [["JOIN_GROUP", 23, 2]],
            },
            ("requests-b0#2", "requests-b0#3", "offsets#1"),
        )
    ]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([REFUSED, REFUSED], "brokers answered 2 JOIN_GROUP with INCONSISTENT_GROUP_PROTOCOL (23)"),
        (
            [heartbeat("m0", error=25), REFUSED, REFUSED, newly(joined("m0"))],
            "brokers answered 2 JOIN_GROUP with INCONSISTENT_GROUP_PROTOCOL (23), 1 HEARTBEAT with UNKNOWN_MEMBER_ID "
            "(25), 1 JOIN_GROUP with no error",
        ),
        ([], "none of its requests to join was answered, if it made any"),
    ],
    ids=["refused", "in several ways", "never answered"],
)
def test_the_sentence_says_who_asked_how_often_and_what_was_answered(asked: list[Line], told: str) -> None:
    """By the names of requests and of errors."""
    found = finding(NAME, [*BOTH, *KILLED, *asked, ALONE, LONG], settings=with_settings(events="none"))
    sentence = message(NAME, found.instances[0])
    assert sentence.startswith("member m0 was started again and was still not back in its group 9.")
    assert " s later; the limit is 8.0 s (a session of 3 s and a " in sentence
    assert sentence.endswith(f"; {told}")


PAUSED = [fault("pause", "m0"), after(4), ALONE, healed()]
STALLED = [fault("stall", "m0"), after(4), ALONE, healed()]
OF_ALL = [fault("broker-pause", None), after(4), ALONE, healed()]
NEVER_BACK: dict[str, Lines] = {
    "it never asks": [*KILLED, ALONE],
    "it is admitted, and never listed": [*KILLED, newly(joined("m0")), ALONE],
    "its dead process is listed until its session ends": [*KILLED, after(2), ALONE],
    "it is resumed, and does not poll": [*PAUSED, heartbeat("m0", error=25)],
    "it was cut off": [*STALLED, heartbeat("m0", error=25)],
    "its coordinator was frozen": [*OF_ALL, heartbeat("m0", error=25)],
    "it leaves as the first thing": [fault("pause", "m0"), after(4), healed(), left("m0"), ALONE],
    "its instance id is held": [*KILLED, newly(beat("m0", error=111)), ALONE],
    "it was hit again when it was away": [
        *PAUSED,
        fault("stall", "m0", number=1),
        after(1),
        healed(1),
        heartbeat("m0", error=25),
    ],
    "it had come back, and was then hit again": [
        *(*KILLED, *BACK, fault("pause", "m0", number=1), after(4), ALONE, healed(1)),
        newly(heartbeat("m0", error=25)),
        after(8),  # two sessions, one after the other
    ],
}


@pytest.mark.parametrize("lines", NEVER_BACK.values(), ids=NEVER_BACK)
def test_never_rejoined(lines: Lines) -> None:
    """Given a bound that has passed, then the member is named, whatever kept it away."""
    assert outcome([*BOTH, *lines, LONG]) == (["m0"], 0)


REJOINS: dict[str, Lines] = {
    "in time": [*KILLED, *BACK, LONG],
    "late, while the trial went on": [*KILLED, ALONE, LONG, LONG, *BACK],
    "refused first": [*KILLED, REFUSED, REFUSED, after(2), *BACK, LONG],
    "without a partition": [*KILLED, newly(joined("m0")), owner("m1", idle=["again"]), newly(heartbeat("m0")), LONG],
    "resumed within its session": [fault("pause", "m0"), after(2), healed(), heartbeat("m0"), LONG],
    "resumed, and heard of by its group record alone": [fault("pause", "m0"), after(2), healed(), after(1)],
    "expelled, and joined anew": [*PAUSED, heartbeat("m0", error=25), *BACK, LONG],
    "a static member under its new id": [*KILLED, newly(joined("m0")), listed("again", "m1"), LONG],
    "came back, and then left by itself": [*KILLED, *BACK, newly(left("m0")), ALONE, LONG],
    "had left by itself before it was hit": [
        left("m0"),
        ALONE,
        after(1),
        fault("stall", "m0"),
        after(2),
        healed(),
        LONG,
    ],
    "its process ended by itself": [*KILLED, exited("m0-1", code=1, asked="no"), ALONE, LONG],
    "stopped, and not started again": [fault("kill", "m0"), exited("m0", signal=9, asked="kill"), ALONE, LONG],
    "a fault that was never healed": [fault("stall", "m0"), after(4), ALONE, LONG],
    "another member was hit": [fault("stall", "m1"), after(1), healed(), heartbeat("m1"), LONG],
    "a further member came and went": [
        *(fault("join", None), started("m2"), newly(joined("m2"), "m2"), listed("m0", "m1", "m2")),
        *(exited("m2", code=0, asked="stop"), listed("m0", "m1"), healed(), LONG),
    ],
    "a record that does not say whom it lists": [
        *(*KILLED, newly(joined("m0")), newly(heartbeat("m0"))),
        *(Line("offsets", "group", {"group": GROUP, "protocol": "classic", "epoch": 2}), LONG),
    ],
}


@pytest.mark.parametrize("lines", REJOINS.values(), ids=REJOINS)
def test_it_rejoined_or_need_not(lines: Lines) -> None:
    """Given what a sound member does, or one that nobody expects to be there, then nothing is found."""
    assert outcome([*BOTH, *lines]) == ([], 0)


def test_who_never_was_in_a_group_need_not_rejoin() -> None:
    """It assigns itself its partitions, though it declares no protocol: nothing is found."""
    assert outcome([listed("m1"), *KILLED, LONG]) == ([], 0)


KIP_848 = [holds("m0"), holds("m1"), beat("m0"), beat("m1"), phase("faults")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([*KILLED, gone("m0"), newly(beat("m0", error=112)), LONG], (["m0"], 0)),
        ([*KILLED, gone("m0"), newly(beat("m0")), holds("again"), newly(beat("m0")), LONG], ([], 0)),
        ([*KILLED, holds("m0", epoch=-2), newly(beat("m0", error=111)), LONG], (["m0"], 0)),
        ([fault("pause", "m0"), after(4), gone("m0"), healed(), beat("m0", error=25), LONG], (["m0"], 0)),
        ([fault("pause", "m0"), after(4), gone("m0"), healed(), holds("m0"), beat("m0"), LONG], ([], 0)),
    ],
    ids=["refused", "back", "a static member that is away", "fenced, and away", "fenced, and back under its id"],
)
def test_members_of_kip_848(lines: Lines, expected: tuple[list[str], int]) -> None:
    """Their group says of each member by itself whether it is there."""
    assert outcome([*KIP_848, *lines]) == expected


def test_a_member_has_twice_the_slowest_start() -> None:
    """The group had m1 six seconds after its start: m0 has twelve, then it should be there."""
    slow = [listed("m0"), after(4), listed("m0", "m1"), phase("faults"), *KILLED, ALONE]
    assert outcome([*slow, after(11)]) == ([], 1)
    assert outcome([*slow, after(13)]) == (["m0"], 0)


def test_a_member_has_no_longer_than_its_team_says() -> None:
    """[ready] within_s is five seconds: but the session of the process that was killed ends after eight."""
    soon = SETTINGS | {"ready_within_s": 5}
    restarted = [
        fault("restart", "m0"),
        left("m0"),
        exited("m0", code=0, asked="stop"),
        started("m0-1"),
        healed(),
        ALONE,
    ]
    assert outcome([*BOTH, *restarted, after(6)], soon) == (["m0"], 0)
    assert outcome([*BOTH, *restarted, after(6)]) == ([], 1)
    assert outcome([*BOTH, *KILLED, ALONE, after(6)], soon) == ([], 1)


def test_a_trial_that_ended_too_early_leaves_it_open() -> None:
    """It had eight seconds, and the trial was over after six."""
    assert outcome([*BOTH, *KILLED, ALONE, after(6)]) == ([], 1)


@pytest.mark.parametrize(("seconds", "expected"), [(10, ([], 1)), (14, (["m0"], 0))])
def test_a_machine_that_stood_still_gives_it_longer(seconds: float, expected: tuple[list[str], int]) -> None:
    """Three seconds without a processor for the harness count as none for the member either."""
    assert outcome([*BOTH, *KILLED, ALONE, after(3), stood_still(3), after(seconds - 3)]) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(10, ([], 1)), (14, (["m0"], 0))])
def test_a_busy_machine_gives_it_longer(seconds: float, expected: tuple[list[str], int]) -> None:
    """Its threads waited four seconds for a processor since it was started, where they had waited for none before."""
    calm = [listed("m0", "m1"), phase("steady"), after(1), waited(0, 1)]
    rated = Line("run", "calibrated", {"count": 1, "rate": 100.0})
    late = [*calm, rated, phase("faults"), *KILLED, ALONE, after(4), waited(4, 4), after(seconds - 4)]
    assert outcome(late) == expected


@pytest.mark.parametrize(
    ("settings", "frame", "because"),
    [
        ({"protocol": "none"}, {}, "its members are in no group"),
        ({}, {"snapshot": False}, "the trial did not reach its snapshot"),
        ({}, {"whole": False}, "the witness offsets is not known to be complete"),
        ({}, {"members": 0}, "no member's process was started"),
    ],
)
def test_it_is_not_judged(settings: dict[str, Any], frame: dict[str, Any], because: str) -> None:
    """Nothing tells who is in the group, or nobody has to be: no claim stays undecided for it."""
    missing = finding(NAME, BOTH, settings=with_settings(**settings), **frame).not_judged
    assert missing is not None
    assert (missing.applies, missing.because.startswith(because)) == (False, True)


@pytest.mark.parametrize(("consumer", "how"), [("new", "was moved from old to new"), ("old", "was started again")])
def test_the_sentence_says_to_which_consumer_a_member_was_moved(consumer: str, how: str) -> None:
    """Where its process is of another consumer.toml than the one before, by what the harness wrote down."""
    first = replace(started("m0"), fields=started("m0").fields | {"consumer": "old"})
    second = replace(started("m0-1"), fields=started("m0-1").fields | {"consumer": consumer})
    moved = [fault("move-client", "m0", acts_as="restart"), exited("m0", code=0, asked="stop"), second, healed()]
    lines = [first, *BOTH, *moved, REFUSED, ALONE, LONG]
    found = finding(NAME, lines, settings=with_settings(events="none"))
    assert [one.attributes["how"] for one in found.instances] == [how]
    assert outcome(lines) == (["m0"], 0)
