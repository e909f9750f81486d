"""The report as one HTML page."""

from __future__ import annotations

from html.parser import HTMLParser

from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import html_of
from kafka_trial.report.report_data import read_report
from literal_run import NASTY, verdict

VOID = {"meta", "br", "path"}


class Page(HTMLParser):
    """Collects the tags of a page and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.unclosed.pop() == tag


def test_a_consumer_cannot_write_into_the_page(folder: RunFolder) -> None:
    """A key full of markup is shown as text: no script, no broken table."""
    page = html_of(read_report(folder))
    tags = Page(page)
    assert (NASTY[:20] in page, "script" in {tag for tag, _ in tags.tags}, tags.unclosed) == (False, False, [])
    assert "&lt;script&gt;" in page


def test_the_page_needs_nothing_else(folder: RunFolder) -> None:
    """No tag loads anything, and the page's own policy forbids it."""
    page = html_of(read_report(folder))
    loads = [(tag, attrs) for tag, attrs in Page(page).tags if {"src", "href", "srcset"} & attrs.keys()]
    assert (loads, "url(" in page, "@import" in page) == ([], False, False)
    assert "default-src 'none'" in page


def test_the_page_shows_the_whole_case(folder: RunFolder) -> None:
    """Verdict, worst violation, fault evidence, marked events and lag are all there."""
    page = html_of(read_report(folder))
    wanted = [
        "<h1>FAIL: commit-regression</h1>",
        "fell from 12 to 11",
        "state T",
        'class="marked"',
        '<path class="committed"',
    ]
    assert [text for text in wanted if text not in page] == []


def test_every_violation_says_its_cause_and_what_to_change(folder: RunFolder) -> None:
    """An anomaly by its invariant, and a process that ended by itself too."""
    failure = {"anomaly": "exited", "count": 1, "sentence": "member m0 exited by itself", "events": []}
    folder.write_json("verdict.json", verdict(violations=[*verdict()["violations"], failure]))
    page = html_of(read_report(folder))
    assert [page.count(f'<span class="soft">{word}:</span>') for word in ("usually", "change")] == [2, 2]
    assert "an error that nobody handles" in page
