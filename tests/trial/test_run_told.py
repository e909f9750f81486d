"""What a run says of its phases."""

from __future__ import annotations

import pytest

from kafka_trial.scenario import Limits
from kafka_trial.trial.run import drain_told


@pytest.mark.parametrize(
    ("bound_s", "told"),
    [
        (16.4, "until all is handled and committed; the group may take 16 s"),
        (
            4282.0,
            "until all is handled and committed, cut off after 300 s (limits.drain_s); the group might take 4282 s",
        ),
    ],
)
def test_the_drain_says_what_ends_it(bound_s: float, told: str) -> None:
    """That all is done, the time the group may take by its own settings, or the scenario's limit where that is less."""
    assert drain_told(bound_s, Limits(drain_s=300.0)) == told
