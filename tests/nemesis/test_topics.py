"""Records are deleted when they are due: after the group committed past them, or had its time. Without a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.nemesis import topics
from kafka_trial.nemesis.context import FaultContext
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.samples import LogSnapshot, LogSpan
from kafka_trial.nemesis.topics import records_deleted

DUE_S = 1.0
ENDS = {0: 10, 1: 20}


class Told:
    """Stands for an injection: logs that start where they were deleted, and commits that rise at each look."""

    def __init__(
        self,
        *,
        commits: Iterator[dict[int, int]],
        partition: int | None = None,
        due: bool = True,
        busier_s: float = 0.0,
    ) -> None:
        self.starts = dict.fromkeys(ENDS, 0)
        self.deleted: list[dict[int, int]] = []
        self.waited_s: list[float] = []
        self.began_s = time.monotonic()
        self.stop = threading.Event()
        self.target = SimpleNamespace(partition=partition)
        self.context = SimpleNamespace(
            due_s=(lambda _: DUE_S) if due else None,
            busier_s=lambda _: busier_s,
            committed_offsets=lambda: next(commits),
            delete_records=self.delete,
        )

    def delete(self, below: dict[int, int]) -> None:
        self.waited_s.append(time.monotonic() - self.began_s)
        self.deleted.append(below)
        self.starts |= below

    def log(self, _: str) -> LogSnapshot:
        return LogSnapshot(0, tuple(LogSpan(part, self.starts[part], end) for part, end in ENDS.items()))

    def injecting(self) -> None:
        """Nothing to write down."""

    def hold(self, look: Any) -> list[LogSnapshot]:
        return [look()]


def commits(*looks: dict[int, int]) -> Iterator[dict[int, int]]:
    yield from looks
    while True:
        yield looks[-1]


def played(told: Any, **options: Any) -> Evidence:
    return next(records_deleted(told, **options))


def test_all_goes_at_once_unless_it_must_be_old() -> None:
    """Every partition, up to where it ended."""
    told = Told(commits=commits({}))
    assert (played(told).took_effect, told.deleted) == (True, [ENDS])
    told = Told(commits=commits({}))
    played(told, older_than_s=0.3)
    assert told.waited_s[0] >= 0.3


def test_only_the_partition_that_the_target_leads() -> None:
    """The other keeps its records."""
    told = Told(partition=1, commits=commits({}))
    assert (played(told).took_effect, told.deleted) == (True, [{1: 20}])


def test_what_is_committed_past_goes_soon() -> None:
    """As soon as the slowest partition is past it."""
    told = Told(commits=commits({0: 10}, {0: 10, 1: 20}))
    assert played(told, once_due=True).details["committed"] == {"0": 10, "1": 20}
    assert told.waited_s[0] < DUE_S


def test_what_is_not_committed_past_goes_when_the_group_had_its_time() -> None:
    """One partition hangs back: it has all the time that its claim gives, and no more."""
    told = Told(commits=commits({0: 10, 1: 19}))
    assert played(told, once_due=True).took_effect
    assert DUE_S <= told.waited_s[0] < 3 * DUE_S


def test_a_group_has_more_time_where_the_machine_is_busier_than_before() -> None:
    """By as much as members and brokers waited longer for a processor."""
    told = Told(commits=commits({0: 10, 1: 19}), busier_s=0.7)
    assert played(told, once_due=True).details["busier_s"] == 0.7
    assert told.waited_s[0] >= DUE_S + 0.7


def test_a_group_that_may_take_for_ever_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault did not take effect, and says why."""
    monkeypatch.setattr(topics, "WAITS_MAX_S", DUE_S / 2)
    told = Told(commits=commits({0: 10, 1: 19}))
    seen = played(told, once_due=True)
    assert (seen.took_effect, "might still be at" in seen.message, told.deleted) == (False, True, [])


def test_commits_of_a_group_that_keeps_its_progress_elsewhere_tell_nothing() -> None:
    """Nobody is asked for them."""
    elsewhere: Any = FaultContext(*[None] * 7, progress_in_kafka=False)  # type: ignore[arg-type]
    assert elsewhere.committed_offsets() == {}


def test_a_group_whose_time_nobody_knows_loses_nothing() -> None:
    """It could not be injected."""
    told = Told(commits=commits({}), due=False)
    with pytest.raises(UnjudgeableError, match="how long the group may take"):
        played(told, once_due=True)
    assert told.deleted == []
