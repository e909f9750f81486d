"""Made rows: slice rows (`invariants/rows.py`) as Arrow tables, the shape in which they travel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_trial.invariants.kernels import NONE, Array
from kafka_trial.invariants.rows import NUMBERS

ROWS = pa.schema([*((name, pa.from_numpy_dtype(kind)) for name, kind in NUMBERS.items()), ("key", pa.string())])


def made_rows(source: int | Array, *, key: pa.Array | None = None, **columns: Array) -> pa.Table:
    """Returns slice rows; columns that are not given are absent in every row."""
    size = len(columns["slice"])
    columns = columns | ({"source": source} if isinstance(source, np.ndarray) else {})
    blank = {"source": source, "who": -1, "flag": 0, "until": 0, "connection": -1}
    made = {
        name: np.asarray(columns[name]) if name in columns else np.full(size, blank.get(name, NONE)) for name in NUMBERS
    }
    arrays = [pa.array(made[name].astype(kind)) for name, kind in NUMBERS.items()]
    keys = pa.nulls(size, pa.string()) if key is None else key
    return pa.Table.from_arrays([*arrays, keys], schema=ROWS)
