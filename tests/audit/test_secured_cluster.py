"""Audits of a real broker that lets nobody in who is not to be: TLS, SASL and ACLs, with the right file and wrong ones.

The same history is audited through the plaintext listener and through the secured ones, and must be judged the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import ResourceType

from certificates import Certificates, certificates_in
from kafka_trial.audit.command_config import read_command_config
from kafka_trial.check import reach_verdict
from kafka_trial.cli import main
from kafka_trial.cluster.admin import Admin
from kafka_trial.errors import NOT_BEGUN, PASS, WRONG_INPUT
from kafka_trial.history.store import open_run_folder
from kafka_trial.judge.consumer_settings import settings_of
from kafka_trial.judge.judge import judge_events
from kafka_trial.kafka_protocol.cluster_queries import metadata
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC
from kafka_trial.process.waiting import wait_until
from secured_broker import PASSWORD, SecuredBroker, all_but, granted, secured_broker

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="dear")]

TOPIC, GROUP = "orders", "billing"
RECORDS, LEFT = 12, 3
COMMITS = (RECORDS, 5, RECORDS)  # a fall that recovers
CLAIM = '[claim]\ndelivery = "unclaimed"\norder = "none"\ncommits = "monotonic"\n'
MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}
GRANTS = {
    "alice": all_but(topic=TOPIC, group=GROUP),
    "reader": all_but(
        (ResourceType.GROUP, GROUP, "describe"), (ResourceType.TOPIC, TOPIC, "configs"), topic=TOPIC, group=GROUP
    ),
    "blind": all_but((ResourceType.TOPIC, OFFSETS_TOPIC, "read"), topic=TOPIC, group=GROUP),
    "nobody": [],
}


@dataclass(frozen=True)
class Scene:
    """The broker, with a group that has committed; `until` is when it had."""

    broker: SecuredBroker
    certificates: Certificates
    folder: Path
    until_s: float

    def file(self, name: str, **given: str) -> Path:
        """Returns a properties file; underscores in the names of keys stand for dots."""
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in given.items()))
        return path

    def scram(self, user: str, *, password: str = PASSWORD, trusted: Path | None = None) -> Path:
        """Returns a file with which a user gets in at the listener of TLS and SCRAM, if that is right."""
        authority = trusted or self.certificates.authority
        return self.file(
            f"{user}-trusts-{authority.stem}-{'right' if password == PASSWORD else 'wrong'}",
            security_protocol="SASL_SSL",
            **_login("SCRAM-SHA-512", user, password),
            **_trust(authority),
        )

    def audit(self, bootstrap: str, config: Path | None, *, out: str = "none") -> int:
        """Audits, as the command line does, without judging; returns the exit status."""
        ago_s = time.time() - self.until_s
        words = ["audit", "--bootstrap", bootstrap, "--topic", TOPIC, "--group", GROUP, "--no-check"]
        words += ["--from", f"{ago_s + 3600:.3f}s", "--until", f"{ago_s:.3f}s", "--out", str(self.folder / out)]
        words += ["--claim", str(self.folder / "claim.toml")]
        return main([*words, *(["--command-config", str(config)] if config else [])])

    def records_read(self, out: str) -> int:
        """Returns how many records of the topic an audit has read."""
        return sum(event.kind == "record" for event in open_run_folder(self.folder / out).events())

    def judged(self, out: str) -> Mapping[str, object]:
        """Judges an audit, without Spark, and returns the verdict as it is written."""
        run = open_run_folder(self.folder / out)
        reach_verdict(run, judge_events(run.events(), settings_of(run.path / "consumer.toml")))
        return dict(orjson.loads((run.path / "verdict.json").read_bytes()))


def _login(mechanism: str, user: str, password: str) -> dict[str, str]:
    module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
    line = f'{module} required username="{user}" password="{password}";'
    return {"sasl_mechanism": mechanism, "sasl_jaas_config": line}


def _trust(authority: Path) -> dict[str, str]:
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(authority)}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Boots the broker once; a member of the group commits, falls back, and recovers."""
    folder = tmp_path_factory.mktemp("secured")
    certificates = certificates_in(folder / "certificates")
    (folder / "claim.toml").write_text(CLAIM)
    with secured_broker(folder / "broker", certificates) as broker:
        with Admin(broker.plaintext) as admin:
            admin.create_topic(TOPIC, partitions=1, replication_factor=1)
        granted(broker, GRANTS)
        _play(broker.plaintext)
        yield Scene(broker, certificates, folder, time.time())


