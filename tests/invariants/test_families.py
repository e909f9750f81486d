"""Families: every kind of row has its columns under names of its own, and none under others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from histories import batch_of, delivered, effect
from kafka_trial.judge.arrow_rows import made_rows, mixed_rows
from kafka_trial.judge.findings import batch_of as batch_of_rows
from kafka_trial.model.families import COMPLETIONS, DELIVERIES, FAMILIES, FETCHES, Family
from kafka_trial.model.rows import ABSENT, Kind
from kafka_trial.model.trial_context import TrialContext

COMMON = {"slice": np.zeros(2, np.int64), "seq": np.arange(2), "time_ns": np.arange(2)}


def values(family: Family, *left_out: str) -> dict[str, Any]:
    """Returns two rows of a family, another number in each column."""
    own = {name: np.full(2, 3 + number) for number, name in enumerate(family.columns) if name not in left_out}
    texts = {name: pa.array(["a", None]) for name in own if family.columns[name].carrier == "key"}
    kinds = {"kind": np.full(2, family.kinds[-1])} if len(family.kinds) > 1 else {}
    return COMMON | kinds | own | texts


def test_every_kind_is_of_one_family() -> None:
    """A row whose kind no family names could not be read, one with two would have two meanings."""
    assert Counter(kind for family in FAMILIES for kind in family.kinds) == Counter(Kind)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_physical_column_carries_one_thing(family: Family) -> None:
    """Two columns share a carrier only where it is told of each row which of them holds."""
    alone = [one.carrier for one in family.columns.values() if not (one.beside or one.without)]
    told_apart = [
        (one.carrier, one.beside or one.without) for one in family.columns.values() if one.beside or one.without
    ]
    assert len(set(alone)) == len(alone)
    assert {carrier for carrier, _ in told_apart}.isdisjoint(alone)
    assert {other for _, other in told_apart} <= family.columns.keys()
    assert {*alone, *(carrier for carrier, _ in told_apart)} <= {*ABSENT, "key"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_what_is_built_is_read_under_the_same_names(family: Family) -> None:
    """The names of building are those of reading; keys are places in the batch's `keys`."""
    made = values(family)
    read = batch_of_rows(made_rows(family, 0, **made), TrialContext()).of(family.kinds[-1])
    texts = [name for name, column in family.columns.items() if column.carrier == "key"]
    held = {name for name, column in family.columns.items() if column.without is None} - {*texts}
    assert set(read.columns) == {"slice", "kind", "source", "seq", "time_ns", *family.columns}
    assert {name: read[name].tolist() for name in held} == {name: made[name].tolist() for name in held}
    assert [read[name].tolist() for name in texts] == [[0, -1] for _ in texts]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_missing_column_and_a_strange_one_are_refused(family: Family) -> None:
    """The error names the family, and what is wrong."""
    first = next(iter(family.columns))
    with pytest.raises(ValueError, match=f"{family.name} have not without '{first}'"):
        made_rows(family, 0, **values(family, first))
    with pytest.raises(ValueError, match=f"{family.name} have no column 'place'"):
        made_rows(family, 0, **values(family), place=np.zeros(2))


def test_a_kind_of_another_family_is_refused() -> None:
    """Nobody would find such a row under the names it was built with."""
    with pytest.raises(ValueError, match="not all of them of fetches"):
        made_rows(FETCHES, 0, **values(FETCHES) | {"kind": np.array([Kind.FETCH_ASKED, Kind.DELIVERED])})


def test_rows_of_several_families_keep_their_order() -> None:
    """Each row has the columns of its own family; of a kind that none of them has nothing is made."""
    shared = {
        "offset": np.array([5, 6]),
        "own_ns": np.zeros(2),
        "read_before_ns": np.zeros(2),
        "own_client": np.zeros(2),
    }
    delivery = shared | {"id_hash": np.array([7, 8]), "known": np.zeros(2), "unsent_id": pa.array(["x", "y"])}
    parts = {DELIVERIES: delivery, COMPLETIONS: shared | {"outcome": np.array([1, 2])}}
    rows = mixed_rows(0, COMMON | {"kind": np.array([Kind.PROCESSED, Kind.DELIVERED])}, parts)
    found = [(row["offset"], row["place"], row["flag"], row["key"]) for row in rows.to_pylist()]
    assert found == [(5, ABSENT["place"], 1, None), (6, 8, 0, "y")]
    with pytest.raises(ValueError, match=r"kinds \[19\] belong to none of the families given"):
        mixed_rows(0, COMMON | {"kind": np.array([Kind.PROCESSED, Kind.FETCH_ASKED])}, parts)


def test_an_effect_has_a_member_or_an_output_partition() -> None:
    """One number carries both: which it is, the offset in the output topic tells."""
    lines = [effect(0, member="m1"), effect(1, topic="out", partition=2, offset=7)]
    effects = batch_of(lines).of(Kind.EFFECT).sorted_by("offset")
    found = zip(effects["member"].tolist(), effects["output_partition"].tolist(), strict=True)
    assert list(found) == [(1, -1), (-1, 2)]


def test_a_column_of_another_family_is_a_loud_error() -> None:
    """With the family's name and the columns that there are, whatever was done with its rows before."""
    rows = batch_of([delivered("m0", 0)]).of(Kind.DELIVERED)
    again = rows.having(more=rows["seq"]).sorted_by("seq").take(np.array([0])).only("offset", "more")
    with pytest.raises(KeyError, match=r"deliveries have no column 'place'; they have slice, kind, .*offset, id_hash"):
        rows["place"]
    with pytest.raises(KeyError, match="deliveries have no column 'id_hash'; they have offset, more"):
        again["id_hash"]
    with pytest.raises(KeyError, match="deliveries have no column 'who'"):
        rows.only("who")
    with pytest.raises(KeyError, match="deliveries have no column 'who'"):
        rows.sorted_by("who")


def test_of_several_families_what_they_have_in_common_is_read() -> None:
    """A delivery and an effect both are of an offset; which id, only the delivery says."""
    both = batch_of([delivered("m0", 0), effect(1)]).of(Kind.DELIVERED, Kind.EFFECT)
    assert sorted(both["offset"].tolist()) == [0, 1]
    with pytest.raises(KeyError, match="deliveries and effects have no column 'id_hash'"):
        both["id_hash"]


def test_kinds_without_rows_have_their_columns_all_the_same() -> None:
    """An invariant need not ask whether there are any."""
    empty = batch_of([]).of(Kind.FETCH_ASKED)
    assert (len(empty), set(FETCHES.columns) <= set(empty.columns)) == (0, True)
