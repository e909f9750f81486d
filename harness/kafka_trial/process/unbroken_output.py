"""Output whose reader may go away: what is printed then is lost, and the command goes on to its end and exit status.

`kafka-trial check RUN | head` ends early otherwise, and a verdict of *fail* would be told as whatever the interruption
gives.
"""

from __future__ import annotations

import io
from typing import TextIO


class _Unbroken(io.FileIO):
    """A file descriptor that takes everything, also when nobody reads it any more."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def unbroken(stream: TextIO) -> TextIO:
    """Returns a stream to the same place as one of the interpreter's own; the same where it has no place of its own."""
    try:
        stream.flush()
        raw = _Unbroken(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return stream
    by_line = bool(stream.line_buffering)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=by_line
    )
