"""Plug-ins: anomalies, faults, suites and consumers of other people's, from one file each, or an installed package.

`--plugin FILE` names a Python file, which registers with `@invariant` and `@fault` and may hold `SCENARIO` or
`SCENARIOS` as a suite does, or a TOML file: a consumer.toml, or a scenario. An installed package names its modules as
entry points of the group `kafka_trial.plugins`. What is loaded here is loaded where the judge runs too: its process is
told by the environment, and Spark's workers are handed the text.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from kafka_trial import registry
from kafka_trial.errors import InputError

GROUP = "kafka_trial.plugins"


@dataclass(frozen=True)
class Plugin:
    """One that was loaded: a file with its text, or (without text) the module of an entry point."""

    name: str
    text: str | None = None


_LOADED: dict[str, Plugin] = {}


def load(files: Sequence[str] = ()) -> None:
    """Loads plug-ins, each once: those of installed packages, those that the environment names, and these files.

    Processes that are started from now on know of them too.

    Raises:
        InputError: there is no such file, it cannot be executed, it registers nothing, or what it registers has a name
            that is taken.
    """
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.module):
        if point.module not in _LOADED:
            with _registering(f"entry point {point.value}"):
                _take_scenarios(_imported(point), point.value)
            _LOADED[point.module] = Plugin(point.module)
    for given in dict.fromkeys([*registry.plugin_names(), *(str(Path(file).absolute()) for file in files)]):
        if given not in _LOADED:
            _load_file(Path(given))
    if _LOADED:
        os.environ[registry.PLUGINS] = os.pathsep.join(_LOADED)


def loaded() -> tuple[Plugin, ...]:
    """Returns what was loaded, to be handed to workers (`ensure`)."""
    return tuple(_LOADED.values())


def require(made_with: Mapping[str, str]) -> None:
    """Sees to it that the plug-ins a run was made with are loaded; `made_with`: their names, with digests of files.

    Raises:
        InputError: one is not, and its file is gone or another by now, or its package is not installed here: without it
            the run would be judged by less.
    """
    if made_with:
        load()
    absent = [name for name in made_with if not Path(name).is_absolute() and name not in _LOADED]
    if absent:
        raise InputError(f"plug-in {absent[0]}", "the run was made with it: install the package it is of")
    digests = {_digest(plugin.text) for plugin in _LOADED.values() if plugin.text is not None}
    for file, digest in made_with.items():
        if Path(file).is_absolute() and file.endswith(".py") and digest not in digests:
            if not Path(file).is_file() or _digest(Path(file).read_bytes().decode()) != digest:
                raise InputError(
                    f"plug-in {file}", "the run was made with it, and it is gone, or was changed: --plugin FILE"
                )
            load([file])


def ensure(plugins: Sequence[Plugin]) -> None:
    """Loads in a worker what was loaded where the work was handed out; a worker does several tasks."""
    for plugin in plugins:
        if plugin.name not in _LOADED:
            if plugin.text is None:
                importlib.import_module(plugin.name)
            elif plugin.name.endswith(".py"):
                _execute(Path(plugin.name), plugin.text)
            _LOADED[plugin.name] = plugin


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _imported(point: EntryPoint) -> ModuleType:
    try:
        return importlib.import_module(point.module)
    except (Exception, SystemExit) as error:  # of whatever package: it is told with its place
        said = f"cannot be imported: {type(error).__name__}: {error}; mend or remove the package that has it"
        raise InputError(f"entry point {point.value}", said) from error


def _load_file(file: Path) -> None:
    if not file.is_absolute():
        raise InputError(f"plug-in {file}", f"{registry.PLUGINS} names it, and no installed package has it")
    try:
        text = file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("--plugin", f"{file} cannot be read ({type(error).__name__})") from error
    with _registering(str(file)):
        if file.suffix == ".toml":
            _take_toml(file, text)
        elif file.suffix == ".py":
            _take_scenarios(_execute(file, text), str(file))
        else:
            raise InputError(str(file), "is no plug-in: it must be a Python file, a consumer.toml or a scenario's TOML")
    _LOADED[str(file)] = Plugin(str(file), text)


def _execute(file: Path, text: str) -> ModuleType:
    name = f"kafka_trial_plugin_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    try:
        exec(compile(text, str(file), "exec"), module.__dict__)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # whatever it was: it is told with its place
        del sys.modules[name]
        raise InputError(str(file), f"cannot be executed: {type(error).__name__}: {error}") from error
    return module


def _take_scenarios(module: ModuleType, where: str) -> None:
    for scenario in registry.scenarios_of(module):
        registry.add_scenario(scenario, where=where)


def _take_toml(file: Path, text: str) -> None:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(file), f"is no TOML: {error}") from error
    if "command" in table:
        registry.add_consumer(str(table.get("name", file.parent.name)), file)
    else:
        registry.add_scenario(registry.find_scenario(str(file)), where=str(file))


@contextmanager
def _registering(where: str) -> Iterator[None]:
    """Refuses what registers nothing, or a name that is taken; then all is as it was."""
    before = {kind: dict(names) for kind, names in _registries().items()}
    try:
        yield
        after = _registries()
        taken = [
            f"the {kind} {name!r} exists already: choose another name"
            for kind, names in before.items()
            for name, thing in names.items()
            if after[kind].get(name) is not thing
        ]
        if taken:
            raise InputError(where, taken)
        if all(after[kind].keys() == names.keys() for kind, names in before.items()):
            raise InputError(
                where, "registers nothing: no @invariant, no @fault, no SCENARIO, and it is no consumer.toml"
            )
    except BaseException:
        for kind, names in _registries().items():
            names.clear()
            names.update(before[kind])
        raise


def _registries() -> Mapping[str, dict[str, Any]]:
    """Returns what is registered, by kind: the registries themselves."""
    from kafka_trial.anomalies import invariant
    from kafka_trial.nemesis import fault

    invariant.list_invariants()
    fault.list_faults()
    return {
        "anomaly": invariant._REGISTERED,
        "fault": fault._REGISTRY,
        "scenario": registry.scenarios(),
        "consumer": registry.consumers(),
    }
