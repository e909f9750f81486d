"""Rows that end with an older record's state: literal changes of a table, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from histories import (
    TOPIC,
    WALL_NS,
    Line,
    committed,
    effect,
    judged,
    not_judged,
    on,
    undecided,
    with_settings,
)
from kafka_trial.anomalies.invariant import find_invariant
from kafka_trial.claim import Claim

STATES = with_settings(events="none", sink="postgres", effects="state")
KEYED = {"settings": STATES, "records": ["k", "k", "k"]}
STALE = {"offset": 1, "older_offset": 0, "older_partition": 0, "same_key": True}


def shows(record: int, *, row: int = 0, kind: str = "effect") -> Line:
    """A row shows the state of a record from here on."""
    return Line("sink", kind, effect(record).fields | {"row": row})


def stale(*lines: Line | list[Line], **frame: Any) -> list[dict[str, Any]]:
    return judged("stale-state", lines, **{**KEYED, **frame})


def test_rows_that_end_with_their_newest_record_hold() -> None:
    """One row of two records, another of one."""
    assert stale(shows(0), shows(1), shows(2, row=1), committed(3)) == []


def test_a_row_that_ends_with_an_older_record_is_stale() -> None:
    """It had shown record 1, and was written over with record 0."""
    assert stale(shows(1), shows(0), committed(3)) == [STALE]


def test_the_newest_record_that_it_had_shown_is_named() -> None:
    """However it got back there; each row once."""
    twice = shows(2), shows(1), shows(0), shows(1, row=1), shows(0, row=1), committed(3)
    assert stale(*twice) == [STALE, STALE | {"offset": 2}]


@pytest.mark.parametrize(
    "lines",
    [
        [shows(0), shows(1), shows(0), shows(1)],
        [shows(1), shows(0), shows(1, kind="row_rewritten")],
        [shows(0)],
        [shows(1), shows(0, row=1)],
        [shows(1), shows(0), shows(0, kind="row_removed")],
    ],
    ids=["caught-up", "put-back", "never-written", "another-row", "removed"],
)
def test_a_row_that_only_looks_stale_is_none(lines: list[Line]) -> None:
    """Rolled back for a while; its newest record never had an effect; two rows; a row that is gone."""
    assert stale(*lines, committed(3)) == []


def test_records_of_different_keys_are_not_compared() -> None:
    """A row of the whole partition promises nothing of its records' order."""
    assert stale(shows(1), shows(0), committed(3), records=["k", "other", "k"]) == []
    assert stale(shows(1), shows(0), committed(3), records=3) == []


def test_a_sum_that_counts_records_twice_is_a_duplicate_effect() -> None:
    """A row that adds up, and does so again for records that come again: the row ends with the newest, and is wrong."""
    added = shows(0), shows(1), shows(0), shows(1), committed(3)
    assert stale(*added) == []
    assert [one["offset"] for one in judged("duplicate-effect", added, **KEYED)] == [0, 1]


def test_a_record_that_is_in_the_log_twice_is_of_no_age() -> None:
    """Nobody knows as which of the two it changed the row."""
    assert stale(shows(1), shows(0), committed(3), control={2: {"id": "r1"}}) == []


def test_what_may_come_again_is_undecided() -> None:
    """The position does not cover the newer record; where positions are elsewhere nobody can wait for that."""
    rolled_back = [shows(1), shows(0), *committed(1)]
    assert undecided("stale-state", rolled_back, **KEYED) == 1
    elsewhere = with_settings(events="none", sink="postgres", effects="state", progress="sink")
    assert stale(shows(1), shows(0), settings=elsewhere) == [STALE]


def test_it_is_judged_of_states_alone() -> None:
    """Where each record has an effect of its own there is none; without rows nobody can tell."""
    own = {**KEYED, "settings": with_settings(events="none", sink="postgres")}
    assert "effects = " in not_judged("stale-state", [shows(1), shows(0)], **own)
    assert "no change was seen of a row" in not_judged("stale-state", [effect(1), effect(0)], **KEYED)


# --- entities: records without a key, over two partitions ----------------------------------------------------------


def invoked(name: str, entity: str | None) -> Line:
    about = {"topic": TOPIC, "id": name, "outcome": "invoke"} | ({} if entity is None else {"entity": entity})
    return Line("workload", "send", about)


def of_entity(
    *,
    times: tuple[int, int] = (0, 5),
    entities: tuple[str | None, str | None] = ("e", "e"),
    reverse: bool = False,
) -> list[dict[str, Any]]:
    """r0 is sent to partition 0, then r1-0 to partition 1; the row shows r1-0 and ends with r0."""
    sent = [invoked("r0", entities[0]), invoked("r1-0", entities[1])]
    sent = sent[::-1] if reverse else sent
    shown = [Line("sink", "effect", {"id": name, "outcome": "ok", "row": 0}) for name in ("r1-0", "r0")]
    commits = [*committed(1), *(on(1, line) for line in committed(1))]
    stamped = [
        Line("observer", "record", {"topic": TOPIC, "partition": partition, "offset": 0, "id": name, **_at(ms)})
        for partition, name, ms in ((0, "r0", times[0]), (1, "r1-0", times[1]))
    ]
    frame = {"records": 0, "partitions": 2, "settings": STATES}
    return stale(*sent, *stamped, *shown, *commits, **frame)


def _at(milliseconds: int) -> dict[str, int]:
    return {"source_wall_ns": WALL_NS + milliseconds * 1_000_000}


def test_an_entity_over_two_partitions_is_compared_by_its_sends() -> None:
    """It was shown as of the later one, and ended with the earlier one."""
    assert of_entity() == [{"offset": 0, "older_offset": 0, "older_partition": 0, "same_key": False}]


@pytest.mark.parametrize(
    "how",
    [
        {"times": (5, 5)},
        {"times": (5, 0)},
        {"reverse": True},
        {"entities": ("e", "f")},
        {"entities": (None, None)},
    ],
    ids=["at-once", "stamped-otherwise", "sent-otherwise", "of-two", "of-none"],
)
def test_what_is_ambiguous_is_no_order(how: dict[str, Any]) -> None:
    """Timestamps that do not tell or say otherwise; two entities; none."""
    assert of_entity(**how) == []


@pytest.mark.parametrize(
    ("claim", "same_key", "weight"),
    [
        (Claim("at-least-once"), True, "violation"),
        (Claim("exactly-once", order="none"), True, "violation"),
        (Claim("at-least-once"), False, "tolerated"),
        (Claim("at-least-once", state="entity"), False, "violation"),
    ],
)
def test_the_claim_says_whose_state_counts(claim: Claim, same_key: bool, weight: str) -> None:
    """That of a key, unless it promises that of an entity."""
    rule = find_invariant("stale-state").rule
    assert (rule.claimed(claim), rule.excuse(claim, {"same_key": same_key})[0]) == (True, weight)


def test_some_claims_promise_no_state() -> None:
    """Who may lose records, and who says so."""
    rule = find_invariant("stale-state").rule
    none = Claim("at-most-once"), Claim("unclaimed"), Claim("at-least-once", state="none")
    assert [rule.claimed(claim) for claim in none] == [False, False, False]
