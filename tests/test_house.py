"""The house rules that can be counted: who may import what, and what only one room may do."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.errors import InputError
from kafka_trial.model.effects import duplicate_effects
from lab import lines_to_read
from lab.house import (
    PAGE_NAME,
    circles,
    count,
    count_checker,
    duplicated,
    floors,
    imported,
    importers,
    lines_of_sins,
    with_counted,
)
from lab.lines_to_read import lines_by_anomaly

HARNESS = Path(__file__).parent.parent / "harness"
HOUSE, LAB = HARNESS / "kafka_trial", HARNESS / "lab"
SINS_LINES_MAX = 2741


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

# Every package and every module of the root, with those that it may import beside itself: the lowest first, and nobody
# imports what stands below it here.
MAY_IMPORT: dict[str, set[str]] = {
    "__version__": set(),
    "errors": set(),
    "claim": {"errors"},
    "scenario": {"errors"},
    "history": {"errors"},
    "process": {"errors"},
    "cluster.user_cache": {"errors", "process"},
    "containers": {"errors", "process", "cluster.user_cache"},
    "model": {"claim", "history"},
    "anomalies": {"claim", "history", "model"},
    "kafka_protocol": {"__version__", "errors"},
    "cluster": {"errors", "process", "containers", "kafka_protocol"},
    "workload": {"errors", "scenario", "history", "process"},
    "consumers": {
        *("errors", "claim", "history", "process", "containers", "cluster"),
        *("workload.payload", "workload.payload_checks"),
    },
    "witness": {"errors", "history", "process", "cluster", "kafka_protocol"},
    "nemesis": {"errors", "scenario", "history", "process", "cluster", "consumers", "witness", "kafka_protocol"},
    "mirror": {"errors", "history"},
    "registry": {"errors", "scenario", "consumers.patched_consumer", "nemesis.cut_scenarios"},
    "plugins": {"errors", "registry", "anomalies", "model", "nemesis"},
    "judge": {"plugins", "errors", "claim", "history", "process", "anomalies", "model", "cluster.spark_java"},
    "verdict": {
        *("errors", "claim", "scenario", "history", "anomalies", "model", "judge", "witness.samplers"),
        "kafka_protocol.primitives",
    },
    "comparison": {"errors", "history", "cluster.versions"},
    "report": {
        *("errors", "claim", "history", "anomalies", "model", "verdict", "comparison"),
        *("judge.cache", "judge.line_index", "judge.consumer_settings", "cluster.versions"),
    },
    "option_checks": {"errors"},
    "starters": {"errors"},
    "trial.console": {"process"},
    "audit": {
        *("__version__", "errors", "claim", "history", "process", "anomalies", "model", "judge", "verdict", "witness"),
        "kafka_protocol",
        *("cluster.admin", "trial.console"),
        *("report.audits_page", "report.event_text", "report.lag_series", "report.report_data"),
    },
    "preflight": {"errors", "kafka_protocol", "cluster.admin"},
    "compatibility": {"errors", "history", "kafka_protocol", "cluster.versions"},
    "check": {"plugins", "errors", "claim", "history", "judge", "verdict", "report", "audit"},
    "trial": {
        *("__version__", "errors", "scenario", "registry", "mirror", "history", "process", "containers", "cluster"),
        *("model.liveness_bounds", "model.trial_context", "model.group_timeouts"),
        *("model.group_presence", "model.rejoining", "model.drain_backlog"),
        *(
            "kafka_protocol.offsets_records",
            "consumers",
            "workload",
            "witness",
            "nemesis",
            "plugins",
            "judge.warm_up",
            "verdict",
            "report.text",
            "report.certificate",
            "report.cut_page",
            "report.explain",
            "report.junit",
            "report.report_data",
            "report.row_files",
            "report.sealed_files",
            "check",
            "option_checks",
            "comparison",
        ),
    },
    "upgrade": {
        *("__version__", "errors", "scenario", "history", "process", "kafka_protocol", "cluster", "nemesis", "trial"),
        *("compatibility", "anomalies.invariant", "verdict.decide", "check", "registry"),
        *("report.certificate", "report.sealed_files", "report.html", "report.junit", "report.markdown"),
        *("report.event_text", "report.explain", "report.run_metadata"),
        *("report.lag_series", "model.wall_clock", "model.trial_context", "model.kernels"),
    },
    "pytest_plugin": {
        "errors",
        "option_checks",
        "history.store",
        "plugins",
        "registry",
        "scenario",
        "cluster",
        "trial",
        "consumers",
        "process.signals",
        *("report.trial_result", "report.markdown", "report.allure"),
    },
    "verbs": {
        *("errors", "claim", "registry", "history", "anomalies.invariant", "cluster", "consumers", "nemesis", "judge"),
        *("verdict", "report", "audit", "check", "trial", "preflight", "upgrade", "kafka_protocol", "starters"),
        "compatibility",
    },
    "cli": {
        *("__version__", "errors", "option_checks", "plugins", "verbs", "starters"),
        *("preflight.size_settings", "preflight.plan", "process.signals"),
    },
    "__main__": {"cli"},
    "lab": set(),  # it may import anything, and nobody imports it
}
# What an anomaly may import of `anomalies/` and `model/`, and what some still import beside that.
OF_ALL_ANOMALIES = {"anomalies.invariant", "anomalies.claim_rule"}
TABLES = {"partition", "group", "table", "kernels", "undecided", "claim"}
ASK_MORE = {
    "cold_reads": {"cold_reads", "history.consequences"},
    "head_of_line": {"head_of_line", "occupied_intervals", "progress"},
    "liveness": {"liveness_bounds", "stuck_classes", "trial_context"},
    "never_rejoined": {"rejoining", "trial_context", "wall_clock"},
    "processes": {"history.consequences", "liveness_bounds", "trial_context", "wall_clock"},
    "resources": {"trial_context"},
    "starvation": {"progress", "starvation"},
    "transactions": {"progress", "trial_context", "wall_clock"},
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
    "docker": {"containers", "cluster.images", "lab.images"},
    "confluent_kafka": {
        "workload.producer",
        "workload.writers",
        "workload.used_offsets",
        "cluster.archive_clients",
        "nemesis.cold_reader",
        "trial.control_member",
        "lab.bench.reader",
        "lab.cases.large_records",
        "lab.cases.refusing_hops",
        "witness",
        "consumers.sink_topic",
    },
    "duckdb": {"lab.scale.duck"},
    "allure_commons": {"report.allure"},
    "psycopg": {"audit.sink", "cluster.postgres"},
    "sqlite3": {"audit.sink"},
    "kafka": {"kafka_protocol", "workload.producer", "cluster.admin", "witness", "consumers.sink_topic"},
}


def test_imports_point_one_way() -> None:
    """Every module has its room; it imports only rooms that are named for it, which all stand above it in the table."""
    order = list(MAY_IMPORT)
    wrong: list[tuple[str, str]] = []
    for name, targets in _ours():
        room = _room(name)
        may = {room, *(MAY_IMPORT[room] if room != "lab" else order)}
        wrong += [(name, target) for target in targets if not _inside(target, may)]
    upwards = [
        (room, other)
        for number, room in enumerate(order)
        for other in MAY_IMPORT[room]
        if order.index(_room(other)) >= number
    ]
    assert (wrong, upwards) == ([], [])


def test_anomalies_ask_the_tables() -> None:
    """An anomaly is a query: it asks the tables of `model/partition.py` or of the group, and no other anomaly."""
    asked = {
        name.removeprefix("anomalies."): {target.removeprefix("model.") for target in targets}
        for name, targets in ((name, {*imported(module, MODULES)}) for name, module in MODULES.items())
        if name.startswith("anomalies.") and name not in OF_ALL_ANOMALIES
    }
    beyond = {name: more for name, targets in asked.items() if (more := targets - OF_ALL_ANOMALIES - TABLES)}
    assert beyond == ASK_MORE


def test_other_judges_share_no_code_with_the_judge() -> None:
    """The naive checker and the worlds read events; of ours they know nothing else, nor each other. Only the
    comparison asks the judge."""
    theirs = {
        judge: {(name, one) for name, module in MODULES.items() if _inside(name, {judge}) for one in _asks(module)}
        for judge in ("lab.naive", "lab.worlds")
    }
    shared = {
        judge: {
            (name, one) for name, one in pairs if not _inside(one, {judge, "history.event", "history.consequences"})
        }
        for judge, pairs in theirs.items()
    }
    asked = {"anomalies.claim_rule", "claim", "judge.judge", "model.trial_context", "verdict.decide"}
    assert shared == {"lab.naive": set(), "lab.worlds": {("lab.worlds.compare", one) for one in asked}}


def _asks(module: Path) -> set[str]:
    return {*imported(module, MODULES)}


def test_imports_never_lead_back() -> None:
    """No module stands on itself, not even by an import for types alone, or inside a function."""
    house = {name: {*imported(module, MODULES)} for name, module in MODULES.items() if not _inside(name, {"lab"})}
    try:
        TopologicalSorter(house).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


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
    """Those of `process/`: threads, children, waiting; the supervisor, which imports nothing of ours, does both."""
    calls = {name: {ast.unparse(node.func) for node in _nodes(module, ast.Call)} for name, module in MODULES.items()}
    started = {name: found for name in calls if (found := calls[name] & STARTERS)}
    slept = {name: found for name in calls if (found := calls[name] & SLEEPERS)}
    assert started.keys() == {"process.threads", "process.children", "process.supervisor"}, started
    assert slept.keys() == {"process.waiting", "process.supervisor"}, slept


def test_no_six_lines_stand_twice() -> None:
    """Of code in the house: one shared piece can say it."""
    assert duplicated([module for name, module in MODULES.items() if not _inside(name, {"lab"})]) == []


def test_what_stands_twice_is_found(tmp_path: Path) -> None:
    """Six lines, in two modules or in one, whatever their indent and what is no code between; five are not."""
    six = [f"line_{number} = {number}" for number in range(6)]
    once, again, five = (tmp_path / f"{name}.py" for name in ("once", "again", "five"))
    once.write_text("\n".join(["import os", *six]))
    again.write_text("if True:\n    " + "\n\n    # told\n    ".join(six))
    five.write_text("\n".join(["import os", *six[:5], "line_6 = 6"]))
    assert duplicated([once, five]) == []
    assert duplicated([once, again]) == [f"{once}:2 and {again}:2"]


def test_sins_and_twins_are_short() -> None:
    """All of their lines together: a diff for each, with one line of context, and what its TOML files do not extend."""
    assert 0 < lines_of_sins(HARNESS.parent / "fixtures") <= SINS_LINES_MAX


def test_a_circle_is_counted(tmp_path: Path) -> None:
    """Once, whatever leads to it; an import for types or inside a function closes it too."""
    (tmp_path / "one.py").write_text("from kafka_trial.two import x")
    (tmp_path / "two.py").write_text("def f():\n    from kafka_trial import three")
    (tmp_path / "three.py").write_text("import kafka_trial.two")
    assert circles(tmp_path) == [{"two", "three"}]


def test_importers_and_floors_are_counted(tmp_path: Path) -> None:
    """Each module once, however often it imports another; a floor is one more than the highest of those below."""
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "low.py").write_text("x = 1")
    (tmp_path / "room" / "high.py").write_text("from kafka_trial.room.low import x\nfrom kafka_trial.room import low")
    (tmp_path / "top.py").write_text("from kafka_trial.room import high, low")
    assert importers(tmp_path) == {"room.low": 2, "room.high": 1}
    assert floors(tmp_path, ("room",)) == 2


def test_what_makes_a_table_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An anomaly is not understood by its query alone."""
    whole = lines_by_anomaly(HOUSE)
    monkeypatch.setattr(lines_to_read, "TABLES", {})
    query = lines_by_anomaly(HOUSE)
    maker = inspect.getsource(inspect.unwrap(duplicate_effects)).splitlines()
    assert whole["duplicate-effect"] - query["duplicate-effect"] == len(maker) - 1  # its decorator
    assert whole["skipped"] > query["skipped"] + 1000


