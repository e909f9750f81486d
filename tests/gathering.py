"""Gathers the histories that tests judge, for `python -m lab.frozen --gather FILE`; a plugin of pytest.

pytest tests/invariants tests/judge --gather-histories FILE
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import histories
from kafka_trial.history.event import Event
from kafka_trial.model.trial_context import Settings
from lab.frozen.histories import FrozenHistory, frozen_history, write_histories

OPTION = "--gather-histories"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that names the file."""
    parser.addoption(OPTION, type=Path, metavar="FILE", help="keep the histories that tests judge")


def pytest_configure(config: pytest.Config) -> None:
    """Gathers only where a file is named."""
    if (file := config.getoption(OPTION)) is not None:
        if config.getoption("numprocesses", None):
            raise pytest.UsageError(f"{OPTION} wants one process: several would write one file")
        config.pluginmanager.register(Gatherer(file))


class Gatherer:
    """Has every history noted that tests judge by `histories.judgement`, with the settings that it is judged by."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._gathered: list[FrozenHistory] = []
        self._judge: Callable[..., Any] = histories.judge_events
        histories.judge_events = self._noting

    def _noting(self, events: Iterable[Event], settings: Settings, **asked: Any) -> Any:
        kept = [*events]
        self._gathered.append(frozen_history(kept, asdict(settings)))
        return self._judge(kept, settings, **asked)

    def pytest_sessionfinish(self) -> None:
        """Writes them down."""
        write_histories(self._gathered, self._file)
