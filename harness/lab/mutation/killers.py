"""One mutant before its judges: the tests of the checker, then the naive checker.

Each mutant has a process of its own, forked from a server that has the libraries imported already, and none of our
modules. There the mutated module is handed to the import system in place of the file; nothing on disk is touched. First
the tests of tests/invariants and tests/verdict, in an order that makes an early end likely, up to the first that fails;
then the naive checker's word on stored histories of the sample that `test_two_judges_agree.py` draws. Whatever breaks
kills.

Two things are not done again for every mutant. A file of tests in which nothing calls the mutated function is left out:
it cannot notice. And the histories of the tests are read once, and kept, for the mutants of modules that reading them
does not call.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from kafka_trial.registry import CHECKOUT
from lab.mutation.operators import MODULE

TESTS = CHECKOUT / "tests"
PRODUCT = "kafka_trial"
SOURCES = CHECKOUT / "harness" / PRODUCT
PACKAGES = ("model", "anomalies")  # what is mutated
LIBRARIES = ["numpy", "orjson", "pyarrow.compute", "pyarrow.json", "pyarrow.parquet", "pytest", "hypothesis"]
AGREEMENT = "tests/judge/test_two_judges_agree.py::test_both_judges_say_the_same"
JUDGED_BY = ("invariants", "verdict")  # what an invariant finds, and what its rule makes of it
HISTORIES_PER_SIN = 5  # of those that the agreement test draws
KEPT = ("invariant",)  # modules that keep what a first call returned
CPU_S_MAX = 600
WALL_S_MAX = 1800.0
MEMORY_BYTES_MAX = 8 * 2**30


@dataclass(frozen=True)
class Outcome:
    """`killed`, with what killed it; `survived`; or `broken`, where the judges could not be asked."""

    result: str
    by: str = ""


class Judges:
    """Judges mutants, one at a time; `folder` is an empty one for what they share."""

    def __init__(self, folder: Path, *, histories_per_sin: int = HISTORIES_PER_SIN) -> None:
        self._folder = folder
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)
        self._sayings = folder / "sayings.pickle"
        self._calls = folder / "calls.pickle"
        self._callers: dict[tuple[str, str], set[str]] = {}
        self._reading: set[str] = set()
        self._histories_per_sin = histories_per_sin

    def prepare(self, order: Sequence[Path]) -> Outcome:
        """Has the naive checker say its word, and every judge see the modules as they are: that must survive."""
        prepared = self._asked(_say, self._sayings, self._histories_per_sin)
        if not order or prepared.result != "survived":
            return prepared
        unchanged = self._asked(_judge, "", "", [str(path) for path in order], self._sayings, self._calls)
        if unchanged.result == "survived":
            self._callers, self._reading = pickle.loads(self._calls.read_bytes())
        return unchanged

    def judge(self, module: str, source: str, order: Sequence[Path], *, function: str = MODULE) -> Outcome:
        """Returns what becomes of a module's text; `order` is that of the test files, `function` the one that is
        changed."""
        calling = [str(path) for path in order if self.calls(path, module, function)]
        kept = bool(self._callers) and not _is_imported(function) and module not in self._reading
        return self._asked(_judge, module, source, calling, self._sayings, None, kept)

    def calls(self, file: Path, module: str, function: str) -> bool:
        """Whether a file of tests calls a function; what an import executes, or a cache keeps, every file does."""
        callers = self._callers.get((module, function.split(".")[0]), set())
        return _is_imported(function) or module in KEPT or not callers or str(file) in callers

    def _asked(self, function: Any, *arguments: Any) -> Outcome:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_bounded, args=(function, theirs, self._folder, *arguments))
        process.start()
        theirs.close()
        try:
            outcome = ours.recv() if ours.poll(WALL_S_MAX) else Outcome("killed", f"no answer in {WALL_S_MAX:g} s")
        except EOFError:
            process.join()
            outcome = Outcome("killed", f"its process died: {process.exitcode}")
        process.kill()
        process.join()
        ours.close()
        return outcome


def _is_imported(function: str) -> bool:
    """Whether what is changed is executed by an import: the module's own lines, or the body of a class."""
    return function == MODULE or ("." not in function and function[:1].isupper())


def test_files() -> list[Path]:
    """Returns the files of tests that judge a mutant."""
    return sorted(file for folder in JUDGED_BY for file in (TESTS / folder).glob("test_*.py"))


# --- in the process of one mutant ------------------------------------------------------------------------------------


def _bounded(function: Any, answer: Connection, folder: Path, *arguments: Any) -> None:
    signal.signal(signal.SIGALRM, _end_with_parent)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder / "bytecode")  # compiled once, beside the sources
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.path[:0] = [str(CHECKOUT / "harness"), str(TESTS)]
    answer.send(function(*arguments))


def _end_with_parent(*_: object) -> None:
    """Ends this process when the one that asked for it has ended: its server lives as long as either of them."""
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)


