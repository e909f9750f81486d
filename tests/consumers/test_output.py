"""Reading the output of a member: bounded logs, matches, and streams that outlive their process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from kafka_trial.consumers.output import BoundedLog, LogMatch, drain


def test_a_log_stops_at_its_bound_and_says_so(tmp_path: Path) -> None:
    """What fits is kept, then one line says that it was cut, however much more comes."""
    log = BoundedLog(tmp_path / "log", bytes_max=10)
    for _ in range(5):
        log.write(b"123456")
    log.close()
    first, note = (tmp_path / "log").read_bytes().splitlines()
    assert (first, note.startswith(b"[kafka-trial: cut here")) == (b"1234561234", True)


def test_a_match_is_found_across_chunks_but_not_across_streams() -> None:
    """A line in two chunks matches; two halves on two streams do not."""
    match, passed = LogMatch("now ready$"), []
    out, err = match.watching(passed.append), match.watching(passed.append)
    out(b"I am now ")
    err(b"ready\n")
    assert not match.seen
    out(b"ready\n")
    assert (match.seen, passed) == (True, [b"I am now ", b"ready\n", b"ready\n"])


def test_streams_are_read_to_their_end(tmp_path: Path) -> None:
    """Everything written before the close arrives, although the process has long gone."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"last words")
    os.close(write_end)
    heard: list[bytes] = []
    drain({read_end: heard.append}, alive=lambda: False, stop=threading.Event())
    assert heard == [b"last words"]


def test_a_stream_held_open_by_somebody_else_is_left(tmp_path: Path) -> None:
    """A grandchild that keeps the stream open does not keep the reader: once the process is gone, silence ends it."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"last words")
    heard: list[bytes] = []
    drain({read_end: heard.append}, alive=lambda: False, stop=threading.Event())
    os.close(write_end)
    assert heard == [b"last words"]
