"""A consumer that is stored as what differs from another one: its consumer.toml by `extends`, its program by a patch.

A consumer.toml that says `extends` is a variant, with the text of the file it extends around what differs. The text is
merged, not the values alone, so that comments, order and what stands in the run folder stay readable. That the merged
text means what merged tables mean is checked each time.

A folder of ours may hold `sin.diff` or `twin.diff` in place of `main.py`: what differs from the `main.py` that its
first line names. Its TOML files extend those beside that one. Whoever reads files of a consumer reads them by
`render_patched_files`, or in a folder that `build_consumer_folder` has made; the consumer itself can see nothing of it.

A diff is applied strictly: every line number, context line and removed line is checked, and the ends of files too.
`patch` looks for the lines of a hunk nearby (an offset) and leaves some out (fuzz): what comes out may be another
program than its author read. The format is that of GNU diffutils ("Detailed Description of Unified Format").
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_trial.errors import InputError, shown

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
        problem = f"{parent} extends a file itself ({shown(under[EXTENDS])}); only one level is read: extend that file"
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
        raise InputError(
            str(path), f'extends = {shown(named)} must be a path relative to this file, as in "consumer.toml"'
        )
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


NO_NEWLINE = "\\ No newline at end of file"
REMEDY = "make the diff again with diff -U1; see CONTRIBUTING.md, Add a consumer"


@dataclass(frozen=True)
class Hunk:
    """One hunk: `start` counts lines of the file it is on from 0; `old` and `new` are those lines, with their ends."""

    number: int
    start: int
    new_start: int
    old: Sequence[str]
    new: Sequence[str]


def apply_diff(diff: str, text: str, *, where: str) -> str:
    """Returns `text` changed as `diff` says; `where` is what errors call the diff.

    Raises:
        InputError: it is no unified diff of one file, changes nothing, or does not apply exactly.
    """
    lines, made, taken = split_lines(text), list[str](), 0
    for hunk in read_hunks(diff, where=where):
        place = f"{where}, hunk {hunk.number}"
        if hunk.start < taken:
            raise InputError(place, f"it begins at line {hunk.start + 1}, inside the hunk before it; {REMEDY}")
        made += lines[taken : hunk.start]
        taken = hunk.start + len(hunk.old)
        _require_same(hunk, lines[hunk.start : taken], at_end=taken >= len(lines), place=place)
        if hunk.new_start != len(made):
            said = f"its lines come at line {len(made) + 1} of what is made, it says {hunk.new_start + 1}"
            raise InputError(place, f"{said}; {REMEDY}")
        made += hunk.new
    return "".join(made + lines[taken:])


def file_named(diff: str, *, where: str) -> str:
    """Returns the file that a diff is on, as its first line says it: `--- <file>`.

    Raises:
        InputError: it does not begin so.
    """
    first = diff.partition("\n")[0]
    if not first.startswith("--- ") or not (name := first.removeprefix("--- ").partition("\t")[0].strip()):
        raise InputError(where, f"is no unified diff: its first line must be --- and a file, not {first!r}; {REMEDY}")
    return name


def read_hunks(diff: str, *, where: str) -> Iterator[Hunk]:
    """Yields the hunks of a unified diff of one file.

    Raises:
        InputError: it is none, or has no hunk.
    """
    file_named(diff, where=where)
    lines = split_lines(diff)[1:]
    if not lines or not lines[0].startswith("+++ "):
        raise InputError(where, f"is no unified diff: its second line must begin with +++; {REMEDY}")
    heads = [number for number, line in enumerate(lines) if line.startswith("@@")]
    if not heads or heads[0] != 1:
        raise InputError(where, f"has no hunk after its two first lines, so it changes nothing; {REMEDY}")
    for number, (head, end) in enumerate(zip(heads, [*heads[1:], len(lines)], strict=True), 1):
        yield _hunk(number, lines[head], lines[head + 1 : end], place=f"{where}, hunk {number}")


def split_lines(text: str) -> list[str]:
    """Returns lines with their ends; only a newline ends one, and the last may have none."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _hunk(number: int, head: str, body: Sequence[str], *, place: str) -> Hunk:
    found = re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", head)
    if found is None:
        raise InputError(place, f"{head.rstrip()!r} is no head of a hunk; {REMEDY}")
    marked = _ends_marked(body)
    if wrong := [line for line in marked if line[0] not in " -+"]:
        raise InputError(place, f"{wrong[0].rstrip()!r} begins with none of: a space, -, +; {REMEDY}")
    old, new = ([line[1:] for line in marked if line[0] in kind] for kind in (" -", " +"))
    told = [1 if count is None else int(count) for count in (found[2], found[4])]
    if told != [len(old), len(new)]:
        problem = f"it has {len(old)} and {len(new)} lines, its head says {told[0]} and {told[1]}"
        raise InputError(place, f"{problem}; {REMEDY}")
    # Where there is no line, the head names the line before.
    start, new_start = (int(line) - bool(side) for line, side in ((found[1], old), (found[3], new)))
    return Hunk(number, start, new_start, old, new)


