"""A group that is on no mirror cannot go back: nobody ends its members for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cluster.mirror_maker import MirrorSettings
from kafka_trial.errors import UnjudgeableError
from kafka_trial.nemesis.fail_over import LEFT
from kafka_trial.trial.mirror import MirrorSide


def test_a_group_that_never_came_to_the_mirror_is_left_alone() -> None:
    """As after a fail-over that failed."""
    asked: list[str] = []
    source: Any = SimpleNamespace(group=SimpleNamespace(leave_all=lambda: asked.append("leave")))
    nothing: Any = None
    settings = MirrorSettings([], [])
    side = MirrorSide(source, nothing, nothing, (), settings, (), nothing, {}, lambda back: asked.append("move"))
    with pytest.raises(UnjudgeableError, match="not on the mirror"):
        side.fail_back(LEFT, margin_s=0.0)
    assert asked == []
