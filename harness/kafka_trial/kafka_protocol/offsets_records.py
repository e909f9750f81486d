"""`__consumer_offsets`: where a group lives in it, and its records as typed values, as far as the witness tells them.

A group's partition is the one whose leader is its coordinator. Offset commits and classic groups (types 0-2), KIP-848
consumer groups (3-8, 16). The schemas are Kafka's own (`common/message/*Key.json, *Value.json` of its group
coordinator, 4.3.1; older ones are subsets). Share and streams groups (10-15, 17-23) are known by name only.
`offsets_decoder.py` makes them from bytes.
"""

from __future__ import annotations

import random
import string
import struct
from dataclasses import dataclass
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"


def group_partition(group: str, *, partitions: int) -> int:
    """Returns the partition of `__consumer_offsets` that holds a group: Java's hash of its name modulo `partitions`."""
    value = 0
    for (unit,) in struct.iter_unpack(">H", group.encode("utf-16-be")):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions  # Kafka's Utils.abs


def draw_group_name(rng: random.Random, prefix: str, *, partition: int, partitions: int) -> str:
    """Returns a group name that falls on `partition`, so that trials do not share a partition of the offsets log."""
    while True:
        name = prefix + "".join(rng.choices(string.ascii_lowercase + string.digits, k=6))
        if group_partition(name, partitions=partitions) == partition:
            return name


LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, CLASSIC_GROUP = 0, 1, 2
GROUP_EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT_ASSIGNMENT = 3, 4, 5, 6, 7, 8
REGULAR_EXPRESSION = 16
STATES = ("stable", "unrevoked", "unreleased")

NAMES = {
    LEGACY_OFFSET_COMMIT: "legacy offset commit",
    OFFSET_COMMIT: "offset commit",
    CLASSIC_GROUP: "classic group",
    GROUP_EPOCH: "consumer group epoch",
    PARTITION_METADATA: "consumer group partition metadata",
    MEMBER: "consumer group member",
    TARGET_EPOCH: "consumer group target assignment epoch",
    TARGET: "consumer group target assignment of a member",
    CURRENT_ASSIGNMENT: "consumer group current assignment of a member",
    10: "share group member",
    11: "share group",
    12: "share group target assignment epoch",
    13: "share group target assignment of a member",
    14: "share group current assignment of a member",
    15: "share group state partitions",
    REGULAR_EXPRESSION: "consumer group regular expression",
    17: "streams group",
    18: "streams group partition metadata",
    19: "streams group member",
    20: "streams group target assignment epoch",
    21: "streams group target assignment of a member",
    22: "streams group current assignment of a member",
    23: "streams group topology",
}


@dataclass(frozen=True, slots=True)
class Key:
    """What a record is about; `group` is None only where the type is not known."""

    record_type: int
    group: str | None
    topic: str | None = None
    partition: int | None = None
    member_id: str | None = None
    regular_expression: str | None = None

    @property
    def name(self) -> str:
        return NAMES.get(self.record_type, f"unknown record type {self.record_type}")


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A commit of one partition; `committed_offset` is the next place to read."""

    version: int
    committed_offset: int
    metadata: str
    commit_time_ms: int
    leader_epoch: int | None = None
    expire_time_ms: int | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a classic group; `subscription` and `assignment` are in the member's own protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """A classic group as it stood when the record was written."""

    version: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_time_ms: int
    members: tuple[ClassicMember, ...]


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The epoch of a KIP-848 group."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic of a group's partition metadata (Kafka 3.9 and 4.0); racks by partition."""

    topic_id: str
    topic: str
    partitions: int
    racks: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The topics a KIP-848 group was assigned from, before 4.1."""

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True)
class ClassicProtocols:
    """What a KIP-848 group keeps of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a KIP-848 group, as it described itself."""

    instance_id: str | None
    rack: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    regular_expression: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicProtocols | None = None


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The epoch for which the target assignment of a KIP-848 group was computed."""

    epoch: int
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic; `assignment_epochs` (4.3+) go with them one to one."""

    topic_id: str
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a member of a KIP-848 group shall own."""

    partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """What a member of a KIP-848 group owns, and what it still has to give up."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: tuple[TopicPartitions, ...]
    pending_revocation: tuple[TopicPartitions, ...]

    @property
    def state_name(self) -> str:
        return STATES[self.state] if 0 <= self.state < len(STATES) else "unknown"


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """The topics that a subscribed regular expression means now."""

    topics: tuple[str, ...]
    version: int
    time_ms: int


Value = (
    OffsetCommit
    | ClassicGroup
    | GroupEpoch
    | PartitionMetadata
    | Member
    | TargetEpoch
    | Target
    | CurrentAssignment
    | RegularExpression
)


@dataclass(frozen=True, slots=True)
class ConsumerPartitions:
    """Partitions of one topic by name, as the classic consumer protocol has them."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a classic consumer asked for."""

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned: tuple[ConsumerPartitions, ...] = ()
    generation: int = -1
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a classic consumer was given."""

    version: int
    partitions: tuple[ConsumerPartitions, ...]
    user_data: bytes | None
