"""How a record is recognised wherever it turns up: by its id, and by checksums of its value.

The id is a header, else a field of the JSON value. Checksums are of the bytes, and of what they say where that is JSON:
JSON that was read and written anew (other spacing, other order of keys, 1.0 for 1) says the same.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

ID_HEADER: Final = "kt-id"
ID_FIELD: Final = "id"


def record_id(
    headers: Iterable[tuple[str, bytes | None]], value: bytes | None, *, header: str = ID_HEADER, field: str = ID_FIELD
) -> str | None:
    """Returns a record's id: its header of that name, else that field of a JSON object (`a.b`: b of a), else None."""
    for name, raw in headers:
        if name == header and raw is not None:
            return raw.decode(errors="backslashreplace")
    try:
        found = json.loads(value or b"null")
    except ValueError:
        return None
    for step in field.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return None if found is None else str(found)


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
