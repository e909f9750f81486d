"""The report as text, for a terminal: the verdict, the worst violation, the command that replays it; then the rest."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.claim import LIMITS
from kafka_trial.history.store import RunFolder
from kafka_trial.report.event_text import READING, bounded, count_in_words, reading_in_words
from kafka_trial.report.library_advice import library_advice
from kafka_trial.report.report_data import Report, not_judged_by_reason, read_report
from kafka_trial.report.run_metadata import RunMetadata

WIDTH = 118
INDENT = "  "
EVENTS_MAX = 4
LINE_MAX = 2000
NOTE_MAX = 600
REASONS, GAPS = {"unknown": "why it is unknown"}, "what else was missing"


def text_report(folder: RunFolder) -> str:
    """Returns the report of a judged run folder as text, without a final newline.

    Raises:
        InputError: the run has not been judged yet.
    """
    return text_of(read_report(folder, with_history=False))


def text_of(report: Report) -> str:
    """Returns a report as text."""
    verdict = report.verdict
    lines = [report.headline, f"worst: {report.worst}", f"replay: {report.replay}", "", *_asked(report)]
    lines += _section("groups of this trial", _groups(verdict.get("groups", ())))
    lines += _section("violations", _violations(verdict, report.metadata.libraries))
    lines += _section(REASONS.get(verdict["verdict"], GAPS), verdict["reasons"])
    lines += _section("notes", [bounded(note, most=NOTE_MAX) for note in verdict.get("notes", ())])
    lines += _section("faults and their evidence", _faults(verdict["faults"]))
    lines += _section("tolerated", _tolerated(verdict))
    lines += _section("judged", _wrapped(", ".join(verdict["judged"]) or "nothing"))
    lines += _section("not judged", _not_judged(verdict))
    lines += _section("counts", _wrapped(_counts(verdict["counts"])))
    lines += _section("other lines and errors that members printed", report.printed)
    lines += _section("missing from the run folder", report.gaps)
    return "\n".join(bounded(line, most=LINE_MAX).rstrip() for line in lines)


def last_lines(folder: RunFolder) -> str:
    """Returns the end of what a terminal shows of a judged run: the verdict once more, and where its page is.

    Raises:
        InputError: the run has not been judged yet.
    """
    headline = read_report(folder, with_history=False).headline
    return f"\n{bounded(headline, most=LINE_MAX)}\nreport: {folder.path / 'report.html'}"


def claim_in_words(claim: Mapping[str, Any]) -> str:
    """Returns a claim in one line."""
    delivery, order = claim.get("delivery"), claim.get("order")
    words = ["no delivery" if delivery == "unclaimed" else str(delivery)]
    words += ["no order" if order == "none" else f"order per {order}", f"commits {claim.get('commits')}"]
    words += [f"state per {claim['state']}"] if claim.get("state", "key") != "key" else []
    words += ["fenced"] if claim.get("fenced") else []
    words += ["no rogue reader"] if claim.get("no_rogue_reader") else []
    return ", ".join([*words, *(f"{name} {claim[name]:g}" for name in LIMITS if claim.get(name) is not None)])


def _asked(report: Report) -> list[str]:
    asked = f"{report.consumer} on {report.scenario}, Kafka {report.kafka_version}, seed {report.seed}"
    rebuilt = [f"on a new cluster, because the one before was broken: {report.rebuilt}"] if report.rebuilt else []
    read = reading_in_words(report.verdict["counts"])
    claims = f"claims {claim_in_words(report.verdict['claim'])}"
    return [asked, *_ran(report.metadata), *rebuilt, claims, *([read] if read else [])]


def _ran(metadata: RunMetadata) -> Iterator[str]:
    """Yields when, for how long and where it ran, and of what; nothing of what was not recorded."""
    where = f"on {metadata.host}" if metadata.host else ""
    if words := f"{metadata.span} {where}".strip():
        yield f"{metadata.label} {words}"
    parts = {
        "by kafka-trial": metadata.harness,
        "consumer's commit": metadata.consumer_commit,
        "consumer's files": metadata.consumer_digest and f"digest {metadata.consumer_digest}",
        "image": metadata.image,
    }
    if told := [f"{name} {words}" for name, words in parts.items() if words]:
        yield "; ".join(told)


def _groups(groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the verdict on each of several groups; of a further one also where all that is said of it lies."""
    for row in groups:
        place = f"  groups/{row['name']}/report.txt" if row["name"] else ""
        yield f"{row['verdict'].upper():8} {row['name'] or 'first'} ({row['consumer']}){place}"


def _not_judged(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Yields each reason once, with all that was not judged because of it."""
    for reason, names in not_judged_by_reason(verdict):
        yield from textwrap.wrap(
            f"{', '.join(names)}: {bounded(reason)}", WIDTH, subsequent_indent=INDENT, break_on_hyphens=False
        )


def _section(title: str, lines: Iterable[str]) -> list[str]:
    body = [INDENT + line for line in lines]
    return ["", title, *body] if body else []


def _violations(verdict: Mapping[str, Any], libraries: Sequence[str]) -> Iterator[str]:
    for row in verdict["violations"]:
        follows = f"follows from {row['follows']}: " if row.get("follows") else ""
        counted = count_in_words(str(row["anomaly"]), row["count"], verdict["counts"])
        yield f"{row['anomaly']} × {counted}: {follows}{row['sentence']}"
        events = row["events"]
        more = f" and {len(events) - EVENTS_MAX} more" if events[EVENTS_MAX:] else ""
        yield f"{INDENT}proved by {', '.join(events[:EVENTS_MAX]) or 'no single event'}{more}"
        yield from _advised(str(row["anomaly"]), libraries)


def _advised(anomaly: str, libraries: Sequence[str]) -> Iterator[str]:
    """Yields what usually causes an anomaly and what to change, with the libraries that brokers saw too; nothing for a
    plain failure of the process."""
    if (known := find_invariant(anomaly)) is None:
        return
    told = {"usually": known.cause, "change": known.remedy}
    told |= {f"change, {library}": said for library, said in library_advice(anomaly, libraries)}
    told |= {"more": f"kafka-trial explain {anomaly}"}
    for text in (f"{name}: {said}" for name, said in told.items() if said):
        yield from textwrap.wrap(text, WIDTH - 2, initial_indent=INDENT, subsequent_indent=INDENT * 2)


def _faults(faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [f"{fault['kind']} on {fault['target']}" for fault in faults]
    width = max(map(len, names), default=0)
    for name, fault in zip(names, faults, strict=True):
        effect = "took effect         " if fault["bit"] else "no effect measured  "
        yield f"{name:{width}}  {effect}{bounded(fault['evidence'])}"


def _tolerated(verdict: Mapping[str, Any]) -> list[str]:
    counts = verdict["counts"]
    return [
        f"{row['anomaly']} × {count_in_words(str(row['anomaly']), row['count'], counts)}: {row['because']}"
        for row in verdict["tolerated"]
    ]


def _counts(counts: Mapping[str, Any]) -> str:
    told = {name: value for name, value in counts.items() if value and name not in READING}
    return ", ".join(f"{name} {value}" for name, value in told.items())


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - len(INDENT), break_on_hyphens=False) if text else []
