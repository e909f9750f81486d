"""What a sink proves in an audit, and what it leaves open: literal histories, each with one thing that matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audited import committed, group, verdict_on
from kafka_trial.verdict.decide import Verdict

AT_LEAST_ONCE, EXACTLY_ONCE = {"delivery": "at-least-once"}, {"delivery": "exactly-once"}
THERE, BEGAN = group(1, 1, "a", "b"), committed(2, 0)
WORKED = [THERE, BEGAN, committed(600, 5), committed(700, 12)]
ALL = [(550.0, f"r{offset}") for offset in range(12)]
BUT_R7 = [effect for effect in ALL if effect[1] != "r7"]
READ = {"ends": (12, 0), "records": range(12)}


def _found(verdict: Verdict) -> list[str]:
    return [violation.anomaly for violation in verdict.violations]


def _reasons(verdict: Verdict) -> str:
    return "; ".join(verdict.reasons)


def _left_open(verdict: Verdict, anomaly: str, because: str) -> bool:
    return any(reason.startswith(f"{anomaly}: ") and because in reason for reason in verdict.reasons)


@pytest.mark.parametrize("sink", ["topic", "table"])
def test_a_group_whose_records_all_arrived_passes(sink: str, tmp_path: Path) -> None:
    """Nothing found by the sink, nothing left open."""
    verdict = verdict_on(tmp_path, WORKED, **READ, effects=ALL, sink=sink)
    assert (verdict.verdict, verdict.reasons, verdict.counts["effects"]) == ("pass", (), 12)


def test_a_record_that_is_not_in_the_sink_was_skipped(tmp_path: Path) -> None:
    """Without a claim it is counted; under one it breaks it, for the commit ran ahead of it."""
    counted = verdict_on(tmp_path / "counted", WORKED, **READ, effects=BUT_R7)
    claimed = verdict_on(tmp_path / "claimed", WORKED, **READ, effects=BUT_R7, claim=AT_LEAST_ONCE)
    assert (counted.verdict, counted.counts["skipped"], _found(claimed)) == ("pass", 1, ["commit-ahead", "skipped"])


@pytest.mark.parametrize(
    ("offsets", "more", "because"),
    [
        (WORKED, {"unread": [("handled", "done-0 from 3 to 9")]}, "not read: done-0 from 3 to 9"),
        (WORKED, {"unread": [("records", "t-0"), ("records", "t-1")]}, "not read: t-0 (and 1 more)"),
        (WORKED, {"effects": []}, "the sink holds no id of the audited time"),
        (WORKED, {"effects": [(550.0, f"x{offset}") for offset in range(12)]}, "are they ids of the same thing?"),
        ([THERE, committed(700, 12)], {}, "where the group began to read it is not"),
        ([THERE, BEGAN, group(650, 2), committed(700, 12)], {}, "the group had no members then"),
        ([BEGAN, committed(700, 12)], {}, "whether the group had members then is not known"),
    ],
    ids=[
        "sink unread",
        "topic unread",
        "sink empty",
        "other ids",
        "first commit",
        "reset while empty",
        "unknown group",
    ],
)
def test_what_something_else_explains_was_not_skipped_for_certain(
    offsets: list[Any], more: dict[str, Any], because: str, tmp_path: Path
) -> None:
    """Nobody is blamed, and nothing passes."""
    verdict = verdict_on(tmp_path, offsets, **({**READ, "effects": BUT_R7, "claim": AT_LEAST_ONCE} | more))
    assert (_found(verdict), verdict.counts["skipped"], _left_open(verdict, "skipped", because)) == ([], 0, True)


def test_an_effect_shortly_after_the_commit_may_be_the_clocks(tmp_path: Path) -> None:
    """Three seconds are within what two machines' clocks may be apart, a minute is not."""
    late = {name: [*BUT_R7, (at_s, "r7")] for name, at_s in (("shortly", 703.0), ("long", 760.0))}
    shortly, long = (
        verdict_on(tmp_path / name, WORKED, **READ, effects=effects, claim=AT_LEAST_ONCE)
        for name, effects in late.items()
    )
    assert (_found(shortly), "by the clocks of two machines" in _reasons(shortly)) == ([], True)
    assert _found(long) == ["commit-ahead"]


