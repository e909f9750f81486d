"""What live tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def quick() -> Path:
    """Returns the scenario file of a whole trial in little time."""
    return Path(__file__).with_name("quick.toml")
