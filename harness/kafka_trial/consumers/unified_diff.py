"""Applying a unified diff, strictly: what it says of the file it is on must hold to the line, or it does not apply.

`patch` looks for the lines of a hunk nearby (an offset) and leaves some out (fuzz): what comes out may be another
program than its author read. Here every line number, context line and removed line is checked, and the ends of files
too. The format is that of GNU diffutils ("Detailed Description of Unified Format").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_trial.errors import InputError

NO_NEWLINE = "\\ No newline at end of file"
REMEDY = "make the diff again with diff -u; see CONTRIBUTING.md, Add a consumer"


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
