"""What makes a history, and what judges it: a digest of each part of the harness, by what imports what.

A calibrated trial is tried again only when what makes histories has changed; a change of the judge asks for no trial,
but for another judgement of the histories that are kept. Either part is its definitions, wherever they stand: a
function that moves, a docstring, a comment or an import changes nothing, and neither does a new name that `FORMER`
knows the old one of. (An import that takes another function of the same name would go unnoticed: let it be renamed.)
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kafka_trial.registry import PACKAGE

MAKES = ("trial.run", "trial.environment", "trial.setup", "trial.spec", "registry")
MAKING_FOLDERS = (
    "cluster",
    "consumers",
    "history",
    "kafka_protocol",
    "nemesis",
    "witness",
    "workload",
)  # whole, plug-ins and data too
# Names of functions, classes, fields and arguments → what they were called when rows were made.
FORMER = {
    "HeartbeatRun": "Beats",
    "heartbeat_runs": "beats",
    "RESOURCES_EVERY_S": "EVERY_S",
    "offsets_records": "records",
    "FIRST_PORT": "FIRST",
    "LAST_PORT": "LAST",
    "BLOCK_PORTS": "BLOCK",
    "leave_confirmed": "leaves",
    "membership_confirmed": "keeps",
    "stay_by_logs": "stay_of",
    "stay_so_far": "waiting",
    "state_lines": "state_line",
    "make_thread_real_time": "schedule_before_others",
    "scenario_sink_problem": "suite_problem",
    "refusals_in_words": "too_busy",
    "refused_total": "refused_ever",
}
# Digests of earlier harnesses, or of a consumer on a scenario → those of today, where what differs makes no history.
SAME = {
    # Imported in circles: what a fault, an injection and their evidence are stood in other modules. Called the failure
    # of a member that had exited by other words. Not quite the same: the judge of a session warmed up when the faults
    # of its first trials began, which may have hidden what a sin does there; they are not tried again for it.
    "b8467080c529b04d": "70b347bede701a7b",
    "61db1965d45c48e3": "70b347bede701a7b",
    "9814cdd913803656": "70b347bede701a7b",  # the same, before a method of the pool went
    # stores-batches-at-hand-out: its header promises what it may show besides.
    "bc8c294eb07e85da": "a470cb0ed2d6fb4f",
    "cf87af1417ec67bb": "a470cb0ed2d6fb4f",
    # offsets-outside-transaction: the same.
    "48c2a14a1f954a92": "2c7d4df124ac3224",
    # When equal definitions counted twice, and names that an import changes did not.
    "45d070d136b4df4f": "fcaa1f018dfc3561",
    # Without cuts. They are put on the proxies in trials that have one, and the others go through a Toxiproxy that is
    # built from the same modules by a main of ours. Not tried again but for a sample: that of `make test`.
    "0a5193c178920874": "fcaa1f018dfc3561",
    # Without samples of how long members and brokers wait for a processor, by which a group that is late on a machine
    # that has got busier is given more time. Tried again: the sample of `make test`.
    "5f4c6ef002638d54": "fcaa1f018dfc3561",
    # Without images, databases and payloads of teams; the sink read requests by a parser of ours, not by h11. Trials of
    # commands are the same but for that parser. Tried again: the sample of `make test`.
    "aa91ce620823b429": "fcaa1f018dfc3561",
    # Knew no faults of handlers and of the topic, no loads that end or come in runs, and only the first crash point; a
    # look at the group that was not answered counted as one at a group that is not stable, and a leader that could not
    # tell its log end yet ended the trial. Of containers the kernel was asked otherwise. Trials of suites there were
    # are made as before, where they came to their end. Tried again: the sample of `make test`.
    "c860398b2093338c": "fcaa1f018dfc3561",
    # Looked at the end of a cut before its connection had let go: the fault was without evidence then.
    "adda8457f90bbda2": "fcaa1f018dfc3561",
    # Without brokers of their own settings, heap or image where a trial asks for them, and what a fixture of pytest
    # adds to a consumer's environment; a broker that dies at a cut, and a poll interval that expires, were told by
    # other evidence. No suite has either. Tried: sins of the suites that are new, and the sample of `make test`.
    "be7a539eae386e8e": "fcaa1f018dfc3561",
    # Did not ask before a trial of an image whether containers reach its sink; a line became an event in another way.
    "97e3b4d07e24e5a2": "fcaa1f018dfc3561",
    # Waited for what was committed past and never handled as long as for everything else, not only as long as a
    # partition may stand still; waited on for a group whose members had all ended; and did not write down what a member
    # had written last where too little was handled. Tried again: the sample of `make test`.
    "b4f53eb9e21eb74b": "fcaa1f018dfc3561",
    # Called some things by other names; quoted a member that had exited before all that it wrote was read; did not look
    # for the engine where testcontainers does; kept a thread and four descriptors of each question to a cluster that
    # was still booting, until no child could be started any more. Tried again: the sample of `make test`.
    "4aac5a34278d5e62": "fcaa1f018dfc3561",
    # Had no real-time threads, so that on a busy machine one of those that listen might hear late, alone; did not tell
    # on the terminal of connections that the sink turned away, nor of steps that take longer than planned; told waits
    # of handlers in tenths of a second; and refused a sink that cannot serve a fault in the same words, elsewhere.
    # Tried again: the sample of `make test`, and all on the suite that is new.
    "b37ef0f63c18d257": "fcaa1f018dfc3561",
    # Drained by other bounds: a drain ends once nothing can change the verdict, and waits for members that are not back
    # in their group. Counted what a member with an HTTP sink said as done, not its effects alone. Took for a lost event
    # whatever held the word "error". Rolled out to members at random: trials of rolling-deploy have another table now,
    # and were not tried again. Could send no record without a value beside others, and no part of a load. The rest is
    # what a command says. Tried again: the sample of `make test`.
    "3599a007fbfcfeab": "fcaa1f018dfc3561",
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
JUDGES = ("check", "trial.judge_process")
JUDGING_FOLDERS = ("invariants", "judge", "verdict")


@cache
def making_digest() -> str:
    """Returns a digest of all definitions by which a history is made, and of the data files beside them."""
    return _digest(_part(MAKES, MAKING_FOLDERS))


@cache
def judging_digest() -> str:
    """Returns a digest of all definitions by which a history is judged, and of the data files beside them."""
    return _digest(_part(JUDGES, JUDGING_FOLDERS))


def _digest(files: list[Path]) -> str:
    parts: set[str] = set()
    for file in files:
        parts |= _definitions(file) if file.suffix == ".py" else {hashlib.sha256(file.read_bytes()).hexdigest()}
    return hashlib.sha256("\0".join(sorted(parts)).encode()).hexdigest()[:16]


def plain_statements(source: str | bytes) -> list[ast.stmt]:
    """Returns the statements of a module's text without docstrings and comments, by former names; of imports those that
    give something another name."""
    plain = _Plain().visit(ast.parse(source))
    return [statement for statement in plain.body if not _names_exports(statement)]


def _definitions(file: Path) -> frozenset[str]:
    """Returns the statements of a module as plain text."""
    return _as_plain_text(file.read_bytes())


@cache
def _as_plain_text(source: bytes) -> frozenset[str]:
    return frozenset(ast.unparse(statement) for statement in plain_statements(source))


def _names_exports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"


class _Plain(ast.NodeTransformer):
    """Leaves out what does not run differently, and calls everything by its former name."""

    def visit_Import(self, node: ast.Import) -> None:
        """An import is none of the definitions: where a name comes from may change."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        """Neither is this one, but for the names that it changes."""
        changed = [alias for alias in node.names if alias.asname is not None]
        return ast.ImportFrom("", changed, 0) if changed else None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """What only types are taken from does not run."""
        return None if _is_for_types(node) else self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Drops the docstring, and takes the former names, of whatever has any."""
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(
            node
        ):
            node.body = node.body[1:]
        for name in ("id", "attr", "arg", "name"):
            if isinstance(called := getattr(node, name, None), str):
                setattr(node, name, FORMER.get(called, called))
        super().generic_visit(node)
        if isinstance(node, Documented | ast.If) and not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
        return node


def _has_docstring(node: Documented) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _part(modules: tuple[str, ...], folders: tuple[str, ...]) -> list[Path]:
    """Returns all files of some folders, and all that some modules import."""
    whole = {file for name in folders for file in (PACKAGE / name).rglob("*") if _is_source(file)}
    return sorted(whole.union(_closure(modules)))


def _is_source(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


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
    return tuple(found for name in _named(file.read_bytes()) if (found := _file(name)) is not None)


@cache
def _named(source: bytes) -> tuple[str, ...]:
    return tuple(_imports(ast.parse(source)))


def _imports(tree: ast.AST) -> Iterator[str]:
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
    for child in () if _is_for_types(tree) else ast.iter_child_nodes(tree):
        yield from _run(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _inner(name: str) -> str:
    return name.removeprefix("kafka_trial").lstrip(".")


def _file(name: str) -> Path | None:
    place = PACKAGE.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if name and file.is_file()), None)
