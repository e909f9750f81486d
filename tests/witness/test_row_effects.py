"""Which changes of rows are effects: literal transactions, and what is told of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafka_trial.witness.pgoutput import Change, Row
from kafka_trial.witness.sink_table import RowEffects


def row(name: str | None, amount: int = 5, note: str = "x") -> Row:
    return {
        "id": None if name is None else name.encode(),
        "amount": str(amount).encode(),
        "note": note.encode(),
    }


def inserted(name: str | None, amount: int = 5) -> Change:
    return Change("insert", None, row(name, amount))


def updated(before: Row, after: Row) -> Change:
    return Change("update", before, after)


def deleted(name: str, amount: int = 5) -> Change:
    return Change("delete", row(name, amount), None)


def told(*transactions: Sequence[Change], **about: object) -> tuple[list[str], list[str]]:
    """Returns what is told of some transactions, and which records have lost their rows."""
    effects = RowEffects(id_column="id", **about)  # type: ignore[arg-type]
    found = []
    for changes in transactions:
        for change in changes:
            effects.take(change)
        found += [f"{event.kind} {event.change} {event.id}" for event in effects.commit()]
    return found, list(effects.lost)


A, MORE = row("a"), row("a", 10)


@pytest.mark.parametrize(
    ("transactions", "expected"),
    [
        ([[inserted("a")], [inserted("b")]], ["effect insert a", "effect insert b"]),
        ([[inserted("a")], [inserted("a")]], ["effect insert a", "effect insert a"]),
        ([[inserted("a")], [updated(A, A)]], ["effect insert a", "row_rewritten update a"]),
        ([[inserted("a")], [updated(A, MORE)]], ["effect insert a", "effect update a"]),
        ([[updated(A, MORE)]], ["effect update a"]),
        ([[inserted("a"), updated(A, MORE)]], ["effect insert a"]),
        ([[updated(A, MORE), updated(MORE, A)]], ["row_rewritten update a"]),
        ([[inserted("a"), deleted("a")]], []),
        ([[inserted(None)]], ["effect insert None"]),
        ([[updated(row(None), A)]], ["effect update a"]),
    ],
    ids=[
        *("two-records", "doubled-row", "written-as-it-was", "added-to", "there-before", "in-one-transaction"),
        *("there-and-back", "never-there", "nameless", "row-taken"),
    ],
)
def test_what_a_transaction_leaves_behind_counts(transactions: list[list[Change]], expected: list[str]) -> None:
    """A new row, and one that has become another; no record has lost its row."""
    assert told(*transactions) == (expected, [])


def test_a_row_that_is_put_back_is_no_further_effect() -> None:
    """At once or later; put back otherwise it is one."""
    there = [inserted("a")]
    again = ["effect insert a", "row_removed delete a", "row_rewritten insert a"]
    assert told(there, [deleted("a"), inserted("a")]) == (again, [])
    assert told(there, [deleted("a")], [inserted("a")]) == (again, [])
    otherwise = ["effect insert a", "row_removed delete a", "effect insert a"]
    assert told(there, [deleted("a")], [inserted("a", 6)]) == (otherwise, [])


def test_a_row_is_known_again_whatever_stands_in_it() -> None:
    """Two rows that are taken over, one that is gone and comes again as another, and two that are alike."""
    a, b, c = row("a"), row("b"), row("c")
    effects = RowEffects(id_column="id", one_row_each=False)
    numbers = []
    for changes in (
        [inserted("a"), inserted("b")],
        [updated(a, c), updated(b, a)],
        [updated(c, b)],
        [deleted("b"), inserted("b")],
        [inserted("a"), updated(a, MORE)],
    ):
        for change in changes:
            effects.take(change)
        numbers.append([(event.id, event.number) for event in effects.commit()])
    assert numbers == [
        [("a", 0), ("b", 1)],
        [("c", 0), ("a", 1)],
        [("b", 0)],
        [("b", 0), ("b", 2)],
        [("a", 3)],
    ]


def test_a_row_that_is_gone_is_told() -> None:
    """Not while another one of its record is there."""
    assert told([inserted("a")], [deleted("a")])[1] == ["a"]
    assert told([inserted("a")], [inserted("a")], [deleted("a")])[1] == []
    assert told([deleted("a")])[1] == []  # it was there before the trial


def test_another_record_may_take_over_the_state_of_a_key_and_nothing_else() -> None:
    """Where each record has its own row, the one before has lost it."""
    taken = [inserted("a")], [updated(A, row("b"))]
    assert told(*taken) == (["effect insert a", "effect update b"], ["a"])
    assert told(*taken, one_row_each=False) == (["effect insert a", "effect update b"], [])


def test_only_the_columns_that_make_up_an_effect_count() -> None:
    """One that tells of the last attempt may change at each."""
    tried_again = [updated(A, row("a", note="y"))]
    assert told([inserted("a")], tried_again)[0][1] == "effect update a"
    assert told([inserted("a")], tried_again, content=["amount"])[0][1] == "row_rewritten update a"


def test_whether_a_new_time_alone_is_an_effect_cannot_be_told() -> None:
    """Unless the columns that count are named; with another change beside it, it is one."""
    times = frozenset({"note"})
    touched = Change("update", A, row("a", note="y"), times=times)
    effects = RowEffects(id_column="id")
    effects.take(touched)
    assert ([event.kind for event in effects.commit()], dict(effects.retimed)) == (["row_rewritten"], {"note": 1})
    effects.take(Change("update", A, row("a", 10, note="y"), times=times))
    assert ([event.kind for event in effects.commit()], dict(effects.retimed)) == (["effect"], {"note": 1})
    named = RowEffects(id_column="id", content=["amount", "note"])
    named.take(touched)
    assert ([event.kind for event in named.commit()], dict(named.retimed)) == (["effect"], {})


def test_a_change_that_does_not_say_what_was_there_is_counted() -> None:
    """Nobody can tell what it was."""
    effects = RowEffects(id_column="id")
    effects.take(Change("update", {"id": b"a"}, MORE, whole=False))
    assert (effects.commit(), effects.not_whole) == ([], 1)
