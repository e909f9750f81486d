"""What the harness asks a cluster, gently and over the OBSERVER listener, so that no fault disturbs the question.

kafka-python's admin rather than librdkafka's: it gives leader epochs, reassignment and elections, and it is pure
Python (librdkafka's admin once aborted its process when polled without a coordinator).
"""

from __future__ import annotations

import base64
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.kafka_protocol.cluster_queries import Quorum, quorum
from kafka_trial.kafka_protocol.connection import Brokers
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, group_partition
from kafka_trial.process.waiting import wait_until

logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its retries are ours to report

T = TypeVar("T")
RECONNECT_WITHIN_MS = 500
BROKERS_WITHIN_S = 30.0
TOPIC_WITHIN_S = 10.0
MOVED_WITHIN_S = 90.0
ENDS_WITHIN_S = 10.0  # a new leader knows its log end once a follower has fetched from it


@dataclass(frozen=True)
class PartitionState:
    """A partition as a broker describes it."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True)
class TopicState:
    """A topic with its id and partitions."""

    name: str
    topic_id: str
    partitions: tuple[PartitionState, ...]


class Admin:
    """Questions and commands to one cluster; connects at the first call, reconnects after an error."""

    def __init__(self, bootstrap: str, *, answer_within_s: float = 10.0) -> None:
        self._bootstrap = bootstrap.split(",")
        self._answer_within_s = answer_within_s
        self._client: Any = None

    def close(self) -> None:
        """Ends the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def broker_ids(self) -> set[int]:
        """Returns the brokers that are registered and not fenced; none when nobody answers."""
        try:
            answer = self._ask(lambda client: client.describe_cluster())
        except UnjudgeableError:
            return set()
        return {broker["broker_id"] for broker in answer["brokers"] if not broker.get("is_fenced")}

    def await_brokers(self, wanted: Collection[int], *, within_s: float = BROKERS_WITHIN_S) -> list[int]:
        """Returns the ids of all brokers, in order, once each is registered: a busy machine may have fenced one.

        Raises:
            StartError: one of `wanted` is still missing after `within_s` seconds.
        """

        def all_there() -> list[int]:
            seen = self.broker_ids()
            return sorted(seen) if seen >= set(wanted) else []

        try:
            return wait_until(
                all_there,
                within_s=within_s,
                what=f"the brokers {sorted(wanted)} to be registered",
                detail=lambda: f"only {sorted(self.broker_ids())} are",
            )
        except WaitTimeout as error:
            raise StartError(str(error)) from error

    def controller(self) -> int:
        """Returns the node that is the active controller (the leader of the metadata quorum)."""
        return self._quorum().leader

    def await_caught_up(self, controller: int, *, since_wall_s: float, within_s: float) -> None:
        """Waits until a controller has read all of the quorum's log since an instant of the wall clock, or leads it.

        Raises:
            WaitTimeout: it has not in time.
        """
        seen: list[str] = []

        def caught_up() -> bool:
            try:
                found = self._quorum()
            except UnjudgeableError as error:
                seen[:] = [str(error)]
                return False
            caught_up_ms = found.caught_up_ms.get(controller, -1)
            seen[:] = [f"the leader is {found.leader}, and had it caught up at {caught_up_ms} ms"]
            return found.leader == controller or caught_up_ms > since_wall_s * 1000

        what = f"controller {controller} to have caught up with the quorum"
        wait_until(caught_up, within_s=within_s, what=what, every_s=0.2, detail=lambda: "; ".join(seen))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
        replica_assignment: Mapping[int, list[int]] | None = None,
        within_s: float = 30.0,
    ) -> TopicState:
        """Creates a topic and returns it once every partition has its leader and full ISR.

        Raises:
            StartError: the cluster refused, or the ISR was not whole in time.
        """
        from kafka.admin import NewTopic

        if replica_assignment:
            topic = NewTopic(name, replica_assignments=dict(replica_assignment), topic_configs=dict(configs or {}))
        else:
            topic = NewTopic(name, partitions, replication_factor, topic_configs=dict(configs or {}))
        try:
            wait_until(lambda: self._created(topic), within_s=within_s, what=f"topic {name} to be created", every_s=0.2)
            whole = wait_until(lambda: self._whole(name), within_s=within_s, what=f"the full ISR of {name}")
            wait_until(lambda: self._serving(name), within_s=within_s, what=f"the leaders of {name} to serve it")
            return whole
        except UnjudgeableError as error:
            raise StartError(f"topic {name} could not be created: {error}") from error

    def create_offsets_topic(self, *, replication_factor: int) -> None:
        """Creates `__consumer_offsets`, as the broker would at the first FindCoordinator, before anyone tails it."""
        from kafka_trial.cluster.wiring import OFFSETS_PARTITIONS

        configs = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
        self.create_topic(
            OFFSETS_TOPIC, partitions=OFFSETS_PARTITIONS, replication_factor=replication_factor, configs=configs
        )

    def delete_topic(self, name: str, *, within_s: float = 15.0) -> None:
        """Deletes a topic, if there is one: an earlier call may have been cut off after it took effect.

        Raises:
            UnjudgeableError: the cluster refused.
            WaitTimeout: nobody took the order in time.
        """
        from kafka.errors import UnknownTopicOrPartitionError

        def deleted() -> bool:
            return self._ordered(lambda client: client.delete_topics([name]), unless=UnknownTopicOrPartitionError)

        wait_until(deleted, within_s=within_s, what=f"topic {name} to be deleted", every_s=0.2)

    def topics(self) -> list[str]:
        """Returns the names of all topics there are."""
        names: list[str] = self._ask(lambda client: client.list_topics())
        return names

    def describe(self, name: str) -> TopicState | None:
        """Returns a topic's id, leaders, epochs and ISR; None when the broker that answers knows of no such topic.

        Any broker may answer, and each hears of what the controller did in its own time.
        """
        answer = self._ask(lambda client: client.describe_topics([name]))
        if not answer or answer[0]["error_code"]:
            return None
        partitions = sorted(map(_partition, answer[0]["partitions"]), key=lambda part: part.partition)
        return TopicState(name, kafka_uuid(answer[0]["topic_id"]), tuple(partitions))

    def under_replicated(self) -> list[str]:
        """Returns every partition whose ISR is not whole, as sentences."""
        return [
            f"{name}-{part.partition}: ISR {sorted(part.isr)} of {sorted(part.replicas)}"
            for name, part in self._all_partitions()
            if set(part.isr) != set(part.replicas)
        ]

    def log_ends(self, topic: str) -> dict[int, int]:
        """Returns the log end offset (the position after the last record) of every partition.

        Raises:
            UnjudgeableError: a leader did not tell it in time, or refuses to.
        """
        return self._offsets(topic, "LATEST")

    def log_starts(self, topic: str) -> dict[int, int]:
        """Returns the log start offset of every partition."""
        return self._offsets(topic, "EARLIEST")

    def local_log_starts(self, topic: str) -> dict[int, int]:
        """Returns where the local log of every partition begins: what lies before is in the remote tier alone, or gone
        (KIP-405)."""
        return self._offsets(topic, "EARLIEST_LOCAL")

    def add_partitions(self, topic: str, partitions: int, *, within_s: float = 10.0) -> None:
        """Makes a topic have so many partitions in all; none can be taken away again.

        Raises:
            UnjudgeableError: the controller refused, or did not answer.
            WaitTimeout: the order was not taken in time.
        """
        from kafka.errors import InvalidPartitionsError

        first = iter((None,))  # from the second time on a refusal may say that an answer was lost

        def added() -> bool:
            unless = next(first, InvalidPartitionsError)
            return self._ordered(lambda client: client.create_partitions({topic: partitions}), unless=unless)

        wait_until(added, within_s=within_s, what=f"topic {topic} to have {partitions} partitions", every_s=0.2)

    def set_topic_configs(self, topic: str, configs: Mapping[str, str | None], *, within_s: float = 10.0) -> None:
        """Sets configs of a topic; None: those of the broker count again. Others are left as they are.

        Raises:
            UnjudgeableError: nobody answers.
            WaitTimeout: the controller did not take the order in time, or refuses it.
        """
        self._set_configs("topic", topic, configs, within_s=within_s)

    def set_broker_configs(
        self, brokers: Iterable[int], configs: Mapping[str, str | None], *, within_s: float = 10.0
    ) -> None:
        """Sets configs of some brokers; None: those of their own files count again.

        Raises:
            UnjudgeableError: nobody answers.
            WaitTimeout: a broker did not take the order in time, or refuses it.
        """
        for broker in brokers:
            self._set_configs("broker", str(broker), configs, within_s=within_s)

    def _set_configs(self, of: str, name: str, configs: Mapping[str, str | None], *, within_s: float) -> None:
        from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

        ops = {
            config: (AlterConfigOp.DELETE, None) if value is None else (AlterConfigOp.SET, value)
            for config, value in configs.items()
        }
        resource = ConfigResource(ConfigResourceType[of.upper()], name, ops)
        told = [""]

        def taken() -> bool:
            answer = self._ask(
                lambda client: client.alter_configs([resource], raise_on_unknown=False, incremental=True)
            )
            told[:] = [str(answer[of][name])]  # a refusal is an answer of this client, no error
            return told == ["OK"]

        what = f"the configs of {of} {name} to be set"
        wait_until(taken, within_s=within_s, what=what, every_s=0.2, detail=lambda: told[0])

    def delete_records(self, topic: str, below: Mapping[int, int]) -> None:
        """Deletes the records of each partition below a position: its log starts there from then on (KIP-107).

        Raises:
            UnjudgeableError: a leader refused, or did not answer.
        """
        from kafka.structs import TopicPartition

        places = {TopicPartition(topic, partition): offset for partition, offset in below.items()}
        self._ask(lambda client: client.delete_records(places))

    def committed_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Returns the committed offset of every partition that has one in effect: one of an open transaction has not.

        Raises:
            UnjudgeableError: the coordinator did not answer.
        """
        answer = self._ask(lambda client: client.list_group_offsets(group))[group]
        return {
            place.partition: committed.offset
            for place, committed in answer.items()
            if place.topic == topic and committed.offset >= 0
        }

    def set_committed_offsets(self, group: str, topic: str, positions: Mapping[int, int]) -> None:
        """Commits positions for a group without members, as an operator does.

        Raises:
            UnjudgeableError: the coordinator refused, or did not answer.
        """
        from kafka.structs import OffsetAndMetadata, TopicPartition

        offsets = {TopicPartition(topic, part): OffsetAndMetadata(offset, "", -1) for part, offset in positions.items()}
        answer = self._ask(lambda client: client.alter_group_offsets(group, offsets))
        refused = {place.partition: error.__name__ for place, error in answer.items() if error.errno != 0}
        if refused:
            raise UnjudgeableError(f"positions of {group} on {topic} were refused: {refused}")

    def offsets_since(self, topic: str, time_ms: int) -> dict[int, int]:
        """Returns of every partition the first offset with a timestamp of `time_ms` or later; its end where none is.

        Raises:
            UnjudgeableError: a leader did not tell it in time, or refuses to.
        """
        ends, found = self.log_ends(topic), self._offsets(topic, time_ms)
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def coordinator_of(self, group: str) -> int:
        """Returns the broker that coordinates `group`: the leader of its partition of `__consumer_offsets`."""
        state = self.describe(OFFSETS_TOPIC)
        if state is None:
            raise UnjudgeableError(f"{OFFSETS_TOPIC} does not exist yet, so {group} has no coordinator")
        return state.partitions[group_partition(group, partitions=len(state.partitions))].leader

    def describe_group(self, group: str) -> dict[str, Any]:
        """Returns a group as its coordinator describes it (state, members).

        Raises:
            UnjudgeableError: nobody answers, or not the coordinator: the next call looks for it anew.
        """
        described = dict(self._ask(lambda client: client.describe_groups([group]))[group])
        if described.get("error"):
            self.close()  # the client goes on asking who was the coordinator once
            raise UnjudgeableError(f"the group {group} was not described: {described['error']}")
        return described

    def stable_size(self, group: str) -> int | None:
        """Returns how many members a stable group has, 0 where it is not stable; None where nobody describes it now."""
        try:
            described = self.describe_group(group)
        except UnjudgeableError:
            return None
        return len(described["members"]) if described.get("group_state") == "Stable" else 0

    def group_state(self, group: str) -> str | None:
        """Returns the state of a group of either protocol, as a broker lists it (KIP-518); None: none of them knows it.

        Raises:
            UnjudgeableError: a broker did not answer.
        """
        listed = self._ask(lambda client: client.list_groups())
        return next((one["group_state"] for one in listed if one["group_id"] == group), None)

    def move_leader(self, topic: str, partition: int, broker: int, *, within_s: float = 15.0) -> None:
        """Makes `broker` the leader: reorders the replicas so that it is preferred, then elects the preferred one."""
        from kafka.structs import TopicPartition

        place = TopicPartition(topic, partition)
        replicas = next(part.replicas for part in self._described(topic).partitions if part.partition == partition)
        order = [broker, *(replica for replica in replicas if replica != broker)]

        def elected() -> bool:
            now = next(part for part in self._described(topic).partitions if part.partition == partition)
            if now.replicas[0] != broker:
                self._ordered(lambda client: client.alter_partition_reassignments({place: order}))
            elif now.leader != broker:
                self._elect_preferred(topic, [partition])
            return now.leader == broker

        wait_until(elected, within_s=within_s, what=f"broker {broker} to lead {topic}-{partition}", every_s=0.2)

    def move_replicas(self, old: int, new: int, *, within_s: float = MOVED_WITHIN_S) -> dict[str, int]:
        """Moves every replica of every topic from one broker to another (KIP-455); returns how many partitions of each
        topic were moved, once all of them are in sync there and `old` holds none.

        The leaders are where they were, or, of those that `old` led, wherever the controller put them.

        Raises:
            UnjudgeableError: the controller refused, or nobody answered.
            WaitTimeout: they were not moved in time; with the partitions that are left.
        """
        moving: set[tuple[str, int]] = set()
        left: list[str] = []

        def moved() -> bool:
            there = self._all_partitions()
            moving.update((name, part.partition) for name, part in there if old in part.replicas)
            behind = [
                (name, part)
                for name, part in there
                if (name, part.partition) in moving and (old in part.replicas or new not in part.isr)
            ]
            left[:] = [f"{name}-{part.partition} on {list(part.replicas)}" for name, part in behind]
            self._reassign(old, new, [(name, part) for name, part in behind if new not in part.replicas])
            return not behind

        what = f"every partition to be moved from broker {old} to {new}"
        wait_until(moved, within_s=within_s, what=what, every_s=0.2, detail=lambda: ", ".join(left))
        return dict(sorted(Counter(name for name, _ in moving).items()))

    def _reassign(self, old: int, new: int, partitions: Sequence[tuple[str, PartitionState]]) -> None:
        """Orders that `new` takes the place of `old` among the replicas of some partitions."""
        from kafka.structs import TopicPartition

        wanted = {
            TopicPartition(name, part.partition): [new if replica == old else replica for replica in part.replicas]
            for name, part in partitions
        }

        def order(client: Any) -> None:
            for place, error in client.alter_partition_reassignments(wanted).items():
                if error is not None:
                    raise error(f"{place.topic}-{place.partition} to {wanted[place]}")

        if wanted:
            self._ordered(order)

    def restore_leaders(self, topic: str, *, within_s: float = 15.0) -> TopicState:
        """Returns a topic once its preferred replicas lead it: a broker fenced on a busy machine does not, afterwards.

        Raises:
            UnjudgeableError: there is no such topic, or no broker answers.
            WaitTimeout: a preferred replica is not in sync in time.
        """

        def restored() -> TopicState | None:
            now = self._described(topic)
            astray = [part.partition for part in now.partitions if part.leader != part.replicas[0]]
            if now.partitions and not astray:
                return now
            if astray:
                self._elect_preferred(topic, astray)
            return None

        what = f"the preferred replicas of {topic} to lead it"
        return wait_until(restored, within_s=within_s, what=what, every_s=0.2)

    def restore_all_leaders(self, *, within_s: float = 15.0) -> None:
        """Has the preferred replicas lead every partition of every topic.

        Raises:
            UnjudgeableError: no broker answers.
            WaitTimeout: a preferred replica is not in sync in time.
        """
        for topic in sorted({name for name, _ in self._all_partitions()}):
            self.restore_leaders(topic, within_s=within_s)

    def _all_partitions(self) -> list[tuple[str, PartitionState]]:
        """Returns every partition of every topic, with the topic's name."""
        answer = self._ask(lambda client: client.describe_topics())
        return [(topic["name"], _partition(part)) for topic in answer for part in topic["partitions"]]

    def _elect_preferred(self, topic: str, partitions: list[int]) -> None:
        self._ordered(lambda client: client.elect_leaders(0, {topic: partitions}, raise_errors=False))

    def _offsets(self, topic: str, which: str | int) -> dict[int, int]:
        """Asks for the offsets that a word means (LATEST), or a time in ms."""
        from kafka.admin import OffsetSpec
        from kafka.structs import TopicPartition

        wanted = {
            TopicPartition(topic, part.partition): which if isinstance(which, int) else getattr(OffsetSpec, which)
            for part in self._described(topic).partitions
        }
        refusals = [""]

        def told() -> Mapping[Any, Any] | None:
            try:
                found: Mapping[Any, Any] = self._ask(lambda client: client.list_partition_offsets(wanted))
            except UnjudgeableError as error:
                if not _passes(error):
                    raise
                refusals[:] = [str(error)]
                return None
            return found

        what = f"the leaders of {topic} to tell its offsets"
        answer = wait_until(told, within_s=ENDS_WITHIN_S, what=what, every_s=0.1, detail=lambda: refusals[0])
        return {place.partition: found.offset for place, found in answer.items()}

    def _created(self, topic: Any) -> bool:
        """Creates `topic`, unless it exists: an earlier call may have been cut off after it took effect."""
        from kafka.errors import TopicAlreadyExistsError

        return self._ordered(lambda client: client.create_topics([topic]), unless=TopicAlreadyExistsError)

    def _serving(self, topic: str) -> bool:
        """A leader may not have heard yet that it leads: then it does not know the topic."""
        try:
            return bool(self.log_ends(topic))
        except UnjudgeableError:
            return False

    def _described(self, topic: str) -> TopicState:
        """Describes a topic that is to exist: the next broker asked may not have heard of what the last one knew."""
        return wait_until(lambda: self.describe(topic), within_s=TOPIC_WITHIN_S, what=f"topic {topic} to exist")

    def _whole(self, name: str) -> TopicState | None:
        state = self.describe(name)
        whole = (
            state is not None
            and state.partitions
            and all(part.leader >= 0 and set(part.isr) == set(part.replicas) for part in state.partitions)
        )
        return state if whole else None

    def _ordered(self, order: Callable[[Any], object], *, unless: type[Exception] | None = None) -> bool:
        """Gives an order to the controller, once; False: it was not taken, and whoever waits for it asks again.

        `unless` is the controller's refusal that says the same as success: it was carried out before.
        """
        try:
            self._ask(order)
        except UnjudgeableError as error:
            if unless and isinstance(error.__cause__, unless):
                return True
            if not _passes(error):
                raise
            return False
        return True

    def _quorum(self) -> Quorum:
        """Not by kafka-python: 3.0.12 reads a field that brokers before 3.8 do not send (KIP-853)."""
        with Brokers(",".join(self._bootstrap), answer_within_s=self._answer_within_s) as brokers:
            return brokers.anyone(quorum)

    def _ask(self, question: Callable[[Any], T]) -> T:
        """Asks a broker, and another one while it is refused: one that joins is named before it listens everywhere."""
        from kafka.errors import KafkaError

        refused: list[UnjudgeableError] = []

        def answered() -> tuple[T] | None:
            try:
                if self._client is None:
                    self._client = self._connected()
                return (question(self._client),)
            except (KafkaError, OSError, ValueError) as error:
                with suppress(KafkaError, OSError, ValueError):  # the error on its way says more
                    self.close()
                said = f"the cluster did not answer: {type(error).__name__} {error}".rstrip()
                if "ECONNREFUSED" not in said:
                    raise UnjudgeableError(said) from error
                refused[:] = [UnjudgeableError(said)]
                refused[0].__cause__ = error
                return None

        try:
            return wait_until(answered, within_s=self._answer_within_s, what="a broker that is not refused")[0]
        except WaitTimeout:
            raise refused[0] from refused[0].__cause__

    def _connected(self) -> Any:
        """Returns a client that some broker has answered. One that none answers would keep its thread and its sockets:
        kafka-python 3.0.12 does not close what it could not begin with."""
        from kafka import KafkaAdminClient
        from kafka.net.compat import KafkaNetClient

        with ExitStack() as unless_connected:

            def connections(**configs: Any) -> Any:
                return unless_connected.enter_context(closing(KafkaNetClient(**configs)))

            client = KafkaAdminClient(
                bootstrap_servers=self._bootstrap,
                client_id="kafka-trial-observer",
                request_timeout_ms=int(self._answer_within_s * 1000),
                bootstrap_timeout_ms=int(self._answer_within_s * 1000),
                reconnect_backoff_max_ms=RECONNECT_WITHIN_MS,  # 30 s by default: a restarted broker stays unseen
                kafka_client=connections,
            )
            unless_connected.pop_all()
        return client

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _passes(error: UnjudgeableError) -> bool:
    """Tells whether asking again may help: a cluster may still be electing, or name a broker its client has not met."""
    from kafka.errors import KafkaError, UnknownBrokerIdError

    cause = error.__cause__
    return not isinstance(cause, KafkaError) or cause.retriable or isinstance(cause, UnknownBrokerIdError)


def kafka_uuid(text: str) -> str:
    """Returns a topic id as Kafka prints it (base64url without padding) from its hexadecimal form."""
    return base64.urlsafe_b64encode(uuid.UUID(str(text)).bytes).decode().rstrip("=")


def _partition(part: Mapping[str, Any]) -> PartitionState:
    return PartitionState(
        part["partition_index"],
        part["leader_id"],
        part["leader_epoch"],
        tuple(part["replica_nodes"]),
        tuple(part["isr_nodes"]),
    )
