"""What only the harness's own harness stalls keep from being found is left undecided, not acquitted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_trial.invariants.invariant import Findings, Invariant, deciding_attributes

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch

STOOD_STILL = "it would have been found, had the harness not stood still around it"


def judged(invariant: Invariant, batch: Batch) -> Findings:
    """Returns what an invariant finds; undecided stays what it finds only where all was heard when it was said.

    While the harness stood still it heard nothing (`clocks.earliest`): of what it heard late nobody knows whether it
    was late. Counted are the cases of each slice with the same deciding attributes.
    """
    found = invariant.judge(batch)
    if not batch.trial_context.harness_stalls:
        return found
    more = _cases(invariant.judge(batch.had_it_not_stood_still)) - _cases(found)
    slices = np.array(sorted(case[0] for case in more.elements()), np.int64)
    return replace(found, undecided=[*found.undecided, (STOOD_STILL, slices)])


def _cases(findings: Findings) -> Counter[tuple[Any, ...]]:
    rows = findings.rows
    columns = [rows[name].tolist() for name in ("slice", *deciding_attributes()) if name in rows.columns]
    return Counter(zip(*columns, strict=True))
