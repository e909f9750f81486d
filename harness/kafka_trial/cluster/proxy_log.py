"""Toxiproxy's own log: who connected to which proxy. A client that asks nothing stands in no broker's log, but here."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

ACCEPTED = b"Accepted client"


@dataclass(frozen=True)
class ProxyLog:
    """The log of a Toxiproxy from some byte on; it need not be there."""

    path: Path
    begins: int

    @classmethod
    def from_now(cls, path: Path) -> ProxyLog:
        """Returns the log from its present end on."""
        return cls(path, path.stat().st_size if path.exists() else 0)

    def accepted(self, proxies: Collection[str]) -> int | None:
        """Returns how many connections these proxies have accepted since; None where there is no log to read."""
        try:
            with self.path.open("rb") as log:
                log.seek(self.begins)
                return sum(_proxy(line) in proxies for line in log if ACCEPTED in line)
        except OSError:
            return None


def _proxy(line: bytes) -> str | None:
    """Returns the proxy that a line of the log is of; None where the line is cut."""
    with suppress(ValueError, AttributeError):
        name = orjson.loads(line).get("name")
        return name if isinstance(name, str) else None
    return None
