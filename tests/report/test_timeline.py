"""What the timeline says of a partition and of anomalies, and that its size is bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from histories import BEGUN_NS, MS, Line, assigned, batch_of, committed, delivered, exited, handled, processed
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.report import anomaly_instants, partition_timeline
from kafka_trial.report.anomaly_instants import AnomalyInstants
from kafka_trial.report.lag_series import Series
from kafka_trial.report.partition_timeline import PartitionTimeline
from kafka_trial.report.timeline import read_timeline
from kafka_trial.report.timeline_clock import TimelineClock
from literal_run import SECOND, anomaly, verdict

CLOCK = TimelineClock(zero_ns=BEGUN_NS, begin_ns=BEGUN_NS - 1_000 * MS, end_ns=BEGUN_NS + 1_000 * MS)


def drawn(lines: list[Line | list[Line]], *, at_ms: tuple[int, ...] = (), **frame: Any) -> PartitionTimeline:
    """Returns partition 0 of a literal history, its lag at some instants."""
    at_ns = BEGUN_NS + np.array(at_ms, np.int64) * MS
    series = Series(at_ns, np.zeros(len(at_ns), np.int64), np.zeros(len(at_ns), np.int64))
    return partition_timeline.partition_timeline(batch_of(lines, **frame), 0, ("t", 0), CLOCK, series)


def test_a_partition_has_its_owners_handlers_and_commits() -> None:
    """m0 handles a record and commits it, exits, and m1 goes on; the lines are ten milliseconds apart."""
    m0 = [assigned("m0"), delivered("m0", 0), processed("m0", 0), committed(1), exited("m0", code=0)]
    found = drawn([*m0, assigned("m1"), handled("m1", 1)], records=2)
    assert (found.owners, found.handlers, found.commits) == (
        [(0, 10, 50), (1, 60, 1000)],
        [(0, 20, 30, 1, 0, 0), (1, 70, 80, 1, 1, 1)],
        [(40, 1, -1, 1)],
    )


def test_the_age_is_that_of_the_oldest_record() -> None:
    """Record 0 is never handled, and grows old; what is committed is no longer waited for."""
    found = drawn([assigned("m0"), handled("m0", 1), committed(2)], at_ms=(0, 35, 100), records=2, old=True)
    assert (found.lag.handled_age_ms, found.lag.committed_age_ms) == ([2080, 2115, 2180], [2080, 2115, 0])


def test_of_many_events_few_bars_remain_and_no_fall_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty records and as many commits in four buckets: all are counted, and the commit that fell stands alone."""
    monkeypatch.setattr(partition_timeline, "BUCKETS", 4)
    work = [
        line for offset in range(40) for line in (*handled("m0", offset), committed(3 if offset == 20 else offset + 1))
    ]
    found = drawn([assigned("m0"), *work], records=40)
    assert (sum(run[3] for run in found.handlers), sum(commit[3] for commit in found.commits)) == (40, 40)
    assert (len(found.handlers) <= 4, len(found.commits) <= 6) == (True, True)
    assert [commit[1:] for commit in found.commits if commit[1] == 3] == [(3, -1, 1)]


def found_in(folder: RunFolder, *rows: dict[str, Any]) -> AnomalyInstants:
    """Returns the anomalies of a folder that has these in anomalies.jsonl."""
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    timeline = read_timeline(folder, verdict())
    assert timeline is not None
    return timeline.anomalies


def test_an_anomaly_is_when_its_last_proof_is(folder: RunFolder) -> None:
    """The instants of both commits; one whose events are in no file has none, and one of the group no partition."""
    lost, group = anomaly() | {"events": ["offsets#9"]}, anomaly() | {"partition": None, "events": ["run#1"]}
    found = found_in(folder, anomaly(), lost, group)
    assert [row[2:6] for row in found.listed] == [
        (0, 18000, 16000, [0, 1]),
        (0, None, None, []),
        (None, 2000, 2000, [2]),
    ]
    assert found.proofs[1:] == [
        ("offsets#1", 18000, "committed offset 11 took effect (offsets log 1)"),
        ("run#1", 2000, "phase steady begins"),
    ]


