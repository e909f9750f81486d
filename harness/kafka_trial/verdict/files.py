"""The verdict as files of the run folder: verdict.json, and anomalies.jsonl with every anomaly and its weight.

Keys are sorted, and there are no times and no paths: the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import orjson

from kafka_trial.claim import Claim
from kafka_trial.history.store import RunFolder
from kafka_trial.verdict.decide import Verdict, severity, weigh
from kafka_trial.verdict.messages import message
from kafka_trial.verdict.verdict_input import VerdictInput

VERDICT_SCHEMA = 1
LINE = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


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
    for name in ("notes", "printed"):
        if not table[name]:
            del table[name]
    return table


def write_verdict(folder: RunFolder, verdict: Verdict, collected: VerdictInput) -> None:
    """Writes verdict.json and anomalies.jsonl."""
    folder.write_json("verdict.json", verdict_to_table(verdict))
    lines = (orjson.dumps(row, option=LINE) for row in anomaly_rows(collected, verdict.claim))
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(lines))


def anomaly_rows(collected: VerdictInput, claim: Claim) -> Iterator[dict[str, Any]]:
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
