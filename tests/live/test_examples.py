"""The examples in docs/examples are whole: each is built by the lines at the top of its consumer.toml, and passes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from builds import build, must_survive_kills
from kafka_trial.registry import CHECKOUT
from kafka_trial.trial.session import Session

EXAMPLES = sorted(file.parent for file in (CHECKOUT / "docs" / "examples").glob("*/consumer.toml"))
BUILT = ("venv", "node_modules", "target", "classes")  # where somebody has built one in its place

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(every=60)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_passes(example: Path, kafka_trial_session: Session, tmp_path: Path) -> None:
    """Given an example copied to a folder of its own, when members are killed, then its claim holds."""
    folder = shutil.copytree(example, tmp_path / example.name, ignore=shutil.ignore_patterns(*BUILT))
    lines = re.findall(r"^# Build: (.+)$", (folder / "consumer.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert lines, "consumer.toml begins with `# Build: COMMAND`, once or more"
    build(lines, folder)
    must_survive_kills(folder, kafka_trial_session)
