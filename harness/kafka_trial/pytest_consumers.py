"""Which consumers a test with `trial` is for: the option, its marker, the project's setting, in this order.

A project of one's own is never given our reference consumers; our suites in our own checkout are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.errors import InputError

SETTING = "kafka_trial_consumer"
MARKER = "consumer"
NOT_NAMED = (
    "{node}: no consumer is named: give --consumer FILE, or kafka_trial_consumer = path/to/consumer.toml "
    'in the pytest settings, or @pytest.mark.consumer("path/to/consumer.toml")'
)


@dataclass(frozen=True)
class Refused:
    """Stands where a consumer should: why the test cannot be run. Told in one line once all tests are collected."""

    because: str


@dataclass(frozen=True)
class Chosen:
    """One consumer for a test: what it is called there, and its consumer.toml."""

    name: str
    file: Path


def chosen_for(metafunc: pytest.Metafunc, versions: list[str]) -> Iterator[tuple[Chosen | Refused, str]]:
    """Yields the consumer and version of each item of a test that asks for `trial`."""
    config, here = metafunc.config, Path(metafunc.module.__file__ or ".")
    named = config.getoption("consumer")
    marks = [str(name) for mark in metafunc.definition.iter_markers(MARKER) for name in mark.args]
    setting = [str(name) for name in config.getini(SETTING)]
    root = config.inipath.parent if config.inipath else config.rootpath
    if named or marks or setting:
        names = named or marks or setting
        folders = [] if named else [here.parent, root] if marks else [root]
        yield from ((_found(name, folders, version), version) for name in names for version in versions)
    elif _is_ours(config, here):
        for name in sorted(registry.speaking_references()):
            yield from (
                (Chosen(name, registry.find_consumer(name)), version) for version in versions if fits(name, version)
            )
    else:
        yield Refused(NOT_NAMED.format(node=metafunc.definition.nodeid)), versions[0]


def check(file: Path, version: str) -> None:
    """Makes sure that the file can be read and that brokers of a version speak its protocol.

    Raises:
        InputError: not so.
    """
    from kafka_trial.consumers.consumer import spec_from_toml
    from kafka_trial.trial.spec import check_protocol

    check_protocol(spec_from_toml(file), version)


def fits(name: str, version: str) -> bool:
    """Tells whether a reference consumer speaks a protocol that brokers of this version speak."""
    try:
        check(registry.find_consumer(name), version)
    except InputError:
        return False
    return True


def _found(name: str, folders: list[Path], version: str) -> Chosen | Refused:
    """Returns the consumer of a path, relative to the first of the folders where there is one, or of a fixture."""
    there = next((str(folder / name) for folder in folders if (folder / name).exists()), name)
    try:
        file = registry.find_consumer(there)
        check(file, version)
    except InputError as error:
        return Refused(str(error))
    return Chosen(name, file)


def _is_ours(config: pytest.Config, module: Path) -> bool:
    """Tells whether a test is one of our suites in our own checkout."""
    suites = registry.CHECKOUT / "suites"
    return config.rootpath == registry.CHECKOUT and suites in module.parents
