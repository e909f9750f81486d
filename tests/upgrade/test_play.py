"""An upgrade that cannot go on says what was seen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.errors import UnjudgeableError, WaitTimeout
from kafka_trial.trial.console import Console
from kafka_trial.upgrade.play import UpgradePlay


@pytest.mark.parametrize("seen", [[], ["version-roll had no effect: process 7 still runs"]])
def test_a_broker_that_leads_nothing_is_told_with_what_a_step_did_not_do(seen: list[str], tmp_path: Path) -> None:
    """The wait for leaders is the last to notice that a broker was not started again."""

    def in_vain(*, within_s: float) -> None:
        raise WaitTimeout(f"waited {within_s:g} s for leaders, in vain")

    nobody: Any = None
    play = UpgradePlay(nobody, {}, nobody, tmp_path, Console(quiet=True), seed=1)
    play._without_effect += seen
    environment: Any = SimpleNamespace(context=SimpleNamespace(restore_leaders=in_vain))
    with pytest.raises(UnjudgeableError) as told:
        play._restore_leaders(environment)
    assert str(told.value) == "; ".join(["waited 60 s for leaders, in vain", *seen])
