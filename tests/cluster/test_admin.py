"""What the harness asks a cluster: the answers are the cluster's own."""

import gc
import os
import random
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as CommittedPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError, UnknownBrokerIdError, UnknownTopicOrPartitionError, for_code
from kafka.structs import OffsetAndTimestamp, TopicPartition

from kafka_trial.cluster.admin import Admin, PartitionState
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS, block_of_ports
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, draw_group_name, group_partition
from kafka_trial.nemesis.context import ask
from kafka_trial.process.waiting import wait_until


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("abc", 2),  # hash 96354
        ("fihnoeog", 1),  # hash -840939849: counts by its absolute value
        ("polygenelubricants", 0),  # the least integer has no absolute value: Kafka takes 0
        ("größe-🦀-fihnoeog", 2),  # hash of UTF-16 units, not of characters
    ],
)
def test_a_group_falls_where_kafka_puts_it(group: str, partition: int) -> None:
    """Kafka's own rule: the absolute value of Java's hash of the name, modulo the partitions."""
    assert group_partition(group, partitions=8) == partition


def test_a_drawn_name_falls_on_its_partition_and_follows_the_seed() -> None:
    """One seed, one name; every partition can be asked for."""
    names = [draw_group_name(random.Random(7), "kt-", partition=p, partitions=8) for p in range(8)]
    again = [draw_group_name(random.Random(7), "kt-", partition=p, partitions=8) for p in range(8)]
    assert [group_partition(name, partitions=8) for name in names] == list(range(8))
    assert names == again


def test_a_cluster_that_is_not_there_has_no_brokers() -> None:
    """Nobody answers: no brokers; any other question is an error that says so."""
    with block_of_ports(1) as ports, Admin(f"127.0.0.1:{ports[0]}", answer_within_s=1) as admin:
        assert admin.broker_ids() == set()
        with pytest.raises(UnjudgeableError, match="did not answer"):
            admin.log_ends("orders")


def test_a_broker_that_does_not_listen_yet_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that joins is named once it is unfenced, and opens its listeners afterwards: asked again, another client
    finds one that listens. Nothing was sent. Any other error is told at once, and a refusal that stays at the end."""

    def refused(*_: object) -> Any:
        raise KafkaConnectionError("111 ECONNREFUSED")

    def lost(*_: object) -> Any:
        raise KafkaConnectionError("Connection lost")

    def clients(*answers: Any) -> None:
        left = [SimpleNamespace(list_topics=one, close=lambda: None) for one in answers]
        monkeypatch.setattr(Admin, "_connected", lambda _: left.pop(0))

    with Admin("127.0.0.1:1", answer_within_s=1) as admin:
        clients(refused, refused, list)
        assert admin.topics() == []
        admin.close()
        clients(lost)
        with pytest.raises(UnjudgeableError, match="Connection lost"):
            admin.topics()
        monkeypatch.setattr(Admin, "_connected", refused)
        with pytest.raises(UnjudgeableError, match=r"did not answer.* 111 ECONNREFUSED"):
            admin.topics()


def test_asking_in_vain_leaves_nothing_open() -> None:
    """A boot asks until brokers answer: each question that none did had kept four descriptors and a thread."""
    with block_of_ports(1) as ports:
        for _ in range(2):  # the first one opens what stays open: the files of modules
            before = how_much_is_open()
            with Admin(f"127.0.0.1:{ports[0]}", answer_within_s=0.2) as admin:
                assert admin.broker_ids() == set()
        assert how_much_is_open() == before


def how_much_is_open() -> tuple[int, int]:
    """Returns how many descriptors and threads there are, without those that only wait to be collected."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.cluster
def test_coordinators_are_those_the_brokers_name(cluster: BootedCluster) -> None:
    """For forty groups, the broker derived from the offsets log is the one FindCoordinator gives."""
    rng = random.Random(11)
    groups = ["".join(rng.choices("abcdefgh", k=12)) for _ in range(40)]
    broker_says = AdminClient({"bootstrap.servers": cluster.observer_bootstrap, "log_level": 0})
    named = {
        group: wait_until(lambda group=group: _named(broker_says, group), within_s=20, what=f"{group}'s coordinator")  # type: ignore[misc]
        for group in groups
    }
    with Admin(cluster.observer_bootstrap) as admin:
        derived = {group: admin.coordinator_of(group) for group in groups}
    assert {group: broker + 1 for group, broker in derived.items()} == named


