"""Who is back in the group, seen live: the drain waits for a member as long as the judge gives it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from group_lines import heartbeat, joined
from histories import GROUP, Line, after, exited, fault, healed, history, phase, started
from kafka_trial.claim import Claim
from kafka_trial.consumers.spec import ConsumerSpec, KafkaSettings, Ready
from kafka_trial.history.event import to_line
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.group_watch import GroupWatch

SPEC = ConsumerSpec(
    Path("consumer.toml"),
    "c",
    ("true",),
    Claim("at-least-once"),
    kafka=KafkaSettings(session_timeout_s=3, poll_interval_s=5),
    ready=Ready(within_s=60),
)
DECLARED = Settings(session_timeout_s=3, poll_interval_s=5, events="none")


def listed(*names: str) -> Line:
    members = [{"member_id": f"id-{name}"} for name in names]
    return Line("offsets", "group", {"group": GROUP, "protocol": "classic", "epoch": 1, "members": members})


BEGUN = [
    listed("m0", "m1"),
    phase("steady"),
    phase("faults"),
    fault("kill", "m0"),
    exited("m0", signal=9, asked="kill"),
]
AWAY = [*BEGUN, after(1), started("m0-1"), healed(), joined("m0", error=23), listed("m1"), phase("drain")]
BACK = [*AWAY, after(1), joined("m0"), listed("m0", "m1"), heartbeat("m0")]


def awaited_after(tmp_path: Path, lines: Sequence[Line], seconds: float) -> list[str]:
    """Returns who is waited for when so much of the drain has passed."""
    events = history([*lines, after(seconds)], snapshot=False, whole=False)
    for source in dict.fromkeys(event.source for event in events):
        told = b"".join(to_line(event) for event in events if event.source == source)
        (tmp_path / f"{source}.jsonl").write_bytes(told)
    return GroupWatch(tmp_path, GROUP, SPEC).update().awaited_members(now_ns=events[-1].time_ns - 1_020_000_000)


def judged_after(lines: Sequence[Line], seconds: float) -> tuple[int, int]:
    """Returns how many members never rejoined, and how many cases are undecided, in a trial that ended then."""
    found = judge_events(history([*lines, after(seconds)]), DECLARED, only="never-rejoined").findings["never-rejoined"]
    return len(found.instances), sum(found.undecided.values())


@pytest.mark.parametrize(("seconds", "waits"), [(1, True), (6, True), (9, False)])
def test_the_drain_waits_for_a_member_as_long_as_the_judge_gives_it(
    tmp_path: Path, seconds: float, *, waits: bool
) -> None:
    """Eight seconds of session and rebalance: while it is awaited the judge could not yet decide, and then it can."""
    assert awaited_after(tmp_path, AWAY, seconds) == (["m0"] if waits else [])
    assert judged_after(AWAY, seconds) == ((0, 1) if waits else (1, 0))


def test_who_is_back_is_not_waited_for(tmp_path: Path) -> None:
    """Its group lists it, and its heartbeat was answered."""
    assert awaited_after(tmp_path, BACK, 0.1) == []
    assert judged_after(BACK, 0.1) == (0, 0)


def test_a_member_that_never_left_is_waited_for_until_it_is_heard_of(tmp_path: Path) -> None:
    """It was frozen for less than its session; a heartbeat later nobody is awaited."""
    paused = [listed("m0", "m1"), phase("faults"), fault("pause", "m0"), after(1), healed(), phase("drain")]
    assert awaited_after(tmp_path, paused, 0.1) == ["m0"]
    assert awaited_after(tmp_path, [*paused, heartbeat("m0")], 0.1) == []


def environment(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> TrialEnvironment:
    """Returns an environment of a drain that began now, in which these members are away, look by look."""
    bare: Any = TrialEnvironment.__new__(TrialEnvironment)
    looks = [*answers]
    bare.watch = Mock(phases={"drain": time.monotonic_ns()})
    bare.watch.update.return_value = bare.watch
    bare.watch.awaited_members = lambda **_: looks.pop(0) if len(looks) > 1 else looks[0]
    bare.console = SimpleNamespace(progress=Mock())
    monkeypatch.setattr(bare, "_expect_witnesses", Mock())
    return bare  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answers", "at_least_s", "at_most_s"),
    [([[]], 0.0, 0.5), ([["m1"], ["m1"], []], 1.0, 3.0), ([["m1"]], 0.7, 3.0)],
    ids=["all are back", "one comes back", "one does not, and the drain is cut off"],
)
def test_the_drain_waits_no_longer_than_it_has_to(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[str]], at_least_s: float, at_most_s: float
) -> None:
    """Not at all where all are back; a second after the last one came; and never beyond its own limit."""
    bare, began_s = environment(monkeypatch, *answers), time.monotonic()
    bare.wait_rejoined(at_most_s=0.8)
    assert at_least_s <= time.monotonic() - began_s <= at_most_s
