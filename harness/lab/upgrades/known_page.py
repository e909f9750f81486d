"""The part of the page on known differences, made of its rows and of their table alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lab.upgrades.known import CANNOT, KNOWN, TIMES, Difference, KnownRow

KNOWN_ROWS_NAME: Final = "known_upgrades.jsonl"
HEAD: Final = """## Known differences, found without being told

Each is met by a consumer in fixtures/upgrades, or by one whose clients are moved, in a rehearsal that knows nothing of
it. Found is: go until the stage that is named, and there no-go, with the accused and the reason that are expected.
Beside them is a consumer that none concerns, and must be a go in every stage. A rehearsal is ended after the stage in
which the last of its differences is to be found. Played by `make upgrade-matrix ARGS=known`.
"""


def known_lines(rows: Sequence[KnownRow]) -> Iterator[str]:
    """Yields the lines of the section: of each play the newest row, and what was said where one was not found."""
    newest = list({row.play: row for row in rows}.values())
    commits = ", ".join(dict.fromkeys(row.commit for row in newest)) or "no commit"
    yield from [HEAD, f"{len(newest)} plays, {len(rows)} with those that were tried again, measured at {commits}.", ""]
    yield "| difference | source | path | expected | found |"
    yield "|" + " --- |" * 5
    yield from (_line(one, newest) for one in KNOWN)
    yield ""
    lacking = [line for row in newest for line in _lacking(row)]
    yield from ["Not found, or the consumer that none concerns was no go:", "", *(lacking or ["Nothing."]), ""]
    yield from ["Not met here:", "", *(f"- {name}: {why}" for name, why in CANNOT.items()), ""]


def _line(one: Difference, rows: Sequence[KnownRow]) -> str:
    said = [row.found[one.name] for row in rows if one.name in row.found]
    mended = f"; {one.mended} is a go" if one.mended else ""
    expected = f"{one.stage}, accused: {one.accused}{mended}" if one.stage else "the path is refused"
    path = f"{one.path.before} to {one.path.after}, {one.path.shape}"
    found = f"{sum(not words for words in said)} of {len(said)} (planned {TIMES})"
    return f"| {one.name} | {one.source} | {path} | {expected} | {found} |"


def _lacking(row: KnownRow) -> Iterator[str]:
    yield from (f"- {row.play}, {name}: {said}" for name, said in row.found.items() if said)
    if row.control:
        yield f"- {row.play}, the consumer that none concerns: {row.control}"
