"""How pytest tells a trial: *unknown* is an error of the call, and a trial that took several tries is told as such.

pytest knows errors of set-up and tear-down only. So the report of an unknown trial stays one of the call, and its
status, and its element in the JUnit file, say *error*.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from kafka_trial.errors import UnjudgeableError

TRIED_AGAIN = "tried again"


class UnknownVerdictError(UnjudgeableError):
    """A trial whose verdict is unknown, where a test asked it to pass."""


class Outcomes:
    """The hooks of one pytest session that tell verdicts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Marks the report of an unknown trial: nothing was found out about the consumer."""
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, UnknownVerdictError):
            report.longrepr = str(call.excinfo.value)
            report.unknown = True  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Counts an unknown trial among the errors."""
        return ("error", "E", "ERROR") if getattr(report, "unknown", False) else None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Makes an error of what the JUnit file, written before, calls a failure."""
        junit = _junit(self._config) if getattr(report, "unknown", False) else None
        if junit is not None:
            for node in junit.node_reporter(report).nodes:
                if node.tag == "failure":
                    node.tag = "error"
                    junit.stats["failure"] -= 1
                    junit.stats["error"] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names the trials that were tried again because their environment had made them unknown."""
        reports = (report for reports in terminalreporter.stats.values() for report in reports)
        told = [
            (report.nodeid, text)
            for report in reports
            if getattr(report, "when", None) == "call"
            for name, text in report.user_properties
            if name == TRIED_AGAIN
        ]
        if told:
            terminalreporter.section("kafka-trial: unknown, tried again")
            for node, text in told:
                terminalreporter.line(f"{node}: {text}")


def _junit(config: pytest.Config) -> Any:
    """Returns what writes the JUnit file; None where nobody asked for one."""
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if type(plugin).__name__ == "LogXML"), None)