@pytest.mark.cluster
def test_a_topic_is_whole_when_it_is_returned(cluster: BootedCluster) -> None:
    """Leaders and replicas are those assigned, in sync; the offsets log is there with its partitions."""
    assignment = {0: [2, 0, 1], 1: [0, 1, 2]}
    with Admin(cluster.observer_bootstrap) as admin:
        topic = admin.create_topic("whole", partitions=2, replication_factor=3, replica_assignment=assignment)
        offsets_log = admin.describe(OFFSETS_TOPIC)
        admin.delete_topic("whole")
    assert [(part.leader, list(part.replicas)) for part in topic.partitions] == [(2, [2, 0, 1]), (0, [0, 1, 2])]
    assert all(set(part.isr) == {0, 1, 2} for part in topic.partitions)
    assert len(topic.topic_id) == 22
    assert offsets_log is not None
    assert len(offsets_log.partitions) == OFFSETS_PARTITIONS


@pytest.mark.cluster
def test_log_ends_are_positions_after_the_last_record(cluster: BootedCluster) -> None:
    """Three records in one of two partitions: ends 0 and 3, starts 0 and 0."""
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("ends", partitions=2, replication_factor=3)
        _produce(cluster, "ends", records=3, partition=1)
        ends, starts = admin.log_ends("ends"), admin.log_starts("ends")
        admin.delete_topic("ends")
    assert (ends, starts) == ({0: 0, 1: 3}, {0: 0, 1: 0})


@pytest.mark.cluster
def test_a_leader_moves_where_it_is_told(cluster: BootedCluster) -> None:
    """The new leader leads with a higher epoch."""
    with Admin(cluster.observer_bootstrap) as admin:
        before = admin.create_topic("moved", partitions=1, replication_factor=3, replica_assignment={0: [0, 1, 2]})
        admin.move_leader("moved", 0, 2)
        after = wait_until(lambda: _led_by(admin, "moved", 2), within_s=10, what="the next broker asked to have heard")
        admin.delete_topic("moved")
    assert after.leader_epoch > before.partitions[0].leader_epoch


@pytest.mark.cluster
def test_records_are_deleted_up_to_a_position_and_commits_are_told(cluster: BootedCluster) -> None:
    """Of the other partition nothing goes; beyond the end of the log nothing can be deleted."""
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("deleted", partitions=2, replication_factor=3)
        producer = Producer({"bootstrap.servers": cluster.observer_bootstrap, "log_level": 0})
        for number in range(6):
            producer.produce("deleted", b"x", partition=number % 2)
        assert producer.flush(20) == 0
        reader = Consumer({"bootstrap.servers": cluster.observer_bootstrap, "group.id": "deletes", "log_level": 0})
        reader.commit(offsets=[CommittedPartition("deleted", 0, 2)], asynchronous=False)
        reader.close()
        admin.delete_records("deleted", {0: 2})
        assert (admin.log_starts("deleted"), admin.log_ends("deleted")) == ({0: 2, 1: 0}, {0: 3, 1: 3})
        assert admin.committed_offsets("deletes", "deleted") == {0: 2}
        with pytest.raises(UnjudgeableError, match="OffsetOutOfRange"):
            admin.delete_records("deleted", {1: 4})
        admin.delete_topic("deleted")


