"""Sins that a timed fault finds by luck, or that few suites find: each is tried at a cut of its anomaly besides.

What happens at an instant hits a consumer wherever it happens to be; some sins show only where it hits a few of its
milliseconds. A cut comes at the call at which the anomaly of the sin begins, in every trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

CUT_BY_ANOMALY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "commit-ahead": "cut-OffsetCommit-answered-kill",  # the commit is taken, and what it covers is not done yet
        "skipped": "cut-JoinGroup-before-hold",  # a backlog waits, so that the next change finds a batch in hand
        "redelivered": "cut-OffsetCommit-before-pause",  # the commit on which it relies comes when others have gone on
        "duplicate-effect": "cut-Fetch-after-pause",  # records are in hand, and others get them before they are done
        "zombie-commit": "cut-OffsetCommit-before-pause",  # the commit comes when its partitions are others'
    }
)
# At least once missed on the suite of their header (`reports/calibration.jsonl`).
SINS_FOUND_BY_LUCK: Final = (
    "commits-before-processing",
    "commits-position-after-poll",
    "stores-batches-at-hand-out",
    "random-transactional-id",
    "writes-without-the-condition",
    "works-though-commit-failed",
    "works-though-commit-failed/no-commits",
    "works-though-commit-failed/quiet",
    "commits-all-on-close",
    "commits-all-on-close/quiet",
    "skips-batch-on-rebalance/quiet",
)
# Of several anomalies that a sin promises, its cut is that of the first; of these that of another: what they commit
# too early is committed because the group changes, and nobody does it afterwards.
BY_ANOTHER: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("commits-all-on-close", "commits-all-on-close/quiet", "skips-batch-on-rebalance/quiet"), "skipped")
)
# Found by two suites of twelve, which keep a member away for longer than its session (`reports/instants.jsonl`).
SINS_FOUND_BY_FEW_SUITES: Final = ("retries-lost-commits", "commits-without-guard")


def chosen_cut(consumer: str, promised: Sequence[str]) -> tuple[str, str] | None:
    """Returns the first anomaly of `CUT_BY_ANOMALY` that a sin promises (or that of `BY_ANOTHER`), and its cut; None
    where there is none, or the sin is not among those that are hard to find."""
    promises = [anomaly for anomaly in CUT_BY_ANOMALY if anomaly in promised]
    anomaly = BY_ANOTHER.get(consumer, next(iter(promises), None))
    return (
        (anomaly, CUT_BY_ANOMALY[anomaly])
        if consumer in (*SINS_FOUND_BY_LUCK, *SINS_FOUND_BY_FEW_SUITES) and anomaly is not None
        else None
    )
