"""`preflight --to`: what it says of a cluster, of request logs and of a consumer, and the status it ends in."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from kafka_trial.cli import main
from kafka_trial.compatibility.clients import Client, Sighting
from kafka_trial.compatibility.live import ClusterNow, candidates, version_now
from kafka_trial.compatibility.outlook import ConsumerPlan, Outlook, as_json, as_text, consumer_plan, make_outlook
from kafka_trial.compatibility.request_logs import LogsRead
from kafka_trial.compatibility.tables import apis
from kafka_trial.errors import FAIL, NOT_BEGUN, PASS, UNKNOWN, WRONG_INPUT, InputError
from kafka_trial.kafka_protocol.broker_features import BrokerFeatures
from kafka_trial.kafka_protocol.group_requests import ListedGroup

OLD = Sighting(Client("sarama at h1", "sarama 1.38.1"), "OffsetCommit", 1, offered=9, asks=True)
DATA = Path(__file__).parent.parent / "witness" / "data"


def answers_of(version: str) -> BrokerFeatures:
    """Returns what a broker of a version answers; its features as of 3.9."""
    told = {row.key: (row.told_lowest, row.highest) for row in apis(version).values() if "Telemetry" not in row.name}
    return BrokerFeatures(told, {"metadata.version": (1, 21), "group.version": (0, 1)}, {"metadata.version": 21})


def cluster(**given: object) -> ClusterNow:
    """Returns a cluster of 3.9.2 with two brokers and two topics, and what is given over it."""
    now = ClusterNow(
        candidates=("3.9.2",),
        features={1: answers_of("3.9.2"), 2: answers_of("3.9.2")},
        set_of_brokers={1: {"group.coordinator.threads": "2"}, 2: {"group.coordinator.threads": "2"}},
        set_of_topics={"orders": {}, "bills": {"message.timestamp.after.max.ms": "5"}},
        groups=[ListedGroup("billing", "consumer", "Stable", "classic")],
    )
    for name, value in given.items():
        setattr(now, name, value)
    return now


def outlook(
    now: ClusterNow | None = None, logs: LogsRead | None = None, consumer: ConsumerPlan | None = None
) -> Outlook:
    """Returns the outlook from 3.9.2 to 4.4.0."""
    return make_outlook(to="4.4.0", now="3.9.2", cluster=now, logs=logs, consumer=consumer)


def test_a_rejected_client_is_the_first_line() -> None:
    """The status is 1; several clients of one library are one sentence."""
    others = [Sighting(Client(f"sarama at h{number}", "sarama 1.38.1"), "OffsetCommit", 1, 9) for number in range(2, 6)]
    found = outlook(logs=LogsRead([OLD, *others], files=1, requests=9))
    assert (found.exit_status, as_text(found).splitlines()[0]) == (
        FAIL,
        "NO: sarama at h1, sarama at h2, sarama at h3 and 2 more (sarama 1.38.1) each sends OffsetCommit v1, which 4.0 "
        "removed: brokers of 4.4 close the connection without an answer",
    )


def test_what_is_undecided_is_unknown_and_no_pass() -> None:
    """A client that may speak more than was offered; a cluster that does not tell its settings."""
    perhaps = Sighting(Client("x"), "OffsetCommit", 1, offered=1, asks=True)
    assert outlook(logs=LogsRead([perhaps], files=1, requests=1)).exit_status == UNKNOWN
    told = outlook(cluster(untold=["the settings of topic bills (refused)"]))
    assert (told.exit_status, "UNKNOWN: not told by the cluster: the settings of topic bills" in as_text(told)) == (
        UNKNOWN,
        True,
    )


def test_a_cluster_is_told_what_changes_for_whom() -> None:
    """A topic with a value of its own, and brokers that all have one, are left out; features with their levels."""
    text = as_text(outlook(cluster()))
    assert text.startswith("OK: nothing that was looked at stands against brokers of 4.4.0\nfrom 3.9.2 to 4.4.0")
    assert "message.timestamp.after.max.ms: 9223372036854775807 → 3600000" in text
    assert "(CreateTime)): topic orders\n" in text
    assert (
        "num.recovery.threads.per.data.dir: 1 → 2 (since 4.0; KIP-1030: more, or fewer, threads by default): 2" in text
    )
    assert "group.coordinator.threads" not in text
    assert "metadata.version: 21 is finalised, the brokers support 1 to 21" in text
    assert "group.version: not finalised, the brokers support 0 to 1" in text
    assert "classic groups: all groups are kept by the new group coordinator" in text
    assert "groups with group.protocol=consumer: a commit" not in text
    assert "not looked at: clients: brokers do not tell" in text


def test_a_value_that_is_refused_is_no() -> None:
    """Of a topic, with its name."""
    found = outlook(cluster(set_of_topics={"small": {"segment.bytes": "65536"}}))
    assert (found.exit_status, as_text(found).splitlines()[0].startswith("NO: segment.bytes = 65536 is set")) == (
        FAIL,
        True,
    )
    assert as_text(found).splitlines()[0].endswith(": topic small")


def test_settings_of_a_group_count_where_they_are_set() -> None:
    """On the way back they are gone; groups without any are not named."""
    now = cluster(set_of_groups={"billing": {"consumer.session.timeout.ms": "9000"}, "other": {}})
    found = make_outlook(to="3.9.2", now="4.4.0", cluster=now, logs=None, consumer=None)
    (gone,) = [one for one in found.findings if one.weight == "gone" and one.about == "groups"]
    assert gone.message.endswith(": group billing")
    forth = make_outlook(to="4.4.0", now="4.2.1", cluster=now, logs=None, consumer=None)
    assert [
        one.message for one in forth.findings if "assignment.interval.ms" in one.message and one.about == "groups"
    ] == []


def test_a_consumer_is_told_by_its_protocol_and_its_own_settings() -> None:
    """What the Java client's defaults make of it, where that moves too; a protocol that 3.9 does not speak."""
    plan = consumer_plan(
        "orders",
        protocol="consumer",
        transactional=False,
        command=["java", "Orders", "--auto.offset.reset=newest", "session.timeout.ms={session_timeout_ms}"],
        env={"KAFKA_METADATA_RECOVERY_STRATEGY": "none", "OTHER": "x"},
    )
    assert plan.given == {"auto.offset.reset": "newest", "metadata.recovery.strategy": "none"}
    forth = as_text(outlook(consumer=plan))
    assert "groups with group.protocol=consumer: a commit with an older member epoch is taken" in forth
    assert "metadata.recovery.strategy" not in forth
    assert "auto.offset.reset = newest is set, and 4.4.0 takes [by_duration" not in forth  # those are no plain choices
    back = make_outlook(to="3.9.2", now="4.4.0", cluster=None, logs=None, consumer=plan)
    assert (back.exit_status, "it speaks group.protocol=consumer, and brokers of 3.9.2 do not" in as_text(back)) == (
        FAIL,
        True,
    )