def _play(bootstrap: str) -> None:
    """Sends records that had long been there, by their time; the group leaves some of them, which an audit reads."""
    producer = Producer({"bootstrap.servers": bootstrap})
    made_ms = int(time.time() * 1000) - 1_800_000
    for number in range(RECORDS + LEFT):
        producer.produce(TOPIC, f'{{"id": "r{number}"}}', timestamp=made_ms + number)
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": 0}
    member = Consumer(settings | {"enable.auto.commit": False})
    member.subscribe([TOPIC])
    wait_until(lambda: member.poll(0.1), within_s=30, what="the member's first record", every_s=0.0)
    for value in COMMITS:
        member.commit(offsets=[TopicPartition(TOPIC, 0, value)], asynchronous=False)
    member.close()


def test_a_secured_listener_shows_what_the_plaintext_one_shows(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    """Through SCRAM over TLS, a client certificate, and PLAIN: the same history, the same verdict, and no
    password."""
    own = _trust(scene.certificates.authority) | {"ssl_keystore_type": "PEM"}
    mutual = scene.file(
        "mutual", security_protocol="SSL", ssl_keystore_location=str(scene.certificates.client), acks="all", **own
    )
    bare = scene.file("bare", security_protocol="SASL_PLAINTEXT", **_login("PLAIN", "alice", PASSWORD))
    ways = {
        "plaintext": (scene.broker.plaintext, None),
        "scram": (scene.broker.scram, scene.scram("alice")),
        "mutual": (scene.broker.mutual, mutual),
        "bare": (scene.broker.bare, bare),
    }
    assert {scene.audit(*way, out=name) for name, way in ways.items()} == {PASS}
    assert {name: scene.records_read(name) for name in ways} == dict.fromkeys(ways, LEFT)
    verdicts = {name: scene.judged(name) for name in ways}
    found = [one["anomaly"] for one in verdicts["plaintext"]["violations"]]  # type: ignore[attr-defined]
    assert found == ["commit-regression"]
    for name in ("scram", "mutual", "bare"):
        assert verdicts[name] == verdicts["plaintext"]
    said = capfd.readouterr().err
    assert f"--command-config {mutual}: not used here: acks" in said
    assert not [path for path in _written(scene.folder, ways) if PASSWORD.encode() in path.read_bytes()]
    assert (PASSWORD in said, str(scene.scram("alice")) in (scene.folder / "scram" / "run.json").read_text()) == (
        False,
        True,
    )


def _written(folder: Path, ways: Mapping[str, object]) -> list[Path]:
    files = [path for name in ways for path in (folder / name).rglob("*") if path.is_file()]
    assert len(files) > 4 * len(ways)
    return files


def test_who_is_not_let_in_is_told_at_once(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong password, unknown authority, another host's name, no certificate, another kind of listener: all named."""
    broker, known = scene.broker, _trust(scene.certificates.authority)
    port = broker.scram.rpartition(":")[2]
    tls, bare = scene.file("tls", security_protocol="SSL", **known), _login("PLAIN", "alice", PASSWORD)
    plain = scene.file("plain", security_protocol="SASL_PLAINTEXT", **bare)
    cases = [
        (broker.scram, scene.scram("alice", password="guess"), WRONG_INPUT, "does not take user alice with"),
        (broker.scram, scene.scram("stranger"), WRONG_INPUT, "does not take user stranger with"),
        (broker.scram, scene.scram("alice", trusted=scene.certificates.stranger), WRONG_INPUT, "is not trusted"),
        (f"127.0.0.1:{port}", scene.scram("alice"), WRONG_INPUT, "is another host's"),
        (broker.mutual, tls, WRONG_INPUT, "takes no client without a certificate"),
        (broker.bare, scene.scram("alice"), NOT_BEGUN, "security.protocol must be SASL_PLAINTEXT"),
        (broker.plaintext, plain, WRONG_INPUT, "does not speak SASL"),
        (broker.plaintext, tls, NOT_BEGUN, "security.protocol must be PLAINTEXT"),
        (broker.bare, None, NOT_BEGUN, "A listener with TLS or SASL needs --command-config FILE"),
        (broker.scram, None, NOT_BEGUN, "A listener with TLS or SASL needs --command-config FILE"),
        (broker.scram, plain, NOT_BEGUN, "is it a listener for SASL_PLAINTEXT, as"),
        (broker.scram, tls, NOT_BEGUN, "is it a listener for SSL, as"),
    ]
    for bootstrap, config, status, said in cases:
        began_s = time.monotonic()
        assert scene.audit(bootstrap, config) == status, said
        error = capsys.readouterr().err
        told = {text: text in error for text in (bootstrap, said, PASSWORD, "guess")}
        assert told == {bootstrap: True, said: True, PASSWORD: False, "guess": False}, error
        assert time.monotonic() - began_s < 5, said
    assert not (scene.folder / "none").exists()


@pytest.mark.parametrize(
    ("user", "acls"),
    [
        ("nobody", [f"DESCRIBE and READ on topic {name}" for name in (TOPIC, OFFSETS_TOPIC)]),
        ("blind", [f"(29)): give our principal DESCRIBE and READ on topic {OFFSETS_TOPIC}"]),
    ],
)
def test_a_missing_acl_is_named(scene: Scene, capsys: pytest.CaptureFixture[str], user: str, acls: list[str]) -> None:
    """With Kafka's own word for it; all that are missing at once."""
    assert scene.audit(scene.broker.scram, scene.scram(user)) == WRONG_INPUT
    error = capsys.readouterr().err
    assert [error.count("TOPIC_AUTHORIZATION_FAILED"), [acl for acl in acls if acl not in error]] == [len(acls), []]


def test_who_may_only_read_audits_and_is_told_what_was_not_asked(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whether there is such a group, and the topic's configs; both named with their ACL."""
    status = scene.audit(scene.broker.scram, scene.scram("reader"), out="reader")
    said = capfd.readouterr().err
    wanted = [
        f"GROUP_AUTHORIZATION_FAILED (30): our principal has no DESCRIBE on group {GROUP}",
        f"our principal has no DESCRIBE_CONFIGS on topic {TOPIC}",
    ]
    assert (status, [one for one in wanted if one not in said]) == (PASS, [])


def test_a_connection_outlives_the_time_its_authentication_holds(scene: Scene) -> None:
    """The broker ends such connections (connections.max.reauth.ms); the next question goes over a new one."""
    config = scene.file("bare", security_protocol="SASL_PLAINTEXT", **_login("PLAIN", "alice", PASSWORD))
    security, _ = read_command_config(config)
    with Brokers(scene.broker.bare, security=security) as brokers:
        first = brokers.anyone(lambda connection: (connection, metadata(connection, [TOPIC])))
        wait_until(lambda: first[0].over, within_s=5, what="the first authentication to be over")
        second = brokers.anyone(lambda connection: (connection, metadata(connection, [TOPIC])))
        assert (second[0] is first[0], second[1]) == (False, first[1])


def test_no_audit_leaves_anything_behind(scene: Scene) -> None:
    """Let in or refused: no connection to the broker, no thread, no process."""

    def left() -> tuple[set[str], list[int], int]:
        threads = {thread.name for thread in threading.enumerate()}
        ours = psutil.Process()
        ports = {int(where.rpartition(":")[2]) for where in (scene.broker.scram, scene.broker.mutual)}
        links = [link for link in ours.net_connections("tcp") if link.raddr and link.raddr.port in ports]
        return threads, [child.pid for child in ours.children()], len(links)

    before = left()
    untrusting = scene.scram("alice", trusted=scene.certificates.stranger)
    refused = [scene.scram("alice", password="guess"), untrusting, scene.scram("nobody")]
    statuses = [scene.audit(scene.broker.scram, config) for config in refused]
    statuses.append(scene.audit(scene.broker.scram, scene.scram("alice"), out="last"))
    assert (statuses, left(), before[2]) == ([WRONG_INPUT] * 3 + [PASS], before, 0)
