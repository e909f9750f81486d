"""The job summary in Markdown: what it says, that strangers write nothing but text into it, and how long it gets."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kafka_trial.report.markdown import SUMMARY_MAX_BYTES, append_summary, summary, text
from kafka_trial.report.trial_result import TrialResult
from staged_trial import HOSTILE

RESULT = TrialResult(
    consumer="orders",
    scenario="member-paused",
    kafka="4.3.1",
    seed="7",
    verdict="fail",
    headline="FAIL: skipped",
    findings=["skipped: record 7 was never handled", "late-convergence: lag stayed"],
    severity=3,
    not_judged=[{"anomaly": "phantom", "because": "no ids"}, {"anomaly": "misplaced", "because": "no ids"}],
    versions={"kafka": "4.3.1"},
    run="/runs/1",
    replay="kafka-trial run member-paused",
)


def rendered(markdown: str) -> str:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)


def words(html: str) -> str:
    """Returns what a reader sees, without the markup."""
    return re.sub(r"<[^>]*>", "", html)


def test_a_summary_says_the_verdict_the_table_and_why() -> None:
    """The worst of all trials decides; those that are missing stand in the table."""
    results = [RESULT, replace(RESULT, verdict="pass", findings=[], seed="8"), replace(RESULT, kafka="3.9.2")]
    html = rendered(summary(results, not_tried=[("orders", ("control", "4.3.1", 1))], page="out/index.html"))
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", html)
    assert cells == [
        "orders",
        "3.9.2",
        "4.3.1",
        "member-paused",
        "fail",
        "fail × 1, pass × 1",
        "control",
        "",
        "not tried",
    ]
    assert html.startswith("<h2>Kafka Trial: FAIL</h2>\n<p>4 trials: 2 fail, 1 pass, 1 not tried</p>")
    seen = unescape(words(html))
    assert "orders on member-paused, Kafka 4.3.1, seed 7: skipped: record 7 was never handled" in seen
    assert "also late-convergence: lag stayed" in seen
    assert all(
        part in seen for part in ("no ids: misplaced, phantom", "/runs/1/report.html", "Reports: out/index.html")
    )


def test_the_worst_of_many_violations_are_kept() -> None:
    """Of those of many trials, and so they stand first; how many are left out is said."""
    mild = [replace(RESULT, seed=str(number), findings=["mild"]) for number in range(100)]
    told = summary([*mild, replace(RESULT, severity=1, findings=["grave"])])
    assert re.findall(r"seed \d+: (\w+)", unescape(told)) == ["grave", *["mild"] * 19]
    assert "\n- and 81 more\n" in told


def test_the_verdict_of_all_is_unknown_while_a_trial_is_missing() -> None:
    """A pass is not claimed for what was not tried."""
    passed = replace(RESULT, verdict="pass")
    assert summary([passed]).startswith("## Kafka Trial: PASS")
    assert summary([passed], not_tried=[("orders", ("control", "4.3.1", 1))]).startswith("## Kafka Trial: UNKNOWN")


def test_strangers_write_nothing_but_text() -> None:
    """In every field: rendered, there is the same markup as with harmless words, and all that was printable is seen."""
    names = ("consumer", "scenario", "kafka", "seed", "headline", "run", "replay")
    lists = {"findings": [HOSTILE + "\ud800"] * 2, "not_judged": [{"anomaly": HOSTILE, "because": HOSTILE}]}
    strange: dict[str, Any] = dict.fromkeys(names, HOSTILE) | lists
    plain = {name: "harmless" if isinstance(value, str) else value for name, value in strange.items()}
    plain |= {"findings": ["harmless"] * 2, "not_judged": [{"anomaly": "harmless", "because": "harmless"}]}
    html, harmless = (rendered(summary([replace(RESULT, **changes)], page="p")) for changes in (strange, plain))
    assert re.findall(r"<[^>]*>", html) == re.findall(r"<[^>]*>", harmless)
    assert '</td><script>alert("·[31m")</script> ``` | *b* _i_ [l](http://h) <!-- ··· &amp; \\' in unescape(words(html))


@pytest.mark.parametrize("autolink", ["http://h", "www.h.org", "a@h.org", "@all", "$x$"])
def test_what_github_would_make_a_link_or_formula_of_is_broken_up(autolink: str) -> None:
    """Its own extensions, which nothing here renders, look at the source for these."""
    assert not re.search(r"://|www\.|@|\$", text(autolink))


def test_a_summary_is_bounded() -> None:
    """However many trials there are, and however much they say."""
    results = [replace(RESULT, scenario=f"{HOSTILE}{number}", findings=["<" * 1000] * 50) for number in range(3000)]
    told = summary([RESULT, *results], page="out/index.html")
    assert len(told.encode()) <= SUMMARY_MAX_BYTES + 100
    assert told.endswith("The rest is left out: it is too long.\n")


def test_a_summary_is_appended_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind what other steps have written; nowhere without the variable; a file that cannot be written is told."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert append_summary("## ours\n") == ""
    file = tmp_path / "summary.md"
    file.write_text("| a |\n| --- |\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert append_summary("## ours\n") == ""
    assert file.read_text() == "| a |\n| --- |\n\n## ours\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert "no summary was written" in append_summary("## ours\n")
