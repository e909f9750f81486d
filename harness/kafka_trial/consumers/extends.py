"""A consumer.toml that says `extends`: its variant, with the text of the file it extends around what differs.

The text is merged, not the values alone, so that comments, order and what stands in the run folder stay readable. That
the merged text means what merged tables mean is checked each time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_trial.errors import InputError

EXTENDS = "extends"


def read_consumer_toml(path: Path) -> dict[str, Any]:
    """Returns the table of a consumer.toml, what it extends included.

    Raises:
        InputError: as `merged_text`.
    """
    return tomllib.loads(merged_text(path))


def merged_text(path: Path) -> str:
    """Returns the text of a consumer.toml as it is; where it says `extends = "<file>"`, that file's with its own keys.

    A key replaces the one of the same table, a new one comes after the others of its table; a comment at its very top
    replaces the one there. The file is relative to the folder of `path`, and extends none itself.

    Raises:
        InputError: a file cannot be read or is not TOML, `extends` names none, or leads on or in a circle.
    """
    text, table = _read(path)
    if EXTENDS not in table:
        return text
    parent = _parent(path, table.pop(EXTENDS))
    under_text, under = _read(parent)
    if EXTENDS in under:
        problem = f"{parent} extends a file itself ({under[EXTENDS]!r}); only one level is read: extend that file"
        raise InputError(str(path), f"extends = {_relative(path, parent)}: {problem}")
    merged = "".join(piece.text for piece in _merged(list(_pieces(under_text)), list(_pieces(text))))
    if _loads(merged) != _merged_tables(under, table):
        problem = "cannot be merged key by key; write its keys under the same [section] as there, one key a line"
        raise InputError(str(path), f"extends = {_relative(path, parent)}: {problem}")
    return merged


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}; name a consumer.toml") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(str(path), f"is not TOML: {error}") from error


def _parent(path: Path, named: object) -> Path:
    """Returns the file that is extended."""
    if not isinstance(named, str) or not named or Path(named).is_absolute():
        raise InputError(str(path), f'extends = {named!r} must be a path relative to this file, as in "consumer.toml"')
    parent = path.parent / named
    if not parent.is_file():
        raise InputError(str(path), f"extends = {named!r}: there is no file {parent}")
    if parent.resolve() == path.resolve():
        raise InputError(str(path), f"extends = {named!r} is this file itself; name the one that it is a variant of")
    return parent


def _relative(path: Path, parent: Path) -> str:
    return repr(str(parent.relative_to(path.parent)))


@dataclass(frozen=True)
class _Piece:
    """Some lines of a TOML file: one key with its value, a section's head (`key` is empty), or neither (None)."""

    table: str
    key: str | None
    text: str


def _pieces(text: str) -> Iterator[_Piece]:
    lines, table = iter(line + "\n" for line in text.removesuffix("\n").split("\n")), ""
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            yield _Piece(table, None, line)
        elif found := re.match(r"\s*\[(.+)\]", line):
            table = found[1].strip()
            yield _Piece(table, "", line)
        else:
            entry = line
            while (parsed := _loads(entry)) is None:  # a value of several lines
                entry += next(lines)
            yield _Piece(table, next(iter(parsed)), entry)


def _loads(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _merged(under: list[_Piece], own: list[_Piece]) -> list[_Piece]:
    """Returns the pieces of a file with those of the one that extends it put in their places."""
    top, own_top = _top(under), _top(own)
    pieces = [*(own[:own_top] or under[:top]), *under[top:]]
    for piece in own:
        if piece.key and (piece.table, piece.key) != ("", EXTENDS):
            _put(pieces, piece)
    return pieces


def _top(pieces: list[_Piece]) -> int:
    """Returns how many lines of comment a file begins with."""
    return next((n for n, piece in enumerate(pieces) if not piece.text.startswith("#")), len(pieces))


def _put(pieces: list[_Piece], piece: _Piece) -> None:
    keys = [(one.table, one.key) for one in pieces]
    if (piece.table, piece.key) in keys:
        pieces[keys.index((piece.table, piece.key))] = piece
        return
    last = max((n for n, (table, key) in enumerate(keys) if table == piece.table and key is not None), default=None)
    if last is None and piece.table:
        pieces += [_Piece(piece.table, None, "\n"), _Piece(piece.table, "", f"[{piece.table}]\n"), piece]
    else:
        pieces.insert(_top(pieces) if last is None else last + 1, piece)


def _merged_tables(under: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in own.items():
        there = under.get(key)
        both = isinstance(there, dict) and isinstance(value, dict)
        merged[key] = _merged_tables(there, value) if both and there is not None else value
    return merged
