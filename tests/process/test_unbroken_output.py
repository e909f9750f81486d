"""A verdict is told by the exit status, whether or not somebody reads the words."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from kafka_trial.errors import FAIL
from kafka_trial.process.unbroken_output import unbroken

FAILS = """
from kafka_trial import cli, verbs

def told(options):
    for _ in range(10_000):
        print("a line that nobody reads")
    return %d

verbs.list_things = told
sys.argv = ["kafka-trial", "list", "invariants"]
sys.exit(cli.main())
"""


@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_a_reader_that_has_gone_does_not_change_the_exit_status(both: bool) -> None:
    """As with `| head`: nobody holds the other end of the pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        argv = [sys.executable, "-c", "import sys" + FAILS % FAIL]
        done = subprocess.run(argv, stdout=writing, stderr=writing if both else subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert done.returncode == FAIL
    assert both or done.stderr == b""


def test_what_is_read_arrives_as_it_was_printed() -> None:
    """To the last line, in the encoding of the stream."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        print("über", file=unbroken(stream), flush=True)
    with os.fdopen(reading, encoding="utf-8") as file:
        assert file.read() == "über\n"


def test_a_stream_without_a_file_descriptor_stays_what_it_is() -> None:
    """As those that pytest puts in the place of ours."""
    stream = io.StringIO()
    assert unbroken(stream) is stream
