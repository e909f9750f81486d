"""The page of case 2: its story, and the crash matrix as it was measured; made of the rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka_trial import registry
from kafka_trial.cluster.versions import oldest_first
from kafka_trial.errors import FAIL, PASS
from lab.cases.crash_matrix import FROZEN, PATTERNS, POINTS, PROTOCOLS, Cell, Pattern, cells
from lab.cases.crash_rows import INCLUDES, ROWS_NAME, CrashRow, read_rows, weakest
from lab.cases.timestamp_guards import GUARDS, GuardRow, standing
from lab.cases.timestamp_guards import ROWS_NAME as GUARDS_NAME
from lab.cases.timestamp_guards import read_rows as read_guards
from lab.repository import reports_folder

PAGE = Path("docs") / "cases" / "2.md"
NAMES = {"classic": "classic", "consumer": "KIP-848"}
STORY = """# Case 2: where may a consumer die?

A consumer reads a record, does something (its *effect*: a row, a message, a payment), and at some time commits the
position after it. Effect and commit are two steps in two places, and the process can die between them. The order of
these steps decides what is lost or doubled then.

- **Early**: commit, then process. If it dies *before the commit*, the record comes again, and nothing has happened
  yet. If it dies *after the commit, before the effect*, the record is lost. That is at-most-once.
- **Late**: process, then commit. If it dies *before processing*, the record comes again, and nothing has happened
  yet. If it dies *after the effect, before the commit*, the effect is done twice. That is at-least-once, and so is
  the client's own auto-commit, if only finished records are passed to it.
