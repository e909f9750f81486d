"""Groups that a cluster has beside those of the consumers on trial: quiet ones, with all that groups leave in the
offsets log.

A coordinator that cannot load one record of a partition of the offsets log serves no group of that partition. What
releases could not load were records of groups that had changed: converted to another protocol and quiet since
(KAFKA-20254, of Kafka Streams), converted and back (KAFKA-21117). So one of each kind lies in each partition where a
group on trial does. Each commits once, before it changes: a later commit would take the place of the early one when the
log is compacted, and it is the early one, in front of the other records, that went wrong.

No member is left in them: members would have to be kept alive while brokers restart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.errors import StartError, UnjudgeableError
from kafka_trial.kafka_protocol import group_membership
from kafka_trial.kafka_protocol.broker_features import broker_features
from kafka_trial.kafka_protocol.cluster_queries import Topic, metadata
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import DEAD, GroupState, coordinator, group_state, listed_groups
from kafka_trial.kafka_protocol.offsets_records import OFFSETS_TOPIC, draw_group_name
from kafka_trial.process.waiting import wait_until

T = TypeVar("T")
TOPIC: Final = "kt-side"
CLIENT_ID: Final = "kafka-trial-side"
CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"
CONVERTED, TO_STREAMS, CONVERTED_BACK = "converted", "converted-to-streams", "converted-back"
EMPTIED, DELETED = "emptied", "deleted"
KINDS: Final = (CONVERTED, TO_STREAMS, CONVERTED_BACK, EMPTIED, DELETED)
EMPTY: Final = "Empty"
COMMITTED: Final = 7
ANSWERED_WITHIN_S: Final = 15.0
FEATURES: Final = {CONSUMER: "group.version", STREAMS: "streams.version"}  # from level 1 on members may speak it
WITH_KINDS: Final = 5  # the version of ListGroups that tells them


@dataclass(frozen=True)
class SideGroup:
    """A group that is quiet now: its kind, the partition of the offsets log that holds it, and the protocol that it
    speaks; without one it is deleted."""

    name: str
    kind: str
    partition: int
    protocol: str | None

    @property
    def committed(self) -> Mapping[tuple[str, int], int]:
        """What it has committed, by topic and partition."""
        return {(TOPIC, 0): COMMITTED} if self.protocol else {}

    def is_in(self, state: GroupState) -> bool:
        """Tells whether its coordinator describes it as it was left."""
        if self.protocol is None:
            return state.state == DEAD
        return (state.state, state.protocol) == (EMPTY, self.protocol)


def make_side_groups(cluster: BootedCluster, partitions: Sequence[int], *, of: int, seed: int) -> tuple[SideGroup, ...]:
    """Makes a group of each kind in each of these partitions of the offsets log, which has `of` of them.

    On a cluster that does not have a protocol (its feature group.version or streams.version is 0) none is converted to
    it: such kinds are classic groups then.

    Raises:
        UnjudgeableError: their topic could not be made, a coordinator refused, or a group did not come to rest.
    """
    with Admin(cluster.observer_bootstrap) as admin:
        if TOPIC not in admin.topics():
            try:
                admin.create_topic(TOPIC, partitions=1, replication_factor=min(3, len(cluster.brokers)))
            except StartError as error:  # the cluster is not starting: it has been through an upgrade
                raise UnjudgeableError(str(error)) from error
    spoken = _protocols(cluster)
    groups = side_groups(partitions, of=of, seed=seed, spoken=spoken)
    with Brokers(cluster.observer_bootstrap, client_id=CLIENT_ID, answer_within_s=ANSWERED_WITHIN_S) as brokers:
        offsets_log(brokers)
        for group in groups:
            _live(brokers, group, convert=CONSUMER in spoken)
            what = f"the {group.kind} group {group.name} to come to rest"
            wait_until(partial(_rests, brokers, group), within_s=ANSWERED_WITHIN_S, what=what, every_s=0.1)
    return groups


def side_groups(partitions: Sequence[int], *, of: int, seed: int, spoken: AbstractSet[str]) -> tuple[SideGroup, ...]:
    """Returns the groups as they are to be in the end; `spoken`: the protocols that the cluster has."""
    rng = random.Random(seed)
    wanted = {CONVERTED: CONSUMER, TO_STREAMS: STREAMS}
    protocols: dict[str, str | None] = {kind: one for kind, one in wanted.items() if one in spoken} | {DELETED: None}
    return tuple(
        SideGroup(
            draw_group_name(rng, f"kt-{kind}-", partition=partition, partitions=of),
            kind,
            partition,
            protocols.get(kind, CLASSIC),
        )
        for partition in partitions
        for kind in KINDS
    )


def offsets_log(brokers: Brokers) -> Topic:
    """Returns the offsets log as a broker describes it, and lets all brokers be asked by their ids from now on.

    Raises:
        NoAnswerError: nobody answers.
    """
    found = brokers.anyone(lambda at: metadata(at, [OFFSETS_TOPIC]))
    brokers.by_id = dict(found.brokers)
    return found.topics[OFFSETS_TOPIC]


def ask_coordinator(brokers: Brokers, group: str, question: Callable[[Connection], T]) -> T:
    """Returns what the coordinator of a group answers.

    Raises:
        NoAnswerError: it does not, or refuses (with its code).
    """
    return brokers.broker(brokers.anyone(lambda anyone: coordinator(anyone, group)), question)


def described(at: Connection, group: SideGroup) -> GroupState:
    """Returns a group as its coordinator describes it; groups of the streams protocol are in its list alone.

    Raises:
        NoAnswerError: no answer, or a refusal.
    """
    if group.protocol != STREAMS:
        return group_state(at, group.name)
    listed = [one for one in listed_groups(at, version=WITH_KINDS) if one.name == group.name]
    return GroupState(listed[0].state, listed[0].kind or "", ()) if listed else GroupState(DEAD, STREAMS, ())


def _protocols(cluster: BootedCluster) -> AbstractSet[str]:
    broker = min(cluster.brokers)
    with closing(Connection((cluster.host, cluster.wiring.observer_port(broker)), client_id=CLIENT_ID)) as connection:
        levels = broker_features(connection).finalized
    return {CLASSIC, *(protocol for protocol, feature in FEATURES.items() if levels.get(feature, 0) >= 1)}


def _live(brokers: Brokers, group: SideGroup, *, convert: bool) -> None:
    """Has a group live its life: a member of the classic protocol commits, and then what its kind asks for."""
    name = group.name
    # The first request is repeated: a partition that nobody has asked about yet may still be loading.
    first = _loaded(brokers, name, lambda at: group_membership.join_classic(at, name, TOPIC))

    def told(at: Connection) -> None:
        group_membership.assign_all(at, name, first, TOPIC, [0])
        group_membership.commit(at, name, TOPIC, {0: COMMITTED}, member=first)
        if convert and group.kind in (CONVERTED, CONVERTED_BACK):
            _convert(at, name, first, back=group.kind == CONVERTED_BACK)
            return
        group_membership.leave_classic(at, name, first)
        if group.protocol == STREAMS:  # to this one an empty group alone can be converted
            second = group_membership.join_streams(at, name, TOPIC, member_id=f"{name}-member")
            group_membership.leave_streams(at, name, second)
        if group.kind == DELETED:
            group_membership.delete_group(at, name)

    try:
        ask_coordinator(brokers, name, told)
    except NoAnswerError as error:
        raise UnjudgeableError(f"the {group.kind} group {name} could not be made: {error}") from error


def _convert(at: Connection, name: str, first: group_membership.Membership, *, back: bool) -> None:
    """Has members of the other protocol join while those before are there, which then leave: a roll of clients."""
    second = group_membership.join_consumer(at, name, TOPIC)
    group_membership.leave_classic(at, name, first)
    second = group_membership.heartbeat_consumer(at, name, second)
    if not back:
        group_membership.leave_consumer(at, name, second)
        return
    third = group_membership.join_classic(at, name, TOPIC)
    group_membership.leave_consumer(at, name, second)
    group_membership.leave_classic(at, name, third)


def _loaded(brokers: Brokers, name: str, question: Callable[[Connection], T]) -> T:
    refusals = [""]

    def answered() -> T | None:
        try:
            return ask_coordinator(brokers, name, question)
        except NoAnswerError as error:
            refusals[:] = [str(error)]
            return None

    what = f"the coordinator of {name} to take a member"
    return wait_until(answered, within_s=ANSWERED_WITHIN_S, what=what, every_s=0.2, detail=lambda: refusals[0])


def _rests(brokers: Brokers, group: SideGroup) -> bool:
    try:
        return group.is_in(ask_coordinator(brokers, group.name, lambda at: described(at, group)))
    except NoAnswerError:
        return False
