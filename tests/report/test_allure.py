"""Allure results: what a trial adds to its test's, and what the Allure tool shows of it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import npm
from kafka_trial.claim import Claim
from kafka_trial.report.allure import categories
from kafka_trial.report.report_data import headline
from kafka_trial.verdict.decide import decide
from kafka_trial.verdict.unknown_reasons import PROVES_NOTHING
from kafka_trial.verdict.verdict_input import AnomalyResult, Fault, VerdictInput
from staged_trial import PHASES, REASON, WALL_S, run_staged

ALLURE = Path(__file__).parent / "allure"
STATUS = {"pass": "passed", "fail": "failed", "unknown": "broken"}


def results_of(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Returns the results of a session with Allure's, by the verdict."""
    run_staged(pytester, monkeypatch, "--alluredir=results")
    results = [json.loads(file.read_text()) for file in (pytester.path / "results").glob("*-result.json")]
    return {re.findall(r"\[(\w+)]", result["name"])[0]: result for result in results}


def test_a_trial_is_in_the_result_of_its_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases by the wall clock, parameters, attachments, the verdict as status detail; versions beside it."""
    results = results_of(pytester, monkeypatch)
    assert {word: result["status"] for word, result in results.items()} == STATUS
    for word, result in results.items():
        steps = [(step["name"], step["start"], step["stop"], step["status"]) for step in result["steps"]]
        at_ms = [(WALL_S + 10 * number) * 1000 for number in range(8)]
        assert steps == [(*one, "passed") for one in zip(PHASES, at_ms, at_ms[1:], strict=False)]
        told = {one["name"]: one["value"] for one in result["parameters"]}
        assert told == {
            "word": f"'{word}'",
            "consumer": "orders",
            "scenario": "member-paused",
            "kafka": "4.3.1",
            "seed": "7",
        }
        assert [one["name"] for one in result["parameters"] if one.get("excluded")] == ["seed"]
        attached = {
            one["name"]: (one["type"], pytester.path / "results" / one["source"]) for one in result["attachments"]
        }
        kinds = {"verdict.json": "application/json", "report.txt": "text/plain", "report.html": "text/html"}
        assert {name: kind for name, (kind, _) in attached.items()} == kinds
        assert json.loads(attached["verdict.json"][1].read_text())["verdict"] == word
        assert 'id="timeline-data"' in attached["report.html"][1].read_text()
    assert "statusDetails" not in results["pass"]
    assert results["fail"]["statusDetails"]["message"].startswith(
        "FAIL: commit-regression, skipped\nskipped: skipped </td>"
    )
    assert results["unknown"]["statusDetails"]["message"] == f"UNKNOWN: {REASON}"
    assert "violations\n  commit-regression" in results["fail"]["statusDetails"]["trace"]
    versions = (pytester.path / "results" / "environment.properties").read_text().splitlines()
    assert versions == ["kafka_trial=0.1.0", "kafka=4.3.1", "python=3.11.7", "confluent-kafka=2.16.1"]
    assert json.loads((pytester.path / "results" / "categories.json").read_text()) == categories()


@pytest.mark.parametrize("words", [(), ("-p", "no:allure_pytest")])
def test_nothing_is_imported_where_nobody_asks_for_results(
    words: tuple[str, ...], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither without the option, nor without allure-pytest: then no module of its either."""
    asked = "import sys\ndef test_last():\n    assert {'kafka_trial.report.allure'%s}.isdisjoint(sys.modules)\n"
    pytester.makepyfile(test_z_last=asked % (", 'allure_commons'" if words else ""))
    run_staged(pytester, monkeypatch, *words).assert_outcomes(passed=2, failed=1, errors=1)
    assert not list(pytester.path.rglob("categories.json"))


