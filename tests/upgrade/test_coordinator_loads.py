"""Loads of coordinators, from lines as each version of Kafka logs them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.kafka_protocol.offsets_records import group_partition
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.trial.setup import KEPT_BYTES_MAX
from kafka_trial.upgrade.availability_events import NEVER, StageTimes
from kafka_trial.upgrade.coordinator_loads import NOT_ENDED, BrokerLogs, CoordinatorLoad, logged_loads

SECOND = 1_000_000_000
OLD = "(kafka.coordinator.group.GroupMetadataManager)"
NEW = "(org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
B6, B3 = "[GroupMetadataManager brokerId=6]", "[GroupCoordinator id=3]"  # of 3.9 and before; of the new coordinator
PLACE = "__consumer_offsets-3"


def at(second: int, said: str, level: str = "INFO") -> str:
    return f"[2026-11-27 19:27:{second:02},500] {level} {said}"


OF_3_9 = (
    at(1, f"{B6} Scheduling loading of offsets and group metadata from {PLACE} for epoch 4 {OLD}"),
    at(
        2,
        f"{B6} Finished loading offsets and group metadata from {PLACE} in 988 milliseconds for epoch 4, of which "
        f"7 milliseconds was spent in the scheduler. {OLD}",
    ),
)
OF_4 = (
    at(1, f"{B3} Scheduling loading of metadata from {PLACE} with epoch 1 {NEW}"),
    at(
        2,
        f"{B3} Finished loading of metadata from {PLACE} with epoch 1 in 988ms where 7ms was spent in the scheduler. "
        f"Loaded 497 records which total to 52763 bytes. {NEW}",
    ),
)
OF_3_7_NEW = (
    OF_4[0],
    at(
        2,
        f"{B3} Finished loading of metadata from {PLACE} with epoch 1 and LoadSummary=LoadSummary("
        f"startTimeMs=1795807656000, endTimeMs=1795807656988, numRecords=497, numBytes=52763). {NEW}",
    ),
)
ALREADY_ACTIVE = (
    *OF_4,
    at(5, f"{B3} Scheduling loading of metadata from {PLACE} with epoch 2 {NEW}"),
    at(5, f"{B3} The coordinator {PLACE} is already active. {NEW}"),
)
ALREADY_LOADED_BY_3_9 = (
    *OF_3_9,
    at(5, f"{B6} Scheduling loading of offsets and group metadata from {PLACE} for epoch 5 {OLD}"),
    at(5, f"{B6} Already loading offsets and group metadata from {PLACE} {OLD}"),
)
LOADING_STILL = (
    OF_4[0],
    at(1, f"{B3} Scheduling loading of metadata from {PLACE} with epoch 2 {NEW}"),
    at(1, f"{B3} The coordinator {PLACE} is already loading metadata. {NEW}"),
)
FAILED = (
    OF_4[0],
    at(2, f"{B3} Failed to load metadata from {PLACE} with epoch 1 due to java.lang.Error: no kt. {NEW}", "ERROR"),
)
FAILED_BY_3_9 = (OF_3_9[0], at(2, f"{B6} Error loading offsets from {PLACE} {OLD}", "ERROR"))
GIVEN_UP = (
    OF_4[0],
    at(2, f"{B3} Scheduling unloading of metadata for {PLACE} with epoch OptionalInt[2] {NEW}"),
)
KILLED = (OF_4[0], at(3, f"{B3} Starting up. (org.apache.kafka.coordinator.group.GroupCoordinatorService)"))
KILLED_3_9 = (OF_3_9[0], at(3, "[GroupCoordinator 6]: Starting up. (kafka.coordinator.group.GroupCoordinator)"))
LOADED = [(0.988, "")]


@pytest.mark.parametrize(
    ("lines", "loads"),
    [
        *((OF_3_9, LOADED), (OF_4, LOADED), (OF_3_7_NEW, LOADED)),
        *((ALREADY_ACTIVE, LOADED), (ALREADY_LOADED_BY_3_9, LOADED)),
        (LOADING_STILL, [(None, NOT_ENDED)]),
        ((*LOADING_STILL, OF_4[1]), LOADED),
        (FAILED, [(None, "java.lang.Error: no kt")]),
        (FAILED_BY_3_9, [(None, "its server.log does not say why")]),
        *((GIVEN_UP, []), (KILLED, []), (KILLED_3_9, [])),
        ((*KILLED, *OF_4), LOADED),
        ((), []),
    ],
    ids=[
        *("3.9", "4.0 to 4.4, and 3.9's new coordinator", "3.7's new coordinator"),
        *("is active", "3.9: is active", "is loading", "was loading", "failed", "3.9: failed", "given up"),
        *("its process was killed", "3.9: its process was killed", "loaded by the next process", "nothing"),
    ],
)
def test_loads_are_read_as_each_version_logs_them(
    lines: tuple[str, ...], loads: list[tuple[float | None, str]]
) -> None:
    """Seconds as the broker counts them; None where it failed or goes on; one that was needless is none."""
    told = list(logged_loads("\n".join(lines), 3))
    assert [(one.took_s, one.problem) for one in told] == loads


@pytest.mark.parametrize("lines", [OF_3_9, OF_4, OF_3_7_NEW, FAILED, FAILED_BY_3_9, LOADING_STILL])
def test_other_partitions_are_none_of_the_groups(lines: tuple[str, ...]) -> None:
    """Not 3 in the place of 30, nor 30 in the place of 3."""
    text = "\n".join(lines)
    assert list(logged_loads(text, 30)) == []
    assert list(logged_loads(text.replace("offsets-3", "offsets-30"), 3)) == []


@pytest.fixture(name="utc")
def utc_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local time of a test is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


GROUP = "kt-group"
BEGIN_WALL_NS = 1_795_807_620 * SECOND  # 2026-11-27 19:27:00 UTC
CLOCKS = TrialContext(clocks=((BEGIN_WALL_NS, 100 * SECOND),))
STAGE = StageTimes(100 * SECOND, 110 * SECOND, 120 * SECOND)
NEXT = StageTimes(120 * SECOND, 130 * SECOND, NEVER)


def kept(folder: Path, *brokers: int, before: str = "") -> BrokerLogs:
    """The logs of brokers, the last of which loads the group in the first stage."""
    partition = group_partition(GROUP, partitions=8)
    loads = "\n".join(OF_4).replace("offsets-3", f"offsets-{partition}")
    for broker in brokers:
        (folder / f"b{broker}-server.log").write_text(before + (loads if broker == brokers[-1] else at(0, "Started")))
    return BrokerLogs(folder, GROUP, CLOCKS)


@pytest.mark.usefixtures("utc")
def test_a_load_is_of_the_stage_in_which_it_ended(tmp_path: Path) -> None:
    """By the clocks of the trial; a stage without a load has none, which is not the same as not recorded."""
    logs = kept(tmp_path, 0, 3)
    assert logs.loads([0, 3], STAGE, base_ns=90 * SECOND) == [CoordinatorLoad(3, 12.5, 0.988)]
    assert logs.loads([3], NEXT, base_ns=90 * SECOND) == []
    assert logs.spans[3] == [(101_512_000_000, 102_500_000_000)]


@pytest.mark.usefixtures("utc")
def test_loads_are_not_recorded_where_a_log_is_missing(tmp_path: Path) -> None:
    """All logs, that of a coordinator, the pairs of clocks, or the beginning of a log that was too long to be kept."""
    (tmp_path / "none").mkdir()
    assert BrokerLogs(tmp_path / "none", GROUP, CLOCKS).loads([], STAGE, base_ns=0) is None
    assert kept(tmp_path, 3).loads([0, 3], STAGE, base_ns=0) is None
    assert BrokerLogs(tmp_path, GROUP, TrialContext()).loads([3], STAGE, base_ns=0) is None
    long = kept(tmp_path, 3, before=at(1, "x" * KEPT_BYTES_MAX) + "\n")
    assert long.loads([3], STAGE, base_ns=0) is None
    assert long.loads([3], NEXT, base_ns=0) == []