def _say(place: Path, histories_per_sin: int) -> Outcome:
    """Writes down histories of every sin, and clean ones, with what the naive checker says of each."""
    from lab.agreement.sample import drawn, examples_of
    from lab.agreement.sayings import naive_says
    from lab.history_strategies import SINS

    each = [drawn(sin, examples_of(sin))[:histories_per_sin] for sin in (None, *SINS) if histories_per_sin]
    turns = [history for turn in zip(*each, strict=True) for history in turn]
    place.write_bytes(pickle.dumps([(history, naive_says(history)) for history in turns]))
    return Outcome("survived")


def _judge(
    module: str, source: str, order: Sequence[str], sayings: Path, calls: Path | None = None, kept: bool = False
) -> Outcome:
    """`calls`: where to write which file of tests calls which functions, and which modules reading histories calls.
    `kept`: take the rows of histories that were kept then."""
    if module:
        sys.meta_path.insert(0, _Planter(_dotted(module), source))
    listener = _Listener() if calls else None
    if listener or kept:
        _keep_rows(sayings.parent / "rows", listener)
    failed = _first_failed(order, [listener] if listener else []) if order else None
    if calls and listener:
        calls.write_bytes(pickle.dumps((listener.callers, listener.reading)))
    return failed or _disagreed(sayings) or Outcome("survived")


def _keep_rows(folder: Path, listener: _Listener | None) -> None:
    """Has the rows of histories in memory come from `folder`; with a listener they are written there."""
    from kafka_trial.judge import in_memory_history

    read = in_memory_history.rows_of_lines
    folder.mkdir(exist_ok=True)

    def rows_of_lines(lines: Iterable[bytes]) -> Any:
        listed = list(lines)
        file = folder / hashlib.sha256(b"".join(listed)).hexdigest()
        if listener is None:
            return pickle.loads(file.read_bytes()) if file.exists() else read(listed)
        with listener.is_reading():
            found = read(listed)
        file.write_bytes(pickle.dumps(found))
        return found

    in_memory_history.rows_of_lines = rows_of_lines


def _first_failed(order: Sequence[str], plugins: Sequence[Any]) -> Outcome | None:
    import hypothesis
    import pytest

    # No deadline and no chance: a slow machine kills nobody, and the same mutant has the same fate. Nothing is shrunk.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile("mutation", derandomize=True, database=None, deadline=None, phases=phases)
    hypothesis.settings.load_profile("mutation")
    witness = _Witness()
    quiet = ["-x", "-q", "--noconftest", "-p", "no:cacheprovider", "-p", "no:kafka_trial", "--rootdir", str(CHECKOUT)]
    status = pytest.main([*quiet, "-c", str(CHECKOUT / "pyproject.toml"), *order], plugins=[witness, *plugins])
    if status == pytest.ExitCode.OK:
        return None
    if witness.failed:
        return Outcome("killed", witness.failed)
    return Outcome("broken", f"pytest ended with {status!r}")


class _Witness:
    """Notes the first test that failed, or could not be read."""

    failed = ""

    def pytest_sessionstart(self) -> None:
        """Puts the mutant before pytest, which rewrites the assertions of an editable install's plugin, and so would
        read all modules of its package from their files."""
        sys.meta_path.sort(key=lambda finder: not isinstance(finder, _Planter))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (cannot be imported)"


class _Listener:
    """Notes which functions of them are called while the tests of each file run, their fixtures as well; and the
    modules that reading a history calls."""

    def __init__(self) -> None:
        self.callers: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.reading: set[str] = set()
        self._file = ""
        self._reads = False

    @contextmanager
    def is_reading(self) -> Iterator[None]:
        self._reads = True
        yield
        self._reads = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._file = str(CHECKOUT / nodeid.partition("::")[0])
        threading.settrace(self._called)
        sys.settrace(self._called)

    def pytest_runtest_logfinish(self) -> None:
        threading.settrace(None)
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(tuple(f"{PRODUCT}.{package}." for package in PACKAGES)):
            module = named(*module.split(".")[1:])
            self.callers[module, frame.f_code.co_qualname.split(".")[0]].add(self._file)
            if self._reads:
                self.reading.add(module)


def named(package: str, module: str) -> str:
    """Returns what a module is called here: by its own name, unless one of an earlier package has that."""
    first = next(one for one in PACKAGES if (SOURCES / one / f"{module}.py").exists())
    return module if package == first else f"{package}.{module}"


def _dotted(module: str) -> str:
    packages = (one for one in PACKAGES if (SOURCES / one / f"{module}.py").exists())
    return f"{PRODUCT}.{module if '.' in module else f'{next(packages)}.{module}'}"


def _disagreed(sayings: Path) -> Outcome | None:
    from lab.agreement.sayings import vectorised_says

    for history, naive in pickle.loads(sayings.read_bytes()):
        try:
            said = vectorised_says(history)
        except Exception as error:  # noqa: BLE001 - a judge that breaks is as good as one that says something else
            return Outcome("killed", f"{AGREEMENT} ({type(error).__name__})")
        different = next((name for name in naive if naive[name] != said[name]), None)
        if different is not None:
            return Outcome("killed", f"{AGREEMENT}[{different}]")
    return None


class _Planter(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):  # type: ignore[misc]
    """Gives one module another text."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source.encode()

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.get_filename(name))

    def get_filename(self, name: str) -> str:
        return f"<{name}, mutated>"

    def get_data(self, path: str | bytes) -> bytes:
        return self._source