@pytest.mark.cluster
@pytest.mark.parametrize("order", ["create_topics", "alter_partition_reassignments", "elect_leaders", "delete_topics"])
def test_an_order_that_was_not_taken_is_given_again(
    cluster: BootedCluster, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client may not have met the broker that it is to ask: it knows the cluster from while that one was away."""
    unmet, name = _not_taken_once(order, monkeypatch), f"asked-{order}"
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic(name, partitions=1, replication_factor=3, replica_assignment={0: [0, 1, 2]})
        admin.move_leader(name, 0, 2)
        wait_until(lambda: _led_by(admin, name, 2), within_s=10, what="the next broker asked to have heard")
        admin.delete_topic(name)
        wait_until(lambda: not admin.describe(name), within_s=10, what="the topic to be gone")
    assert unmet == []


@pytest.mark.cluster
def test_partitions_are_asked_for_again_where_that_was_not_taken(
    cluster: BootedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client had not met the broker that it is to ask; but fewer than there are is refused at once."""
    unmet = _not_taken_once("create_partitions", monkeypatch)
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("grows", partitions=1, replication_factor=3)
        admin.add_partitions("grows", 3)
        wait_until(lambda: len(admin.log_ends("grows")) == 3, within_s=10, what="the next broker asked to have heard")
        with pytest.raises(UnjudgeableError, match="InvalidPartitions"):
            admin.add_partitions("grows", 2)
        admin.delete_topic("grows")
    assert unmet == []


@pytest.mark.cluster
def test_a_broker_that_has_not_heard_of_a_topic_yet_is_asked_again(
    cluster: BootedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any broker answers a question, and each hears of a new topic in its own time: on a busy machine 0.1 s later."""
    with Admin(cluster.observer_bootstrap) as admin:
        admin.create_topic("unheard", partitions=1, replication_factor=3, replica_assignment={0: [0, 1, 2]})
        unheard = _not_heard(monkeypatch, times=2)
        ends = admin.log_ends("unheard")
        assert (ends, unheard) == ({0: 0}, [])
        unheard = _not_heard(monkeypatch, times=2)
        admin.move_leader("unheard", 0, 1)
        assert unheard == []
        wait_until(lambda: _led_by(admin, "unheard", 1), within_s=10, what="the next broker asked to have heard")
        admin.delete_topic("unheard")
        wait_until(lambda: not admin.describe("unheard"), within_s=10, what="the topic to be gone")


@pytest.mark.cluster
def test_an_order_is_given_whatever_a_broker_has_heard(cluster: BootedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a topic is there is the controller's to say: one that its own broker has not met is deleted all the same.

    What was carried out before, by an order that was cut off, is done.
    """
    with Admin(cluster.observer_bootstrap) as admin:
        made = admin.create_topic("ordered", partitions=1, replication_factor=3)
        assert admin.create_topic("ordered", partitions=1, replication_factor=3).topic_id == made.topic_id
        with monkeypatch.context() as patch:
            _not_heard(patch, times=100)
            admin.delete_topic("ordered")
            admin.delete_topic("ordered")
        wait_until(lambda: not admin.describe("ordered"), within_s=10, what="the topic to be gone")


@pytest.mark.cluster
def test_a_topic_that_is_not_there_is_named(cluster: BootedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bounded wait the question has failed."""
    monkeypatch.setattr("kafka_trial.cluster.admin.TOPIC_WITHIN_S", 0.3)
    with Admin(cluster.observer_bootstrap) as admin, pytest.raises(UnjudgeableError, match="for topic never-was"):
        admin.log_ends("never-was")


@pytest.mark.cluster
def test_what_a_cluster_refuses_is_a_start_error(cluster: BootedCluster) -> None:
    """More replicas than brokers: the broker's own word is in the message."""
    with Admin(cluster.observer_bootstrap) as admin:
        with pytest.raises(StartError, match="topic too-wide could not be created"):
            admin.create_topic("too-wide", partitions=1, replication_factor=4)
        assert admin.describe("too-wide") is None


@pytest.mark.cluster
def test_the_controller_is_one_of_the_brokers(cluster: BootedCluster) -> None:
    """In combined mode the quorum's leader is a broker's number."""
    with Admin(cluster.observer_bootstrap) as admin:
        assert admin.controller() in admin.broker_ids() == {0, 1, 2}


@pytest.mark.cluster
def test_a_trial_begins_with_all_brokers_or_not_at_all(cluster: BootedCluster) -> None:
    """One that stood still until it was fenced is missed by name, and waited for once it is back."""
    with Admin(cluster.observer_bootstrap, answer_within_s=1) as admin:  # it may be asking the one that stands still
        cluster.brokers[2].pause()
        try:
            wait_until(lambda: admin.broker_ids() == {0, 1}, within_s=45, what="the broker to be fenced")
            with pytest.raises(StartError, match=r"\[0, 1, 2\] to be registered"):
                admin.await_brokers(cluster.brokers, within_s=0.5)
        finally:
            cluster.brokers[2].resume()
        assert admin.await_brokers(cluster.brokers) == [0, 1, 2]
        wait_until(lambda: not admin.under_replicated(), within_s=30, what="the broker to catch up")


@pytest.mark.cluster
def test_leaders_go_back_to_where_they_were_at_the_boot(
    cluster: BootedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that stood still until it was fenced leads nothing afterwards, until it is made to."""
    unmet = _not_taken_once("elect_leaders", monkeypatch)
    with Admin(cluster.observer_bootstrap, answer_within_s=1) as admin:  # it may be asking the one that stands still
        at_the_boot = admin.restore_leaders(OFFSETS_TOPIC)
        cluster.brokers[1].pause()
        try:
            wait_until(lambda: admin.broker_ids() == {0, 2}, within_s=45, what="the broker to be fenced")
        finally:
            cluster.brokers[1].resume()
        assert 1 in {part.leader for part in at_the_boot.partitions}
        wait_until(lambda: _all_know_that_it_only_follows(cluster, 1), within_s=30, what="the broker to catch up")
        admin.restore_all_leaders()
        again = admin.describe(OFFSETS_TOPIC)
        assert [part.leader for part in again.partitions] == [part.leader for part in at_the_boot.partitions]
        assert unmet == []


def _not_taken_once(order: str, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Makes the first order of a kind fail; returns what is still to fail."""
    given, unmet = getattr(KafkaAdminClient, order), [UnknownBrokerIdError(1)]

    def give(client: KafkaAdminClient, *asked: Any, **options: Any) -> Any:
        if unmet:
            raise unmet.pop()
        return given(client, *asked, **options)

    monkeypatch.setattr(KafkaAdminClient, order, give)
    return unmet


def _not_heard(monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[None]:
    """Makes the next answers those of a broker that knows of no topic; returns what is still to be answered so."""
    given, unheard = KafkaAdminClient.describe_topics, [None] * times

    def give(client: KafkaAdminClient, *asked: Any, **options: Any) -> Any:
        answer = given(client, *asked, **options)
        if unheard:
            unheard.pop()
            return [{**topic, "error_code": UnknownTopicOrPartitionError.errno, "partitions": []} for topic in answer]
        return answer

    monkeypatch.setattr(KafkaAdminClient, "describe_topics", give)
    return unheard


def _led_by(admin: Admin, topic: str, broker: int) -> PartitionState | None:
    """The topic's first partition, once the broker that answers knows that this one leads it."""
    state = admin.describe(topic)
    return state.partitions[0] if state and state.partitions[0].leader == broker else None


def _all_know_that_it_only_follows(cluster: BootedCluster, broker: int) -> bool:
    """Whichever broker is asked, also the one that stood still: this one is in every ISR and leads nothing."""
    addresses = [address.rsplit(":", 1) for address in cluster.observer_bootstrap.split(",")]
    told = [ask([(host, int(port))], OFFSETS_TOPIC, "any-group").leaders for host, port in addresses]
    return all(told) and all(broker in one.isr and broker != one.broker for leaders in told for one in leaders)


def _named(broker_says: AdminClient, group: str) -> int | None:
    """The coordinator's number + 1 (never falsy); None while a broker that has just become one still loads its log."""
    try:
        return int(broker_says.describe_consumer_groups([group])[group].result(20).coordinator.id) + 1
    except KafkaException as error:
        if error.args[0].code() in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS):
            return None
        raise


def _produce(cluster: BootedCluster, topic: str, *, records: int, partition: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.observer_bootstrap, "acks": "all"})
    for number in range(records):
        producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(20) == 0


def test_who_was_the_coordinator_once_is_not_asked_for_ever() -> None:
    """kafka-python keeps a group's coordinator, and gives back what the broker says that is it no more."""

    class Client:
        def describe_groups(self, groups: list[str]) -> dict[str, dict[str, str]]:
            return {groups[0]: {"group_state": "", "error": "[Error 16] NotCoordinatorError: None"}}

        def close(self) -> None:
            closed.append(self)

    closed: list[Client] = []
    admin = Admin("127.0.0.1:1")
    admin._client = Client()
    with pytest.raises(UnjudgeableError, match=r"the group orders was not described: \[Error 16\]"):
        admin.describe_group("orders")
    assert len(closed) == 1
    assert admin._client is None


class OneLeader:
    """A client whose broker refuses the next questions for log ends with these codes, and then says 7."""

    def __init__(self, codes: list[int]) -> None:
        self.codes = codes

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        led = {"partition_index": 0, "leader_id": 1, "leader_epoch": 4, "replica_nodes": [1], "isr_nodes": [1]}
        return [{"name": names[0], "error_code": 0, "topic_id": "0" * 32, "partitions": [led]}]

    def list_partition_offsets(self, asked: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetAndTimestamp]:
        if self.codes:
            raise for_code(self.codes.pop(0))("ListOffsetsRequest failed")
        return dict.fromkeys(asked, OffsetAndTimestamp(7, -1, None))

    def close(self) -> None:
        pass


@pytest.mark.parametrize("code", [3, 5, 6, 9, 13, 56, 74, 75, 78])
def test_a_leader_that_cannot_say_its_log_end_yet_is_asked_again(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one answers OFFSET_NOT_AVAILABLE (78) until it knows its high watermark (KIP-207): clients ask again."""
    leader = OneLeader([code, code])
    monkeypatch.setattr("kafka.KafkaAdminClient", lambda **_: leader)
    with Admin("127.0.0.1:1") as admin:
        assert (admin.log_ends("orders"), leader.codes) == ({0: 7}, [])


@pytest.mark.parametrize("code", [29, 43, 76])
def test_a_leader_that_refuses_its_log_end_is_not_asked_again(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking again would change nothing (not authorised, an older format, a compression it does not know)."""
    leader = OneLeader([code, code])
    monkeypatch.setattr("kafka.KafkaAdminClient", lambda **_: leader)
    with Admin("127.0.0.1:1") as admin, pytest.raises(UnjudgeableError, match="ListOffsetsRequest failed"):
        admin.log_ends("orders")
    assert leader.codes == [code]


def test_a_leader_that_never_says_its_log_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bounded wait the question has failed, with the last answer."""
    monkeypatch.setattr("kafka_trial.cluster.admin.ENDS_WITHIN_S", 0.3)
    monkeypatch.setattr("kafka.KafkaAdminClient", lambda **_: OneLeader([78] * 100))
    wanted = r"0\.3 s for the leaders of orders to tell its offsets, in vain; seen: .*OffsetNotAvailableError"
    with Admin("127.0.0.1:1") as admin, pytest.raises(UnjudgeableError, match=wanted):
        admin.log_ends("orders")


DESCRIBED = {
    "stable": ({"group_state": "Stable", "members": [{}, {}]}, 2),
    "in a rebalance": ({"group_state": "PreparingRebalance", "members": [{}, {}]}, 0),
    "nobody answered": (None, None),
}


@pytest.mark.parametrize(("described", "size"), DESCRIBED.values(), ids=DESCRIBED)
def test_the_size_of_a_group_is_known_only_where_it_is_described(
    monkeypatch: pytest.MonkeyPatch, described: dict[str, Any] | None, size: int | None
) -> None:
    """A coordinator that does not answer in time says nothing of its group, least of all that it is not stable."""

    def describe(admin: Admin, group: str) -> dict[str, Any]:
        if described is None:
            raise UnjudgeableError("the cluster did not answer")
        return described

    monkeypatch.setattr(Admin, "describe_group", describe)
    assert Admin("127.0.0.1:1").stable_size("orders") == size
