"""JSON paths: one place inside a JSON value, as in `$.order.lines[0].id` or `$['order-id']`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

STEP: Final = re.compile(
    r"""
    \.(?P<name>[^\s.*\[\]'"]+)
    | \[(?P<index>0|[1-9][0-9]{0,8})\]
    | \['(?P<single>(?:[^'\\]|\\['\\])*)'\]
    | \["(?P<double>(?:[^"\\]|\\["\\])*)"\]
    """,
    re.VERBOSE,
)
STEPS: Final = "write .name, ['any name'] or [0] for each step, as in $.order.lines[0].id"


def json_path_problem(path: str) -> str | None:
    """Returns what is wrong with a path, None where it can be read."""
    try:
        path_steps(path)
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=64)
def path_steps(path: str) -> tuple[str | int, ...]:
    """Returns the names and the list indexes (from 0) that lead to the place; `$.` before the first may be left out.

    Names with other characters than letters stand in quotes; `\\` before a quote takes it as a character.

    Raises:
        ValueError: a step that is none, or one that would name many places.
    """
    rest = _rooted(path)[1:]
    steps: list[str | int] = []
    while rest:
        found = STEP.match(rest)
        if found is None:
            raise ValueError(f"{rest!r} is no step to one place: {STEPS}")
        steps.append(_step(found))
        rest = rest[found.end() :]
    return tuple(steps)


def json_path(path: str) -> str:
    """Returns the path as it is shown: from its root `$`, also where that was left out."""
    return _rooted(path)


def value_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    """Returns what stands there in a value that was read from JSON; None where nothing does."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _rooted(path: str) -> str:
    if path == "$" or path.startswith(("$.", "$[")):
        return path
    return f"${path}" if path.startswith("[") else f"$.{path}"


def _step(found: re.Match[str]) -> str | int:
    if found["index"] is not None:
        return int(found["index"])
    if found["name"] is not None:
        return found["name"]
    return re.sub(r"\\(.)", r"\1", found["single"] if found["single"] is not None else found["double"])
