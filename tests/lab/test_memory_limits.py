"""Case 4 under a limit of memory: who lives and who was killed, by literal figures, and by a real control group."""

from __future__ import annotations

import os
import sys

import pytest

from kafka_trial.cluster.user_cache import run_tool
from kafka_trial.errors import StartError
from kafka_trial.preflight.size_settings import JAVA, LIBRDKAFKA
from lab.cases.large_records import MemoryCell, predicted
from lab.cases.memory_group import kills_told, memory_group
from lab.cases.memory_limits import (
    HALF,
    HEAP_FULL,
    NOT_TOLD,
    OOM_KILLED,
    ROOM,
    SURVIVES,
    LimitCell,
    bounded_bytes,
    limit_cells,
    outcome_of,
)

MB = 1_000_000
HEAP_WORDS = "Terminating due to java.lang.OutOfMemoryError: Java heap space"
TAKES = "print(len(bytearray(b'x') * {}))"


@pytest.mark.parametrize(
    ("status", "kills", "said", "taken_all", "outcome"),
    [
        (0, 0, "", True, SURVIVES),
        (0, 0, "", False, NOT_TOLD),  # it stopped before the end of the backlog
        (0, 1, "", True, NOT_TOLD),  # the kernel killed another process of its
        (-9, 1, "", False, OOM_KILLED),
        (-9, 0, "", False, NOT_TOLD),  # somebody else's signal
        (3, 0, HEAP_WORDS, False, HEAP_FULL),
        (1, 0, HEAP_WORDS, False, NOT_TOLD),
        (3, 0, "", False, NOT_TOLD),
    ],
)
def test_an_end_is_of_memory_only_where_the_kernel_or_the_jvm_says_so(
    status: int, kills: int, said: str, taken_all: bool, outcome: str
) -> None:
    """A signal 9 alone may be anybody's."""
    assert outcome_of(status, kills, said, taken_all=taken_all) == outcome


def test_with_room_it_is_to_live_and_with_half_to_die() -> None:
    """Three sizes, two libraries, two settings each, both shares; each library dies its own way."""
    cells = list(limit_cells())
    assert len({cell.name for cell in cells}) == len(cells) == 3 * 2 * 2 * 2
    rungs = MemoryCell("1MB", LIBRDKAFKA, "default"), MemoryCell("1MB", JAVA, "default")
    ends = [LimitCell(rung, share).expected for rung in rungs for share in (ROOM, HALF)]
    assert ends == [SURVIVES, OOM_KILLED, SURVIVES, HEAP_FULL]


def test_a_heap_has_what_is_predicted_in_it() -> None:
    """The buffer that a socket is read through is outside of Java's heap; of librdkafka the limit bounds everything."""
    java, librdkafka = MemoryCell("1MB", JAVA, "default"), MemoryCell("1MB", LIBRDKAFKA, "default")
    assert bounded_bytes(java) == 3 * 4 * 1024 * 1024
    assert bounded_bytes(librdkafka) == predicted(librdkafka).process_bytes


def test_both_versions_of_control_groups_tell_kills() -> None:
    """memory.events of v2, memory.oom_control of v1; an old kernel tells none, and that is an error, not a zero."""
    assert kills_told("low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n") == 2
    assert kills_told("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n") == 1
    with pytest.raises(StartError, match=r"4\.13"):
        kills_told("oom_kill_disable 0\nunder_oom 0\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups are made by root")
@pytest.mark.parametrize(("takes", "status", "kills"), [(20 * MB, 0, 0), (120 * MB, -9, 1)])
def test_the_kernel_kills_whom_it_says(takes: int, status: int, kills: int) -> None:
    """Under 60 MB a process that takes 20 lives, one that takes 120 does not; the group is gone afterwards."""
    with memory_group() as group:
        group.limit(60 * MB)
        ended, _ = run_tool("hog", group.command([sys.executable, "-c", TAKES.format(takes)]))
        assert (ended, group.kills) == (status, kills)
        assert group.peak_bytes <= 60 * MB
    assert not group.folder.exists()