def test_json_says_the_same() -> None:
    """Verdict, findings, features, and what was not looked at."""
    told = as_json(outlook(cluster(), LogsRead([OLD], files=1, requests=1)))
    assert (told["verdict"], told["from"], told["to"]) == ("no", "3.9.2", "4.4.0")
    assert told["findings"][0]["about"] == "clients"
    assert told["features"]["metadata.version"] == {"finalized": 21, "lowest": 1, "highest": 21}
    assert len(told["not_looked_at"]) == 3


def test_brokers_are_known_by_what_they_answer() -> None:
    """Two patches may answer alike; telemetry's two APIs come and go."""
    assert candidates({1: answers_of("4.2.1")}) == ("4.2.1", "4.2.2")
    told = answers_of("3.9.2")
    with_telemetry = BrokerFeatures({**told.apis, 71: (0, 0), 72: (0, 0)})
    assert candidates({1: with_telemetry}) == ("3.9.2",)
    assert candidates({1: answers_of("3.9.2"), 2: answers_of("4.0.2")}) == ("3.9.2", "4.0.2")
    assert candidates({1: BrokerFeatures({0: (0, 3)})}) == ()


def test_which_version_the_brokers_have() -> None:
    """What is given; of those that answer alike the newest that is not the target; of a mixed cluster the oldest."""
    alike = cluster(candidates=("4.2.1", "4.2.2"))
    mixed = cluster(candidates=("3.9.2", "4.0.2"), features={1: answers_of("3.9.2"), 2: answers_of("4.0.2")})
    assert version_now(alike, to="4.4.0", given=None) == "4.2.2"
    assert version_now(alike, to="4.2.2", given=None) == "4.2.1"
    assert version_now(mixed, to="4.4.0", given=None) == "3.9.2"
    assert version_now(cluster(candidates=()), to="4.4.0", given="3.9.2") == "3.9.2"
    assert "a roll is under way" in as_text(outlook(mixed))
    assert "answer as 4.2.1 or 4.2.2 does, and not as --from 3.9.2" in as_text(outlook(alike))
    with pytest.raises(InputError, match="say the nearest one"):
        version_now(cluster(candidates=()), to="4.4.0", given=None)
    with pytest.raises(InputError, match="answer as this version does already"):
        version_now(cluster(candidates=("4.4.0",)), to="4.4.0", given=None)


