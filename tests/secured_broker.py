"""A real broker that lets nobody in who is not to be: one node with a listener for every way a client may be secured.

Beside its plaintext listener SCRAM over TLS, client certificates, and PLAIN over a bare socket; ACLs for its users. A
child of the harness, so that it dies with the harness; its folder goes with it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from certificates import Certificates
from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.archive import fill_data_folder, formatted_template
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.cluster.processes import BOOT_WITHIN_S, JVM, Broker, class_data_archive
from kafka_trial.cluster.versions import DEFAULT_VERSION, KNOWN
from kafka_trial.cluster.wiring import Wiring, block_of_ports, hosts_file, logging_config, server_properties
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.waiting import wait_until

LANES = 3
PASSWORD = "hunter2"
SCRAM, MUTUAL, BARE = "SCRAM", "MUTUAL", "BARE"
PROTOCOLS = {SCRAM: "SASL_SSL", MUTUAL: "SSL", BARE: "SASL_PLAINTEXT"}
REAUTHENTICATE_MS = 1000
OPERATIONS = {
    "describe": AclOperation.DESCRIBE,
    "read": AclOperation.READ,
    "configs": AclOperation.DESCRIBE_CONFIGS,
}
AssignmentRecords = Mapping[
    str, Sequence[tuple[ResourceType, str, str]]
]  # of each user: on what, its name, which operation


@dataclass(frozen=True)
class SecuredBroker:
    """Where its listeners are: host and port."""

    plaintext: str
    scram: str
    mutual: str
    bare: str
    process: Broker


@contextmanager
def secured_broker(folder: Path, certificates: Certificates) -> Iterator[SecuredBroker]:
    """Boots it in a folder of its own, with an offsets log; everything else is for `granted` and its caller."""
    with block_of_ports(Wiring.size(1, LANES)) as ports:
        wiring = Wiring(ports, 1, LANES)
        with ChildProcesses("secured broker", belongings=[folder]) as child_processes:
            broker = _broker(folder, wiring, certificates, child_processes)
            broker.start()
            plaintext = wiring.observer_bootstrap()
            with Admin(plaintext, answer_within_s=1) as asking:
                wait_until(
                    lambda: asking.broker_ids() == {0},
                    within_s=BOOT_WITHIN_S,
                    what="the secured broker to register",
                    alive=lambda: None if broker.alive else broker.last_words(),
                )
                asking.create_offsets_topic(replication_factor=1)
            names = [f"localhost:{wiring.server_port(0, lane)}" for lane in range(LANES)]
            yield SecuredBroker(plaintext, *names, broker)


def granted(broker: SecuredBroker, assignment_records: AssignmentRecords) -> None:
    """Makes users with the same password, and returns once the broker knows what each of them may do."""
    admin = AdminClient({"bootstrap.servers": broker.plaintext, "log_level": 0})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    users = [UserScramCredentialUpsertion(user, info, PASSWORD.encode()) for user in assignment_records]
    acls = [_acl(user, *assignment_record) for user, own in assignment_records.items() for assignment_record in own]
    for done in [*admin.alter_user_scram_credentials(users).values(), *admin.create_acls(acls).values()]:
        done.result(30)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    wait_until(lambda: len(admin.describe_acls(everything).result(30)) == len(acls), within_s=30, what="all ACLs")


def all_but(*left_out: tuple[ResourceType, str, str], topic: str, group: str) -> list[tuple[ResourceType, str, str]]:
    """Returns all that an audit may need, less what is left out."""
    topics = [(ResourceType.TOPIC, name, operation) for name in (topic, OFFSETS_TOPIC) for operation in OPERATIONS]
    return [
        assignment_record
        for assignment_record in [*topics, (ResourceType.GROUP, group, "describe")]
        if assignment_record not in left_out
    ]


def _acl(user: str, kind: ResourceType, name: str, operation: str) -> AclBinding:
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", OPERATIONS[operation], allow)


def _broker(folder: Path, wiring: Wiring, certificates: Certificates, child_processes: ChildProcesses) -> Broker:
    known, data, scratch = KNOWN[DEFAULT_VERSION], folder / "data", folder / "tmp"
    for place in (data, scratch):
        place.mkdir(parents=True)
    _stamp(data)
    properties = server_properties(wiring, known, 0, data) + _secured(wiring, certificates)
    (folder / "server.properties").write_text(properties)  # of two equal keys the last counts
    (folder / "hosts").write_text(hosts_file(1))
    flag, text = logging_config(known, folder)
    (folder / "logging.xml").write_text(text)
    command = [str(find_java()), *JVM, f"-XX:SharedArchiveFile={class_data_archive(DEFAULT_VERSION)}", flag]
    command += [f"-Djdk.net.hosts.file={folder / 'hosts'}", f"-Djava.io.tmpdir={scratch}"]
    command += ["-cp", class_path(DEFAULT_VERSION), "kafka.Kafka", str(folder / "server.properties")]
    return Broker(0, folder, child_processes, lambda version: command, DEFAULT_VERSION)


def _stamp(data: Path) -> None:
    fill_data_folder(formatted_template(DEFAULT_VERSION), data)
    own = base64.urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("=")
    ids = f"version=1\ncluster.id=a2Fma2EtdHJpYWwtMDAwMA\nnode.id=0\ndirectory.id={own}\n"
    (data / "meta.properties").write_text(ids)


def _secured(wiring: Wiring, certificates: Certificates) -> str:
    plain = {"CONTROLLER": wiring.controller_port(0), "INTERNAL": wiring.internal_port(0)}
    plain["OBSERVER"] = wiring.observer_port(0)
    ports = plain | {name: wiring.server_port(0, lane) for lane, name in enumerate(PROTOCOLS)}
    hosts = {"INTERNAL": "b0", "OBSERVER": "127.0.0.1"} | dict.fromkeys(PROTOCOLS, "localhost")
    protocols = dict.fromkeys(plain, "PLAINTEXT") | PROTOCOLS
    security = "org.apache.kafka.common.security"
    own = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://{host}:{ports[name]}" for name, host in hosts.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{security}.scram.ScramLoginModule required;",
        "listener.name.bare.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.bare.plain.sasl.jaas.config": (
            f'{security}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        ),
        "listener.name.bare.plain.connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:CN=client",
    }
    return "".join(f"{key}={value}\n" for key, value in own.items())
