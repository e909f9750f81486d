"""The two syntaxes of a Kafka client's properties file: Java's `.properties`, and the JAAS line inside it.

Read as Java reads them (`java.util.Properties.load`, Kafka's `JaasConfig`), so that a file which serves Kafka's own
command line tools serves here. What is wrong is told without quoting a value: values are passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

KEY_AND_VALUE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
TOKEN = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([=;])|([^\s"'=;]+))""", re.DOTALL)
ESCAPED_IN_TOKEN = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
CONTROLS_IN_TOKEN = CONTROLS | {"a": "\a", "b": "\b", "v": "\v"}
FLAGS = ("required", "requisite", "sufficient", "optional")


class Sign(Enum):
    """What separates words in a JAAS line; in quotation marks it is a word like others."""

    IS = "="
    END = ";"


@dataclass(frozen=True)
class LoginModule:
    """The login module of a JAAS line: its class, and its options, which hold the password."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_properties(text: str) -> dict[str, str]:
    """Returns the keys and values of a `.properties` text; the last of several equal keys counts.

    Raises:
        ValueError: an escape that is none.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = KEY_AND_VALUE.fullmatch(line)
        if match:
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def parse_jaas(text: str) -> LoginModule:
    """Returns the one login module of a `sasl.jaas.config`: `class flag key="value"… ;`.

    Raises:
        ValueError: it is not written like that; no value is quoted.
    """
    tokens = list(_tokens(text))
    if len(tokens) < 2 or isinstance(tokens[0], Sign) or str(tokens[1]).lower() not in FLAGS:
        raise ValueError(f"the class of a login module, then one of {', '.join(FLAGS)}, must come first")
    if tokens.count(Sign.END) != 1 or tokens[-1] is not Sign.END:
        raise ValueError("it must hold exactly one login module, and end with a semicolon")
    keys, signs, values = tokens[2:-1:3], tokens[3:-1:3], tokens[4:-1:3]
    if not len(keys) == len(signs) == len(values) or {*signs} - {Sign.IS} or Sign.IS in [*keys, *values]:
        raise ValueError('after the flag come options only, each as key="value"')
    return LoginModule(str(tokens[0]), {str(key): str(value) for key, value in zip(keys, values, strict=True)})


def _logical_lines(text: str) -> Iterator[str]:
    """Yields the lines with their continuations, without comments and blank lines."""
    begun: str | None = None
    for line in re.split(r"\r\n|\r|\n", text):
        part = line.lstrip(" \t\f")
        if begun is None and (not part or part[0] in "#!"):
            continue
        continues = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        begun = (begun or "") + (part[:-1] if continues else part)
        if not continues:
            yield begun
            begun = None
    if begun is not None:
        yield begun


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1] == "u":
            raise ValueError("it has a \\u without the four hexadecimal digits of a character")
        return chr(int(match[1][1:], 16)) if len(match[1]) > 1 else CONTROLS.get(match[1], match[1])

    try:  # Java's characters are halves of UTF-16: two escapes may be one character
        return ESCAPED.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("it has a \\u escape that is only half of a character") from None


def _tokens(text: str) -> Iterator[str | Sign]:
    place, text = 0, text.strip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"a quotation mark that is not closed, after its character {place}")
        double, single, sign, word = match.groups()
        quoted = single if double is None else double
        if sign:
            yield Sign(sign)
        else:
            yield word if quoted is None else ESCAPED_IN_TOKEN.sub(_token_escape, quoted)
        place = match.end()


def _token_escape(match: re.Match[str]) -> str:
    if match[1][0] in "01234567":
        return chr(int(match[1], 8))
    return CONTROLS_IN_TOKEN.get(match[1], match[1])
