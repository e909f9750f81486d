"""What following Kafka's frames costs: a proxy with the passive pair of toxics on it against a bare one, by Go's own
benchmark, both in turn within one run."""

from __future__ import annotations

import os
import re
import subprocess

from kafka_trial.cluster.toxiproxy import BUILD, find_go
from kafka_trial.errors import UnjudgeableError

SIZES = {"100": "100 B", "1048576": "1 MB"}
LINE = re.compile(r"BenchmarkLane/(\d+)/(bare|cuts)\S*\s.*?([0-9.]+) MB/s")


def lane_throughput(runs: int) -> dict[str, dict[str, list[float]]]:
    """Returns megabytes a second, by the size of the frames and by `bare` or `cuts`, one value a run.

    Raises:
        UnjudgeableError: the benchmark failed.
    """
    found: dict[str, dict[str, list[float]]] = {told: {"bare": [], "cuts": []} for told in SIZES.values()}
    command = [str(find_go()), "test", "-run", "^$", "-bench", "Lane", "-benchtime", "2s", "./kafkacut"]
    for _ in range(runs):
        environment = os.environ | {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
        done = subprocess.run(command, cwd=BUILD, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnjudgeableError(f"Go's benchmark failed: {done.stdout[-500:]}{done.stderr[-500:]}")
        for size, kind, speed in LINE.findall(done.stdout):
            found[SIZES[size]][kind].append(float(speed))
    return found
