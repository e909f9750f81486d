"""The house rules that can be counted: who may import what, and what only one room may do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "harness" / "kafka_trial"
MODULES = sorted(HOUSE.rglob("*.py"))
DOORS = {"cli", "verbs", "pytest_plugin", "__main__"}

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
    "case": {"invariants"},
    "claim_rules": {"invariants", "claim"},
    "sentences": {"invariants"},
    "cascades": {"case", "invariants"},
    "verdict": {"case", "cascades", "claim_rules", "sentences", "invariants", "claim", "errors"},
    "verdict_files": {"verdict", "case", "claim_rules", "sentences", "claim", "history"},
    "report": {"report", "verdict", "claim_rules", "history", "errors", "claim"},
    "audit": {
        "audit",
        "witness",
        "judge",
        "invariants",
        "case",
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
# A third-party library may be imported only in these rooms.
ONLY_IN = {
    "pyspark": {"judge"},
    "docker": {"cluster.containers", "consumers.container"},
    "testcontainers": {"cluster.containers", "consumers.container"},
    "confluent_kafka": {
        "workload.producer",
        "cluster.archive_clients",
        "control",
        "bench_reader",
        "witness",
        "consumers.sink_topic",
    },
    "duckdb": {"scale.duck"},
    "psycopg": {"audit.sink_table"},
    "sqlite3": {"audit.sink_table"},
    "kafka": {"workload.producer", "cluster.admin", "witness", "consumers.sink_topic"},
}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_point_one_way(module: Path) -> None:
    """A room imports only the rooms below it, and nobody imports a door."""
    name = _name(module)
    allowed = next((rooms for room, rooms in MAY_IMPORT.items() if _inside(name, {room})), None)
    ours = [target for target in _imports(module) if target.startswith("kafka_trial.")]
    inner = [target.removeprefix("kafka_trial.") for target in ours]
    wrong = [target for target in inner if allowed is not None and not _inside(target, allowed)]
    doors = [target for target in inner if _inside(target, DOORS) and not _inside(name, DOORS)]
    assert wrong + doors == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_library_stays_in_its_room(module: Path) -> None:
    """Spark, Docker, Toxiproxy's client and Kafka clients are imported only where the design says."""
    name = _name(module)
    strangers = [
        target
        for target in _imports(module)
        for library, rooms in ONLY_IN.items()
        if _inside(target, {library}) and not _inside(name, rooms)
    ]
    assert strangers == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_only_concurrency_starts_threads_and_processes(module: Path) -> None:
    """Threads and child processes are started only through `concurrency.py` (and the supervisor behind it)."""
    if _name(module) in {"concurrency", "supervisor"}:
        pytest.skip("the room where it is done")
    started = [
        f"{node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func)
        in {
            "threading.Thread",
            "Thread",
            "subprocess.Popen",
            "Popen",
            "os.fork",
            "multiprocessing.Process",
            "os.system",
        }
    ]
    assert started == []


def test_nothing_sleeps_outside_the_waiting_room() -> None:
    """Only `waiting.py` lets time pass (the supervisor, which imports nothing of ours, excepted)."""
    sleepers = [
        f"{_name(module)}:{node.lineno}"
        for module in MODULES
        if _name(module) not in {"waiting", "supervisor"}
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert sleepers == []


def _name(module: Path) -> str:
    return ".".join(module.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__")


def _inside(name: str, rooms: set[str]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def _imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "kafka_trial":
                yield from (f"kafka_trial.{alias.name}" for alias in node.names)
            else:
                yield node.module
