"""Literal audits: a run folder as an export writes it, from a few events, judged without Spark and without a cluster.

The window is 0 to 1000 s, W is 10 s, so lag is judged of records that were there at 980 s. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_trial.audit.request import AuditRequest, Sink
from kafka_trial.audit.settings import consumer_toml, settings_of
from kafka_trial.check import reach_verdict
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import create_run_folder
from kafka_trial.judge.judge import judge_events
from kafka_trial.verdict.decide import Verdict

S = 1_000_000_000
SHORT = {"kafka": {"session_timeout_s": 1, "poll_interval_s": 1}, "progress": {"interval_s": 1}}
Told = tuple[str, Mapping[str, Any]]
Effect = tuple[float, str]
SINKS = {"topic": Sink(("done",)), "table": Sink(url="sqlite:///done.db", query="select id, at from done")}


def committed(
    at_s: float, value: int, *, partition: int = 0, place: int | None = None, topic_id: str | None = None
) -> Told:
    """A commit; its place in the log follows from its time. `topic_id` None: its broker is too old to write it."""
    fields = {"topic": "t", "partition": partition, "committed_offset": value}
    fields |= {} if topic_id is None else {"topic_id": topic_id}
    return "committed", fields | {"log_offset": int(at_s * 10) if place is None else place, "at_s": at_s}


def group(at_s: float, epoch: int, *owners: str) -> Told:
    """A classic group record: the members in the order of the partitions they own."""
    members = [{"member_id": name, "client_id": name.rstrip("'"), "host": "/h"} for name in owners]
    entries = [{"topic": "t", "partition": number, "member_id": name} for number, name in enumerate(owners)]
    fields = {"protocol": "classic", "epoch": epoch, "state": "stable", "members": members, "entries": entries}
    return "group", fields | {"log_offset": int(at_s * 10), "at_s": at_s}


def verdict_on(
    folder: Path,
    offsets: Sequence[Told],
    *,
    ends: Sequence[int] = (12,),
    records: Sequence[int] = (),
    unread: Sequence[tuple[str, str]] = (),
    read_to_s: float = 1010.0,
    drain_s: float = 980.0,
    requests: Sequence[Mapping[str, Any]] | None = None,
    claim: Mapping[str, Any] | None = None,
    effects: Sequence[Effect] | None = None,
    sink: str = "topic",
    ids: Mapping[int, str] | None = None,
    sink_read: bool = True,
    starts: int = 0,
    resets: int | None = None,
) -> Verdict:
    """Returns the verdict on an audit: `ends` are log ends by partition, `records` offsets in partition 0 at 500 s.

    `effects` are times and ids in a sink of the kind `sink` (None: there is none), `ids` those of records that are not
    r0, r1, …; `sink_read`: whoever read the sink says that it did. `starts` is where partitions begin now, `resets` how
    many resets forward the export had the records read of (None: it knew nothing of them).
    """
    run = create_run_folder(folder / "run", "audit", "g")
    asked = AuditRequest("h:1", "t", "g", 0, 1000 * S, claim=SHORT | ({"claim": claim} if claim else {}))
    asked = replace(asked, sink=None if effects is None else SINKS[sink])
    (run.path / "consumer.toml").write_text(consumer_toml(asked, settings_of(asked)))
    run.write_json("scenario.json", {"schema": 1, "name": "audit", "topic": {"partitions": 0}})
    _write_offsets(run.history, offsets)
    _write_observer(run.history, ends, {offset: (ids or {}).get(offset, f"r{offset}") for offset in records}, starts)
    _write_run(run.history, offsets, unread, read_to_s=read_to_s, drain_s=drain_s, resets=resets)
    if requests is not None:
        _write_requests(run.history, requests)
    if effects is not None:
        _write_sink(run.history, effects, read=sink_read)
    return reach_verdict(run, judge_events(run.events(), settings_of(asked)))


def _write_offsets(history: Path, told: Sequence[Told]) -> None:
    with Recorder(history, "offsets") as recorder:
        for kind, fields in told:
            wall_ns = int(fields["at_s"] * S)
            body = {name: value for name, value in fields.items() if name != "at_s"}
            recorder.record(kind, time_ns=wall_ns, group="g", log_partition=0, source_wall_ns=wall_ns, **body)
        recorder.record("witness", time_ns=1000 * S, state="complete")


def _write_sink(history: Path, effects: Sequence[Effect], *, read: bool) -> None:
    with Recorder(history, "sink") as recorder:
        for at_s, name in effects:
            recorder.record("effect", time_ns=int(at_s * S), id=name, outcome="ok")
        if read:
            recorder.record("witness", time_ns=1000 * S, state="complete")


def _write_observer(history: Path, ends: Sequence[int], records: Mapping[int, str], starts: int) -> None:
    with Recorder(history, "observer") as recorder:
        recorder.record(
            "topic", time_ns=1010 * S, topic="t", topic_id="T", partitions=len(ends), cleanup_policy="delete"
        )
        for partition, end in enumerate(ends):
            place = {"topic": "t", "topic_id": "T", "partition": partition}
            recorder.record("log_start", time_ns=1010 * S, **place, offset=starts, source_wall_ns=1 * S)
            recorder.record("log_end", time_ns=1010 * S, **place, offset=end, asked_ns=1010 * S)
        for offset, name in records.items():
            place = {"topic": "t", "partition": 0, "offset": offset}
            recorder.record("record", time_ns=500 * S, **place, id=name, source_wall_ns=500 * S)
        recorder.record("control_read", time_ns=1000 * S, topic="t", state="complete", count=len(records))
        recorder.record("witness", time_ns=1000 * S, state="complete")


def _write_run(
    history: Path,
    offsets: Sequence[Told],
    unread: Sequence[tuple[str, str]],
    *,
    read_to_s: float,
    drain_s: float,
    resets: int | None,
) -> None:
    commits = sum(kind == "committed" for kind, _ in offsets)
    read = {} if resets is None else {"resets": resets}
    times = {"from_ns": 0, "until_ns": 1000 * S, "drain_ns": int(drain_s * S), "settle_ns": 10 * S}
    with Recorder(history, "run") as recorder:
        recorder.record("clock", time_ns=0, wall_ns=0)
        recorder.record("topic_named", time_ns=0, topic="t")
        recorder.record("group_named", time_ns=0, group="g")
        recorder.record("audit", time_ns=0, **times, read_to_ns=int(read_to_s * S), commits=commits, **read)
        for name, message in unread:
            recorder.record("unread", time_ns=0, name=name, message=message)
        for phase, at_s in (("steady", 0.0), ("drain", drain_s), ("snapshot", 1000.0)):
            recorder.record("phase", time_ns=int(at_s * S), phase=phase)
        recorder.record("end", time_ns=1000 * S, outcome="ok")


def _write_requests(history: Path, requests: Sequence[Mapping[str, Any]]) -> None:
    """Requests with a lane: 0 is client `a`, 1 is client `b`."""
    with Recorder(history, "requests-b0") as recorder:
        for lane, name in enumerate("ab"):
            recorder.record("client_named", time_ns=0, lane=lane, member=name)
        for fields in requests:
            wall_ns = int(fields["at_s"] * S)
            body = {name: value for name, value in fields.items() if name != "at_s"}
            recorder.record("request", time_ns=wall_ns, source_wall_ns=wall_ns, error=0, duration_ms=1.0, **body)
        recorder.record("witness", time_ns=1000 * S, state="complete")