- To have each effect exactly once, the two steps must become one (position and result in one transaction of a
  database, or of Kafka), or the second time must change nothing (an upsert by the record's id). An upsert by a
  *business key* (a row for each customer, say) is right in the end. But if two orders of a customer come again,
  the row goes back to the first of them for a while; that counts as a second effect.
- A position in the database needs a *condition*: a member may move it only if it is still the value that this member
  wrote. A crash does not show why, because a dead process writes nothing. A frozen member shows it: when it resumes, it
  writes, though others have gone on meanwhile.

Below, every way is tried at each of the four places, with both group protocols. A member is killed with SIGKILL exactly
there, the n-th time it gets there (n is 2 to 4, drawn from the seed). If a request marks the place, a [cut](../cuts.md)
kills the member without its cooperation. Inside a database transaction there is no request to Kafka; there the member
stops at [crash points](../consumers.md#effects-sink--http). The sink's effects, the offsets log and the member's lines
*prove* where the crash was: whether the effect was there at the kill, and whether the commit was. A Kafka transaction
keeps both in logs, uncommitted, until it ends. There *after the effect* means that the output is in the log and the
positions are not, and *before the commit* that both are; the abort at the start of its successor shows which. A crash
that happened elsewhere fills no cell.
"""
LEGEND = """
A cell says what was delivered in that trial: *exactly-once* (nothing lost, nothing doubled), *at-least-once* (effects
were doubled), *at-most-once* (records were lost), *none* (both). The last column is the guarantee of the whole row, the
weakest of its cells. `never` means that the program cannot be at that point: it was tried, and the crash happened
elsewhere, as listed below. `-` means not reached or not tried. *Elsewhere* counts records that the kill did not affect
and that were lost or doubled in the same trial for another reason, such as a rebalance on a busy machine. In **bold**
cells the verdict does not agree with what was claimed and delivered.
"""
GUARD_STORY = """## Not a crash either: the newest is to stand

Records of one entity without a key lie in several partitions, and several members have them at once. Each keeps a row
for the entity and writes only what is newer, by the record's timestamp. Both work as slowly: every 25th record takes a
second. One has the condition in the write itself; the other looks first, works, then writes whatever it finds.

| guard | consumer | verdict | rows that ended older | pairs of one entity in two hands at once | seed | commit |
| --- | --- | --- | --- | --- | --- | --- |"""


def write_page() -> int:
    """Writes the page; 1 where a verdict does not agree with what was delivered."""
    rows, guards = stored_rows()
    file = registry.CHECKOUT / PAGE
    file.parent.mkdir(exist_ok=True)
    file.write_text(page_of(rows, guards))
    return FAIL if any(row.contradictions for row in rows if row.reached) else PASS


def stored_rows() -> tuple[list[CrashRow], list[GuardRow]]:
    """Returns the rows that stand on the page, of the cells and of the guards."""
    guards = standing(read_guards(reports_folder() / GUARDS_NAME))
    return newest(read_rows(reports_folder() / ROWS_NAME)), list(guards.values())


def newest(rows: Sequence[CrashRow]) -> list[CrashRow]:
    """Returns the row that stands for each cell, of the harness and the consumer of its newest: the last one that was
    reached, else the last one. A proof of an older rule than its place asks for stands nowhere."""
    rules = {cell.name: cell.place.rule for cell in cells()}
    rows = [row for row in rows if row.proof.rule >= rules.get(row.cell, 1)]
    last = {row.cell: (row.source_digest, row.consumer_digest) for row in rows}
    own = [row for row in rows if (row.source_digest, row.consumer_digest) == last[row.cell]]
    tried = {row.cell: row for row in own}
    return list({**tried, **{row.cell: row for row in own if row.reached}}.values())


def page_of(rows: Sequence[CrashRow], guards: Sequence[GuardRow] = ()) -> str:
    """Returns the page of the rows that stand for their cells, and for the guards."""
    standing = {row.cell: row for row in rows}
    reached = [row for row in rows if row.reached]
    times = sorted(Counter(row.commit for row in rows).items())
    commits = ", ".join(f"{commit} ({count})" for commit, count in times) or "no commit"
    versions = ", ".join(oldest_first({row.kafka_version for row in rows}))
    agreeing = sum(not row.contradictions for row in reached)
    counted = (
        f"{len(rows)} places tried on Kafka {versions}, measured at {commits}; a + says that the checkout had changes "
        f"besides. {len(reached)} landed at a point; in {agreeing} of them the verdict agrees with what was delivered, "
        "and the judge's counts with the raw events."
    )
    parts = [*_matrix(standing), *_frozen(standing), *_guards(guards), *_list(rows)]
    return "\n".join([STORY, "## The matrix", "", counted, LEGEND, *parts])


def _matrix(standing: dict[str, CrashRow]) -> Iterator[str]:
    yield "| way | protocol | claimed | " + " | ".join(POINTS) + " | delivered |"
    yield "| --- | --- | --- |" + " --- |" * len(POINTS) + " --- |"
    for pattern in PATTERNS:
        for protocol in PROTOCOLS:
            own = _at_points(standing, pattern, protocol)
            claim = next((row.claim for row in standing.values() if _is_of(row, pattern, protocol)), "-")
            tried = {place.name for place in pattern.places if Cell(pattern, protocol, place).name in standing}
            words = [_word(own.get(point), "never" if _never(pattern, point, tried) else "-") for point in POINTS]
            left = _left(pattern, list(own.values()), claim)
            yield f"| {pattern.title} | {NAMES[protocol]} | {claim} | {' | '.join(words)} | {left} |"
    yield ""


def _at_points(standing: dict[str, CrashRow], pattern: Pattern, protocol: str) -> dict[str, CrashRow]:
    rows = (standing.get(Cell(pattern, protocol, place).name) for place in pattern.places)
    return {row.proof.point: row for row in rows if row is not None and row.reached and row.proof.point != FROZEN}


def _never(pattern: Pattern, point: str, tried: set[str]) -> bool:
    """Tells whether a program cannot be at a point, and every place that would be there was tried."""
    places = {place.name for place in pattern.places if point in place.points}
    return point in pattern.never and places <= tried


def _word(row: CrashRow | None, otherwise: str) -> str:
    if row is None:
        return otherwise
    words = zip(row.elsewhere, ("lost", "doubled"), strict=True)
    besides = "".join(f" ({count} {word} elsewhere)" for count, word in words if count)
    return (f"**{row.delivered}, and {row.verdict}**" if row.contradictions else row.delivered) + besides


def _left(pattern: Pattern, own: Sequence[CrashRow], claim: str) -> str:
    """Says what is left of all cells of a row; less than all of them give no guarantee."""
    wanted = [point for point in POINTS if point not in pattern.never]
    if len(own) < len(wanted):
        return f"- ({len(own)} of {len(wanted)} cells)"
    left = weakest([row.delivered for row in own])
    if left == claim:
        return left
    return f"{left} (more than claimed, here)" if claim in INCLUDES[left] else f"**{left}**"


def _frozen(standing: dict[str, CrashRow]) -> Iterator[str]:
    frozen = [(cell, standing[cell.name]) for cell in cells() if FROZEN in cell.place.points and cell.name in standing]
    if not frozen:
        return
    yield "### Not a crash: frozen with records in hand"
    yield ""
    yield "The member is paused as records reach it, beyond its session; when it wakes, others have its partitions."
    yield ""
    yield "| way | protocol | claimed | delivered | verdict | doubled effects |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for cell, row in frozen:
        doubled = row.anomalies.get("duplicate-effect", 0)
        told = row.delivered if row.reached else "-"
        cut = f"{cell.pattern.title} | {NAMES[cell.protocol]} | {row.claim}"
        yield f"| {cut} | {told} | {row.verdict} | {doubled} |"
    yield ""


def _guards(rows: Sequence[GuardRow]) -> Iterator[str]:
    of = {row.guard: row for row in rows}
    if not of:
        return
    yield GUARD_STORY
    for guard in GUARDS:
        if (row := of.get(guard.name)) is not None:
            consumer = (
                f"[{Path(guard.consumer).stem if 'crash' in guard.consumer else Path(guard.consumer).parent.name}]"
            )
            told = row.verdict if row.proven else f"{row.verdict}, proves nothing"
            cells = (f"{consumer}(../../{guard.consumer})", told, row.stale, row.at_once, row.seed, row.commit)
            yield f"| {guard.title} | {' | '.join(map(str, cells))} |"
    yield ""


def _list(rows: Sequence[CrashRow]) -> Iterator[str]:
    order = {cell.name: number for number, cell in enumerate(cells())}
    yield "## Every trial"
    yield ""
    yield "One again: `.venv/bin/python -m lab.cases --again CELL --seed SEED`. What is missing: `make cases`."
    yield ""
    yield "| cell | seed | n | verdict | found | at the kill | commit |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in sorted(rows, key=lambda row: order.get(row.cell, len(order))):
        found = ", ".join(f"{name} × {count}" for name, count in row.anomalies.items()) or "-"
        point = f"**{row.proof.point}**" if row.proof.point else "not reached"
        told = f"{found} | {point}: {row.proof.because}"
        yield f"| {row.cell} | {row.seed} | {row.nth} | {row.verdict} | {told} | {row.commit} |"
    yield ""


def _is_of(row: CrashRow, pattern: Pattern, protocol: str) -> bool:
    return row.cell.startswith(f"{pattern.name}/{protocol}/")
