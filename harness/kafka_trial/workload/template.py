"""The team's own text as a record: a template whose placeholders are filled in for each record, from the seed.

A placeholder is `${name}` or `${name:argument:…}`; `$$` is a dollar. The list is closed: what is not in it is wrong
input, found before anything starts. What is drawn for a record depends on the seed and the record's number alone, so
that the same seed gives the same bytes; no clock is asked.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

import orjson

from kafka_trial.errors import unknown_name
from kafka_trial.workload.workload import SLACK, STRIDE, Op

PADDING: Final = "padding"
FIRST_MS: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
HEX_DIGITS_MAX: Final = 1024
_TOKEN: Final = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<inside>[^{}]*)\})?")


class Placeholder(NamedTuple):
    """One placeholder as written."""

    name: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Kind:
    """How a placeholder is filled in, and what is wrong with arguments of it; `example` is how it is written."""

    example: str
    fill: Callable[[Op, Random, Sequence[str]], str]
    fits: Callable[[Sequence[str]], bool] = lambda arguments: not arguments


def _two_numbers(arguments: Sequence[str]) -> bool:
    if len(arguments) != 2 or not all(re.fullmatch(r"-?[0-9]{1,18}", one) for one in arguments):
        return False
    return int(arguments[0]) <= int(arguments[1])


def _digits(arguments: Sequence[str]) -> bool:
    if len(arguments) != 1 or not re.fullmatch(r"[0-9]{1,4}", arguments[0]):
        return False
    return 0 < int(arguments[0]) <= HEX_DIGITS_MAX


def _hexadecimal(rng: Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


KINDS: Final = {
    "id": _Kind("${id}", lambda op, rng, given: op.id),
    "key": _Kind("${key}", lambda op, rng, given: op.key or ""),
    "number": _Kind("${number}", lambda op, rng, given: str(op.n)),
    "time_ms": _Kind("${time_ms}", lambda op, rng, given: str(FIRST_MS + op.n)),
    "uuid": _Kind("${uuid}", lambda op, rng, given: str(uuid.UUID(int=rng.getrandbits(128), version=4))),
    "random_int": _Kind(
        "${random_int:1:100}", lambda op, rng, given: str(rng.randint(int(given[0]), int(given[1]))), _two_numbers
    ),
    "random_hex": _Kind("${random_hex:16}", lambda op, rng, given: _hexadecimal(rng, int(given[0])), _digits),
    "random_choice": _Kind(
        "${random_choice:new:paid}", lambda op, rng, given: rng.choice(given), lambda given: len(given) > 1
    ),
    PADDING: _Kind("${padding}", lambda op, rng, given: ""),
}
DRAWING: Final = ("uuid", "random_int", "random_hex", "random_choice")


def template_problems(text: str, *, place: str, padded: bool = True) -> list[str]:
    """Returns a sentence for each stray dollar and each placeholder that is none, or not as it must be; the line is
    told. `padded`: whether it may hold `${padding}`, once."""
    known = [name for name in KINDS if padded or name != PADDING]
    problems, paddings = list[str](), 0
    for found in _TOKEN.finditer(text):
        here = f"{place}, line {text.count(chr(10), 0, found.start()) + 1}"
        inside = found["inside"]
        if found["dollar"]:
            continue
        if inside is None:
            problems.append(f"{here}: a $ stands alone, or its brace is not closed; write $$ for a dollar, or ${{id}}")
            continue
        one = _placeholder(inside)
        paddings += one.name == PADDING
        if one.name not in known:
            problems.append(f"{here}: {unknown_name('placeholder', one.name, known)}")
        elif not KINDS[one.name].fits(one.arguments):
            problems.append(f"{here}: {found[0]} is written as {KINDS[one.name].example}")
    return problems + ([f"{place}: ${{padding}} stands there {paddings} times; write it once"] if paddings > 1 else [])


class Template:
    """A template that has no problems, for one seed.

    `as_json`: what is filled in is escaped as inside a string of JSON. `pool` is the text that padding is cut from, at
    least as long as the largest record and SLACK.
    """

    def __init__(self, text: str, *, seed: int | str, as_json: bool = False, pool: str = "") -> None:
        self._parts = list(_parts(text))
        self._seed = seed
        self._as_json = as_json
        self._pool = pool
        placeholders = [part for part in self._parts if isinstance(part, Placeholder)]
        self._draws = any(part.name in DRAWING for part in placeholders)
        self._padding_at = self._parts.index(_PADDING) if _PADDING in placeholders else None
        self._constant = None if placeholders else _joined(self._parts)

    @property
    def padded(self) -> bool:
        """Whether its records have the size that the load asks for."""
        return self._padding_at is not None

    def render(self, op: Op) -> bytes:
        """Returns the bytes of one record: of its wanted size where there is padding, unless the rest is longer."""
        if self._constant is not None:
            return self._constant
        rng = Random(f"{self._seed} {op.n}") if self._draws else _NOTHING_DRAWN
        texts = [part if isinstance(part, str) else self._filled(part, op, rng) for part in self._parts]
        if self._padding_at is None:
            return _joined(texts)
        missing, start = max(0, op.size_bytes - len(_joined(texts))), op.n * STRIDE % SLACK
        texts[self._padding_at] = self._pool[start : start + missing]
        return _joined(texts)

    def _filled(self, part: Placeholder, op: Op, rng: Random) -> str:
        text = KINDS[part.name].fill(op, rng, part.arguments)
        return orjson.dumps(text).decode()[1:-1] if self._as_json else text


_NOTHING_DRAWN: Final = Random(0)
_PADDING: Final = Placeholder(PADDING)


def _joined(texts: Sequence[str | Placeholder]) -> bytes:
    return "".join(text for text in texts if isinstance(text, str)).encode()


def _placeholder(inside: str) -> Placeholder:
    name, *arguments = inside.split(":")
    return Placeholder(name, tuple(arguments))


def _parts(text: str) -> Sequence[str | Placeholder]:
    parts, end = list[str | Placeholder](), 0
    for found in _TOKEN.finditer(text):
        parts += [text[end : found.start()], "$" if found["dollar"] else _placeholder(found["inside"])]
        end = found.end()
    return [part for part in (*parts, text[end:]) if part != ""]
