"""A certificate as a JUnit file: a test suite for each Kafka version, a test case for each suite and seed.

A fail is a failure, an unknown an error, and what was not tried is skipped, with the reason. XML knows no control
characters: in texts of a consumer they were replaced when the results were read (`trial_result.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from kafka_trial.history.output_names import JUNIT
from kafka_trial.report.certificate import Cell, Certificate
from kafka_trial.report.event_text import bounded
from kafka_trial.report.trial_result import LINE_MAX, TrialResult, certificate_results

TAGS = {"fail": "failure", "unknown": "error"}
CLIENT_TAGS = {"worse": "failure", "unknown": "error"}  # of a comparison with a baseline
NOT_TRIED = "not tried: its turn had not come when the time was up, or certifying was stopped"


def write_junit(certificate: Certificate, folder: Path, not_begun: Mapping[Cell, str]) -> None:
    """Writes junit.xml; `not_begun`: why a trial could not be begun."""
    results = certificate_results(certificate, folder)
    root = ElementTree.Element("testsuites", name="kafka-trial")
    for version in certificate.kafka:
        suite = ElementTree.SubElement(root, "testsuite", name=f"Kafka {bounded(version)}")
        for cell in (cell for cell in certificate.cells if cell[1] == version):
            about = {"classname": bounded(certificate.consumer["name"]), "name": bounded(f"{cell[0]}[seed {cell[2]}]")}
            case = ElementTree.SubElement(suite, "testcase", about)
            if cell in results:
                _ended(case, results[cell], held=certificate.client is None)
            else:
                told = f"not begun: {not_begun[cell]}" if cell in not_begun else NOT_TRIED
                ElementTree.SubElement(case, "skipped", message=bounded(told, most=LINE_MAX))
    _differences(root, certificate)
    write_suites(root, folder)


def _differences(root: ElementTree.Element, certificate: Certificate) -> None:
    """Adds a test suite with a case for each comparison; only that with a baseline can fail, or be an error."""
    if not certificate.differs:
        return
    suite = ElementTree.SubElement(root, "testsuite", name="What differs")
    for number, part in enumerate(certificate.differs):
        about = {"classname": bounded(certificate.consumer["name"]), "name": bounded(part.title, most=LINE_MAX)}
        case = ElementTree.SubElement(suite, "testcase", about)
        text = "\n".join(bounded(line, most=LINE_MAX) for line in part.lines)
        tag = CLIENT_TAGS.get(certificate.client["verdict"]) if certificate.client and number == 0 else None
        if tag:
            ElementTree.SubElement(case, tag, message=bounded(part.title, most=LINE_MAX)).text = text
        else:
            ElementTree.SubElement(case, "system-out").text = text


def write_suites(root: ElementTree.Element, folder: Path) -> None:
    """Writes test suites as junit.xml, with how many cases of which kind they have."""
    for element in (*root, root):
        _count(element)
    ElementTree.indent(root)
    (folder / JUNIT).write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _ended(case: ElementTree.Element, result: TrialResult, *, held: bool) -> None:
    """Adds how a trial ended; with a baseline the comparison alone is `held` against the consumer, and the trial's own
    verdict stands in its output."""
    properties = ElementTree.SubElement(case, "properties")
    for name, value in result.properties:
        ElementTree.SubElement(properties, "property", name=name, value=value)
    if result.verdict not in TAGS:
        return
    text = "\n".join([*result.findings, f"replay: {result.replay}", f"report: {result.report}"])
    if held:
        ElementTree.SubElement(case, TAGS[result.verdict], message=result.headline).text = text
    else:
        ElementTree.SubElement(case, "system-out").text = f"{result.headline}\n{text}"


def _count(element: ElementTree.Element) -> None:
    counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for name, tag in counted.items():
        element.set(name, str(sum(1 for _ in element.iter(tag))))
