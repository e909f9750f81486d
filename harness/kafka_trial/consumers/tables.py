"""Reading a TOML table into a frozen dataclass, with every problem found, not the first.

Used by `consumer.py` for consumer.toml. A field's type says what may stand there; names, choices and bounds that a
type cannot say are checked by the caller.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from kafka_trial.errors import none_of, unknown_name

T = TypeVar("T")


def read_table(kind: type[T], table: Mapping[str, Any], *, place: str, problems: list[str]) -> T:
    """Returns `table` as a `kind` (all fields have defaults); appends a sentence to `problems` for each wrong entry.

    A wrong entry keeps its default, so that the caller can go on and look for further problems.
    """
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in hints:
            problems.append(f"{place}{unknown_name('key', key, hints)}")
            continue
        wrong = _wrong(hints[key], value, place=f"{place}{key}")
        problems += wrong
        if not wrong:
            values[key] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def choice_problem(place: str, given: object, choices: tuple[str, ...]) -> list[str]:
    """Returns the sentence for a value that is none of the choices; nothing when it is one."""
    return [] if given in choices else [none_of(place, given, choices)]


def _wrong(hint: Any, value: Any, *, place: str) -> list[str]:
    """Returns what is wrong with a value of that type, as sentences."""
    if typing.get_origin(hint) is types.UnionType:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        parts = {f"{place}[{number}]": part for number, part in enumerate(value)}
    elif typing.get_origin(hint) is not None and isinstance(value, dict):
        parts = {f"{place}.{name}": part for name, part in value.items()}
    else:
        return [] if _fits(hint, value) else [f"{place} = {value!r} must be {_words(hint)}"]
    return [
        f"{name} = {part!r} must be a string; write it in quotes"
        for name, part in parts.items()
        if not isinstance(part, str)
    ]


def _words(hint: Any) -> str:
    if typing.get_origin(hint) is not None:
        return "a list of strings" if typing.get_origin(hint) is tuple else "a table of strings"
    return {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[hint]


def _fits(hint: Any, value: Any) -> bool:
    if typing.get_origin(hint) is not None:
        return False
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
