"""The house rules that can be counted: who may import what, and what only one room may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).parent.parent / "harness"
HOUSE, LAB = HARNESS / "kafka_trial", HARNESS / "lab"


def _nodes(module: Path, *kinds: type[Any]) -> list[Any]:
    return [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, kinds)]


def _imports(module: Path) -> Iterator[str]:
    for node in _nodes(module, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module == "kafka_trial":
            yield from (f"kafka_trial.{alias.name}" for alias in node.names)
        elif node.module:
            yield node.module


def _name(module: Path) -> str:
    """Returns `judge.lines`, `lab.bench.figures`: the package itself is not named."""
    inside = module.relative_to(HOUSE if HOUSE in module.parents else HARNESS)
    return ".".join(inside.with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(module): module for folder in (HOUSE, LAB) for module in sorted(folder.rglob("*.py"))}
IMPORTS = {name: list(_imports(module)) for name, module in MODULES.items()}
DOORS = {"cli", "verbs", "pytest_plugin", "__main__"}  # nobody imports them; nor the laboratory, but itself

# A room may import from the rooms named; rooms that are not listed may import anything but doors.
MAY_IMPORT = {
    "scenario": set(),
    "claim": set(),
    "errors": set(),
    "history": {"history", "errors"},
    "invariants": {"invariants", "claim", "history"},
    "judge": {
        "judge",
        "invariants",
        "claim",
        "history",
        "errors",
        "concurrency",
        "waiting",
        "cluster.spark_java",
    },
    "verdict.decide": {"verdict", "invariants", "claim", "errors"},
    "verdict": {"verdict", "audit", "judge", "invariants", "claim", "scenario", "history", "errors", "clockwork"},
    "report": {"report", "verdict", "history", "errors", "claim"},
    "audit": {
        "audit",
        "witness",
        "judge",
        "invariants",
        "verdict",
        "claim",
        "history",
        "errors",
        "waiting",
        "concurrency",
        "narrator",
        "cluster.admin",
        "cluster.offsets_topic",
        "__version__",
    },
    "witness": {"witness", "history", "errors", "waiting", "concurrency", "dialogue", "cluster"},
    "consumers": {"consumers", "history", "errors", "waiting", "concurrency", "cluster", "claim"},
    "workload": {"workload", "history", "errors", "waiting", "concurrency", "dialogue", "cluster", "scenario"},
    "cluster": {"cluster", "errors", "waiting", "concurrency", "supervisor", "history"},
}
STARTERS = {
    "threading.Thread",
    "Thread",
    "subprocess.Popen",
    "Popen",
    "os.fork",
    "multiprocessing.Process",
    "os.system",
}
SLEEPERS = {"time.sleep", "sleep"}
# A third-party library may be imported only in these rooms.
ONLY_IN = {
    "pyspark": {"judge"},
    "docker": {"cluster.containers", "consumers.container"},
    "testcontainers": {"cluster.containers", "consumers.container"},
    "confluent_kafka": {
        "workload.producer",
        "cluster.archive_clients",
        "control",
        "lab.bench.reader",
        "witness",
        "consumers.sink_topic",
    },
    "duckdb": {"lab.scale.duck"},
    "psycopg": {"audit.sink_table"},
    "sqlite3": {"audit.sink_table"},
    "kafka": {"workload.producer", "cluster.admin", "witness", "consumers.sink_topic"},
}


def test_imports_point_one_way() -> None:
    """A room imports only the rooms below it, and nobody imports a door."""
    wrong: list[tuple[str, str]] = []
    for name, targets in _ours():
        allowed = next((rooms for room, rooms in MAY_IMPORT.items() if _inside(name, {room})), None)
        upwards = [target for target in targets if allowed is not None and not _inside(target, allowed)]
        doors = [target for target in targets if _inside(target, DOORS) and not _inside(name, DOORS)]
        doors += [target for target in targets if _inside(target, {"lab"}) and not _inside(name, {"lab"})]
        wrong += [(name, target) for target in upwards + doors]
    assert wrong == []


def test_a_library_stays_in_its_room() -> None:
    """Spark, Docker, Toxiproxy's client and Kafka clients are imported only where the design says."""
    strangers = [
        (name, target)
        for name, targets in IMPORTS.items()
        for target in targets
        for library, rooms in ONLY_IN.items()
        if _inside(target, {library}) and not _inside(name, rooms)
    ]
    assert strangers == []


def test_only_one_room_starts_threads_and_processes_and_one_lets_time_pass() -> None:
    """Through `concurrency.py`, and `waiting.py`; the supervisor, which imports nothing of ours, does both."""
    calls = {name: {ast.unparse(node.func) for node in _nodes(module, ast.Call)} for name, module in MODULES.items()}
    started = {name: found for name in calls if (found := calls[name] & STARTERS)}
    slept = {name: found for name in calls if (found := calls[name] & SLEEPERS)}
    assert started.keys() == {"concurrency", "supervisor"}, started
    assert slept.keys() == {"waiting", "supervisor"}, slept


def _ours() -> Iterator[tuple[str, list[str]]]:
    """Yields each module with those of ours that it imports."""
    for name, targets in IMPORTS.items():
        own = [target for target in targets if target.split(".")[0] in ("kafka_trial", "lab")]
        yield name, [target.removeprefix("kafka_trial.") for target in own]


def _inside(name: str, rooms: set[str]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)
