"""The tables that anomalies ask: each is made, with the columns that are described."""

from __future__ import annotations

import pytest

from histories import batch_of, committed, handled
from kafka_trial.model.makers import MAKERS
from kafka_trial.model.partition import Commits, Partitions
from kafka_trial.model.table import Table


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_a_table_has_the_columns_that_are_described(kind: type[Table]) -> None:
    """Each of them can be asked for, and all are of one length."""
    partitions = batch_of([*handled("m0", 0), *committed(1, by="m0")])
    made = partitions.derived(MAKERS[kind])
    assert {len(made[name]) for name in kind.__annotations__} == {len(made)}


def test_every_table_is_asked_for_by_one_name() -> None:
    """And each has its maker."""
    asked = [one for one in vars(Partitions).values() if hasattr(one, "kind")]
    assert {one.kind for one in asked} == MAKERS.keys()


def test_a_column_that_is_not_described_is_none() -> None:
    """A typing error is found at once."""
    commits = batch_of(committed(1, by="m0")).commits
    with pytest.raises(AttributeError, match="Commits has no column 'peek'"):
        commits.peek  # type: ignore[attr-defined]  # noqa: B018
    assert isinstance(commits.take(commits.owned == 1), Commits)
