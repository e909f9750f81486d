"""What the tests of the reports share."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.history.store import RunFolder
from literal_run import make_folder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Returns a literal run folder that has been judged."""
    return make_folder(tmp_path)