def unknown(*, gaps: tuple[str, ...] = (), ground: tuple[str, ...] = (), **undecided: Any) -> str:
    """Returns the headline of a real verdict that is unknown."""
    core = ("skipped", "unseen", "commit-ahead", "illegal-redelivery")
    found = tuple(AnomalyResult(name, **undecided.get("skipped", {}) if name == "skipped" else {}) for name in core)
    verdict = decide(
        VerdictInput(found, gaps=gaps, ground=ground, faults=undecided.get("faults", ())), Claim("at-least-once")
    )
    return headline({"verdict": verdict.verdict, "reasons": verdict.reasons, "violations": ()})


NO_EFFECT = Fault("pause", "m0", "member", bit=False, evidence="it went on")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a fault without effect, or not healed", {"faults": (NO_EFFECT,)}),
        ("a claimed property was not judged", {"skipped": {"not_judged": "no log"}}),
        ("a case is undecided", {"skipped": {"undecided": {"nobody knows": 2}}}),
        ("too little to judge by", {"gaps": (f"fault 0 (pause) {PROVES_NOTHING}: m0 did no work",)}),
        ("the environment failed", {"ground": ("the witness offsets died",)}),
    ],
)
def test_an_unknown_is_sorted_by_its_first_reason(name: str, told: dict[str, Any]) -> None:
    """As a real verdict words it; the first category that matches counts."""
    line = unknown(**told)
    matching = [one["name"] for one in categories() if re.fullmatch(one["messageRegex"], f"{line}\nmore")]
    assert matching[0] == f"unknown: {name}", line


def test_the_allure_tool_shows_verdict_steps_and_attachments(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the reports that Allure makes of a session's results: that of Allure 3, and in the style of Allure 2, which
    reads our categories from beside the results."""
    tool = npm.modules(ALLURE, tool="allure") / "allure" / "cli.js"
    results_of(pytester, monkeypatch)
    config = {"plugins": {"awesome": {"options": {}}, "allure2": {"options": {}}}, "categories": categories()}
    (pytester.path / "allurerc.json").write_text(json.dumps(config))
    subprocess.run(["node", tool, "generate", "results", "--output=report"], cwd=pytester.path, check=True)
    report = pytester.path / "report" / "awesome"
    shown = [json.loads(file.read_text()) for file in (report / "data" / "test-results").glob("*.json")]
    assert {one["name"]: one["status"] for one in shown} == {f"test_it[{word}]": STATUS[word] for word in STATUS}
    for one in shown:
        steps = [(step["name"], step["duration"]) for step in one["steps"] if step["type"] == "step"]
        assert steps == [(phase, 10_000) for phase in PHASES]
        links = [attachment["link"] for attachment in one["attachments"]]
        attached = {link["name"]: report / "data" / "attachments" / f"{link['id']}{link['ext']}" for link in links}
        assert attached.keys() == {"verdict.json", "report.txt", "report.html"}
        assert STATUS[json.loads(attached["verdict.json"].read_text())["verdict"]] == one["status"]
        assert 'id="timeline-data"' in attached["report.html"].read_text()
    told = {one["name"]: one["error"].get("message", "").splitlines()[:1] for one in shown}
    fail, unknown = "FAIL: commit-regression, skipped", f"UNKNOWN: {REASON}"
    assert told == {"test_it[pass]": [], "test_it[fail]": [fail], "test_it[unknown]": [unknown]}
    sorted_by = {one["name"]: [category["name"] for category in one["categories"]] for one in shown}
    assert sorted_by == {
        "test_it[pass]": [],
        "test_it[fail]": ["fail: the consumer broke its claim"],
        "test_it[unknown]": ["unknown: a fault without effect, or not healed"],
    }
    allure2 = json.loads((pytester.path / "report" / "allure2" / "data" / "categories.json").read_text())
    assert {one["name"] for one in allure2["children"]} == {name for names in sorted_by.values() for name in names}
    versions = json.loads((report / "widgets" / "allure_environment.json").read_text())
    assert {"name": "confluent-kafka", "values": ["2.16.1"]} in versions
