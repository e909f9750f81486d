"""Cutting a byte stream into lines in bounded memory: what a consumer prints is untrusted, its length too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LINE_BYTES_MAX = 16 * 1024 * 1024  # VerifiableConsumer prints whole values
QUOTE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline; of an overlong one only the head is kept, `size_bytes` counts it all."""

    text: bytes
    size_bytes: int

    @property
    def whole(self) -> bool:
        return len(self.text) == self.size_bytes


class LineCutter:
    """Cuts chunks into lines; keeps at most `bytes_max` of a line, and of one beyond that only the quote."""

    def __init__(self, *, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._overlong = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yields every line that ends in `chunk`."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._take(part)
            yield self._line()
        self._take(rest)

    def rest(self) -> Iterator[Line]:
        """Yields the last line, when its newline never came."""
        if self._size_bytes:
            yield self._line()

    def _take(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes <= self._bytes_max:
            self._parts.append(part)
        elif not self._overlong:
            self._overlong = True
            self._parts = [b"".join([*self._parts, part])[:QUOTE_BYTES_MAX]]

    def _line(self) -> Line:
        line = Line(b"".join(self._parts), self._size_bytes)
        self._parts, self._size_bytes, self._overlong = [], 0, False
        return line
