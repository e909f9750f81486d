"""False reports: what a consumer says of a record although a witness knows that it cannot be so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kafka_trial.invariants.claim_rule import Rule, never
from kafka_trial.invariants.contradicted_lines import WITNESSES, refuted_lines
from kafka_trial.invariants.false_assignments import false_assigned
from kafka_trial.invariants.invariant import Findings, invariant
from kafka_trial.invariants.kernels import NONE
from kafka_trial.invariants.rows import Kind
from kafka_trial.invariants.table import stacked, table

if TYPE_CHECKING:
    from kafka_trial.invariants.batch import Batch


@invariant(
    "false-report",
    family="delivery",
    needs=("own word",),
    level="events",
    severity=360,
    rule=Rule(never),
    message="{of_record}{place} was said to be {what}, and the {by} knows that it cannot have been",
)
def false_report(batch: Batch) -> Findings:
    """A line of the consumer is contradicted by a witness: it had not fetched the record, or there was none yet, or it
    had not been given the partition.

    "The consumer issues fetch requests to the brokers leading the partitions it wants to consume" (Kafka, Design, The
    Consumer): what no fetch brought, nobody can have handled. By the workload: the record was sent later. By the
    observer: the log ended at or below it when it was asked later. By the request log: no fetch of that process from a
    position at or below it had brought bytes, or the position asked for next was not beyond it. Counted: such a line
    acquits nobody, and what was lost behind it is `skipped`. Not looked for where the request log may not know: it was
    not read to its end, a broker was killed before, two clients fetched by turns on one lane, or strangers fetched; nor
    in what a consumer whose progress is elsewhere says that it found done there (`processed`). An `assigned` line of a
    partition that neither log had given to its member opens no ownership epoch (`false_assignments.py`).

    Smallest history: m0's FETCH from 0 is answered 100 bytes, its next one asks for 1; `delivered` 1.

    Usual cause: A line says what a witness knows to be otherwise: printed for the wrong record, too early, or of a
    record that the process never fetched; or of a partition that nobody had given to it.

    Remedy: Print record_delivered where the handler begins and record_processed where it ends, from the record itself;
    and partitions_assigned from the callback that the client library calls.
    """
    lines, claims = refuted_lines(batch).only("slice", "source", "seq", "offset", "kind", "by"), false_assigned(batch)
    claims = claims.only("slice", "source", "seq").having(
        offset=np.full(len(claims), NONE),
        kind=np.full(len(claims), Kind.ASSIGNED),
        by=np.full(len(claims), WITNESSES.index("request log")),
    )
    lines = stacked(lines, claims)
    by = np.array(WITNESSES, dtype=object)[lines["by"]]
    said = [lines["kind"] == Kind.DELIVERED, lines["kind"] == Kind.ASSIGNED]
    what = np.select(said, ["delivered", "assigned"], "processed").astype(object)
    rows = table(slice=lines["slice"], order=lines["offset"], offset=lines["offset"], what=what, by=by)
    return Findings(rows, [(lines["source"], lines["seq"])])