LOG = ["--request-log", str(DATA / "requests-3.9.2.log")]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--to", "4.4"], WRONG_INPUT, "--to: unknown Kafka version '4.4'. Did you mean"),
        (["--to", "4.4.0", *LOG, "--from", "3.8.0"], WRONG_INPUT, "--from: unknown Kafka version '3.8.0'"),
        (["--to", "4.4.0", *LOG, "--from", "4.4.0"], WRONG_INPUT, "--from and --to are both 4.4.0"),
        (["--from", "3.9.2"], WRONG_INPUT, "an upgrade to which version? Say --to beside --from"),
        (["--to", "4.4.0"], WRONG_INPUT, "Say --bootstrap, --request-log or --consumer"),
        (["--to", "4.4.0", "--consumer", "python-at-least-once"], WRONG_INPUT, "Say --from, or --bootstrap"),
        (["--to", "4.4.0", *LOG, "--record-max", "1MB"], WRONG_INPUT, "leave out --record-max"),
        (["--to", "4.4.0", "--bootstrap", "here"], WRONG_INPUT, "'here' is no host:port"),
        (["--to", "4.4.0", *LOG, "--command-config", "x"], WRONG_INPUT, "--command-config asks a cluster"),
        (["--to", "4.4.0", "--request-log", "/no/such/folder"], WRONG_INPUT, "No such file or directory"),
        (["--to", "4.4.0", "--bootstrap", "127.0.0.1:1"], NOT_BEGUN, "no broker answers at 127.0.0.1:1"),
        (["--to", "4.4.0", "--from", "3.9.2", "--consumer", "no-such"], WRONG_INPUT, "no-such"),
    ],
)
def test_wrong_words_are_told(words: list[str], status: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is asked, with what to say."""
    assert main(["preflight", *words]) == status
    assert told in capsys.readouterr().err


def test_request_logs_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients of today pass; one that sends OffsetCommit v1 does not, by what 3.9 offers."""
    log = tmp_path / "kafka-request.log"
    shutil.copy(DATA / "requests-3.9.2.log", log)
    asked = ["preflight", "--to", "4.4.0", "--from", "3.9.2", "--request-log", str(tmp_path), "--json"]
    assert (main(asked), orjson.loads(capsys.readouterr().out)["verdict"]) == (PASS, "ok")
    (line,) = [raw for raw in log.read_bytes().splitlines() if b'"requestApiKeyName":"OFFSET_COMMIT"' in raw][:1]
    version = line.index(b'"requestApiVersion":')
    old = line[:version] + b'"requestApiVersion":1,' + line[line.index(b'"correlationId"') :]
    log.write_bytes(log.read_bytes() + old.replace(b'"clientId":"', b'"clientId":"old-') + b"\n")
    assert main(asked) == FAIL
    (found,) = orjson.loads(capsys.readouterr().out)["findings"]
    assert (found["weight"], "sends OffsetCommit v1, which 4.0 removed" in found["message"]) == ("rejected", True)
