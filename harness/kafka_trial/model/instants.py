"""Instants as other witnesses may tell them: two of them never tell one instant by exactly the same time.

What a member does is read by the harness, what brokers do they date themselves: those clocks and waits differ by
TOLERANCE_NS at most. The request logs and the offsets log are dated by the brokers alone, and differ by less. An
instant may be NEVER or NONE, and stays before or after all others.
"""

from __future__ import annotations

import numpy as np

from kafka_trial.model.kernels import NEVER, NONE, Ints
from kafka_trial.model.trial_context import LOG_TOLERANCE_NS, TOLERANCE_NS


def at_latest(time_ns: Ints) -> Ints:
    """Returns when another witness tells of each instant at the latest."""
    return _later(time_ns, TOLERANCE_NS)


def at_earliest(time_ns: Ints) -> Ints:
    """Returns when another witness tells of each instant at the earliest."""
    return _earlier(time_ns, TOLERANCE_NS)


def at_latest_in_logs(time_ns: Ints) -> Ints:
    """Returns when another log of the brokers tells of each instant at the latest."""
    return _later(time_ns, LOG_TOLERANCE_NS)


def at_earliest_in_logs(time_ns: Ints) -> Ints:
    """Returns when another log of the brokers tells of each instant at the earliest."""
    return _earlier(time_ns, LOG_TOLERANCE_NS)


def _later(time_ns: Ints, by_ns: int) -> Ints:
    return np.minimum(time_ns, NEVER - by_ns) + by_ns


def _earlier(time_ns: Ints, by_ns: int) -> Ints:
    return np.maximum(time_ns, NONE + by_ns) - by_ns
