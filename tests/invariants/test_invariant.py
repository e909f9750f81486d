"""What invariants are registered with, and which of their findings are kept as examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from histories import NEVER, NONE, assigned, handled, judgement, with_settings
from kafka_trial.anomalies import invariant
from kafka_trial.anomalies.invariant import Findings, find_invariant, instances, list_invariants, per_slice
from kafka_trial.model.table import of_group, table

POSITIONS_IN_KAFKA = {
    "commit-ahead",
    "commit-lost",
    "commit-past-end",
    "commit-regression",
    "false-lag",
    "illegal-redelivery",
    "rogue-reader",
    "skipped",
    "stale-generation",
    "uncommitted-progress",
    "zombie-commit",
}
OF_TRANSACTIONS = {"hanging-transaction", "offset-outside-transaction", "torn-transaction"}


@pytest.mark.parametrize(
    ("progress", "because", "names"),
    [
        ("sink", "its progress is not in Kafka (progress: sink)", POSITIONS_IN_KAFKA),
        ("transaction", "its progress is in its transactions, whose epochs are not looked at", {"stale-generation"}),
        ("kafka", "its progress is not in its transactions (progress: kafka)", OF_TRANSACTIONS),
        ("sink", "its progress is not in its transactions (progress: sink)", OF_TRANSACTIONS),
    ],
)
def test_rules_are_about_where_progress_is(progress: str, because: str, names: set[str]) -> None:
    """What is committed to Kafka means nothing where progress is elsewhere."""
    judged = judgement([assigned("m0"), handled("m0", 0)], settings=with_settings(progress=progress))
    told = {name for name, one in judged.findings.items() if one.not_judged and one.not_judged.because == because}
    assert told == names


def test_nobody_is_blamed_for_what_was_still_to_do_while_there_was_time() -> None:
    """These two are left open until then."""
    assert [one.name for one in list_invariants() if one.of_the_end] == ["unseen", "false-lag"]


def test_an_invariant_is_told_in_its_first_sentence() -> None:
    """As it stands in its docstring, on one line."""
    assert find_invariant("skipped").summary == "A record was committed past, and never handled: it is lost"
    assert find_invariant("poll-skip").summary == (
        "Inside one ownership epoch the deliveries jumped over a readable record, and no later delivery there made it "
        "good"
    )


def _findings(**columns: Any) -> Findings:
    size = len(columns["slice"])
    made = {name: np.array(values) for name, values in columns.items()}
    return Findings(table(**made), [(np.arange(size) % 2, np.arange(size)), (np.full(size, -1), np.zeros(size, int))])


def test_instances_come_in_order_with_the_events_that_prove_them() -> None:
    """By slice and order; what is absent is left out, and so is a proof that is none, or told already."""
    found = _findings(slice=[1, 0, 0], order=[5, 7, 6], offset=[3, NONE, NEVER], lasted=[0, 1, 2])
    twice = Findings(found.rows, [*found.proofs, found.proofs[0]])
    assert list(instances(twice, ["a", "b"])) == [
        (0, {"lasted": 2}, ["a#2"]),
        (0, {"lasted": 1}, ["b#1"]),
        (1, {"offset": 3, "lasted": 0}, ["a#0"]),
    ]


def test_of_every_deciding_combination_the_first_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of each here, in each slice, by their order."""
    monkeypatch.setattr(invariant, "EXAMPLES_MAX", 2)
    found = _findings(
        slice=[0, 0, 0, 0, 0, 1, 1, 1],
        order=[5, 4, 3, 2, 1, 3, 1, 2],
        own=[True, True, True, False, True, True, True, True],
        fell=[True, True, False, True, True, True, True, True],
    )
    kept = [(number, told["own"], told["fell"], events) for number, told, events in instances(found, ["a", "b"])]
    assert kept == [
        (0, True, True, ["a#4"]),
        (0, False, True, ["b#3"]),
        (0, True, False, ["a#2"]),
        (0, True, True, ["b#1"]),
        (1, True, True, ["a#6"]),
        (1, True, True, ["b#7"]),
    ]
    assert per_slice(found.rows["slice"]) == {0: 5, 1: 3}


def test_a_thousand_examples_are_kept() -> None:
    """Of one combination in one slice."""
    assert len(list(instances(_findings(slice=[0] * 1001, order=list(range(1001))), ["a", "b"]))) == 1000


def test_findings_about_a_group_are_of_no_slice() -> None:
    """In their order; an attribute of None is absent."""
    rows = of_group(2, {"member": ["m1", "m0"], "within_s": [None, 2.5]})
    assert list(instances(Findings(rows), [])) == [
        (-1, {"member": "m1"}, []),
        (-1, {"member": "m0", "within_s": 2.5}, []),
    ]
    assert list(instances(Findings(of_group(0, {"member": []})), [])) == []
