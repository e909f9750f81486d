"""A broker that ended by itself says why in its log; one that a fault has ended is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.cluster.broker_exits import ended_by_themselves

FULL = """[2026-11-26 04:23:06,926] ERROR Error while appending records to __cluster_metadata-0 (org.apache.Channel)
java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
[2026-11-26 04:23:07,353] ERROR Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)
[2026-11-26 04:23:07,360] INFO going down (kafka.server.BrokerServer)
"""


def broker(folder: Path, number: int, exit_code: int | None, log: str | None = None) -> Any:
    place = folder / f"b{number}.log"
    if log is not None:
        place.write_text(log)
    return SimpleNamespace(id=number, alive=exit_code is None, exit_code=exit_code, server_log=place)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """With the last error, which is none of the exceptions below it; a log that is missing tells nothing."""
    brokers = [broker(tmp_path, 0, 1, FULL), broker(tmp_path, 1, None, FULL), broker(tmp_path, 2, 1)]
    assert ended_by_themselves(brokers) == (
        "broker 0 ended by itself (exit 1): Shutdown broker because all log dirs in /data have failed: "
        "No space left on device; broker 2 ended by itself (exit 1)"
    )


@pytest.mark.parametrize("exit_code", [None, -9, 143])
def test_what_a_fault_ends_has_not_ended_by_itself(exit_code: int | None, tmp_path: Path) -> None:
    """Killed, or asked to end; nor one that runs."""
    assert ended_by_themselves([broker(tmp_path, 0, exit_code, FULL)]) is None
