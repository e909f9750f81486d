"""How a record is recognised wherever it turns up: by a header, else by a field of its JSON value.

Apart from the readers, which hold Kafka clients: whoever only needs the names must not load a client.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

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
