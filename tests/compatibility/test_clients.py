"""Which clients brokers of another version serve: by what was seen of them, and nobody convicted for what was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.compatibility.clients import (
    DEPRECATED,
    PERHAPS,
    REJECTED,
    UNDECIDED,
    Client,
    Sighting,
    api_named,
    judge_clients,
    sightings_of_history,
    sightings_of_run,
)
from kafka_trial.history.event import Event
from kafka_trial.history.recorder import Recorder

SARAMA = Client("m1", "sarama 1.38.1")
PYTHON = Client("m2", None)


def told(*sightings: Sighting, to: str = "4.0.2", now: str | None = "3.9.2") -> list[tuple[str, str]]:
    """Returns weight and sentence of each finding."""
    return [(finding.weight, finding.message) for finding in judge_clients(sightings, to=to, now=now)]


def test_a_client_that_chose_lower_than_offered_is_too_old() -> None:
    """Sarama by its `Config.Version`: it asks, and sends v1 all the same. Its name stands in the sentence."""
    seen = Sighting(SARAMA, "OffsetCommit", 1, offered=9, asks=True, deprecated=True)
    message = (
        "m1 (sarama 1.38.1) sends OffsetCommit v1, which 4.0 removed: "
        "brokers of 4.0 close the connection without an answer"
    )
    assert told(seen) == [(REJECTED, message)]


def test_a_client_that_asks_nothing_is_too_old_by_what_brokers_offer_now() -> None:
    """Fixed versions, of a client without a name: librdkafka with api.version.request=false, kafka-python of old."""
    assert told(Sighting(PYTHON, "Fetch", 2), to="4.4.0") == [
        (
            REJECTED,
            "m2 (it does not name its library) sends Fetch v2, which 4.0 removed: brokers of 4.4 close the connection "
            "without an answer",
        )
    ]


def test_all_apis_of_one_reason_stand_in_one_sentence() -> None:
    """In the order of their keys; beyond four they are counted."""
    old = [Sighting(SARAMA, api, 0, offered=9) for api in ("OffsetFetch", "ListOffsets", "OffsetCommit", "Fetch")]
    (finding,) = judge_clients(old, to="4.0.2")
    assert "sends Fetch v0, ListOffsets v0, OffsetCommit v0 and OffsetFetch v0, which 4.0 removed" in finding.message
    (finding,) = judge_clients([*old, Sighting(SARAMA, "CreateTopics", 0, offered=7)], to="4.0.2")
    assert "OffsetFetch v0 and 1 more, which" in finding.message
    assert finding.apis == ("Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "CreateTopics")


@pytest.mark.parametrize(
    "fine",
    [
        Sighting(SARAMA, "OffsetCommit", 9, offered=9, asks=True),
        Sighting(SARAMA, "OffsetCommit", 2),
        Sighting(SARAMA, "JoinGroup", 1),  # 4.0.0 alone did not serve it
        Sighting(SARAMA, "Metadata", 0),  # a probe of old clients, which KIP-896 keeps
        Sighting(SARAMA, "ApiVersions", 5),  # answered in any case
        Sighting(SARAMA, "FetchSnapshot", 0),  # of controllers: no client's
        Sighting(SARAMA, "NoSuchApi", 3),
    ],
    ids=lambda sighting: f"{sighting.api}-{sighting.version}",
)
def test_what_is_served_or_no_clients_is_no_finding(fine: Sighting) -> None:
    """Nothing is said where there is nothing to do."""
    assert told(fine) == []


def test_a_client_that_took_all_that_was_offered_may_speak_more() -> None:
    """Its brokers are old: what it speaks besides is unknown, and said so."""
    (found,) = told(Sighting(SARAMA, "OffsetCommit", 1, offered=1, asks=True), now=None)
    assert (found[0], "is unknown: its brokers offered no more" in found[1]) == (UNDECIDED, True)


def test_without_an_offer_nothing_is_decided() -> None:
    """Neither the log nor `now` says what was offered."""
    (found,) = told(Sighting(PYTHON, "OffsetCommit", 1), now=None)
    assert (found[0], "what its brokers offered was not seen (say --from)" in found[1]) == (UNDECIDED, True)


def test_negotiated_down_by_one_old_broker_is_no_fault() -> None:
    """In a mixed cluster the same client speaks v9 to one broker, and v1 to another that offers no more."""
    low, high = (Sighting(SARAMA, "OffsetCommit", version, offered=version, asks=True) for version in (1, 9))
    assert told(low, high) == []


def test_two_programs_under_one_name_may_be_rejected() -> None:
    """A version that is served, and one that is not although more was offered: one of the two is too old, perhaps."""
    old, new = (Sighting(PYTHON, "OffsetCommit", version, offered=9) for version in (1, 8))
    ((weight, message),) = told(old, new)
    assert (weight, message.endswith("it also sends v8, which they serve")) == (PERHAPS, True)


def test_a_deprecated_version_is_named_where_it_is_served_still() -> None:
    """3.9 marks OffsetForLeaderEpoch v1; 3.9 serves it, 4.0 does not."""
    seen = Sighting(SARAMA, "OffsetForLeaderEpoch", 1, offered=4, deprecated=True)
    ((weight, message),) = told(seen, now="3.7.2", to="3.9.2")
    assert (weight, "deprecated in 3.7 (requestApiVersionDeprecated)" in message) == (DEPRECATED, True)
    assert told(seen)[0][0] == REJECTED


def test_the_way_back_takes_apis_away() -> None:
    """Share groups of 4.1 on brokers of 4.0; OffsetCommit v10 of 4.2, by a client that asks and one that does not."""
    share = Sighting(SARAMA, "ShareGroupHeartbeat", 1, offered=1, asks=True)
    assert told(share, now="4.1.2") == [
        (
            REJECTED,
            "m1 (sarama 1.38.1) sends ShareGroupHeartbeat v1, which brokers of 4.0.2 do not answer in any version",
        )
    ]
    assert told(Sighting(SARAMA, "OffsetCommit", 10, offered=10, asks=True), now="4.2.1") == []
    assert told(Sighting(SARAMA, "OffsetCommit", 10, offered=10), now="4.2.1")[0][0] == PERHAPS


def test_a_member_that_was_not_seen_is_unknown_by_name() -> None:
    """No request is no acquittal."""
    found = judge_clients([Sighting(SARAMA, "Fetch", 17, offered=17)], to="4.0.2", expected=["m1", "m3"])
    assert [(finding.weight, finding.message) for finding in found] == [
        (UNDECIDED, "m3 was not seen: what it sends is unknown")
    ]


def test_the_worst_comes_first() -> None:
    """Whatever the order in which they were seen."""
    found = told(Sighting(PYTHON, "OffsetCommit", 10), Sighting(SARAMA, "Fetch", 1, offered=17))
    assert [weight for weight, _ in found] == [REJECTED, PERHAPS]


def test_a_history_says_who_sent_what() -> None:
    """A member's name by its lane; a client without a lane by its id. Keys stay where names change."""
    commit = {"api": "OFFSET_COMMIT", "key": 8, "version": 1, "offered_highest": 9, "library": "sarama 1.38.1"}
    listing = {"api": "LIST_CLIENT_METRICS_RESOURCES", "key": 74, "version": 0, "client_id": "admin-1", "asks": True}
    events = [
        Event("requests-b0", 1, 1, "api_version", details={**commit, "lane": 4, "client_id": "sarama"}),
        Event("requests-b0", 2, 2, "api_version", details=listing),
        Event("requests-b0", 3, 3, "request", details={"api": "FETCH", "lane": 4}),
        Event("consumer-m1-0", 0, 0, "started", member="m1", details={"lane": 4, "pid": 7}),
    ]
    assert sightings_of_history(events) == [
        Sighting(SARAMA, "OffsetCommit", 1, offered=9),
        Sighting(Client("admin-1"), "ListConfigResources", 0, asks=True),
    ]


