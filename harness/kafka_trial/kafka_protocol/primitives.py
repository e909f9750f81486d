"""Kafka's primitive types, read from bytes: what every answer and every record of the offsets log is made of.

A reader walks once through one buffer. Plain encoding has fixed-width lengths; flexible encoding (KIP-482) has
unsigned varints of length + 1, and a section of tagged fields after every struct. Error codes are here by name, as far
as requests of consumers and witnesses meet them.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Final, TypeVar

NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    1: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    12: "OFFSET_METADATA_TOO_LARGE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    22: "ILLEGAL_GENERATION",
    23: "INCONSISTENT_GROUP_PROTOCOL",
    24: "INVALID_GROUP_ID",
    25: "UNKNOWN_MEMBER_ID",
    26: "INVALID_SESSION_TIMEOUT",
    27: "REBALANCE_IN_PROGRESS",
    28: "INVALID_COMMIT_OFFSET_SIZE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    35: "UNSUPPORTED_VERSION",
    41: "NOT_CONTROLLER",
    42: "INVALID_REQUEST",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING",
    51: "CONCURRENT_TRANSACTIONS",
    56: "KAFKA_STORAGE_ERROR",
    58: "SASL_AUTHENTICATION_FAILED",
    69: "GROUP_ID_NOT_FOUND",
    70: "FETCH_SESSION_ID_NOT_FOUND",
    71: "INVALID_FETCH_SESSION_EPOCH",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    79: "MEMBER_ID_REQUIRED",
    81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID",
    86: "GROUP_SUBSCRIBED_TO_TOPIC",
    88: "UNSTABLE_OFFSET_COMMIT",
    90: "PRODUCER_FENCED",
    95: "INVALID_UPDATE_VERSION",
    96: "FEATURE_UPDATE_FAILED",
    100: "UNKNOWN_TOPIC_ID",
    106: "FETCH_SESSION_TOPIC_ID_ERROR",
    110: "FENCED_MEMBER_EPOCH",
    111: "UNRELEASED_INSTANCE_ID",
    112: "UNSUPPORTED_ASSIGNOR",
    113: "STALE_MEMBER_EPOCH",
    120: "TRANSACTION_ABORTABLE",
}


def error_name(code: int) -> str:
    """Returns the name of an error code, the number with it."""
    return f"{NAMES.get(code, 'an error')} ({code})"


T = TypeVar("T")
ELEMENTS_MAX: Final = 1 << 24
NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class DecodeError(ValueError):
    """Bytes that are not what their type says: cut short, a length that cannot be, bytes left over."""


class Reader:
    """Reads Kafka's types one after the other; every method raises DecodeError where the bytes do not fit."""

    __slots__ = ("_data", "_place", "flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._place = 0
        self.flexible = flexible

    @property
    def left_bytes(self) -> int:
        return len(self._data) - self._place

    def int8(self) -> int:
        return self._number(">b", 1)

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def int64(self) -> int:
        return self._number(">q", 8)

    def unsigned_varint(self) -> int:
        """Returns an unsigned 32-bit varint (seven bits a byte, lowest first)."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1, "a varint")[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise DecodeError(f"a varint is longer than 5 bytes at byte {self._place}")

    def varint(self) -> int:
        """Returns a signed (zig-zag) varint of up to 64 bits, as records in a batch have them."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._take(1, "a varint")[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise DecodeError(f"a varint is longer than 10 bytes at byte {self._place}")

    def uuid(self) -> str:
        """Returns a UUID as Kafka prints it: base64url without padding."""
        return base64.urlsafe_b64encode(self._take(16, "a UUID")).decode().rstrip("=")

    def nullable_string(self) -> str | None:
        size = self.unsigned_varint() - 1 if self.flexible else self.int16()
        if size < 0:
            return None
        raw = self._take(size, "a string")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"a string is not UTF-8 at byte {self._place - size}") from error

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise DecodeError(f"a string that may not be null is null before byte {self._place}")
        return text

    def nullable_blob(self) -> bytes | None:
        size = self.unsigned_varint() - 1 if self.flexible else self.int32()
        return None if size < 0 else self._take(size, "bytes")

    def blob(self) -> bytes:
        raw = self.nullable_blob()
        if raw is None:
            raise DecodeError(f"bytes that may not be null are null before byte {self._place}")
        return raw

    def nullable_array(self, element: Callable[[], T]) -> tuple[T, ...] | None:
        """Returns the elements of an array, each read by `element`."""
        count = self.unsigned_varint() - 1 if self.flexible else self.int32()
        if count < 0:
            return None
        if count > min(ELEMENTS_MAX, self.left_bytes):  # every element has at least one byte
            raise DecodeError(f"an array of {count} elements does not fit into {self.left_bytes} bytes")
        return tuple(element() for _ in range(count))

    def array(self, element: Callable[[], T]) -> tuple[T, ...]:
        elements = self.nullable_array(element)
        if elements is None:
            raise DecodeError(f"an array that may not be null is null before byte {self._place}")
        return elements

    def tags(self) -> dict[int, bytes]:
        """Returns the tagged fields that end a struct, by tag, not decoded; none where the encoding is plain."""
        if not self.flexible:
            return {}
        found: dict[int, bytes] = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            found[tag] = self._take(self.unsigned_varint(), f"the tagged field {tag}")
        return found

    def raw(self, size: int) -> bytes:
        """Returns the next `size` bytes as they are."""
        return self._take(size, "bytes")

    def end(self) -> None:
        """Makes sure that nothing is left: bytes left over mean that what was read was something else."""
        if self.left_bytes:
            raise DecodeError(f"{self.left_bytes} bytes are left over after byte {self._place}")

    def _number(self, form: str, size: int) -> int:
        value: int = struct.unpack(form, self._take(size, "a number"))[0]
        return value

    def _take(self, size: int, what: str) -> bytes:
        if size > self.left_bytes:
            raise DecodeError(
                f"{what} of {size} bytes at byte {self._place} does not fit into the {self.left_bytes} bytes left"
            )
        self._place += size
        return self._data[self._place - size : self._place]
