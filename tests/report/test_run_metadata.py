"""When, where and of what a trial was."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.report.run_metadata import RunMetadata, client_libraries, commit_in_words, read_run_metadata, start_ns
from literal_run import SECOND

NOON_NS = 1_795_780_800 * SECOND  # 2026-11-27 12:00:00 UTC


def rewritten(folder: RunFolder, *events: tuple[str, float, dict[str, Any]]) -> RunFolder:
    """Puts these events (kind, second, fields) in the place of what the run says of itself."""
    (folder.history / "run.jsonl").unlink()
    with Recorder(folder.history, "run") as run:
        for kind, at_s, fields in events:
            run.record(kind, time_ns=int(at_s * SECOND), **fields)
    return folder


def test_the_date_is_the_wall_clocks_when_the_first_phase_began(folder: RunFolder) -> None:
    """By the nearest pair of both clocks: a jump later on does not count; the length is up to the run's last event."""
    rewritten(
        folder,
        ("clock", 8, {"wall_ns": NOON_NS}),
        ("phase", 10, {"phase": "prepare"}),
        ("clock", 90, {"wall_ns": NOON_NS + 3600 * SECOND}),
        ("end", 95.5, {"outcome": "ok"}),
    )
    metadata = read_run_metadata(folder, {})
    assert (metadata.began, metadata.lasted_s, start_ns(folder)) == ("2026-11-27 12:00:02 UTC", 85.5, 10 * SECOND)


def test_the_times_of_an_audit_are_dates(folder: RunFolder) -> None:
    """Its events have the brokers' wall time; they count from the start of its window."""
    rewritten(folder, ("phase", NOON_NS / SECOND, {"phase": "steady"}))
    metadata = read_run_metadata(folder, {"kind": "audit"})
    assert (metadata.began, metadata.base, metadata.label) == (
        "2026-11-27 12:00:00 UTC",
        "the start of the window",
        "window",
    )


def test_a_run_without_phases_counts_from_its_first_event(folder: RunFolder) -> None:
    """That of any file: the first member began two seconds after zero."""
    (folder.history / "run.jsonl").unlink()
    assert start_ns(folder) == 3 * SECOND


def test_a_run_that_recorded_none_of_it_gives_what_there_is(folder: RunFolder) -> None:
    """A stored run of an earlier version: no date, host, commit or image is made up."""
    assert read_run_metadata(folder, folder.read_json("run.json")) == RunMetadata(
        "the start of the trial", lasted_s=60.0
    )


def test_what_run_json_says_is_told(folder: RunFolder) -> None:
    """Host and machine, version and commit, digest and image; what is of another type is left out."""
    run = {
        "host": "builder",
        "machine": {"cores": 2, "memory_bytes": 25_276_510_208, "system": "Linux", "kernel": "6.18"},
        "kafka_trial": "0.1.0",
        "commit": {"commit": "7303a7f67a771e96440441462a8995272808e274", "changed": 0, "untracked": 0},
        "consumer_commit": ["not what we wrote"],
        "consumer_digest": "1810971e9e873b45",
        "consumer_image": "team/orders:1.4",
        "images": {"team/orders:1.4": "sha256:5d0d"},
    }
    metadata = read_run_metadata(folder, run)
    assert (metadata.host, metadata.harness) == (
        "builder (2 cores, 25 GB of memory, Linux 6.18)",
        "0.1.0, commit 7303a7f67a77, unchanged",
    )
    assert (metadata.consumer_commit, metadata.consumer_digest) == ("", "1810971e9e873b45")
    assert metadata.image == "team/orders:1.4, sha256:5d0d"


@pytest.mark.parametrize(
    ("changed", "untracked", "told"),
    [
        (0, 0, "abc, unchanged"),
        (1, 0, "abc, with 1 file changed since"),
        (2, 1, "abc, with 2 files changed since and 1 file that git does not track"),
    ],
)
def test_a_commit_says_what_was_there_beyond_it(changed: int, untracked: int, told: str) -> None:
    """Files that were changed, and files that git does not know."""
    assert commit_in_words({"commit": "abc", "changed": changed, "untracked": untracked}) == told


def test_clients_are_those_that_members_told_the_brokers(folder: RunFolder) -> None:
    """Each library once, with its clients; one that came later counts; the harness's own lane does not."""
    for member, lane in (("m0", 0), ("m1", 1)):
        with Recorder(folder.history, f"consumer-{member}-7") as lines:
            lines.record("started", time_ns=SECOND, pid=1, lane=lane, member=member, incarnation=7)
    asked = [
        (0, "c1", "kt-m0", "kafka-python 3.0.12"),
        (1, "c2", "kt-m1", "kafka-python 3.0.12"),
        (0, "c3", "kt-m0", "apache-kafka-java 4.3.1 \x1b[2J"),
        (2, "c4", "ours", "confluent-kafka-python 2.16.1"),
        (0, "c5", "kt-m0", None),
        (1, "c6", "aiokafka-0", None),
    ]
    with Recorder(folder.history, "requests-b1") as requests:
        for lane, connection, client_id, library in asked:
            named = {} if library is None else {"library": library}
            requests.record("request", api="JOIN_GROUP", lane=lane, connection=connection, client_id=client_id, **named)
    assert list(client_libraries(folder)) == [
        "apache-kafka-java 4.3.1 ·[2J (kt-m0)",
        "kafka-python 3.0.12 (kt-m0, kt-m1)",
        "a library that does not name itself (aiokafka-0)",
    ]


@pytest.mark.parametrize(
    ("lasted_s", "told"), [(27.34, "27.3 s"), (599.94, "599.9 s"), (600, "10 min"), (43_200, "12 h 0 min")]
)
def test_a_duration_is_told_in_what_it_is_measured_in(lasted_s: float, told: str) -> None:
    """A trial's in seconds, the window of an audit in hours."""
    assert RunMetadata(began="noon", lasted_s=lasted_s).span == f"noon for {told}"