def test_a_run_says_the_same_from_its_files(tmp_path: Path) -> None:
    """A line that is being written is left out; so is all that says something else."""
    commit = {
        "api": "OFFSET_COMMIT",
        "key": 8,
        "version": 1,
        "offered_highest": 9,
        "lane": 4,
        "library": "sarama 1.38.1",
    }
    with Recorder(tmp_path, "requests-b0") as requests, Recorder(tmp_path, "consumer-m1-0") as member:
        member.record("started", member="m1", incarnation=0, lane=4, pid=7)
        member.record("delivered", member="m1", topic="t", partition=0, offset=3)
        requests.record("api_version", **commit)
        requests.record("request", api="FETCH", lane=4)
    with requests.path.open("ab") as torn:
        torn.write(b'{"schema":1,"kind":"api_version","api":"FE')
    assert sightings_of_run(tmp_path) == [Sighting(SARAMA, "OffsetCommit", 1, offered=9)]
    assert sightings_of_run(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("key", "name", "called"),
    [(8, "OFFSET_COMMIT", "OffsetCommit"), (-1, "OFFSET_COMMIT", "OffsetCommit"), (-1, "NEW_API", "NEW_API")],
)
def test_apis_are_called_as_their_definitions_are(key: int, name: str, called: str) -> None:
    """Request logs have the names of an enumeration."""
    assert api_named(key, name) == called
