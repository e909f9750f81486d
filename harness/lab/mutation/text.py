"""The text of a module, by the bytes that its syntax tree counts in."""

from __future__ import annotations

import ast

Placed = ast.expr | ast.stmt | ast.keyword  # what has a place in the text


class Text:
    """Where the nodes of a module's syntax tree stand in it."""

    def __init__(self, source: str) -> None:
        self._raw = source.encode()
        self._lines = [0]
        for line in self._raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: Placed) -> tuple[int, int]:
        """Returns the first byte of a node and the one after its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None  # it was read from text
        first, last = self._lines[node.lineno - 1], self._lines[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def of(self, node: Placed) -> str:
        """Returns a node as it is written."""
        start, end = self.span(node)
        return self._raw[start:end].decode()

    def shown(self, node: Placed, start: int = 0, end: int = 0, changed: str = "") -> str:
        """Returns a node on one line, with a change inside it."""
        low, high = self.span(node)
        inside = self._raw[low:start] + changed.encode() + self._raw[end:high] if end else self._raw[low:high]
        return " ".join(inside.decode().split())
