"""The frozen comparison: what counts as a difference, and that every verdict on a frozen history is what it was."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from histories import EXAMPLE, assigned, committed, delivered, history, owner
from kafka_trial.registry import CHECKOUT
from lab.frozen.histories import FrozenHistory, frozen_history, read_histories, write_histories
from lab.frozen.history_findings import (
    CRASHED,
    INSTANCES,
    NOT_JUDGED,
    UNDECIDED,
    ChangedFinding,
    HistoryFindings,
    changes,
    findings_of,
)
from lab.frozen.ledger import (
    EVERY,
    FINDINGS_NAME,
    LEDGER_NAME,
    all_changes,
    append_to_ledger,
    merge_shared_changes,
    read_findings,
    read_ledger,
    write_findings,
)

REPORTS = CHECKOUT / "reports"
BEFORE = HistoryFindings({"skipped": {"[1]": 1}}, {"late-record": {"stall": 2}}, {"oom-killed": "no cgroup"})


@pytest.fixture(scope="module")
def ahead() -> FrozenHistory:
    """What was committed was delivered, and never processed."""
    return frozen_history(history([owner("m0"), assigned("m0"), delivered("m0", 0), committed(1)]), asdict(EXAMPLE))


def test_a_history_comes_back_as_it_was_kept_and_once(ahead: FrozenHistory, tmp_path: Path) -> None:
    """Its name follows from what it holds."""
    drawn = replace(ahead, drawn=True)
    assert write_histories([ahead, ahead, drawn], tmp_path / "kept.xz") == 2
    kept = {one.name: one for one in read_histories(tmp_path / "kept.xz")}
    assert kept == {one.name: one for one in (ahead, drawn)}
    assert findings_of(kept[ahead.name]) == findings_of(ahead)


def test_a_conviction_and_what_is_undecided_are_in_the_answer(ahead: FrozenHistory, tmp_path: Path) -> None:
    """By instance, as a claim sees it; as text, it comes back as it was kept."""
    told = findings_of(ahead)
    assert (told.instances.keys(), told.crashed) == ({"commit-ahead", "skipped"}, {})
    assert "unseen" in told.undecided
    write_findings({"h": told}, tmp_path / "answers.xz")
    assert read_findings(tmp_path / "answers.xz") == {"h": told}


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (BEFORE, []),
        (replace(BEFORE, instances={}), [("skipped", INSTANCES)]),
        (replace(BEFORE, instances={"skipped": {"[1]": 2}}), [("skipped", INSTANCES)]),
        (replace(BEFORE, instances={"skipped": {"[2]": 1}}), [("skipped", INSTANCES)]),
        (replace(BEFORE, undecided={}), []),
        (replace(BEFORE, undecided={"late-record": {"stall": 1}}), []),
        (replace(BEFORE, undecided={"late-record": {"stall": 3}}), [("late-record", UNDECIDED)]),
        (replace(BEFORE, undecided={"late-record": {"clock": 1}}), [("late-record", UNDECIDED)]),
        (replace(BEFORE, not_judged={}), [("oom-killed", NOT_JUDGED)]),
        (replace(BEFORE, crashed={"skipped": "KeyError"}), [("skipped", CRASHED)]),
    ],
)
def test_what_is_a_difference(after: HistoryFindings, what: list[tuple[str, str]]) -> None:
    """Anything but a case less that is undecided."""
    assert [(one.anomaly, one.what) for one in changes("h", BEFORE, after)] == what


def test_findings_and_what_was_accepted_come_back(tmp_path: Path) -> None:
    """A history that nobody judged before, or judges any more, has no difference."""
    write_findings({"h": BEFORE, "gone": BEFORE}, tmp_path / "answers.xz")
    found = list(all_changes(read_findings(tmp_path / "answers.xz"), {"h": HistoryFindings(), "new": BEFORE}))
    assert [one.history for one in found] == ["h"] * len(found) != []
    append_to_ledger(found, tmp_path / "ledger.jsonl", why="KIP-848 says so", date="2026-11-28", commit="c1")
    entries = read_ledger(tmp_path / "ledger.jsonl")
    assert ([one.difference for one in entries], {one.why for one in entries}) == (found, {"KIP-848 says so"})


def test_what_changes_in_every_history_is_one_entry() -> None:
    """As where an anomaly is new; what is another change, or not in all of them, stays by itself."""
    found = [ChangedFinding(name, "new", NOT_JUDGED, "null", "no claim") for name in "ab"]
    other = [
        ChangedFinding("a", "skipped", INSTANCES, "null", "1"),
        ChangedFinding("b", "skipped", INSTANCES, "1", "2"),
    ]
    assert merge_shared_changes([*found, *other], 2) == [
        ChangedFinding(EVERY, "new", NOT_JUDGED, "null", "no claim"),
        *other,
    ]
    assert merge_shared_changes(found, 3) == found


def test_thousands_of_histories_are_frozen_and_each_was_judged() -> None:
    """Literal ones and a thousand drawn ones; of each a verdict is kept."""
    frozen = [*read_histories()]
    assert read_findings(REPORTS / FINDINGS_NAME).keys() == {one.name for one in frozen}
    assert sum(one.drawn for one in frozen) >= 1000
    assert sum(not one.drawn for one in frozen) >= 1000


@pytest.mark.lengthy
@pytest.mark.rotates
@pytest.mark.parametrize("part", "0123456789abcdef")
def test_every_frozen_verdict_is_what_it_was(part: str) -> None:
    """`python -m lab.frozen` tells what differs, and takes the reason for it."""
    kept = {name: answer for name, answer in read_findings(REPORTS / FINDINGS_NAME).items() if name.endswith(part)}
    answers = {one.name: findings_of(one) for one in read_histories() if one.name.endswith(part)}
    assert kept.keys() == answers.keys()
    assert list(all_changes(kept, answers)) == []


def test_every_entry_of_the_ledger_says_why() -> None:
    """Of a history that is still there."""
    names = {EVERY, *(one.name for one in read_histories())}
    assert [
        one for one in read_ledger(REPORTS / LEDGER_NAME) if not one.why or one.difference.history not in names
    ] == []
