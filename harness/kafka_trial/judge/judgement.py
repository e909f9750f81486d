"""The judgement: everything a history says, by anomaly, as one frozen value. What the verdict weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.judge.not_judged import NotJudged, PartlyNotJudged
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import TrialContext

SERIES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("time_ns", pa.int64()),
        ("committed_lag", pa.int64()),
        ("handled_lag", pa.int64()),
        ("committed_age_ms", pa.int64()),
        ("handled_age_ms", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Finding:
    """All that is said of one anomaly.

    `count` is exact; `instances` are examples where there are very many (at least one of every combination of
    attributes that a claim looks at). `undecided` counts cases by reason. `not_judged` says why it was not judged;
    `partly` which part of it was not, and why.
    """

    anomaly: str
    family: str
    instances: tuple[Anomaly, ...] = ()
    count: int = 0
    undecided: Mapping[str, int] = field(default_factory=dict)
    not_judged: NotJudged | None = None
    partly: PartlyNotJudged | None = None


@dataclass(frozen=True)
class SliceCoverage:
    """How much one partition gave to judge. `committed` and `refused` are commits, by the offsets and request logs.

    `keyed`: the records with a key; `repeated_keys`: those whose key another one of the partition may have too. `done`:
    lines that say that a record was done, effects, and records handed on.
    """

    topic: str
    partition: int
    records: int
    delivered: int
    processed: int
    effects: int
    handled: int
    committed: int
    refused: int = 0
    keyed: int = 0
    repeated_keys: int = 0
    done: int = 0


@dataclass(frozen=True)
class MemberCoverage:
    """What passed through one member: in all, and inside each fault's window (by the fault's number).

    `moved` is what brokers see of a member that says nothing: commits above all before, and fetches that brought
    records. `never_begun`: completions in a file without a delivery, of records that nobody had been given before.
    `unowned`: lines of work that stand in no ownership epoch. `inside` holds the same six.
    """

    delivered: int
    processed: int
    committed: int
    moved: int = 0
    inside: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    never_begun: int = 0
    unowned: int = 0


@dataclass(frozen=True)
class FaultCoverage:
    """What a fault could harm: how many partitions its target had in hand when it was hit, and the work of anybody on
    them from the injection on (`moved_after`: as brokers see it). `traffic_after_heal`: what brokers saw
    of the target itself after it had been healed, rising commits and records fetched; of anybody, where it is no
    member.
    """

    held: int
    after: int
    moved_after: int = 0
    traffic_after_heal: int = 0


@dataclass(frozen=True)
class Coverage:
    """How much there was to judge: the ground on which nothing found means that nothing is there.

    `members` by name, `faults` by the number of the fault.
    """

    partitions: tuple[SliceCoverage, ...] = ()
    members: Mapping[str, MemberCoverage] = field(default_factory=dict)
    faults: Mapping[int, FaultCoverage] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(part.records for part in self.partitions)

    @property
    def handled(self) -> int:
        return sum(part.handled for part in self.partitions)


@dataclass(frozen=True)
class Judgement:
    """Everything the history says, by anomaly.

    `defects` are what is wrong with the history itself, `crashed` the invariants that broke: reasons for *unknown*.
    `series` has the columns of SERIES: the lag of each partition over time, as records and as age. `bounds_s` are those
    of liveness, `bounds_in_words` says what they follow from.
    `slices` has one row a partition (`model/summaries.py`), numbered as in the trial context.
    """

    findings: Mapping[str, Finding]
    coverage: Coverage
    trial_context: TrialContext
    series: pa.Table
    defects: tuple[str, ...] = ()
    crashed: Mapping[str, str] = field(default_factory=dict)
    bounds_s: Mapping[str, float] = field(default_factory=dict)
    bounds_in_words: str = ""
    slices: Table | None = None
