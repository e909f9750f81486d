"""The reports of one judged run, beside the verdict: text, JSON, and an HTML page that needs nothing else.

No script, no font, no picture comes from anywhere. Everything is escaped by the template engine; a policy in the page
forbids every load on top of that, and every script and style but the page's own, which it names by their hashes. The
script draws the timeline (`timeline.py`); without it a table and the curves of the lag stand in its place.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kafka_trial.history.store import RunFolder
from kafka_trial.report.anomaly_instants import AnomalyInstants
from kafka_trial.report.event_text import count_in_words, reading_in_words
from kafka_trial.report.explain import explanations
from kafka_trial.report.lag_series import HEIGHT, WIDTH, Lag, path_of
from kafka_trial.report.library_advice import library_advice
from kafka_trial.report.partition_timeline import PartitionTimeline
from kafka_trial.report.report_data import Report, not_judged_by_reason, read_report
from kafka_trial.report.text import claim_in_words, text_of
from kafka_trial.report.timeline import Timeline, read_timeline

OWNERS_MAX = 20  # of one partition in the table
LISTED_MAX = 100  # anomalies that are listed without a script
WEIGHT_WORDS = {"ground": "not the consumer’s fault"}
TEMPLATES = Path(__file__).parent / "templates"
# What would end the block or begin another, as JSON has it: consumers write the strings.
NEVER_IN_SCRIPT = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def html_of(report: Report, timeline: Timeline | None = None) -> str:
    """Returns a report as one self-contained HTML page; without a timeline it has the curves of the lag alone."""
    style, script = (_inline(f"report.{kind}") for kind in ("css", "js"))
    return (
        _pages()
        .get_template("report.html.j2")
        .render(
            report=report,
            verdict=report.verdict,
            timeline=timeline,
            partitions=[] if timeline is None else [_partition_row(timeline, one) for one in timeline.partitions],
            listed=[] if timeline is None else _anomaly_rows(timeline.anomalies),
            data=None if timeline is None else in_script(_for_script(timeline, report.metadata.libraries)),
            style=style,
            script=script,
            policy=f"default-src 'none'; style-src {_hashed(style)}; script-src {_hashed(script)}",
            **_drawn(report),
        )
    )


def _partition_row(timeline: Timeline, one: PartitionTimeline) -> dict[str, Any]:
    """Returns what the table says of a partition, for readers without a script or without a picture."""
    names = dict(enumerate(timeline.members))
    bands = [f"{names.get(who, '?')} {begin / 1000:.1f} to {end / 1000:.1f}" for who, begin, end in one.owners]
    more = f", and {len(bands) - OWNERS_MAX} more" if bands[OWNERS_MAX:] else ""
    return {
        "partition": f"{one.topic}-{one.partition}",
        "owners": ", ".join(bands[:OWNERS_MAX]) + more or "nobody known",
        "handled": sum(run[3] for run in one.handlers),
        "commits": sum(commit[3] for commit in one.commits),
        "lag": max((*one.lag.committed, *one.lag.handled), default=0),
        "age_s": max((*one.lag.committed_age_ms, *one.lag.handled_age_ms), default=0) / 1000,
    }


def _anomaly_rows(anomalies: AnomalyInstants) -> list[dict[str, Any]]:
    """Returns the first anomalies of the list, for readers without a script."""
    return [
        {
            "anomaly": anomalies.names[name],
            "weight": anomalies.weights[weight],
            "at_s": None if at_ms is None else at_ms / 1000,
            "sentence": sentence,
            "proofs": [anomalies.proofs[number][0] for number in proofs],
        }
        for name, weight, _, at_ms, _, proofs, sentence, *_ in anomalies.listed[:LISTED_MAX]
    ]


def in_script(value: Any) -> str:
    """Returns plain data as JSON for a script block: no string in it can end the block, whatever a consumer wrote."""
    return orjson.dumps(value).decode().translate(NEVER_IN_SCRIPT)


def _for_script(timeline: Timeline, libraries: Collection[str]) -> dict[str, Any]:
    """Returns the data of the page's script; of each anomaly's advice the cause, the remedy, and pairs by library."""
    advice = {
        one.name: (
            one.cause,
            one.remedy,
            *((f"Change, {library}: ", told) for library, told in library_advice(one.name, libraries)),
        )
        for one in explanations()
    }
    return {"timeline": timeline, "advice": [advice.get(name) for name in timeline.anomalies.names]}


def _inline(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hashed(text: str) -> str:
    """Returns the source expression of a page's policy that allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _drawn(report: Report) -> dict[str, Any]:
    """Returns what the template shows beside the report's own data."""
    length_s = max((at_s for lag in report.lag for at_s, _ in (*lag.committed, *lag.handled)), default=0.0)
    return {
        "claim": claim_in_words(report.verdict["claim"]),
        "known": {one.name: one for one in explanations()},
        "by_library": partial(library_advice, libraries=report.metadata.libraries),
        "seen": _seen(report),
        "words": WEIGHT_WORDS,
        "counted": partial(count_in_words, counts=report.verdict["counts"]),
        "not_judged": not_judged_by_reason(report.verdict),
        "reading": reading_in_words(report.verdict["counts"]),
        "charts": [_chart(lag, length_s) for lag in report.lag],
        "length_s": length_s,
        "width": WIDTH,
        "height": HEIGHT,
    }


def _seen(report: Report) -> set[str]:
    """Returns the names of what was found, or left undecided."""
    verdict = report.verdict
    named = {str(row["anomaly"]) for key in ("violations", "tolerated") for row in verdict[key]}
    return named | {excerpt.anomaly for excerpt in report.excerpts}


def _ticks(text: str) -> Markup:
    """Returns text of ours with what stands in backticks as code; all of it is escaped."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in parts)


def _chart(lag: Lag, length_s: float) -> dict[str, Any]:
    return {
        "title": f"partition {lag.partition}",
        "peak": lag.peak,
        "last": lag.committed[-1][1] if lag.committed else None,
        "committed": path_of(lag.committed, length_s=length_s, peak=lag.peak),
        "handled": path_of(lag.handled, length_s=length_s, peak=lag.peak),
    }


@cache
def _pages() -> Environment:
    pages = Environment(
        loader=PackageLoader("kafka_trial.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["ticks"] = _ticks
    return pages


def page_of(template: str, **shown: Any) -> str:
    """Returns a page of one of our templates."""
    return _pages().get_template(template).render(**shown) + "\n"


def static_page(template: str, *, css: str, **shown: Any) -> str:
    """Returns a page of one of our templates without a script, in the style of the reports and `css`, which adds to
    it; its policy lets in nothing else."""
    style = "".join(map(_inline, ("report.css", css)))
    return page_of(template, style=style, policy=f"default-src 'none'; style-src {_hashed(style)}", **shown)


def write_reports(folder: RunFolder) -> None:
    """Writes report.txt, report.html and report.json into a judged run folder, each whole or not at all.

    Raises:
        InputError: the run has not been judged yet.
    """
    report = read_report(folder)
    _write(folder.path / "report.txt", text_of(report) + "\n")
    _write(folder.path / "report.html", html_of(report, read_timeline(folder, report.verdict)) + "\n")
    folder.write_json("report.json", orjson.loads(orjson.dumps(report)))  # `asdict` copies every point of every curve


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