@pytest.mark.parametrize(
    ("more", "because"),
    [
        ({"effects": [*ALL, (560.0, "r3")]}, None),
        ({"effects": [*ALL, (560.0, "r3"), (561.0, "r3")], "ids": {4: "r3"}}, "several records have its id"),
        ({"effects": [*ALL, (560.0, "x"), (561.0, "x")]}, "its record is none of those that were read"),
        (
            {"effects": [*ALL, (560.0, "r3")], "unread": [("times", "when the rows of db were written")]},
            "when the rows",
        ),
    ],
    ids=["twice", "shared id", "record not read", "times unknown"],
)
def test_two_effects_of_one_record_that_was_read_are_a_duplicate(
    more: dict[str, Any], because: str | None, tmp_path: Path
) -> None:
    """Nothing is claimed of ids that are several records', or of none that was read."""
    verdict = verdict_on(tmp_path, WORKED, **READ, **more, claim=EXACTLY_ONCE)
    found = _found(verdict)
    assert (found, because is None or because in _reasons(verdict)) == ([] if because else ["duplicate-effect"], True)


def test_two_records_of_one_id_may_have_an_effect_each(tmp_path: Path) -> None:
    """Their producer sent the record again."""
    verdict = verdict_on(tmp_path, WORKED, **READ, effects=[*ALL, (560.0, "r3")], ids={4: "r3"}, claim=EXACTLY_ONCE)
    assert "duplicate-effect" not in {*_found(verdict), *(one.anomaly for one in verdict.not_judged)}
    assert "several records have its id" not in _reasons(verdict)


def test_a_table_without_duplicates_does_not_show_that_there_were_none(tmp_path: Path) -> None:
    """It may hold one row an id; one with two rows of an id shows it."""
    once = verdict_on(tmp_path / "once", WORKED, **READ, effects=ALL, sink="table")
    twice = verdict_on(tmp_path / "twice", WORKED, **READ, effects=[*ALL, (560.0, "r3")], sink="table")
    unjudged = {one.anomaly: one.because for one in once.not_judged}
    assert (unjudged["duplicate-effect"], twice.counts["duplicate-effect"]) == (
        "a table may hold one row per id, however often its record was handled",
        1,
    )


def test_a_lag_of_which_all_arrived_is_a_false_one(tmp_path: Path) -> None:
    """Its records lie in the sink, and the position behind them."""
    verdict = verdict_on(tmp_path, WORKED[:3], **READ, effects=ALL)
    assert _found(verdict) == ["false-lag"]


def test_a_lag_of_which_nothing_arrived_is_a_stuck_partition(tmp_path: Path) -> None:
    """Its members are there, and nothing moves."""
    verdict = verdict_on(tmp_path, WORKED[:3], **READ, effects=ALL[:5])
    assert _found(verdict) == ["stuck-partition"]


@pytest.mark.parametrize(
    ("offsets", "more", "because"),
    [
        ([*WORKED[:3], group(650, 2)], {}, "the group had no members"),
        ([THERE, committed(2, 5, partition=1)], {"ends": (12, 5)}, "nothing was ever committed"),
        (WORKED[:3], {"unread": [("handled", "done-0 from 3 to 9")]}, "not read: done-0 from 3 to 9"),
        (WORKED[:3], {"unread": [("times", "when the rows of db were written")]}, "when the rows of db were written"),
    ],
    ids=["stopped", "never committed", "sink unread", "times unknown"],
)
def test_a_lag_that_something_else_explains_is_left_open(
    offsets: list[Any], more: dict[str, Any], because: str, tmp_path: Path
) -> None:
    """Nobody is blamed for it, and nothing passes."""
    verdict = verdict_on(tmp_path, offsets, **({**READ, "effects": ALL[:5]} | more))
    said = _left_open(verdict, "stuck-partition", because)
    assert (verdict.verdict, _found(verdict), said) == ("unknown", [], True), _reasons(verdict)


def test_a_sink_that_nobody_says_was_read_is_no_evidence(tmp_path: Path) -> None:
    """Its file lacks the last line."""
    verdict = verdict_on(tmp_path, WORKED, **READ, effects=BUT_R7, sink_read=False)
    assert (verdict.verdict, "the witness sink did not say that it saw all" in _reasons(verdict)) == ("unknown", True)
