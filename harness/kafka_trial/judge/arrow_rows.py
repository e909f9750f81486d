"""Arrow rows: slice rows (`model/rows.py`) as Arrow tables, the shape in which they travel.

Whoever makes rows names their family and its columns (`model/families.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.model.families import Family
from kafka_trial.model.kernels import Array
from kafka_trial.model.rows import ABSENT, COMMON, NUMBERS

ROWS = pa.schema([*((name, pa.from_numpy_dtype(kind)) for name, kind in NUMBERS.items()), ("key", pa.string())])
Columns = Mapping[str, Any]  # numpy arrays; of text, Arrow arrays


def made_rows(family: Family, source: int | Array, **columns: Any) -> pa.Table:
    """Returns rows of one family: `slice`, `seq`, `time_ns` and the family's own columns, and `kind`, where it has
    several.

    Raises:
        ValueError: a column is not of this family, one that it must have is missing, or a kind is another's.
    """
    if len(family.kinds) == 1:
        columns["kind"] = np.full(len(columns["slice"]), family.kinds[0])
    elif not np.isin(columns["kind"], family.kinds).all():
        raise ValueError(f"rows of kinds {np.unique(columns['kind']).tolist()}, not all of them of {family.name}")
    common = {name: columns.pop(name) for name in COMMON if name in columns}
    return _table(source, common | family.carried(columns))


def mixed_rows(source: int | Array, common: Columns, families: Mapping[Family, Columns]) -> pa.Table:
    """Returns rows of several families in the order of their events; `common`: `slice`, `kind`, `seq` and `time_ns`.

    The columns of each family are as long as those that are common; of each it is the rows of its kinds that count.

    Raises:
        ValueError: a column is not of its family, one that it must have is missing, or a kind is of none of them.
    """
    kinds, size = common["kind"], len(common["kind"])
    made = {name: np.full(size, absent) for name, absent in ABSENT.items()}
    made |= {name: common[name] for name in COMMON if name in common}
    text, known = pa.nulls(size, pa.string()), np.zeros(size, np.bool_)
    for family, columns in families.items():
        carried = family.carried(columns)
        here = np.isin(kinds, family.kinds)
        if (key := carried.pop("key", None)) is not None and here.any():
            text = pc.if_else(pa.array(here), key, text)
        for name, values in carried.items():
            np.copyto(made[name], values, where=here, casting="unsafe")
        known |= here
    if not known.all():
        raise ValueError(f"rows of kinds {np.unique(kinds[~known]).tolist()} belong to none of the families given")
    return _table(source, made | {"key": text})


def _table(source: int | Array, columns: Columns) -> pa.Table:
    """Returns rows of physical columns; one that is not given is absent in all of them."""
    size = len(columns["slice"])
    made = {name: np.full(size, absent) for name, absent in ABSENT.items() if name not in columns}
    made |= {"source": np.broadcast_to(source, size)}
    arrays = [
        pa.array((columns[name] if name in columns else made[name]).astype(kind)) for name, kind in NUMBERS.items()
    ]
    return pa.Table.from_arrays([*arrays, columns.get("key", pa.nulls(size, pa.string()))], schema=ROWS)
