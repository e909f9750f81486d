"""Lines of a generated history: blocks of events of one source, made from columns, in the order of a key.

A tenth of what `Recorder` takes: a line is a template and a row of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from kafka_trial.history.event import SCHEMA
from lab.scale.shapes import Ints

BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Events:
    """Events of one kind: `fields` is the rest of the line after `kind`, with a %d for each of `columns`.

    `order` says where each stands among the others of its block. `completes` is the events of the same block, row by
    row, whose `seq` is this one's `op`: the last %d of its fields.
    """

    kind: str
    order: Ints
    time_ns: Ints
    fields: str
    columns: Sequence[Ints] = ()
    completes: int | None = None


class Source(AbstractContextManager["Source"]):
    """The file of one source, written block by block; numbers its events."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.events = 0
        self._file = open(folder / f"{name}.jsonl", "xb", buffering=BUFFER_BYTES)  # noqa: SIM115 - closed by __exit__

    def tell(self, kind: str, time_ns: int, **fields: Any) -> None:
        """Writes one event."""
        head = {"schema": SCHEMA, "source": self.name, "seq": self.events, "time_ns": int(time_ns), "kind": kind}
        self._file.write(orjson.dumps(head | fields, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY))
        self.events += 1

    def write(self, *block: Events) -> None:
        """Writes the events of a block in their order."""
        order = np.concatenate([part.order for part in block])
        if not len(order):
            return
        rank = np.empty(len(order), np.int64)
        rank[np.argsort(order, kind="stable")] = np.arange(len(order))
        ends = np.cumsum([len(part.order) for part in block])
        ranks = np.split(rank, ends[:-1])
        lines = np.empty(len(order), object)
        for part, places in zip(block, ranks, strict=True):
            lines[places] = self._lines(part, places, ranks)
        self._file.write("".join(lines.tolist()).encode())
        self.events += len(order)

    def _lines(self, part: Events, places: Ints, ranks: Sequence[Ints]) -> list[str]:
        head = f'{{"schema":{SCHEMA},"source":"{self.name}","seq":%d,"time_ns":%d,"kind":"{part.kind}",'
        template = f"{head}{part.fields}}}\n"
        columns = [places + self.events, part.time_ns, *part.columns]
        if part.completes is not None:
            columns.append(ranks[part.completes] + self.events)
        return [template % row for row in zip(*(column.tolist() for column in columns), strict=True)]

    def __exit__(self, *_: object) -> None:
        self._file.close()
