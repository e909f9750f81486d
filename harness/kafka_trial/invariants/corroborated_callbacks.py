"""Borne out: the lines of a member's callbacks as far as brokers bear them out; what they contradict acquits nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.false_assignments import is_uncorroborated
from kafka_trial.invariants.false_losses import is_no_loss
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import Table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


def corroborated(batch: Batch, own: Table) -> Table:
    """Returns rows of a member's own word without the `assigned` that nobody gave, and with the `lost` that was no
    loss as the `revoked` that it was."""
    own = own.take(~is_uncorroborated(batch, own))
    kinds = np.where(is_no_loss(batch, own), Kind.REVOKED, own["kind"]).astype(own["kind"].dtype)
    return own.having(kind=kinds)
