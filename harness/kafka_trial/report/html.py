"""The reports of one judged run, beside the verdict: text, JSON, and an HTML page that needs nothing else.

No script, no font, no picture comes from anywhere. Everything is escaped by the template engine; a policy in the page
forbids every load on top of that.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kafka_trial.history.store import RunFolder
from kafka_trial.invariants.invariant import list_invariants
from kafka_trial.report.event_text import reading_in_words
from kafka_trial.report.explain import PAGE
from kafka_trial.report.lag_series import HEIGHT, WIDTH, Lag, path_of
from kafka_trial.report.report_data import Report, read_report
from kafka_trial.report.text import claim_in_words, text_of


def html_of(report: Report) -> str:
    """Returns a report as one self-contained HTML page."""
    return _pages().get_template("report.html.j2").render(report=report, verdict=report.verdict, **_drawn(report))


def _drawn(report: Report) -> dict[str, Any]:
    """Returns what the template shows beside the report's own data."""
    length_s = max((at_s for lag in report.lag for at_s, _ in (*lag.committed, *lag.handled)), default=0.0)
    return {
        "claim": claim_in_words(report.verdict["claim"]),
        "advice": {one.name: one for one in list_invariants()},
        "page": PAGE,
        "reading": reading_in_words(report.verdict["counts"]),
        "charts": [_chart(lag, length_s) for lag in report.lag],
        "length_s": length_s,
        "width": WIDTH,
        "height": HEIGHT,
    }


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
    return Environment(
        loader=PackageLoader("kafka_trial.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_of(template: str, **shown: Any) -> str:
    """Returns a page of one of our templates."""
    return _pages().get_template(template).render(**shown) + "\n"


def write_reports(folder: RunFolder) -> None:
    """Writes report.txt, report.html and report.json into a judged run folder, each whole or not at all.

    Raises:
        InputError: the run has not been judged yet.
    """
    report = read_report(folder)
    _write(folder.path / "report.txt", text_of(report) + "\n")
    _write(folder.path / "report.html", html_of(report) + "\n")
    folder.write_json("report.json", asdict(report))


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
