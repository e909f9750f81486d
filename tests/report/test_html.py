"""The report as one HTML page."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import html_of
from kafka_trial.report.report_data import read_report
from kafka_trial.report.run_metadata import RunMetadata
from literal_run import NASTY, verdict

METADATA = RunMetadata(
    base="the start of the trial",
    began="2026-11-27 04:52:26 UTC",
    lasted_s=27.3,
    host="builder (2 cores)",
    harness="0.1.0, commit 7303a7f67a77, unchanged",
    consumer_commit="86fd2a8c1b3e, with 1 file changed since",
    image="team/orders:1.4, sha256:5d0da3dc9764",
    clients=("apache-kafka-java 4.3.1 (orders-<0>)",),
)
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
    tags = [(tag, attrs) for tag, attrs in Page(page).tags if {"src", "href", "srcset"} & attrs.keys()]
    loads = [tag for tag, attrs in tags if tag != "a" or not str(attrs["href"]).startswith("#")]
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


def test_every_link_leads_somewhere_in_the_page(folder: RunFolder) -> None:
    """Each anomaly that is named is explained there; no file of a checkout is pointed at."""
    page = html_of(read_report(folder))
    tags = Page(page).tags
    places = {attrs["id"] for _, attrs in tags if "id" in attrs}
    links = [str(attrs["href"]) for tag, attrs in tags if tag == "a"]
    assert ([link for link in links if link.removeprefix("#") not in places], "docs/" in page) == ([], False)
    wanted = {"#explain-commit-regression", "#explain-redelivered", "#explain-skipped", "#explain-zombie-commit"}
    assert wanted <= set(links)
    assert ("one anomaly an episode" in page, "(else it was <code>retried</code>)" in page) == (True, True)


def test_what_was_not_judged_is_folded_by_its_reason(folder: RunFolder) -> None:
    """A reason stands there once, with all that was not judged because of it; those of most come first."""
    because = {"zombie-commit": "no request log", "phantom": "no ids", "misplaced": "no ids"}
    rows = [{"anomaly": name, "because": reason} for name, reason in because.items()]
    folder.write_json("verdict.json", verdict(not_judged=rows))
    page = html_of(read_report(folder))
    (folded,) = re.findall("<details>\n<summary>Not judged: 3</summary>\n(.*?)</details>", page, re.DOTALL)
    assert re.findall("<li>(.*?)</li>", re.sub("</?a[^>]*>", "", folded)) == [
        "phantom, misplaced: no ids",
        "zombie-commit: no request log",
    ]


def test_the_page_says_when_where_and_of_what(folder: RunFolder) -> None:
    """Date and zone, length, host, harness, commits, image, clients; of a run that recorded none of them, nothing."""
    before = html_of(read_report(folder))
    whole = html_of(replace(read_report(folder), metadata=METADATA))
    for word, told in {
        "ran": "2026-11-27 04:52:26 UTC for 27.3 s",
        "host": "builder (2 cores)",
        "kafka-trial": "0.1.0, commit 7303a7f67a77, unchanged",
        "consumer’s commit": "86fd2a8c1b3e, with 1 file changed since",
        "image": "team/orders:1.4, sha256:5d0da3dc9764",
        "clients": "as the brokers saw them: apache-kafka-java 4.3.1 (orders-&lt;0&gt;)",
    }.items():
        line = f"<dt>{word}</dt><dd>{told}</dd>"
        assert (line in whole, f"<dt>{word}</dt>" in before) == (True, word == "ran"), word
    assert "<dt>ran</dt><dd>for 60.0 s</dd>" in before


def test_the_end_of_each_log_is_shown_as_text(folder: RunFolder) -> None:
    """Its last lines, without control characters or markup; what is empty is named."""
    folder.logs.mkdir()
    lines = [f"line {number}" for number in range(30)]
    (folder.logs / "m1-0.stderr").write_text("\n".join([*lines, NASTY]) + "\n")
    (folder.logs / "m1-0.stdout").touch()
    page = html_of(read_report(folder))
    (shown,) = re.findall('<pre class="code log"[^>]*>(.*?)</pre>', page, re.DOTALL)
    told = html.unescape(shown).splitlines()
    assert told == [*lines[-19:], NASTY.replace("\x1b", "·")]
    assert '<p class="soft">Empty: logs/m1-0.stdout</p>' in page


def test_every_violation_says_its_cause_and_what_to_change(folder: RunFolder) -> None:
    """An anomaly by its invariant, and a process that ended by itself too."""
    failure = {"anomaly": "exited", "count": 1, "sentence": "member m0 exited by itself", "events": []}
    folder.write_json("verdict.json", verdict(violations=[*verdict()["violations"], failure]))
    page = html_of(read_report(folder))
    assert [page.count(f'<span class="soft">{word}:</span>') for word in ("usually", "change")] == [2, 2]
    assert "an error that is not handled" in page
