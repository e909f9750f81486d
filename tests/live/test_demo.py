"""`make demo`: a sound consumer acquitted and a faulty one convicted, in run folders made by this very command."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import FAIL, PASS
from kafka_trial.trial.runs import Demonstration, ask_demonstration, demonstrate, demonstration_in_words
from kafka_trial.trial.session import Session


@pytest.mark.cluster
@pytest.mark.rotates(together="dear")
@pytest.mark.spark
def test_the_demo_is_as_it_must_be_and_swapped_it_is_not(
    kafka_trial_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 0 as it is, 1 with the two swapped; the brokers' logs of both trials lie in their run folders."""
    monkeypatch.chdir(tmp_path)
    asked = ask_demonstration(
        scenario="member-paused",
        sound="python-poll-and-work",
        faulty="commits-backwards",
        kafka_version=None,
        seed=7,
    )
    shown = demonstrate(kafka_trial_session, asked)
    swapped = Demonstration(sound=shown.faulty, faulty=shown.sound)
    assert (shown.exit_status, swapped.exit_status) == (PASS, FAIL), demonstration_in_words(shown)
    for trial_outcome in (shown.sound, shown.faulty):
        assert trial_outcome.folder.path.is_relative_to(tmp_path)
        assert [log.name for log in sorted(trial_outcome.folder.logs.glob("b*-server.log")) if log.stat().st_size] == [
            "b0-server.log",
            "b1-server.log",
            "b2-server.log",
        ]
