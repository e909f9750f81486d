"""A certificate as a JUnit file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from kafka_trial.errors import FAIL, PASS, UNKNOWN
from kafka_trial.history.output_names import JUNIT
from kafka_trial.report.certificate import Cell, Certificate, CertifiedTrial
from kafka_trial.report.junit import NOT_TRIED, write_junit
from staged_trial import HOSTILE


def trial(cell: Cell, word: str, **changes: Any) -> CertifiedTrial:
    """Returns a trial of a certificate, as plain as can be."""
    scenario, kafka, seed = cell
    lists: dict[str, Any] = dict.fromkeys(("violations", "tolerated", "not_judged", "faults", "reasons"), ())
    exit_status = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}[word]
    about = {"versions": {}, "run": f"runs/{kafka}/{scenario}/{seed}", "replay": "kafka-trial run it", "files": {}}
    return CertifiedTrial(scenario, kafka, seed, word, exit_status, **{**lists, **about, **changes})


def certificate(name: str, *trials: CertifiedTrial, suites: list[str]) -> Certificate:
    tried = {one.cell: one for one in trials}
    return Certificate({"name": name}, "0.1.0", "digest", suites, ["3.9.2", "4.3.1"], [1], trials=tried)


def written(folder: Path, made: Certificate, not_begun: dict[Cell, str]) -> ElementTree.Element:
    write_junit(made, folder, not_begun)
    return ElementTree.parse(folder / JUNIT).getroot()


def test_a_suite_for_each_version_and_a_case_for_each_trial(tmp_path: Path) -> None:
    """A fail is a failure, an unknown an error, what is missing skipped, with its reason; the counts agree."""
    violations = [{"anomaly": name, "sentence": f"{name} was seen"} for name in ("late-convergence", "skipped")]
    made = certificate(
        "orders",
        trial(("control", "3.9.2", 1), "pass"),
        trial(("control", "4.3.1", 1), "fail", violations=violations),
        trial(("member-killed", "4.3.1", 1), "unknown", reasons=["no effect", "a gap"], violations=violations[1:]),
        suites=["control", "member-killed", "stalled"],
    )
    root = written(tmp_path, made, {("member-killed", "3.9.2", 1): "no disk"})
    counts = [(suite.get("name"), *map(suite.get, ("tests", "failures", "errors", "skipped"))) for suite in root]
    assert counts == [("Kafka 3.9.2", "3", "0", "0", "2"), ("Kafka 4.3.1", "3", "1", "1", "1")]
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["6", "1", "1", "3"]
    run = tmp_path / "runs/4.3.1/member-killed/1"
    assert [
        (
            case.get("classname"),
            case.get("name"),
            [(part.tag, part.get("message"), part.text) for part in case if part.tag != "properties"],
        )
        for case in root.iter("testcase")
    ] == [
        ("orders", "control[seed 1]", []),
        ("orders", "member-killed[seed 1]", [("skipped", "not begun: no disk", None)]),
        ("orders", "stalled[seed 1]", [("skipped", NOT_TRIED, None)]),
        (
            *("orders", "control[seed 1]"),
            [
                (
                    *("failure", "FAIL: late-convergence, skipped"),
                    "skipped: skipped was seen\nlate-convergence: late-convergence was seen\n"
                    f"replay: kafka-trial run it\nreport: {tmp_path}/runs/4.3.1/control/1/report.html",
                )
            ],
        ),
        (
            *("orders", "member-killed[seed 1]"),
            [
                (
                    *("error", "UNKNOWN: no effect (and 1 more)"),
                    "no effect\na gap\nseen, but not held against the consumer: skipped: skipped was seen\n"
                    f"replay: kafka-trial run it\nreport: {run}/report.html",
                )
            ],
        ),
        ("orders", "stalled[seed 1]", [("skipped", NOT_TRIED, None)]),
    ]
    properties = {
        part.get("name"): part.get("value") for part in root.findall("testsuite/testcase/properties/property")
    }
    about = {"consumer": "orders", "scenario": "member-killed", "kafka": "4.3.1", "seed": "1", "verdict": "unknown"}
    assert properties == about | {"run": str(run), "report": f"{run}/report.html", "replay": "kafka-trial run it"}


def test_it_is_well_formed_whatever_a_consumer_wrote(tmp_path: Path) -> None:
    """Control characters, halves of surrogate pairs, ends of CDATA and markup come back as text."""
    everything = HOSTILE + "".join(map(chr, range(0x20))) + "\ufffe\uffff\x85\ud800"
    violations = [{"anomaly": "skipped", "sentence": everything}]
    failed = trial(
        (everything, "4.3.1", 1), "fail", violations=violations, replay=everything, run=f"r/{everything[:50]}"
    )
    unknown = trial(("control", "4.3.1", 1), "unknown", reasons=[everything])
    made = certificate(everything, failed, unknown, suites=[everything, "control", "late"])
    root = written(tmp_path, made, {("late", "4.3.1", 1): everything})
    cases = root.findall("testsuite[@name='Kafka 4.3.1']/testcase")
    assert [[part.tag for part in case] for case in cases] == [
        ["properties", "failure"],
        ["properties", "error"],
        ["skipped"],
    ]
    shown = '</td><script>alert("·[31m")</script> ``` | *b* _i_ [l](http://h) <!-- ··· &amp;'
    assert cases[0].findtext("failure", "").startswith(f"skipped: {shown}")
    assert str(cases[2][0].get("message")).startswith(f"not begun: {shown}")
