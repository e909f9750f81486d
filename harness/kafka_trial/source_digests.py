"""What makes a history, and what judges it: a digest of each part of the harness, by what imports what.

A calibrated trial is tried again only when what makes histories has changed; a change of the judge asks for no trial,
but for another judgement of the histories that are kept.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent
MAKES = ("run", "stage", "setting", "question", "registry")
MAKING_FOLDERS = ("cluster", "consumers", "history", "nemesis", "witness", "workload")  # whole, plug-ins and data too
JUDGES = ("judging", "judge_process")
JUDGING_FOLDERS = ("invariants", "judge", "hearing")


@cache
def making_digest() -> str:
    """Returns a digest of all modules by which a history is made, and of the data files beside them."""
    return _digest(_part(MAKES, MAKING_FOLDERS))


@cache
def judging_digest() -> str:
    """Returns a digest of all modules by which a history is judged."""
    return _digest(_part(JUDGES, JUDGING_FOLDERS))


def _part(modules: tuple[str, ...], folders: tuple[str, ...]) -> list[Path]:
    """Returns all files of some folders, and all that some modules import."""
    whole = {file for name in folders for file in (PACKAGE / name).rglob("*") if _is_source(file)}
    return sorted(whole.union(_closure(modules)))


def _is_source(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _closure(names: tuple[str, ...]) -> list[Path]:
    """Returns the files of these modules and of all that they import, directly or not, in order."""
    waiting, found = [file for name in names if (file := _file(name))], set[Path]()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    return sorted(found)


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    return tuple(found for name in _named(ast.parse(file.read_bytes())) if (found := _file(name)) is not None)


def _named(tree: ast.AST) -> Iterator[str]:
    """Yields the modules of ours that are imported; not those that only types are taken from."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (_inner(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "kafka_trial":
            yield _inner(node.module)
            yield from (f"{_inner(node.module)}.{alias.name}".lstrip(".") for alias in node.names)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a module that may be executed: all but the body of `if TYPE_CHECKING`."""
    yield tree
    typed = isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING"
    for child in () if typed else ast.iter_child_nodes(tree):
        yield from _run(child)


def _inner(name: str) -> str:
    return name.removeprefix("kafka_trial").lstrip(".")


def _file(name: str) -> Path | None:
    place = PACKAGE.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if name and file.is_file()), None)
