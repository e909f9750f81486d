"""Checksums of a record's value, as the history keeps them: of its bytes, and of what it says where it is JSON.

JSON that was read and written anew (other spacing, other order of keys, 1.0 for 1) says the same.
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson

PARSED_BYTES_MAX = 1024 * 1024
WHOLE_MAX = 2**53  # above that a float is no whole number for certain


def checksums(value: bytes | None) -> dict[str, int | None]:
    """Returns `checksum` (CRC-32 of the bytes) and `json_checksum` (of what it says; None where it is no JSON)."""
    if value is None:
        return {"checksum": None, "json_checksum": None}
    return {"checksum": zlib.crc32(value), "json_checksum": _json_checksum(value)}


def _json_checksum(value: bytes) -> int | None:
    if len(value) > PARSED_BYTES_MAX or value.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return zlib.crc32(orjson.dumps(_said(orjson.loads(value)), option=orjson.OPT_SORT_KEYS))
    except (ValueError, TypeError, RecursionError):
        return None


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _said(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_said(part) for part in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= WHOLE_MAX
    return int(value) if whole else value
