"""Where a group lives: its partition of `__consumer_offsets`, whose leader is the group's coordinator."""

from __future__ import annotations

import random
import string
import struct
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
