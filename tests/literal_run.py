"""A literal run folder for the reports: case 0 in a dozen events, judged; the consumer writes what it should not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder

NASTY = '</td><script>alert("\x1b[31m")</script>'
SECOND = 1_000_000_000


def make_folder(path: Path) -> RunFolder:
    """Returns a judged run folder: the committed offset of partition 1 falls from 12 to 11 and stays."""
    made = RunFolder(path)
    made.history.mkdir()
    made.write_json("run.json", {"schema": 1, "seed": 7, "kafka": "4.3.1"})
    made.write_json("scenario.json", {"schema": 1, "name": "member-paused", "summary": "one member is frozen"})
    made.write_json("schedule.json", {"schema": 1, "seed": 7, "faults": []})
    made.write_json("verdict.json", verdict())
    (made.path / "consumer.toml").write_text('schema = 1\nname = "orders"\n')
    write_history(made)
    (made.path / "anomalies.jsonl").write_bytes(orjson.dumps(anomaly(), option=orjson.OPT_APPEND_NEWLINE))
    write_series(made)
    return made


def verdict(word: str = "fail", **changes: Any) -> dict[str, Any]:
    """Returns a verdict.json as plain data."""
    claim = {"delivery": "at-least-once", "order": "partition", "commits": "settling", "fenced": False}
    told = "the committed offset of partition 1 fell from 12 to 11 and stood there at the end"
    evidence = "the process group is stopped (state T) <b>3.2 s</b>"
    return {
        "schema": 1,
        "verdict": word,
        "exit": {"pass": 0, "fail": 1, "unknown": 4}[word],
        "claim": claim,
        "judged": ["commit-regression", "skipped"],
        "not_judged": [{"anomaly": "zombie-commit", "because": "the request log is missing"}],
        "violations": [
            {"anomaly": "commit-regression", "count": 1, "sentence": told, "events": ["offsets#0", "offsets#1"]}
        ],
        "tolerated": [{"anomaly": "redelivered", "count": 2, "because": "this claim does not exclude it"}],
        "counts": {"records": 120, "commit-regression": 1, "skipped": 0},
        "faults": [{"kind": "member-pause", "target": "m0", "role": "member", "bit": True, "evidence": evidence}],
        "reasons": [],
    } | changes


def anomaly() -> dict[str, Any]:
    """Returns the line of anomalies.jsonl that goes with the verdict."""
    return {
        "anomaly": "commit-regression",
        "topic": "t",
        "partition": 1,
        "attributes": {"from": 12, "to": 11},
        "events": ["offsets#0", "offsets#1"],
        "sentence": "the committed offset of partition 1 fell from 12 to 11",
        "weight": "violation",
    }


def write_history(folder: RunFolder) -> None:
    """Writes the history: two members, one partition, two commits, and events of another partition."""
    with Recorder(folder.history, "run") as run:
        run.record("phase", time_ns=0, phase="prepare")
        run.record("phase", time_ns=2 * SECOND, phase="steady")
        run.record("end", time_ns=60 * SECOND, outcome="ok")
    with Recorder(folder.history, "consumer-m1-0") as member:
        who = {"member": "m1", "incarnation": 0}
        entries = [{"topic": "t", "partition": 1}]
        member.record("assigned", time_ns=3 * SECOND, entries=entries, **who)
        for offset in range(20):
            place = {"topic": "t", "partition": 1, "offset": offset, "key": NASTY}
            member.record("delivered", time_ns=(4 + offset) * SECOND, **place, **who)
        member.record("delivered", time_ns=16 * SECOND, topic="t", partition=2, offset=900, **who)
    with Recorder(folder.history, "offsets") as offsets:
        for number, (at_s, value) in enumerate([(16, 12), (18, 11)]):
            place = {"group": "g", "topic": "t", "partition": 1, "log_partition": 0, "log_offset": number}
            offsets.record("committed", time_ns=at_s * SECOND + 1, committed_offset=value, **place)


def write_series(folder: RunFolder) -> None:
    """Writes a lag series of two partitions."""
    rows = [
        {"topic": "t", "partition": partition, "time_ns": second * SECOND, "committed_lag": lag, "handled_lag": 0}
        for partition in (0, 1)
        for second, lag in enumerate([0, 40 * partition, 1])
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder.path / "series.parquet")
