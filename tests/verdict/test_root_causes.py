"""Cascades: what follows from a violation stands beneath it, and only where every instance is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_trial.claim import Claim
from kafka_trial.invariants.causal_links import Anomaly
from kafka_trial.report.reading import worst
from kafka_trial.verdict.decide import decide
from kafka_trial.verdict.files import verdict_to_table
from kafka_trial.verdict.root_causes import by_root_cause
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput, Violation

Told = list[tuple[str, str | None]]


def one(name: str, *events: str, partition: int = 0, **attributes: int) -> Anomaly:
    return Anomaly(name, "t", partition, attributes, events)


def told(*instances: Anomaly) -> Told:
    """Returns the names of the violations with what each follows from, worst first as given."""
    guilty: dict[str, list[Anomaly]] = {}
    for instance in instances:
        guilty.setdefault(instance.name, []).append(instance)
    violations = [Violation(name, len(ones), name, ()) for name, ones in guilty.items()]
    return [(violation.anomaly, violation.follows) for violation in by_root_cause(violations, guilty)]


def test_a_chain_is_told_from_its_cause_on() -> None:
    """A zombie's commit let the position fall, and what had been done looks undone: one root, in this order."""
    assert told(
        one("false-lag", "offsets#9"),
        one("split-ownership", "offsets#1"),
        one("commit-regression", "offsets#4", "offsets#9"),
        one("zombie-commit", "offsets#4", "requests-b0#7"),
    ) == [
        ("split-ownership", None),
        ("zombie-commit", None),
        ("commit-regression", "zombie-commit"),
        ("false-lag", "commit-regression"),
    ]


def test_what_is_not_wholly_explained_stands_by_itself() -> None:
    """Two positions fell, and the zombie made only one of them fall."""
    assert told(
        one("zombie-commit", "offsets#4"),
        one("commit-regression", "offsets#4"),
        one("commit-regression", "offsets#8"),
    ) == [("zombie-commit", None), ("commit-regression", None)]


def test_a_record_that_both_name_is_no_link() -> None:
    """The control read's event says that there is a record; two anomalies of it may have nothing in common but that."""
    assert told(one("commit-regression", "observer#1"), one("zombie-commit", "observer#1")) == [
        ("commit-regression", None),
        ("zombie-commit", None),
    ]


def test_lost_records_follow_from_the_commits_that_were_ahead_of_them() -> None:
    """From the first record left out up to what was committed; ranges that overlap count as one."""
    ahead = [
        one("commit-ahead", offset=3, committed_offset=9),
        one("commit-ahead", offset=4, committed_offset=6),
        one("commit-ahead", partition=1, offset=0, committed_offset=2),
    ]
    inside = [one("skipped", offset=3), one("skipped", offset=8), one("skipped", partition=1, offset=1)]
    assert told(*inside, *ahead) == [("commit-ahead", None), ("skipped", "commit-ahead")]
    for outside in (one("skipped", offset=2), one("skipped", offset=9), one("skipped", partition=2, offset=1)):
        assert told(*inside, outside, *ahead) == [("skipped", None), ("commit-ahead", None)]


def test_what_a_stuck_partition_leaves_undone_follows_from_it() -> None:
    """On the same partition only; nobody's partition is why it is stuck."""
    stuck = [one("unseen", offset=7), one("stuck-partition", offset=7)]
    assert told(*stuck) == [("stuck-partition", None), ("unseen", "stuck-partition")]
    assert told(*stuck, one("unseen", partition=1, offset=0)) == [("unseen", None), ("stuck-partition", None)]
    assert told(*stuck, one("orphan-partition")) == [
        ("orphan-partition", None),
        ("stuck-partition", "orphan-partition"),
        ("unseen", "stuck-partition"),
    ]


def test_the_worst_is_told_even_where_its_cause_stands_first() -> None:
    """A loss is worse than the early commit that led to it."""
    violations = [
        {"anomaly": "commit-ahead", "sentence": "early"},
        {"anomaly": "skipped", "sentence": "lost", "follows": "commit-ahead"},
    ]
    assert worst({"verdict": "fail", "violations": violations, "counts": {}}) == "skipped: lost"


def test_a_verdict_folds_only_what_it_holds_against_the_consumer() -> None:
    """A cause that the claim tolerates is no violation: what follows from it stands first."""
    found: Mapping[str, Sequence[Anomaly]] = {
        "commit-regression": [one("commit-regression", "offsets#4", recovered=0)],
        "zombie-commit": [one("zombie-commit", "offsets#4", fell=1)],
    }
    case = VerdictInput(tuple(AnomalyResult(name, tuple(ones)) for name, ones in found.items()))
    table = verdict_to_table(decide(case, Claim("unclaimed")))
    assert [(row["anomaly"], row.get("follows")) for row in table["violations"]] == [
        ("zombie-commit", None),
        ("commit-regression", "zombie-commit"),
    ]
    harmless = AnomalyResult("zombie-commit", (one("zombie-commit", "offsets#4"),))
    table = verdict_to_table(decide(VerdictInput((case.found[0], harmless)), Claim("unclaimed")))
    assert [(row["anomaly"], "follows" in row) for row in table["violations"]] == [("commit-regression", False)]
