"""How `FalseReports` is made; what its columns mean stands in `partition.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.model import contradicted_lines
from kafka_trial.model.batch import index
from kafka_trial.model.contradicted_lines import WITNESSES
from kafka_trial.model.false_assignments import false_assigned
from kafka_trial.model.kernels import NONE
from kafka_trial.model.partition import FalseReports
from kafka_trial.model.rows import Kind
from kafka_trial.model.table import stacked

if TYPE_CHECKING:
    from kafka_trial.model.batch import Batch


@index
def false_reports(batch: Batch) -> FalseReports:
    """Returns the lines of members that a witness contradicts."""
    lines, claims = contradicted_lines.refuted_lines(batch), false_assigned(batch)
    claims = claims.only("slice", "source", "seq").having(
        offset=np.full(len(claims), NONE),
        kind=np.full(len(claims), Kind.ASSIGNED),
        by=np.full(len(claims), WITNESSES.index("request log")),
    )
    told = stacked(lines.only("slice", "source", "seq", "offset", "kind", "by"), claims)
    said = [told["kind"] == Kind.DELIVERED, told["kind"] == Kind.ASSIGNED]
    return FalseReports(told.columns).having(
        what=np.select(said, ["delivered", "assigned"], "processed").astype(object),
        by=np.array(WITNESSES, dtype=object)[told["by"]],
    )
