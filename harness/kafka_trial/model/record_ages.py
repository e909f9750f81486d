"""Lag as age: how long ago the oldest record of a partition was appended that is not committed past, or not handled.

Used by the judge's series (`judge/lag_series.py`) and by the page's timeline. All tables and columns are those of one
slice; ages are of some instants, in nanoseconds, 0 where there was no such record.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.kernels import NEVER, NONE, Ints, picked
from kafka_trial.model.table import Table


def committed_age_ns(records: Table, commits: Table, at_ns: Ints) -> Ints:
    """Returns how long ago the oldest record after the committed offset had been appended, at each instant.

    `records` are sorted by offset; `commits` are those that took effect.
    """
    commits = commits.sorted_by("effect_ns")
    row = np.searchsorted(commits["effect_ns"], at_ns, side="right") - 1
    position = picked(commits["committed_offset"], row, NONE)
    return _ages_ns(records["appended_ns"], np.searchsorted(records["offset"], position), at_ns)


def handled_age_ns(appended_ns: Ints, handled_ns: Ints, at_ns: Ints) -> Ints:
    """Returns how long ago the oldest record that had not been handled by each instant had been appended.

    It is the first one, in the order of their appends, that was handled later than that instant, or never.
    """
    order = np.argsort(appended_ns, kind="stable")
    latest = np.maximum.accumulate(handled_ns[order]) if len(order) else order
    return _ages_ns(appended_ns[order], np.searchsorted(latest, at_ns, side="right"), at_ns)


def _ages_ns(appended_ns: Ints, row: Ints, at_ns: Ints) -> Ints:
    """Returns how old the record of each row was at each instant; 0 where there was none, or not yet."""
    known = np.append(appended_ns, NEVER)
    found: Ints = at_ns - np.minimum(known[row], at_ns)
    return found
