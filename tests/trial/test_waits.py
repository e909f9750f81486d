"""How long a run waits for a group that does nothing, or that nobody is left of."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.errors import WaitTimeout
from kafka_trial.history.recorder import Recorder
from kafka_trial.model.liveness_bounds import Timing
from kafka_trial.scenario import Limits, Scenario
from kafka_trial.trial import environment as environment_module
from kafka_trial.trial.environment import TrialEnvironment

LONG_S = 60.0
WORDS = "m0: its last words in logs/m0-0.stderr: no such table"
REFUSED_TOO_MANY = "the sink answered 503 to 7 connections"


def environment(
    monkeypatch: pytest.MonkeyPatch, *, handled: int = 0, committed: bool = False, deserted: bool = False
) -> Any:
    """An environment whose group is behind, and stays so; of the rest nothing is there."""
    bare = TrialEnvironment.__new__(TrialEnvironment)
    bare.console, bare.witnesses = Mock(), ()
    bare.group = Mock(deserted=deserted, last_words=WORDS)
    bare.progress = Mock(committed={0: 1} if committed else {})
    bare.progress.handled_total.return_value = handled
    bare.progress.update.return_value = bare.progress
    limits = Limits(ready_s=0.3)
    bare.trial_spec = Mock(consumer=Mock(spec=ConsumerSpec), scenario=Scenario("test", limits=limits))
    bare.trial_spec.consumer.progress = SimpleNamespace(interval_s=0.2, kind="kafka")
    answers = {"_behind": (5, 5), "_expect_witnesses": None, "_busier_s": 0.0, "ends": {0: 5}}
    for name, answer in answers.items():
        monkeypatch.setattr(bare, name, Mock(return_value=answer))
    return bare


def waited_s(act: Callable[[], object]) -> float:
    began_s = time.monotonic()
    act()
    return time.monotonic() - began_s


@pytest.mark.parametrize(
    ("seen", "within_s", "at_most_s"),
    [
        ({"handled": 1}, LONG_S, 0.8),
        ({"committed": True}, LONG_S, 0.8),
        ({}, 0.8, LONG_S),  # B is over before the limit: then the judge can say who was late
    ],
)
def test_a_group_that_works_or_can_be_judged_has_its_time(
    monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any], within_s: float, at_most_s: float
) -> None:
    """The drain ends at its bound, or at its limit, and not before."""
    bare = environment(monkeypatch, **seen)
    drain = {"within_s": within_s, "at_most_s": at_most_s, "stalled_s": 0.1}
    assert waited_s(lambda: bare.wait_converged({0: 5}, **drain)) >= 0.8


def test_a_group_that_never_did_anything_is_not_waited_for_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit cuts its bound off, so nobody will say that it was late: a while without a first record is enough."""
    bare = environment(monkeypatch)
    drain = {"within_s": 2 * LONG_S, "at_most_s": LONG_S, "stalled_s": 0.1}
    assert 0.3 <= waited_s(lambda: bare.wait_converged({0: 5}, **drain)) < LONG_S / 2


def test_what_was_skipped_is_waited_for_as_long_as_a_partition_may_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is committed, and of the five records that were not handled none comes."""
    bare = environment(monkeypatch, handled=1, committed=True)
    monkeypatch.setattr(bare, "_behind", Mock(return_value=(0, 5)))
    drain = {"within_s": LONG_S, "at_most_s": LONG_S, "stalled_s": 1.5}
    assert 1.5 <= waited_s(lambda: bare.wait_converged({0: 5}, **drain)) < LONG_S / 2


def test_what_a_group_forwards_into_its_own_topic_is_to_be_done_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was there at first is done, and by then there is more."""
    bare = environment(monkeypatch, handled=1, committed=True)
    asked: list[dict[int, int]] = []

    def behind(ends: dict[int, int]) -> tuple[int, int]:
        asked.append(ends)
        return (0, 0) if ends == {0: 5} or len(asked) > 10 else (1, 1)

    monkeypatch.setattr(bare, "_behind", behind)
    monkeypatch.setattr(bare, "ends", Mock(return_value={0: 6}))
    bare.wait_converged({0: 5}, within_s=LONG_S, at_most_s=LONG_S, stalled_s=0.1)
    assert (asked[0], asked[-1]) == ({0: 5}, {0: 6})


def test_a_deserted_group_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never comes to rest with as many members as before."""
    bare = environment(monkeypatch, deserted=True)
    bare.watch = Mock(lost_until_ns=Mock(return_value=0))
    monkeypatch.setattr(bare, "timing", Mock(return_value=Timing(LONG_S, LONG_S, 1.0)))
    monkeypatch.setattr(bare, "_fed", Mock(return_value=False))
    with pytest.raises(WaitTimeout, match="all members have ended by themselves"):
        bare.await_stable(lambda: None)


@pytest.mark.parametrize(("handled", "told"), [(99, [{"count": 99, "message": WORDS}]), (100, [])])
def test_where_too_little_was_handled_a_members_last_words_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, handled: int, told: list[dict[str, Any]]
) -> None:
    """A verdict takes 100 records: of fewer, why may stand in a log alone."""
    bare = environment(monkeypatch, handled=handled)
    with Recorder(tmp_path, "run") as run:
        bare.run = run
        bare.note_few_handled()
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]
    assert [{name: line[name] for name in ("count", "message")} for line in lines] == told


def test_a_calibration_without_a_record_says_what_a_member_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """While whoever watches can still stop the trial; and how often the sink had no room for a member."""
    bare = environment(monkeypatch)
    bare.context = Mock(sink=Mock(refusals_in_words=REFUSED_TOO_MANY))
    bare.run, bare._producer = Mock(), Mock(opening_burst=Mock(return_value=300))
    monkeypatch.setattr(bare, "ends", Mock(return_value={("t", 1): 100, ("t", 0): 200}))
    monkeypatch.setattr(environment_module, "CALIBRATION_WITHIN_S", 0.1)
    monkeypatch.setattr(bare, "_drained", Mock(return_value=0))
    bare.calibrate()
    assert [call.args[0] for call in bare.console.say.mock_calls] == [
        "calibrated: 0 of 300 records of the opening burst in 1.0 s, 0/s",
        f"nothing was handled yet; {WORDS}",
        REFUSED_TOO_MANY,
    ]
    burst = [{"topic": "t", "partition": 0, "count": 200}, {"topic": "t", "partition": 1, "count": 100}]
    assert [call.kwargs["entries"] for call in bare.run.record.mock_calls] == [burst]
