"""No librdkafka where trials are run and judged: it aborts its process when it breaks."""

from __future__ import annotations

import subprocess
import sys

import pytest

DOORS = ("cli", "verbs", "pytest_plugin", "check", "plugins")
TRIAL = ("session", "runs", "run", "setup", "judge_process")
ROOMS = ("audit.export", "cluster.archive", "cluster.detached", "cluster.doctor", "report.html")
OURS = [f"kafka_trial.{name}" for name in (*DOORS, *ROOMS, *(f"trial.{name}" for name in TRIAL))]
LABORATORY = ("calibration.campaign", "bench.measurements")
LOOK = "import sys, {0}; print([name for name in sys.modules if name.startswith('confluent_kafka')][:1])"


@pytest.mark.parametrize("module", [*OURS, *(f"lab.{name}" for name in LABORATORY)])
def test_no_door_loads_it(module: str) -> None:
    """Workload, readers, the control member and what trains archives are processes of their own; live,
    `test_ctrl_c_in_pytest` looks at the memory of a session in mid-trial."""
    loaded = subprocess.run([sys.executable, "-c", LOOK.format(module)], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