def test_a_long_list_is_cut_and_the_rest_counted(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred of one name and one of another one of each is listed; the others are counted where they are."""
    monkeypatch.setattr(anomaly_instants, "LISTED_MAX", 2)
    found = found_in(folder, *[anomaly()] * 100, anomaly() | {"anomaly": "skipped"})
    assert (found.names, [row[:4] for row in found.listed], found.counted) == (
        ["commit-regression", "skipped"],
        [(0, 0, 0, 18000), (1, 0, 0, 18000)],
        [(0, 0, 0, 17996, 99)],
    )


def test_the_timeline_leaves_nothing_behind(folder: RunFolder) -> None:
    """Without a cache the rows are made for it alone: the run folder stays as it was."""
    before = sorted(folder.path.rglob("*"))
    assert (read_timeline(folder, verdict()) is not None, sorted(folder.path.rglob("*"))) == (True, before)


def test_a_history_of_a_newer_version_is_said(folder: RunFolder) -> None:
    """It cannot be read: the page says so in place of a timeline."""
    (folder.history / "run.jsonl").write_bytes(b'{"schema":99,"source":"run","seq":0,"time_ns":0,"kind":"phase"}\n')
    timeline = read_timeline(folder, verdict())
    assert timeline is not None
    assert (timeline.partitions, timeline.notes[0].partition(":")[0]) == ((), "no timeline")


def test_the_list_opens_with_what_the_headline_tells(folder: RunFolder) -> None:
    """The worst violation, of it the one that the verdict tells; then what is tolerated, whenever it was."""
    told = anomaly() | {"partition": 2}
    other = anomaly() | {"events": ["offsets#0"]}
    early = anomaly() | {"anomaly": "redelivered", "weight": "tolerated", "events": ["consumer-m1-0#1"]}
    milder = anomaly() | {"anomaly": "skipped", "weight": "undecided"}
    found = found_in(folder, early, other, milder, told)
    assert [(found.names[row[0]], found.where[row[7]]) for row in found.listed] == [
        ("commit-regression", "partition 2 of t"),
        ("commit-regression", "partition 1 of t"),
        ("skipped", "partition 1 of t"),
        ("redelivered", "partition 1 of t"),
    ]


@pytest.mark.parametrize(
    ("attributes", "members", "records"),
    [
        ({"from": 12, "to": 11, "log_offset": 1}, [0], [(11, 11)]),
        ({"offset": 3, "last_offset": 9, "records": 7}, [0], [(3, 9)]),
        ({"offset": 3, "later_offset": 5, "member": "m9"}, [0], [(3, 3), (5, 5)]),
        ({"from": 2, "to": 9, "bumps": 7}, [0], []),
    ],
    ids=["a commit that fell", "a range", "two records", "epochs of the group"],
)
def test_an_anomaly_says_whom_and_which_records_it_is_about(
    folder: RunFolder, attributes: dict[str, Any], members: list[int], records: list[tuple[int, int]]
) -> None:
    """By its attributes and by whose lines prove it: what the list is filtered by."""
    with Recorder(folder.history, "consumer-m2-0") as member:
        member.record("started", time_ns=3 * SECOND, pid=1, lane=2, member="m2", incarnation=0)
    where = {"partition": None} if "bumps" in attributes else {}
    row = anomaly() | {"attributes": attributes, "events": ["offsets#1", "consumer-m2-0#0"]} | where
    assert [row[8:] for row in found_in(folder, row).listed] == [(members, records)]


def test_times_count_from_the_start_of_the_trial(folder: RunFolder) -> None:
    """From its first phase: what was before has a negative time, and the faults begin later than zero."""
    (folder.history / "run.jsonl").unlink()
    with Recorder(folder.history, "run") as run:
        run.record("topic_named", time_ns=1 * SECOND, topic="t")
        run.record("phase", time_ns=2 * SECOND, phase="prepare")
        run.record("phase", time_ns=9 * SECOND, phase="faults")
    timeline = read_timeline(folder, verdict())
    assert timeline is not None
    assert (timeline.phases, timeline.partitions[0].commits[0][0]) == ((("prepare", 0), ("faults", 7000)), 14_000)