def test_the_page_has_what_is_counted() -> None:
    """Each in its row; a page without that row is refused, what is measured is left."""
    counted = dict.fromkeys(count(HOUSE, HARNESS.parent) | count_checker(HOUSE), "7")
    page = with_counted((HARNESS.parent / "reports" / PAGE_NAME).read_text(), counted, at="abc")
    assert page.count(" 7 (abc) |") == len(counted) > 4
    with pytest.raises(InputError, match=r"has 0 rows '\| lines \| … \|'"):
        with_counted("| words | 2 | 3 | 4 |\n", {"lines": "7"}, at="abc")


def _ours() -> Iterator[tuple[str, list[str]]]:
    """Yields each module with those of ours that it imports; packages without code of their own are left out."""
    for name, targets in IMPORTS.items():
        own = [target for target in targets if target.split(".")[0] in ("kafka_trial", "lab")]
        if name != "__init__":
            yield name, [target.removeprefix("kafka_trial.") for target in own]


def _room(name: str) -> str:
    """Returns which entry of the table a module belongs to: the most exact one."""
    rooms = [room for room in MAY_IMPORT if _inside(name, {room})]
    assert rooms, f"{name} belongs to no room of MAY_IMPORT: add its package there"
    return max(rooms, key=len)


def _inside(name: str, rooms: set[str]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)
