"""Two tables by Kafka version: the API versions that its brokers answer, and its settings with their defaults.

`api_versions.json` comes from the message definitions in Kafka's jars, `defaults.json` from its configuration classes;
`python -m lab.tables VERSION…` writes both again. A line is one API or one setting: what it is, from which version on.
What stands for a version holds until the next version of the line, in the order of `versions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson

API_VERSIONS: Final = Path(__file__).with_name("api_versions.json")
DEFAULTS: Final = Path(__file__).with_name("defaults.json")
ROLES: Final = ("broker", "topic", "group", "consumer", "producer", "admin")
OF_CLIENTS: Final = ("consumer", "producer", "admin")  # their defaults move with the client library, not with brokers
NO_VALUE: Final = "(null)"


@dataclass(frozen=True)
class Api:
    """The versions of one API that a broker listener serves, lowest and highest.

    `told_lowest`: what ApiVersions answers as the lowest (Produce: 0, KAFKA-18659). `deprecated`: those that brokers
    mark with requestApiVersionDeprecated, from and to.
    """

    name: str
    key: int
    lowest: int
    highest: int
    told_lowest: int
    deprecated: tuple[int, int] | None = None

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.lowest <= version <= self.highest

    def deprecates(self, version: int) -> bool:
        """Whether a request of this version is marked as one that a later Kafka removes."""
        return self.deprecated is not None and self.deprecated[0] <= version <= self.deprecated[1]


@dataclass(frozen=True)
class ConfigKey:
    """A public setting of one Kafka version, as its configuration class defines it; `valid` empty: not told."""

    type: str
    importance: str
    default: str
    valid: str


@dataclass(frozen=True)
class Change:
    """A setting that differs between two versions; None: there is no such. `since`: the version that brought it."""

    role: str
    name: str
    before: ConfigKey | None
    after: ConfigKey | None
    since: str


def versions() -> tuple[str, ...]:
    """Returns the Kafka versions that both tables know, the oldest first."""
    return tuple(_apis()["versions"])


def minor(number: str) -> str:
    """Returns `4.0` of `4.0.2`."""
    return ".".join(number.split(".")[:2])


def order(number: str) -> tuple[int, ...]:
    """Returns what versions are sorted by: 4.10.0 comes after 4.9.1."""
    return tuple(int(part) for part in number.split("."))


@cache
def apis(version: str) -> Mapping[str, Api]:
    """Returns the APIs that a broker listener of a version answers, by the name of their message definition."""
    found = {}
    for name, line in _apis()["apis"].items():
        row = standing(line["from"], version, versions())
        if row and row[0] is not None:
            lowest, highest, told_lowest, deprecated = row
            limits = None if deprecated is None else (deprecated[0], deprecated[1])
            found[name] = Api(name, line["key"], lowest, highest, told_lowest, limits)
    return found


@cache
def settings(version: str, role: str) -> Mapping[str, ConfigKey]:
    """Returns the public settings of one role in a version."""
    found = {}
    for name, line in _defaults()["settings"][role].items():
        row = standing(line, version, versions())
        if row and row[0] is not None:
            found[name] = ConfigKey(*row)
    return found


def changes(role: str, before: str, after: str) -> Iterator[Change]:
    """Yields each setting of a role whose default, type or valid values differ, or that only one of the two has."""
    old, new = settings(before, role), settings(after, role)
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if _meaning(was) != _meaning(now):
            yield Change(role, name, was, now, _since(role, name, before, after))


def standing(line: Sequence[Sequence[Any]], version: str, known_versions: Sequence[str]) -> Sequence[Any] | None:
    """Returns what a line of a table says of a version, without the version from which on it stands; None: nothing."""
    until = known_versions.index(version)
    rows = [row[1:] for row in line if known_versions.index(row[0]) <= until]
    return rows[-1] if rows else None


def _since(role: str, name: str, before: str, after: str) -> str:
    """Returns the newest of the versions between the two, or the later of them, that differs from the one before it."""
    between = sorted((before, after), key=order)
    on_the_way = [version for version in versions() if order(between[0]) <= order(version) <= order(between[1])]
    told = [
        later
        for earlier, later in pairwise(on_the_way)
        if _meaning(settings(earlier, role).get(name)) != _meaning(settings(later, role).get(name))
    ]
    return told[-1]


def _meaning(setting: ConfigKey | None) -> tuple[str, str, str] | None:
    """Returns what counts as a change; the map of listeners, a text, is the same in any order."""
    if setting is None:
        return None
    default = ",".join(sorted(setting.default.split(","))) if setting.type == "STRING" else setting.default
    return setting.type, default, setting.valid


@cache
def _apis() -> dict[str, Any]:
    return _read(API_VERSIONS)


@cache
def _defaults() -> dict[str, Any]:
    return _read(DEFAULTS)


def _read(file: Path) -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(file.read_bytes())
    return table
