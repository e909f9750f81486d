"""`explain`: every anomaly has its advice, and the page in docs/ is what the code says."""

from __future__ import annotations

import orjson
import pytest

from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.cli import main
from kafka_trial.errors import PASS, InputError
from kafka_trial.model.undecided import Undecided
from kafka_trial.registry import CHECKOUT, PACKAGE
from kafka_trial.report.explain import COUNTED, TABLE, calibrated, explain, page
from kafka_trial.verdict.collect import FAILURE_HELP, FAILURES


def test_every_anomaly_has_advice() -> None:
    """Its docstring says the usual cause and the remedy, a sentence each at least."""
    assert [one.name for one in list_invariants() if not one.cause.endswith(".") or not one.remedy.endswith(".")] == []


def test_the_page_of_anomalies_is_generated() -> None:
    """docs/anomalies.md is what `kafka-trial explain --all` prints."""
    assert (CHECKOUT / "docs" / "anomalies.md").read_text() == page()


def test_every_reason_for_leaving_a_case_undecided_is_given_somewhere() -> None:
    """The page lists them all; one that no invariant gives any more is none."""
    sources = "".join(path.read_text() for room in ("anomalies", "model") for path in (PACKAGE / room).glob("*.py"))
    assert [reason.name for reason in Undecided if f"Undecided.{reason.name}" not in sources] == []
    assert all(f"- {reason.value}\n" in page() for reason in Undecided)


def test_a_section_says_what_it_is_its_cause_and_the_change() -> None:
    """In this order, beneath its name."""
    section = explain("commit-ahead")
    places = [section.index(part) for part in ("## commit-ahead", "Smallest history:", "**Usually**", "**Change**")]
    assert places == sorted(places)


def test_a_count_that_is_a_lower_bound_is_called_one() -> None:
    """In the section of its anomaly, and on the page on verdicts; each name is one that there is."""
    assert COUNTED.keys() <= {one.name for one in list_invariants()}
    assert "So the count is a lower bound" in explain("commit-ahead")
    assert "**Counted**" not in explain("skipped")
    assert "lower bound" in (CHECKOUT / "docs" / "verdicts.md").read_text()


@pytest.mark.parametrize("name", FAILURES)
def test_a_plain_failure_of_a_member_has_advice_too(name: str) -> None:
    """A report names it as it names an anomaly, so whoever asks is told."""
    definition, cause, remedy = FAILURE_HELP[name]
    text = explain(name)
    assert text.startswith(f"## {name}\n\n{definition}")
    assert f"**Usually** {cause}" in text
    assert f"**Change** {remedy}" in text
    assert text in page()


def test_an_unknown_anomaly_is_wrong_input() -> None:
    """The nearest name is offered."""
    with pytest.raises(InputError, match="Did you mean 'commit-ahead'"):
        explain("commit-ahed")


def test_one_anomaly_is_told_with_how_often_it_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    """In the last line of its section, by the table that the wheel has; the page of all of them has no such line."""
    name, row = next(iter(orjson.loads(TABLE.read_bytes())["anomalies"].items()))
    assert main(["explain", name]) == PASS
    told = capsys.readouterr().out
    assert told == f"{explain(name)}\n\n{calibrated(name)}\n"
    assert f"\ncalibrated: found in {row['found']} of {row['trials']} trials of consumers that commit it (" in told
    assert "calibrated: found" not in page()


def test_a_table_that_has_no_row_of_an_anomaly_says_so() -> None:
    """Of a plug-in's, say; one commit is told by itself, a day that nobody knows is not."""
    row = {"found": 45, "trials": 45, "suites": ["control"]}
    sound = {"pass": 370, "fail": 0, "unknown": 3}
    table = {"anomalies": {"skipped": row}, "commits": ["abc1234"], "date": "", "sound": sound}
    told = (
        "calibrated: found in 45 of 45 trials of consumers that commit it (0 of 373 sound trials failed), "
        "measured at abc1234"
    )
    assert (calibrated("skipped", table), calibrated("odd-record", table)) == (told, "not calibrated")
