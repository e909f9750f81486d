"""The page of the matrix of upgrades, made of its rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from kafka_trial.cluster.versions import NUMBERS
from kafka_trial.upgrade.outcome import GO, NO_GO, NOT_KNOWN
from lab.upgrades.plays import BATCH_MAX, LIBRARIES, NEW_PROTOCOL, SHAPES, Row, plays, refused

PAGE_NAME: Final = "upgrades.md"
HEAD = """# Upgrades of the brokers

What `kafka-trial upgrade` says of sound consumers on pairs of versions. Made by `make upgrade-matrix` of the rows in
upgrades.jsonl, and of nothing else. Every play takes all consumers through all stages: the first of a pair of versions
side by side on one cluster, further ones (since 7d0e4df9) in batches of at most {batch}. An outcome is of one stage,
for one consumer or for the cluster. *Restart*: until a broker was in sync again, where all were on one cluster.
"""


def page_of(rows: Sequence[Row]) -> str:
    """Returns the page as Markdown: of each play the newest row."""
    newest = list({row.play: row for row in rows}.values())
    commits = ", ".join(dict.fromkeys(row.commit for row in newest)) or "no commit"
    planned = list(plays())
    played = sum(play in {row.play for row in newest} for play in planned)
    lines = [HEAD.format(batch=BATCH_MAX), f"{played} of {len(planned)} plays, measured at {commits}.", ""]
    lines += ["| from | to | shape | plays | go | no-go | unknown | seconds (median) | restart (median) |"]
    lines += ["|" + " --- |" * 9, *_pairs(newest), ""]
    lines += ["## By consumer", "", "Outcomes of all stages of all plays above.", ""]
    lines += ["| consumer | go | no-go | unknown |", "|" + " --- |" * 4, *_subjects(newest), ""]
    lines += ["## What was no go", "", *(list(_not_go(newest)) or ["Nothing."]), ""]
    lines += ["## Refused by a rule, and not played", "", *(list(_refused()) or ["Nothing."]), ""]
    return "\n".join(lines)


def _pairs(rows: Sequence[Row]) -> Iterator[str]:
    for before, after, shape in dict.fromkeys((play.before, play.after, play.shape) for play in plays()):
        own = [row for row in rows if (row.play.before, row.play.after, row.play.shape) == (before, after, shape)]
        counts = [sum(row.outcome == word for row in own) for word in (GO, NO_GO, NOT_KNOWN)]
        restarts = [took for row in own for took in row.restarts_s]
        took = f"{median(row.seconds for row in own):.0f}" if own else "-"
        restart = f"{median(restarts):.1f}" if restarts else "-"
        yield f"| {before} | {after} | {shape} | {len(own)} | {' | '.join(map(str, counts))} | {took} | {restart} |"


def _subjects(rows: Sequence[Row]) -> Iterator[str]:
    for subject, library in {"": "the cluster", **LIBRARIES, **NEW_PROTOCOL}.items():
        counts = [
            sum(row.outcomes.get(subject.replace("/", "-"), {}).get(word, 0) for row in rows)
            for word in (GO, NO_GO, NOT_KNOWN)
        ]
        yield f"| {f'{subject} ({library})' if subject else library} | {' | '.join(map(str, counts))} |"


def _not_go(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for stage, subject, outcome, accused, reason in row.not_go:
            whose = f", accused: {accused}" if accused else ""
            yield f"- {row.play}, {stage or 'before anything'}, {subject or 'the cluster'}: {outcome}{whose}; {reason}"


def _refused() -> Iterator[str]:
    for place, before in enumerate(NUMBERS):
        for after in NUMBERS[place + 1 :]:
            for shape in SHAPES:
                yield from (f"- {before} to {after}, {shape}: {reason}" for reason in refused(before, after, shape))
