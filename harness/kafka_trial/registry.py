"""Where scenarios and consumers are found: plug-ins by walking folders, nothing to register by hand.

A suite is a module `test_<topic>.py` with `SCENARIO` (or `SCENARIOS`); a fixture consumer is a folder with TOML files.
Both are inside the package, in every kind of install. In a checkout these are symbolic links to the folders at the top
level, and paths are told as they are there.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from kafka_trial.consumers.patched_consumer import read_consumer_toml
from kafka_trial.errors import InputError, did_you_mean, unknown_name
from kafka_trial.nemesis.cut_scenarios import cut_name_problems, cut_scenario
from kafka_trial.scenario import Scenario, scenario_from_json, scenario_from_toml, scenario_problems

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent.parent
SAID_IN_PATCHES = {"sin.diff": r"^\+Sin: (.+)$", "twin.diff": r"^\+Twin of: (.+)$"}
PLUGINS = "KAFKA_TRIAL_PLUGINS"  # of the environment: plug-ins, as in PATH, for processes that are started here


def suites_folder() -> Path:
    """Returns the folder of the suites."""
    return (PACKAGE / "suites").resolve()


def is_suite(module: Path) -> bool:
    """Tells whether a module of tests is one of our suites, by whichever path it is reached."""
    return suites_folder() in module.resolve().parents


def reference_folder() -> Path:
    """Returns the folder of the sound reference consumers."""
    return (PACKAGE / "reference").resolve()


def unusual_folder() -> Path | None:
    """Returns the folder of sound consumers with unusual habits; None outside a checkout (not shipped)."""
    folder = CHECKOUT / "fixtures" / "unusual"
    return folder if folder.is_dir() else None


def unusual_suites(consumer: str) -> tuple[str, ...]:
    """Returns the suites that an unusual consumer goes through, by the line `# Suites:` of its TOML file; none for
    others."""
    file = find_consumer(consumer)
    if unusual_folder() not in file.parents:
        return ()
    named = re.search(r"^# Suites: (.+)$", file.read_text(), re.MULTILINE)
    return tuple(name.strip() for name in named[1].split(",")) if named else ()


def zoo_folders() -> list[Path]:
    """Returns the folders of the faulty consumers and of their sound twins; a wheel has only what `demo` convicts."""
    folders = ((PACKAGE / "faulty").resolve(), CHECKOUT / "fixtures" / "twins")
    return [folder for folder in folders if folder.is_dir()]


@cache
def suites() -> dict[str, Path]:
    """Returns the suite modules by name (`member-killed` → `suites/test_member_killed.py`)."""
    files = sorted(suites_folder().glob("test_*.py"))
    return {file.stem.removeprefix("test_").replace("_", "-"): file for file in files}


@cache
def scenarios() -> dict[str, Scenario]:
    """Returns the registered scenarios by name.

    Raises:
        InputError: two suites register one name, or a registered scenario makes no sense.
    """
    found: dict[str, Scenario] = {}
    for file in suites().values():
        for scenario in scenarios_of(_suite(file)):
            problems = scenario_problems(scenario)
            if scenario.name in found:
                problems.append(f"the name {scenario.name!r} is registered twice")
            if problems:
                raise InputError(str(file), problems)
            found[scenario.name] = scenario
    return found


def _suite(file: Path) -> ModuleType:
    return importlib.import_module(f"{__package__}.suites.{file.stem}")


def suite_summary(file: Path) -> str:
    """Returns what a suite asks, in one line: the summaries of its scenarios."""
    return "; ".join(scenario.summary for scenario in scenarios_of(_suite(file)))


def consumer_summary(file: Path) -> str:
    """Returns what a fixture consumer is, in one line: its sin, whose sound twin it is, or how its file begins."""
    for patch, said in SAID_IN_PATCHES.items():
        if (diff := file.parent / patch).exists() and (found := re.search(said, diff.read_text(), re.MULTILINE)):
            return f"{'sin: ' if patch == 'sin.diff' else 'sound, looks like '}{found[1]}"
    first = file.read_text(encoding="utf-8").splitlines()[:1]
    return first[0].removeprefix("#").strip().partition(". ")[0] if first and first[0].startswith("#") else file.stem


def plugin_names() -> list[str]:
    """Returns the plug-ins that are loaded here (`plugins.py`): absolute files, and the modules of entry points."""
    return [name for name in os.environ.get(PLUGINS, "").split(os.pathsep) if name]


def add_scenario(scenario: Scenario, *, where: str) -> None:
    """Registers the scenario of a plug-in.

    Raises:
        InputError: it makes no sense, or its name is taken.
    """
    problems = scenario_problems(scenario)
    if scenario.name in scenarios():
        problems.append(f"the scenario {scenario.name!r} exists already: choose another name")
    if problems:
        raise InputError(where, problems)
    scenarios()[scenario.name] = scenario


def find_scenario(given: str) -> Scenario:
    """Returns the scenario of a registered name, a cut by its name, a TOML file, or the scenario.json of a run folder.

    Raises:
        InputError: no such name or file, or the file is wrong; every problem at once.
    """
    if (named := named_scenario(given)) is not None:
        return named
    path = Path(given)
    if path.suffix not in (".toml", ".json") and not path.exists():
        unknown = unknown_name("scenario", given, scenarios()) + "; or cut-API-WHERE-ACTION, or a TOML file"
        raise InputError("scenario", cut_name_problems(given) or unknown)
    scenario, problems = (scenario_from_json if path.suffix == ".json" else scenario_from_toml)(path)
    if scenario is None:
        raise InputError(given, problems)
    return scenario


def named_scenario(name: str) -> Scenario | None:
    """Returns the scenario that is registered by this name, or is the cut of this name; None where there is none."""
    return scenarios().get(name) or cut_scenario(name)


def scenario_file(given: str) -> Path | None:
    """Returns the file that `find_scenario` reads for these words; None for a name."""
    return None if named_scenario(given) is not None else Path(given).absolute()


@cache
def consumers() -> dict[str, Path]:
    """Returns the fixture consumers by name: `<folder>` for its consumer.toml, `<folder>/<variant>` for the others."""
    found: dict[str, Path] = {}
    unusual = unusual_folder()
    for root in (reference_folder(), *zoo_folders(), *([unusual] if unusual else [])):
        for file in sorted(root.glob("*/*.toml")):
            name = file.parent.name if file.stem == "consumer" else f"{file.parent.name}/{file.stem}"
            found[name] = file
    return found


def add_consumer(name: str, file: Path) -> None:
    """Registers the consumer of a plug-in.

    Raises:
        InputError: its name is taken.
    """
    if name in consumers():
        raise InputError(str(file), f"the consumer {name!r} exists already: choose another name")
    consumers()[name] = file


def find_consumer(given: str) -> Path:
    """Returns the consumer.toml of a path (file or folder) or of a fixture's name.

    Raises:
        InputError: neither a file nor a known name.
    """
    path = Path(given)
    if path.is_dir() and (path / "consumer.toml").is_file():
        return path / "consumer.toml"
    if path.is_file():
        return path
    if given in consumers():
        return consumers()[given]
    if path.is_dir():
        raise InputError("consumer", f"there is no consumer.toml in {given}: write one, or name its file")
    if path.suffix == ".toml" or path.is_absolute() or given.startswith("."):
        raise InputError("consumer", f"no such file: {given}")
    raise InputError("consumer", _unknown_consumer(given))


def _unknown_consumer(given: str) -> str:
    """Returns the sentence for a word that is neither a file nor a fixture; there are too many of them to list."""
    hint = did_you_mean(given, consumers(), most=3)
    return f"no such file, and no consumer of ours is called {given!r}.{hint} See: kafka-trial list consumers"


def is_silent(consumer: str) -> bool:
    """Tells whether a consumer prints nothing of what it does ([evidence] events = "none").

    What only its own word can show is never judged then: even a sound one ends in *unknown*, or in *fail*.
    """
    evidence = read_consumer_toml(find_consumer(consumer)).get("evidence", {})
    return bool(evidence.get("events") == "none")


def speaking_references() -> list[str]:
    """Returns the names of the reference consumers that tell what they do: those that must pass on every suite."""
    return [name for name, file in consumers().items() if reference_folder() in file.parents and not is_silent(name)]


def scenarios_of(module: ModuleType) -> Iterator[Scenario]:
    """Yields the scenarios that a suite's module, or a plug-in, registers."""
    if hasattr(module, "SCENARIO"):
        yield module.SCENARIO
    yield from getattr(module, "SCENARIOS", ())
