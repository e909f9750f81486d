"""Checking a run folder: history → anomalies → verdict → pages. The one way there, for `run`, `check` and pytest.

The verdict becomes two files of the run folder: verdict.json, and anomalies.jsonl with every anomaly and its weight.
Keys are sorted, and there are no times and no paths: the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq

from kafka_trial import plugins
from kafka_trial.audit.collect import collect_audit
from kafka_trial.claim import Claim
from kafka_trial.errors import InputError
from kafka_trial.history.event import lacking
from kafka_trial.history.refused_requests import refusals_in_words, refused_of_run
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.judge import judge
from kafka_trial.report.html import write_reports
from kafka_trial.report.report_data import consumer_name
from kafka_trial.verdict.causes import causes_of
from kafka_trial.verdict.collect import collect, own_events
from kafka_trial.verdict.decide import Verdict, decide, severity, weigh
from kafka_trial.verdict.group_verdicts import verdict_of_all
from kafka_trial.verdict.messages import message, plain
from kafka_trial.verdict.verdict_input import Scope, VerdictInput, claim_of, scope_of

if TYPE_CHECKING:
    from kafka_trial.judge.judge import Judgement
    from kafka_trial.judge.spark_session import SparkSession

# An audit has no scenario and no schedule: no partition must have had work, no number of records must have been judged.
OF_AN_AUDIT = Scope(partitions=None, records_judged_min=0)
VERDICT_SCHEMA = 1
NO_GROUPS: Mapping[str, tuple[str, Verdict]] = MappingProxyType({})
LINE = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def check_run(
    folder: RunFolder,
    *,
    spark: SparkSession | None = None,
    spark_master: str | None = None,
    partitions: int | None = None,
) -> Verdict:
    """Judges the history of a run folder again, writes the verdict and the pages, and returns the verdict; that of a
    trial of several groups is the worst of theirs, each of which has its own in its own folder.

    `spark` is an existing session; without one, `spark_master` is a Spark master's URL (this machine by default).
    `partitions` are those of Spark. The verdict depends on none of them.

    Raises:
        InputError: it is no run folder, or of a newer schema.
        StartError: there is no Java to run Spark on, or nobody answers at the master's URL.
    """
    plugins.require(_made_with(folder))
    further = {
        name: (consumer_name(group), check_run(group, spark=spark, spark_master=spark_master, partitions=partitions))
        for name, group in folder.groups.items()
    }
    judgement = judge(folder, spark=spark, master=spark_master, partitions=partitions)
    verdict = reach_verdict(folder, judgement, further)
    write_reports(folder)
    return verdict


def reach_verdict(
    folder: RunFolder, judgement: Judgement, further: Mapping[str, tuple[str, Verdict]] = NO_GROUPS
) -> Verdict:
    """Returns the verdict on a judged run folder, and writes verdict.json, anomalies.jsonl and series.parquet.

    Where the history is an audit's, its own rules come between the judge and the decision. `further`: of each further
    group its consumer's name and its verdict.
    """
    claim, unknowns = claim_of(folder)
    events = list(own_events(folder))
    audited = any(event.kind == "audit" for event in events)
    scope = OF_AN_AUDIT if audited else scope_of(folder)
    collected = collect(judgement, events, scope, unknowns=unknowns)
    if any(event.kind == "audit" and not lacking("audit", event.details) for event in events):
        collected = collect_audit(folder, collected, judgement, events, claim)
    refused = map(plain, refusals_in_words(refused_of_run(folder.history)))
    collected = replace(collected, notes=(*collected.notes, *causes_of(folder, judgement.findings), *refused))
    verdict = verdict_of_all(decide(collected, claim), consumer_name(folder), further)
    pq.write_table(judgement.series, folder.path / "series.parquet")
    write_verdict(folder, verdict, collected)
    return verdict


def _made_with(folder: RunFolder) -> Mapping[str, str]:
    """Returns the plug-ins that a run was made with, each with its digest; a damaged run.json names none."""
    try:
        named = folder.read_json("run.json").get("plugins")
    except (InputError, AttributeError):
        return {}
    return named if isinstance(named, dict) else {}


def verdict_to_table(verdict: Verdict) -> dict[str, Any]:
    """Returns the verdict as plain data, for verdict.json; `retriable` stands there where it is so."""
    table = {"schema": VERDICT_SCHEMA} | asdict(verdict)
    if not verdict.retriable:
        del table["retriable"]
    table["faults"] = [{name: value for name, value in fault.items() if name != "healed"} for fault in table["faults"]]
    table["violations"] = [
        {name: value for name, value in violation.items() if name != "follows" or value is not None}
        for violation in table["violations"]
    ]
    for name in ("notes", "printed", "groups"):
        if not table[name]:
            del table[name]
    return table


def write_verdict(folder: RunFolder, verdict: Verdict, collected: VerdictInput) -> None:
    """Writes verdict.json and anomalies.jsonl."""
    folder.write_json("verdict.json", verdict_to_table(verdict))
    lines = (orjson.dumps(row, option=LINE) for row in _anomaly_rows(collected, verdict.claim))
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(lines))


def _anomaly_rows(collected: VerdictInput, claim: Claim) -> Iterator[dict[str, Any]]:
    """Yields every anomaly with its weight under the claim, the worst first."""
    for found in sorted(collected.found, key=lambda found: (severity(found.anomaly), found.anomaly)):
        for instance in found.instances:
            weight, because = weigh(claim, found.anomaly, instance.attributes)
            row = {
                "anomaly": found.anomaly,
                "topic": instance.topic,
                "partition": instance.partition,
                "attributes": dict(instance.attributes),
                "events": list(instance.events),
                "sentence": message(found.anomaly, instance),
                "weight": weight,
            }
            yield row | ({"because": because} if because else {})
