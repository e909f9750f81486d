"""The judge: from a run folder to everything that is wrong in it, whatever the consumer claims.

`judge(folder)` reads the history into slice rows (`history_reader.py`, cached by `cache.py`), has Spark run all
invariants over the slices in one pass (`slices.py`, `findings.py`), and gathers what they found into one frozen
`Judgement`. The verdict weighs it under the claim. The same history gives the same judgement, however it was cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from kafka_trial.anomalies.claim_rule import ON_TOPIC, Anomaly
from kafka_trial.anomalies.invariant import Findings, Invariant, find_invariant, instances, list_invariants
from kafka_trial.history.event import Event, to_line
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.bad_lines import unexplained_by_bad_lines, why_undecided
from kafka_trial.judge.cache import slice_rows
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.judge.coverage import WORK
from kafka_trial.judge.evidence import Seen, missing_evidence, partly_missing
from kafka_trial.judge.findings import GATHERED, find
from kafka_trial.judge.history_defects import sink_missing, strangers
from kafka_trial.judge.judgement import (
    SERIES,
    Coverage,
    FaultCoverage,
    Finding,
    Judgement,
    MemberCoverage,
    SliceCoverage,
)
from kafka_trial.judge.not_judged import NotJudged, NotJudgedReason
from kafka_trial.judge.slices import find_on_spark
from kafka_trial.judge.spark_reader import slice_rows_on
from kafka_trial.judge.spark_session import session, stays_here, warm_session
from kafka_trial.model.commits_ahead import nameless_hand_ons
from kafka_trial.model.group import group_of
from kafka_trial.model.rows import NOWHERE
from kafka_trial.model.summaries import SUMMARY
from kafka_trial.model.table import Table
from kafka_trial.model.trial_context import Settings, TrialContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Coverage",
    "Finding",
    "Judgement",
    "MemberCoverage",
    "SliceCoverage",
    "judge",
    "judge_events",
    "judgement_of",
]

OF_PARTITIONS = ("coverage", "summary", "series")  # what is said of partitions only


def judge(
    folder: RunFolder,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    partitions: int | None = None,
) -> Judgement:
    """Returns the judgement on a run folder, computed on Spark.

    `spark` is an existing session; without one, ours is started on `master` (default: this machine) while the history
    is read. Elsewhere the executors read it (`spark_reader.py`). `partitions` is how many tasks share the slices
    (default: one for a small history).

    Raises:
        InputError: the history holds events of a newer schema.
        StartError: there is no Java to run Spark on.
        UnjudgeableError: executors elsewhere cannot read the run folder, or not write into its cache.
    """
    if spark is None and stays_here(master):
        warm_session(master)
        cached = slice_rows(folder)
        spark = session(master)
    else:
        spark = spark or session(master)
        cached = slice_rows(folder) if stays_here(spark.sparkContext.master) else slice_rows_on(spark, folder)
    trial_context = replace(cached.trial_context, settings=settings_of(folder.path / "consumer.toml"))
    found = find_on_spark(cached, trial_context, spark=spark, partitions=partitions)
    return judgement_of(found, trial_context, [*cached.defects, *sink_missing(trial_context), *strangers(folder)])


def judge_events(
    events: Iterable[Event], settings: Settings | None = None, *, gated: bool = True, only: str | None = None
) -> Judgement:
    """Returns the judgement on events in memory, without Spark: the same rows and the same invariants.

    Not `gated`: every invariant says what it finds, whether or not the evidence it needs is there. `only`: of the
    invariants that look at slices only the one of that name is asked, for whoever wants no other.
    """
    from kafka_trial.judge.in_memory_history import rows_of_lines

    rows, builder = rows_of_lines(map(to_line, events))
    trial_context = builder.trial_context(settings or Settings())
    return judgement_of(find(rows, trial_context, only=only), trial_context, builder.defects, gated=gated)


def judgement_of(
    found: pa.Table, trial_context: TrialContext, defects: Sequence[str], *, gated: bool = True
) -> Judgement:
    """Returns the judgement that follows from what was found in all slices (schema FOUND), in whatever order."""
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(found.to_pylist(), key=lambda row: (row["what"], row["name"], row["slice"])):
        if _is_wanted(row, trial_context):
            parts[row["what"]].append(row)
    coverage = _coverage(parts["coverage"], trial_context)
    crashed = {row["name"]: row["body"] for row in parts["crashed"]}
    gathered = _Gathered(parts, trial_context)
    group = group_of(
        _table(parts["summary"], SUMMARY),
        trial_context,
        {what: _table(parts[what], columns) for what, (_, columns, _) in GATHERED.items()},
    )
    for one in list_invariants():
        if one.of == "group":
            try:
                gathered.take_of_group(one.name, one.judge(group))
            except Exception as error:  # noqa: BLE001 - whatever broke makes that one not judged, by name
                crashed[one.name] = f"{type(error).__name__}: {error}"
    if group.why_end_undecided is not None:
        gathered.leave_undecided([one.name for one in list_invariants() if one.of_the_end], group.why_end_undecided)
    gathered.leave_undecided_what_lines_may_have_said()
    gathered.leave_undecided_what_may_be_handed_on(sum(orjson.loads(row["body"])["ahead"] for row in parts["ahead"]))
    seen = _seen(coverage) if gated else None
    return Judgement(
        findings={one.name: gathered.finding(one, seen, crashed) for one in list_invariants()},
        coverage=coverage,
        trial_context=trial_context,
        series=_series(parts["series"], trial_context),
        defects=tuple(defects),
        crashed=crashed,
        bounds_s={"converge": group.bound_s, "stuck": group.window_s},
        bounds_in_words=group.drain_bound.words,
        slices=group.slices,
    )


def _is_wanted(row: Mapping[str, Any], trial_context: TrialContext) -> bool:
    """Whether what was found in a slice counts: there is no partition in what lies nowhere, and of an intermediate
    only what is lost or stands still there."""
    if row["slice"] < 0:
        return True
    if trial_context.is_intermediate(row["slice"]):
        found = find_invariant(row["name"])
        return row["what"] in ("summary", "crashed") or (found is not None and found.intermediate_too)
    return row["what"] not in OF_PARTITIONS or trial_context.slices[row["slice"]][1] != NOWHERE


class _Gathered:
    """Anomalies, counts and undecided cases of all slices, by name."""

    def __init__(self, parts: Mapping[str, Sequence[Mapping[str, Any]]], trial_context: TrialContext) -> None:
        self._trial_context = trial_context
        self._anomalies: dict[str, list[Anomaly]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self._undecided: dict[str, Counter[str]] = defaultdict(Counter)
        places = trial_context.slices
        for row in parts["anomaly"]:
            body = orjson.loads(row["body"])
            topic, number = places[row["slice"]]
            partition = None if number == NOWHERE else number
            attributes = body["attributes"] | self._where(row["slice"])
            self._anomalies[row["name"]].append(
                Anomaly(row["name"], topic, partition, attributes, tuple(body["events"]))
            )
        for row in parts["count"]:
            self._counts[row["name"]] += int(row["body"])
        for row in parts["undecided"]:
            reason, count = orjson.loads(row["body"])
            self._undecided[row["name"]][reason] += count

    def take_of_group(self, name: str, findings: Findings) -> None:
        """Adds what was found in the summaries of all slices."""
        for number, attributes, events in instances(findings, self._trial_context.sources):
            topic, partition = self._trial_context.slices[number] if number >= 0 else (None, None)  # -1: the group
            told = attributes | self._where(number)
            self._anomalies[name].append(Anomaly(name, topic, partition, told, tuple(events)))
        self._counts[name] += len(findings.rows)
        for reason, slices in findings.undecided:
            self._undecided[name][reason] += len(slices)

    def _where(self, number: int) -> dict[str, str]:
        """Returns the topic as an attribute, if the group reads several, or it is an intermediate one."""
        about = self._trial_context
        if number < 0 or about.slices[number][1] == NOWHERE:
            return {}
        return {ON_TOPIC: about.slices[number][0]} if len(about.topics) > 1 or about.is_intermediate(number) else {}

    def leave_undecided(self, names: Iterable[str], reason: str) -> None:
        """Makes everything found under these names cases that could not be decided."""
        for name in names:
            self._anomalies.pop(name, None)
            if found := self._counts.pop(name, 0):
                self._undecided[name][reason] += found

    def leave_undecided_what_lines_may_have_said(self) -> None:
        """Makes what was found for want of a line cases that could not be decided, where lines could not be read."""
        reason = why_undecided(self._anomalies, self._counts, self._trial_context)
        kept = unexplained_by_bad_lines(self._anomalies, self._counts, self._trial_context) if reason else {}
        for name, certain in kept.items():
            gone = len(self._anomalies[name]) - len(certain)
            self._anomalies[name] = certain
            self._counts[name] -= gone
            self._undecided[name][reason] += gone

    def leave_undecided_what_may_be_handed_on(self, ahead: int) -> None:
        """Makes commits ahead, and what was skipped, cases that could not be decided, where as many records lie in
        topics of the group and bear no id: each of those may have been any one's, but only one's."""
        count, reason = nameless_hand_ons(self._trial_context)
        if 0 < ahead <= count:
            self.leave_undecided(["commit-ahead", "skipped"], reason)

    def finding(self, invariant: Invariant, seen: Seen | None, crashed: Mapping[str, str]) -> Finding:
        """Returns all that is said of one anomaly; `seen` None asks for no evidence."""
        name = invariant.name
        broken = next((crashed[key] for key in (name, invariant.family) if key in crashed), None)
        missing = NotJudged(NotJudgedReason.CRASHED, {"error": broken}) if broken else None
        if missing is None and seen is not None:
            missing = missing_evidence(invariant, self._trial_context, seen)
        if missing is not None and not (missing.partly and self._anomalies[name]):
            return Finding(name, invariant.family, not_judged=missing)
        cases = Counter(self._undecided[name]) + Counter([missing.because] if missing is not None else [])
        undecided = {reason: count for reason, count in sorted(cases.items()) if count}
        instances = tuple(sorted(self._anomalies[name], key=_in_order))
        partly = partly_missing(invariant, self._trial_context) if seen is not None else None
        return Finding(name, invariant.family, instances, self._counts[name], undecided, partly=partly)


def _in_order(anomaly: Anomaly) -> tuple[Any, ...]:
    order = next(
        (anomaly.attributes[key] for key in ("log_offset", "offset", "committed_offset") if key in anomaly.attributes),
        0,
    )
    return anomaly.topic, NOWHERE if anomaly.partition is None else anomaly.partition, order, anomaly.events


def _table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Returns rows of numbers, each body holding one of them or lists of several."""
    bodies = [orjson.loads(row["body"]) for row in rows]
    return Table({name: np.array(np.hstack([0, *(body[name] for body in bodies)])[1:], np.int64) for name in names})


