"""The clients of a rehearsal, as brokers saw them, and what both versions make of what they send; literal histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_trial.history.recorder import Recorder
from kafka_trial.registry import find_consumer
from kafka_trial.upgrade.make_record import changes_of, clients_of
from kafka_trial.upgrade.record import RecordedClient, ToldOfClient
from kafka_trial.upgrade.request import make_upgrade_request
from kafka_trial.upgrade.successors import Chain

VERSIONS = {"before": "3.9.2", "after": "4.3.1"}
SARAMA, LIBRDKAFKA = "sarama 1.38.1", "librdkafka 2.16.1"
SAID = "Received request for api with key 8 (OffsetCommit) and unsupported version 1"


def spoke(lane: int | None, library: str | None, api: str, key: int, version: int, **fields: Any) -> dict[str, Any]:
    asked = {"asks": True, "client_id": "c"} | fields
    return {"lane": lane, "library": library, "api": api, "key": key, "version": version} | asked


def seen(folder: Path, *spoken: dict[str, Any], refused: dict[str, Any] | None = None) -> list[RecordedClient]:
    """Returns the clients of a history in which m0 has lane 3 and m1 lane 4."""
    for member, lane in (("m0", 3), ("m1", 4)):
        with Recorder(folder, f"consumer-{member}-0") as recorder:
            recorder.record("started", member=member, incarnation=0, lane=lane, pid=7)
    with Recorder(folder, "requests-b0") as requests:
        for one in spoken:
            requests.record("api_version", **one)
        if refused:
            requests.record("request_refused", **refused)
    return clients_of("orders", folder, **VERSIONS)


def test_a_client_is_told_with_what_the_new_brokers_make_of_it(tmp_path: Path) -> None:
    """Two members of one library, of which both send a version that 4.0 removed; another one does not."""
    commits = [spoke(lane, SARAMA, "OFFSET_COMMIT", 8, 1, offered_highest=9) for lane in (3, 4)]
    fine = spoke(4, LIBRDKAFKA, "FETCH", 1, 16, offered_highest=17)
    told = (
        f"m0, m1 ({SARAMA}) each sends OffsetCommit v1, which 4.0 removed: brokers of 4.3 close the connection without "
        "an answer"
    )
    assert seen(tmp_path, *commits, fine) == [
        RecordedClient("orders", LIBRDKAFKA, ["m1"], []),
        RecordedClient("orders", SARAMA, ["m0", "m1"], [ToldOfClient("4.3.1", "rejected", told)]),
    ]


def test_what_the_old_brokers_do_not_know_is_told_for_the_way_back(tmp_path: Path) -> None:
    """It does not ask for versions, and sends one that came with 4.0."""
    (client,) = seen(tmp_path, spoke(3, LIBRDKAFKA, "LIST_OFFSETS", 2, 11, asks=None))
    assert [(one.brokers, one.weight) for one in client.told] == [("3.9.2", "may be rejected")]


def test_others_on_the_cluster_are_no_clients_of_a_consumer(tmp_path: Path) -> None:
    """A client without a lane that names the group; and what a connection sends before it names its library."""
    asking = spoke(3, None, "API_VERSIONS", 18, 3)
    assert seen(tmp_path, spoke(None, SARAMA, "OFFSET_COMMIT", 8, 1), asking, spoke(3, SARAMA, "FETCH", 1, 11)) == [
        RecordedClient("orders", SARAMA, ["m0"], [])
    ]


def test_what_brokers_refused_is_told_of_the_library_that_sent_it(tmp_path: Path) -> None:
    """By the broker's own log, which names no library: the only one of its member."""
    refused = {"lane": 3, "api": "OffsetCommit", "version": 1, "reason": "unsupported", "count": 9, "message": SAID}
    (client,) = seen(tmp_path, spoke(3, SARAMA, "FETCH", 1, 11), refused=refused)
    (told,) = client.told
    assert (client.library, told.brokers, told.weight) == (SARAMA, "", "refused")
    assert told.sentence.startswith(f"m0 ({SARAMA}): b0 refused OffsetCommit v1 9 times, and closed the connection")


def test_a_client_that_was_never_served_has_no_library(tmp_path: Path) -> None:
    """Nothing but the broker's complaint is known of it."""
    refused = {"lane": 4, "api": "Fetch", "version": 2, "reason": "unsupported", "count": 1, "message": SAID}
    (client,) = seen(tmp_path, refused=refused)
    assert (client.library, client.members, [one.weight for one in client.told]) == ("", ["m1"], ["refused"])


def test_changes_are_those_that_concern_the_consumer(tmp_path: Path) -> None:
    """By its protocol and progress; the Java client's defaults where brokers saw one."""
    chain = Chain(find_consumer("python-at-least-once"))
    request = make_upgrade_request("3.9.2", "4.3.1", [chain], seed=7, out=tmp_path)
    (spec,) = request.specs.values()
    java = RecordedClient("orders", "apache-kafka-java 3.9.2", ["m0"])
    without, besides = (changes_of(spec, clients, **VERSIONS) for clients in ([], [java]))
    assert without == [one for one in besides if not one.startswith("where its Java client moves")]
    assert any("metadata.recovery.strategy" in one for one in besides)
    assert without
    assert not any(one.startswith(("transactions:", "groups with group.protocol=consumer:")) for one in besides)
