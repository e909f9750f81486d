"""What was lost when the coordinators loaded a compacted offsets log, by their answers and their logs."""

from __future__ import annotations

from kafka_trial.kafka_protocol.group_requests import GroupState
from kafka_trial.upgrade.cluster_state import Loss
from kafka_trial.upgrade.reload import Answer, of_side_group, of_trial, why_not_loaded
from kafka_trial.upgrade.side_groups import CONVERTED, DELETED, SideGroup

CONVERTED_GROUP = SideGroup("g", CONVERTED, 7, "consumer")  # "g" is of partition 7
DELETED_GROUP = SideGroup("g", DELETED, 7, None)
AS_IT_WAS = Answer(2, {("kt-side", 0): 7}, GroupState("Empty", "consumer", (), 4))
DEAD = GroupState("Dead", "classic", ())
REFUSED = Answer(2, {}, refusal="NOT_COORDINATOR (16)", log_line="[…] ERROR Failed to load …")
SILENT = "; its server.log does not say why"
LOG = """\
[2026-11-27 17:00:00,000] INFO [GroupCoordinator id=0] Loading of metadata from __consumer_offsets-7 (…)
[2026-11-27 17:00:00,001] ERROR [GroupCoordinator id=0] Failed to load metadata from __consumer_offsets-7 due to A. (…)
[2026-11-27 17:00:00,002] ERROR [GroupCoordinator id=0] Failed to load metadata from __consumer_offsets-7 due to B. (…)
[2026-11-27 17:00:00,003] ERROR [GroupCoordinator id=0] Failed to load metadata from __consumer_offsets-70 due to C. (…)
[2026-11-27 17:00:00,004] ERROR [GroupMetadataManager brokerId=0] Error loading offsets from __consumer_offsets-3 (…)
[2026-11-27 17:00:00,005] INFO [GroupCoordinator id=0] Finished loading of metadata from __consumer_offsets-1 in 5ms (…)
[2026-11-27 17:00:00,006] ERROR [Partition __consumer_offsets-1 broker=0] Failed to append records (…)
"""


def told(losses: object) -> list[str]:
    """Returns the sentences, after the cluster was seen to be accused in each."""
    assert isinstance(losses, list)
    assert all(isinstance(one, Loss) and one.accused == "cluster" for one in losses)
    return [one.sentence for one in losses]


def test_a_group_on_trial_is_loaded_with_what_it_had_written() -> None:
    """Or further: it may have committed since its offsets log was read."""
    written = {("t", 0): 5, ("t", 1): 7}
    assert list(of_trial("g", written, Answer(2, {("t", 0): 5, ("t", 1): 8, ("u", 0): 1}))) == []
    assert told(list(of_trial("g", written, Answer(2, {("t", 0): 4})))) == [
        f"the committed offset of g on t-{partition} is gone: the offsets log had {had}, its coordinator loaded "
        f"{answered}{SILENT}"
        for partition, had, answered in ((0, 5, "4"), (1, 7, "none"))
    ]


def test_a_group_that_is_not_served_is_lost_by_name() -> None:
    """Its partition, the coordinator's refusal and the line of its log are named."""
    why = (
        "broker 2 did not load __consumer_offsets-7 (NOT_COORDINATOR (16)); its server.log: […] ERROR Failed to load …"
    )
    assert told(list(of_trial("g", {}, REFUSED))) == [f"the group g is not served: {why}"]
    assert told(list(of_side_group(CONVERTED_GROUP, REFUSED))) == [f"the group g (converted) is not served: {why}"]
    assert told(list(of_side_group(DELETED_GROUP, REFUSED))) == [f"the group g (deleted) is not served: {why}"]


def test_a_side_group_is_loaded_as_it_was_left() -> None:
    """Its position to the number, its state, its protocol; what is deleted stays so."""
    assert list(of_side_group(CONVERTED_GROUP, AS_IT_WAS)) == []
    assert list(of_side_group(DELETED_GROUP, Answer(2, {}, DEAD))) == []
    assert told(list(of_side_group(CONVERTED_GROUP, Answer(2, {("kt-side", 0): 8}, DEAD)))) == [
        "the committed offset of g (converted) on kt-side-0 is gone: the offsets log had 7, its coordinator loaded 8"
        + SILENT,
        "the group g (converted) was Empty, consumer, and its coordinator loaded it as Dead, classic" + SILENT,
    ]
    assert told(list(of_side_group(DELETED_GROUP, AS_IT_WAS))) == [
        "the group g (deleted) has a committed offset on kt-side-0 again: 7" + SILENT,
        "the group g (deleted) was Dead, and its coordinator loaded it as Empty, consumer" + SILENT,
    ]


def test_the_last_line_that_says_why_a_partition_was_not_loaded_is_found() -> None:
    """Of that partition alone, of either coordinator; other errors are none."""
    lines = LOG.splitlines()
    assert why_not_loaded(LOG, 7) == lines[2]
    assert why_not_loaded(LOG, 3) == lines[4]
    assert why_not_loaded(LOG, 1) is None
