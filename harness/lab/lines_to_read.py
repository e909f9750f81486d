"""What must be read to understand an anomaly: the functions and classes of the checker that its query reaches by name.

A table of `Partitions` counts as a call of what makes it (`MAKERS`), for its columns mean what that does. Left out is
what every anomaly stands on: kernels, rows and their families, the trial's context, the vocabulary of anomalies.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.anomalies.invariant import Invariant, list_invariants
from kafka_trial.model.makers import MAKERS
from kafka_trial.model.partition import Partitions

ROOMS: Final = ("model", "anomalies")
STOOD_ON: Final = (
    *("kernels", "table", "batch", "rows", "families", "undecided", "trial_context", "clocks", "partition"),
    *("invariant", "claim_rule"),
)
Place = tuple[str, str]  # a module (`model.handlers`) and a name of it


@dataclass(frozen=True)
class _Module:
    definitions: Mapping[str, ast.FunctionDef | ast.ClassDef]
    imports: Mapping[str, Place]  # local name → what it is; a whole module has the name ""


def lines_by_anomaly(package: Path) -> dict[str, int]:
    """Returns for each anomaly of ours how many lines are read to understand it."""
    modules = {name: _read(file) for room in ROOMS for name, file in _files(package / room, room)}
    return {one.name: _lines(_reached(modules, _place(one)), modules) for one in list_invariants() if _is_ours(one)}


def _is_ours(invariant: Invariant) -> bool:
    return invariant.judge.__module__.startswith("kafka_trial.")


def _place(invariant: Invariant) -> Place:
    return invariant.judge.__module__.removeprefix("kafka_trial."), invariant.judge.__name__


def _files(folder: Path, room: str) -> Iterator[tuple[str, Path]]:
    yield from ((f"{room}.{file.stem}", file) for file in sorted(folder.glob("*.py")))


def _read(file: Path) -> _Module:
    tree = ast.parse(file.read_text())
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka_trial"):
            above = (node.module or "").removeprefix("kafka_trial").removeprefix(".")
            for alias in node.names:
                whole = above in ROOMS
                imports[alias.asname or alias.name] = (f"{above}.{alias.name}", "") if whole else (above, alias.name)
    return _Module(definitions, imports)


def _reached(modules: Mapping[str, _Module], start: Place) -> set[Place]:
    """Returns the definitions that one reaches, itself included."""
    waiting, reached = [start], set[Place]()
    while waiting:
        place = waiting.pop()
        if place in reached or place[0].rpartition(".")[2] in STOOD_ON or place[0] not in modules:
            continue
        if place[1] in modules[place[0]].definitions:
            reached.add(place)
            waiting += _used(modules, place)
    return reached


def _used(modules: Mapping[str, _Module], place: Place) -> Iterator[Place]:
    """Yields what a definition names: of its module, of another one, or a table."""
    module = modules[place[0]]
    for node in ast.walk(module.definitions[place[1]]):
        if isinstance(node, ast.Name):
            yield module.imports.get(node.id, (place[0], node.id))
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and module.imports.get(node.value.id, ("", "."))[1] == "":
                yield module.imports[node.value.id][0], node.attr
            if node.attr in TABLES:
                yield TABLES[node.attr]


def _lines(places: set[Place], modules: Mapping[str, _Module]) -> int:
    nodes = [modules[module].definitions[name] for module, name in places]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def _makers() -> dict[str, Place]:
    """Returns which function makes each table, by its name in `Partitions`."""
    made = {name: MAKERS[one.kind] for name, one in vars(Partitions).items() if hasattr(one, "kind")}
    return {name: (one.__module__.removeprefix("kafka_trial."), one.__name__) for name, one in made.items()}


TABLES: Final = _makers()
