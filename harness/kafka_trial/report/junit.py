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
                _ended(case, results[cell])
            else:
                told = f"not begun: {not_begun[cell]}" if cell in not_begun else NOT_TRIED
                ElementTree.SubElement(case, "skipped", message=bounded(told, most=LINE_MAX))
    write_suites(root, folder)


def write_suites(root: ElementTree.Element, folder: Path) -> None:
    """Writes test suites as junit.xml, with how many cases of which kind they have."""
    for element in (*root, root):
        _count(element)
    ElementTree.indent(root)
    (folder / JUNIT).write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _ended(case: ElementTree.Element, result: TrialResult) -> None:
    properties = ElementTree.SubElement(case, "properties")
    for name, value in result.properties:
        ElementTree.SubElement(properties, "property", name=name, value=value)
    if result.verdict in TAGS:
        why = ElementTree.SubElement(case, TAGS[result.verdict], message=result.headline)
        why.text = "\n".join([*result.findings, f"replay: {result.replay}", f"report: {result.report}"])


def _count(element: ElementTree.Element) -> None:
    counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for name, tag in counted.items():
        element.set(name, str(sum(1 for _ in element.iter(tag))))
