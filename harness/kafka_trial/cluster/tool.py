"""A tool that provisioning runs: Ivy, Go, Kafka's StorageTool."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_trial.errors import StartError, WaitTimeout
from kafka_trial.process.children import ChildProcesses

MADE_WITHIN_S = 900


def run_tool(
    name: str, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs one tool, which dies with the harness (a second one must not write where it still writes)."""
    with tempfile.TemporaryFile() as output:
        with ChildProcesses(name) as child_processes:
            child = child_processes.spawn(name, command, cwd=cwd, env=env, stdout=output, stderr=output)
            try:
                status = child.wait(within_s=MADE_WITHIN_S)
            except WaitTimeout as error:
                raise StartError(f"{error}. Check the network, then run again: what has arrived is kept.") from error
        output.seek(0)
        return status, output.read().decode(errors="replace")


def tail(text: str, *, lines: int = 6) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-1200:]