def _ends_marked(body: Sequence[str]) -> list[str]:
    """Returns the lines of a hunk, without the newline that the line after says is not there."""
    lines = list[str]()
    for line in body:
        if lines and line.startswith(NO_NEWLINE):
            lines[-1] = lines[-1].removesuffix("\n")
        else:
            lines.append(line)
    return lines


def _require_same(hunk: Hunk, there: Sequence[str], *, at_end: bool, place: str) -> None:
    """Makes sure that the lines of the file are those of the hunk, the newline at their end included."""
    for offset, expected in enumerate(hunk.old):
        seen = there[offset] if offset < len(there) else None
        if seen != expected:
            told = "the file ends before it" if seen is None else f"the file has {seen!r}"
            raise InputError(place, f"line {hunk.start + offset + 1} must be {expected!r}, {told}; {REMEDY}")
    if not at_end and any(not line.endswith("\n") for line in (*hunk.old, *hunk.new)):
        raise InputError(place, f"it says that a line has no newline, which is not the last of the file; {REMEDY}")


PROGRAM = "main.py"
PATCHES = ("sin.diff", "twin.diff")


def find_patch(folder: Path) -> Path | None:
    """Returns the patch that is stored in place of a program; None for an ordinary folder."""
    return next((patch for name in PATCHES if (patch := folder / name).is_file()), None)


def patch_base(patch: Path) -> Path:
    """Returns the program that a patch is on, which is whole itself.

    Raises:
        InputError: it names none.
    """
    named = file_named(_text(patch), where=str(patch))
    file = patch.parent / named
    if not file.is_file():
        raise InputError(str(patch), f"is on {named}, and there is no file {file}; name the main.py of a reference")
    return file.resolve()


def render_patched_files(folder: Path) -> dict[str, bytes]:
    """Returns those files of a consumer's folder that a trial has otherwise than they are stored: name → content.

    They are `main.py` and the TOML files of one that is stored as a patch; none for an ordinary folder.

    Raises:
        InputError: its patch does not apply exactly, or a TOML file extends none.
    """
    patch = find_patch(folder)
    if patch is None:
        return {}
    if (folder / PROGRAM).exists():
        raise InputError(str(patch), f"is beside a {PROGRAM}, which it stands for; take one of them away")
    program = apply_diff(_text(patch), _text(patch_base(patch)), where=str(patch))
    tomls = {file.name: merged_text(file).encode() for file in sorted(folder.glob("*.toml"))}
    return {PROGRAM: program.encode(), **tomls}


def program_source(folder: Path) -> str:
    """Returns the text of a consumer's `main.py` as a trial has it.

    Raises:
        InputError: as `render_patched_files`.
    """
    made = render_patched_files(folder)
    return made[PROGRAM].decode() if made else _text(folder / PROGRAM)


def build_consumer_folder(toml: Path, into: Path) -> Path:
    """Makes the folder of a fixture inside `into`, as `<kind>/<name>`; returns its TOML file there.

    What the command and the payload name beside the folder comes along. The result is a folder as any other: it does
    not show that there was a patch.

    Raises:
        InputError: as `render_patched_files`.
    """
    stored = toml.absolute().parent
    made = render_patched_files(stored)
    folder = into / stored.parent.name / stored.name
    shutil.copytree(stored, folder, ignore=shutil.ignore_patterns(*PATCHES, "__pycache__"))
    for name, content in made.items():
        (folder / name).write_bytes(content)
    table = read_consumer_toml(toml)
    payload = table.get("payload", {})
    payloads = [payload, *payload.get("topics", {}).values()]
    named = [given.get(name, "") for given in payloads for name in ("template", "samples")]
    for part in (*table.get("command", []), *named):
        if part.startswith("../../"):
            _copy_along(stored / part, into / part.removeprefix("../../"))
    return folder / toml.name


def _copy_along(place: Path, to: Path) -> None:
    if place.is_dir():
        shutil.copytree(place, to, dirs_exist_ok=True)
    elif place.is_file():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, to)


def _text(file: Path) -> str:
    """Returns a file's text to the byte: its ends of lines are not changed."""
    return file.read_bytes().decode()
