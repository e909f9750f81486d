"""How a record is recognised wherever it turns up: by its id, and by checksums of its value.

The id is a header, else what stands at a path of the JSON value. Checksums are of the bytes, and of what they say where
that is JSON: JSON that was read and written anew (other spacing, other order of keys, 1.0 for 1) says the same.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from kafka_trial.history.json_paths import path_steps, value_at

ID_HEADER: Final = "kt-id"
ID_FIELD: Final = "id"


def record_id(
    headers: Iterable[tuple[str, bytes | None]], value: bytes | None, *, header: str = ID_HEADER, field: str = ID_FIELD
) -> str | None:
    """Returns a record's id: its header of that name, else what `id_in_json` finds in its value."""
    for name, raw in headers:
        if name == header and raw is not None:
            return raw.decode(errors="backslashreplace")
    return id_in_json(value, field)


def id_in_json(value: bytes | bytearray | None, path: str) -> str | None:
    """Returns the string or number at a JSON path of a value (`id`, `$.a[0].id`), None where there is none.

    Raises:
        ValueError: the path cannot be read; see `json_paths`.
    """
    steps = path_steps(path)
    try:
        found = value_at(json.loads(value or b"null"), steps)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return None
    return str(found).encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be written down


PARSED_BYTES_MAX = 1024 * 1024
WHOLE_MAX = 2**53  # above that a float is no whole number for certain


def checksums(value: bytes | bytearray | None) -> dict[str, int | None]:
    """Returns `checksum` (CRC-32 of the bytes) and `json_checksum` (of what it says; None where it is no JSON)."""
    if value is None:
        return {"checksum": None, "json_checksum": None}
    return {"checksum": zlib.crc32(value), "json_checksum": _json_checksum(value)}


def _json_checksum(value: bytes | bytearray) -> int | None:
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