def _coverage(rows: Sequence[Mapping[str, Any]], trial_context: TrialContext) -> Coverage:
    windows = [window.number for window in trial_context.windows]
    totals: dict[str, np.ndarray[Any, Any]] = {
        name: np.zeros(len(WORK) * (1 + len(windows)), np.int64) for name in trial_context.members
    }
    slices = []
    faults = {name: np.zeros(len(windows), np.int64) for name in ("held", "after", "moved_after", "traffic_after_heal")}
    for row in rows:
        body = orjson.loads(row["body"])
        faults = {name: values + np.array(body.pop(name), np.int64) for name, values in faults.items()}
        for member, numbers in body.pop("members").items():
            totals[member] = totals[member] + np.array(numbers)
        topic, partition = trial_context.slices[row["slice"]]
        slices.append(SliceCoverage(topic, partition, **body))
    members = {name: _member_coverage(numbers.tolist(), windows) for name, numbers in sorted(totals.items())}
    hit = {
        number: FaultCoverage(**{name: int(values[at]) for name, values in faults.items()})
        for at, number in enumerate(windows)
    }
    return Coverage(tuple(sorted(slices, key=lambda one: (one.topic, one.partition))), members, hit)


def _member_coverage(numbers: Sequence[int], windows: Sequence[int]) -> MemberCoverage:
    """Returns what passed through a member: of each sort of WORK in all, then in each fault's window."""
    parts = [tuple(numbers[at : at + len(WORK)]) for at in range(0, len(numbers), len(WORK))]
    inside = dict(zip(windows, parts[1:], strict=True))
    return MemberCoverage(**dict(zip(WORK, parts[0], strict=True)), inside=inside)


def _seen(coverage: Coverage) -> Seen:
    names = ("records", "delivered", "processed", "effects", "committed")
    committing = frozenset(name for name, member in coverage.members.items() if member.committed)
    never_beginning = frozenset(name for name, member in coverage.members.items() if member.never_begun)
    unowned = frozenset(name for name, member in coverage.members.items() if member.unowned)
    sums = {name: sum(getattr(part, name) for part in coverage.partitions) for name in names}
    return Seen(**sums, committing=committing, never_beginning=never_beginning, unowned=unowned)


def _series(rows: Sequence[Mapping[str, Any]], trial_context: TrialContext) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in SERIES.names}
    for row in sorted(rows, key=lambda row: trial_context.slices[row["slice"]]):
        body = orjson.loads(row["body"])
        topic, partition = trial_context.slices[row["slice"]]
        size = len(body["time_ns"])
        columns["topic"] += [topic] * size
        columns["partition"] += [partition] * size
        for name in SERIES.names[2:]:
            columns[name] += body[name]
    return pa.table(columns, schema=SERIES)
