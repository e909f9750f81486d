"""Go, no-go or unknown: what a stage answers for, and by whose fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.claim import Claim
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.upgrade.cluster_state import Loss
from kafka_trial.upgrade.outcome import (
    GO,
    NO_GO,
    NOT_KNOWN,
    StageOutcome,
    StageVerdicts,
    of_cluster,
)
from kafka_trial.verdict.decide import Verdict, Violation

NOTHING: dict[str, Any] = {"judged": (), "not_judged": (), "tolerated": (), "counts": {}, "faults": ()}
PASSED = Verdict("pass", 0, Claim("at-least-once"), violations=(), reasons=(), **NOTHING)
FAILED = replace(PASSED, verdict="fail", exit=1)
UNDECIDED = replace(PASSED, verdict="unknown", exit=4)


def folder_of(place: Path, *anomalies: dict[str, Any], stage_ends: tuple[int, ...]) -> RunFolder:
    """A stage's history: an event of a member at each second, and the end of the run at the last of `stage_ends`."""
    folder = create_run_folder(place, "stage", "orders")
    seconds = range(stage_ends[-1])
    events = [{"source": "m0", "seq": at, "time_ns": at * 10**9, "kind": "processed"} for at in seconds]
    (folder.history / "m0.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in events))
    reads = [{"source": "observer", "seq": 0, "time_ns": stage_ends[-1] * 10**9 - 1, "kind": "record"}]
    (folder.history / "observer.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in reads))
    end = {"schema": 1, "source": "run", "seq": 0, "time_ns": stage_ends[-1] * 10**9, "kind": "end"}
    (folder.history / "run.jsonl").write_bytes(orjson.dumps(end) + b"\n")
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in anomalies))
    return folder


def anomaly(offset: int, *events: str, weight: str = "violation", name: str = "skipped") -> dict[str, Any]:
    told = {"anomaly": name, "topic": "orders", "partition": 0, "attributes": {"offset": offset}, "weight": weight}
    return told | {"events": list(events), "sentence": f"record {offset} was left out"}


def outcome_of(
    verdicts: StageVerdicts, stage: str, folder: RunFolder, verdict: Verdict, losses: Sequence[Loss] = ()
) -> StageOutcome:
    """What came of a stage, on a cluster that had lost nothing unless said."""
    return verdicts.outcome(stage, folder, verdict, losses)


def failed(count: int) -> Verdict:
    return replace(FAILED, violations=(Violation("skipped", count, "record 1 was left out", (), None),))


def test_a_violation_is_of_the_stage_that_proves_it_last(tmp_path: Path) -> None:
    """The next stage has it in its history too, and does not answer for it."""
    verdicts, old = StageVerdicts("orders"), anomaly(1, "m0#1", "observer#0")
    first = outcome_of(verdicts, "before", folder_of(tmp_path / "1", old, stage_ends=(3,)), failed(1))
    assert (first.outcome, first.accused, first.reason) == (NO_GO, "consumer", "skipped: record 1 was left out")
    second = outcome_of(verdicts, "mixed-1", folder_of(tmp_path / "2", old, stage_ends=(3, 6)), failed(1))
    assert second.outcome == GO
    both = (old, anomaly(5, "m0#7"))
    third = outcome_of(verdicts, "rolled", folder_of(tmp_path / "3", *both, stage_ends=(3, 6, 9)), failed(2))
    assert (third.outcome, third.reason) == (NO_GO, "skipped: record 5 was left out")


def test_what_only_a_later_stage_can_see_is_of_that_stage(tmp_path: Path) -> None:
    """Its proofs are of before, and yet no stage before had found it."""
    verdicts = StageVerdicts("orders")
    assert outcome_of(verdicts, "before", folder_of(tmp_path / "1", stage_ends=(3,)), PASSED).outcome == GO
    late = outcome_of(verdicts, "mixed-1", folder_of(tmp_path / "2", anomaly(1, "m0#1"), stage_ends=(3, 6)), failed(1))
    assert late.outcome == NO_GO


def test_who_has_no_address_left_is_stranded_by_a_setting(tmp_path: Path) -> None:
    """Where the group stands still and no more; whoever breaks its claim beside that is the accused."""
    stranded = [Loss("setting", "every address that m1 was started with is gone")]
    for place, also, accused in (("still", (), "setting"), ("also", (anomaly(1, "m0#1"),), "consumer")):
        still = (anomaly(1, name="stuck-partition"), anomaly(2, name="unseen"))
        folder = folder_of(tmp_path / place, *also, *still, stage_ends=(3,))
        told = StageVerdicts("orders").outcome("replaced", folder, FAILED, [], stranded)
        assert (told.outcome, told.accused) == (NO_GO, accused)
        lost = [Loss("cluster", "a commit is gone")]  # explains what is broken, not that no address is left
        beside = StageVerdicts("orders").outcome("replaced", folder, FAILED, lost, stranded)
        assert (beside.outcome, beside.accused) == ((NOT_KNOWN, "cluster") if also else (NO_GO, "setting"))
    folder = folder_of(tmp_path / "sound", stage_ends=(3,))
    assert StageVerdicts("orders").outcome("replaced", folder, PASSED, [], stranded).outcome == GO


@pytest.mark.parametrize("accused", ["cluster", "setting"])
def test_what_breaks_after_the_cluster_has_lost_something_is_nobodys(accused: str, tmp_path: Path) -> None:
    """It may follow from that; a go stays, and so does a no-go where only a setting changed."""
    losses = [Loss(accused, "the committed offset of partition 0 is gone")]
    broken = folder_of(tmp_path / "broken", anomaly(1, "m0#1"), stage_ends=(3,))
    told = outcome_of(StageVerdicts("orders"), "rolled", broken, failed(1), losses)
    assert (told.outcome, told.accused) == ((NOT_KNOWN, "cluster") if accused == "cluster" else (NO_GO, "consumer"))
    assert ("the committed offset" in told.reason) is (accused == "cluster")
    assert "record 1 was left out" in told.reason
    sound = folder_of(tmp_path / "sound", stage_ends=(3,))
    assert outcome_of(StageVerdicts("orders"), "rolled", sound, PASSED, losses).outcome == GO


def test_a_stage_that_changed_a_broker_from_which_nobody_read_is_unknown(tmp_path: Path) -> None:
    """Nothing is broken, and nothing shows that the consumer can read from it; the next stage has none of that."""
    verdicts = StageVerdicts("orders")
    for ends, outcome in (((3,), NOT_KNOWN), ((3, 6), GO)):
        folder = folder_of(tmp_path / str(len(ends)), stage_ends=ends)
        details = {"brokers": [{"broker": 1, "version": "4.3.1"}]}
        with Recorder(folder.history, "nemesis") as nemesis:
            nemesis.record("evidence", time_ns=2 * 10**9, fault_no=0, fault="version-roll", details=details)
        told = outcome_of(verdicts, "mixed-1", folder, PASSED)
        assert (told.outcome, told.accused) == (outcome, "")
        assert ("from b1 (4.3.1 now)" in told.reason) is (outcome == NOT_KNOWN)


def test_what_is_left_at_the_end_of_a_drain_is_of_its_stage(tmp_path: Path) -> None:
    """No event proves that nothing moved; it is told anew of each stage."""
    verdicts, stuck = StageVerdicts("orders"), anomaly(1, name="stuck-partition")
    for number, stage in enumerate(("before", "mixed-1"), 1):
        folder = folder_of(tmp_path / stage, stuck, stage_ends=(3 * number,))
        assert outcome_of(verdicts, stage, folder, FAILED).outcome == NO_GO


def test_more_of_what_the_list_does_not_hold_is_of_the_stage(tmp_path: Path) -> None:
    """A list of anomalies has an end, their count has none."""
    verdicts, old = StageVerdicts("orders"), anomaly(1, "m0#1")
    outcome_of(verdicts, "before", folder_of(tmp_path / "1", old, stage_ends=(3,)), failed(1))
    again = outcome_of(verdicts, "mixed-1", folder_of(tmp_path / "2", old, stage_ends=(3, 6)), failed(2))
    assert again.outcome == NO_GO


def cut_off_at(folder: RunFolder, at_s: int) -> RunFolder:
    """Adds to a stage's history that brokers became another version at a second, and that m0 was served before it."""
    roll = {"fault_no": 0, "fault": "version-roll", "bit": True, "details": {"brokers": []}}
    told = {
        "consumer-m0-0": ("started", 0, {"member": "m0", "incarnation": 0, "lane": 0, "pid": 1}),
        "requests-b0": ("request", at_s - 1, {"api": "FETCH", "lane": 0}),
        "nemesis": ("evidence", at_s, roll),
    }
    for source, (kind, second, fields) in told.items():
        event = {"schema": 1, "source": source, "seq": 0, "time_ns": second * 10**9, "kind": kind, **fields}
        (folder.history / f"{source}.jsonl").write_bytes(orjson.dumps(event) + b"\n")
    return folder


@pytest.mark.parametrize(("name", "word"), [("stuck-partition", "Cause"), ("skipped", "Besides")])
def test_a_member_that_was_cut_off_is_named_beside_what_is_proven(tmp_path: Path, name: str, word: str) -> None:
    """The cause of what stands still; of what was lost it may be another."""
    folder = cut_off_at(folder_of(tmp_path / "1", anomaly(1, name=name), stage_ends=(6,)), 3)
    told = outcome_of(StageVerdicts("orders"), "rolled", folder, FAILED)
    said = "m0 sent no request to these brokers, its last one came 1.0 s before they were as they are"
    assert (told.outcome, told.reason) == (NO_GO, f"{name}: record 1 was left out. {word}: {said}")
    unknown = replace(UNDECIDED, reasons=("too little was handled",))
    other = cut_off_at(folder_of(tmp_path / "2", stage_ends=(6,)), 3)
    told = outcome_of(StageVerdicts("orders"), "rolled", other, unknown)
    assert (told.outcome, told.reason) == (NOT_KNOWN, f"too little was handled. Besides: {said}")


def test_who_was_cut_off_is_not_told_of_a_go(tmp_path: Path) -> None:
    """A member may rest."""
    folder = cut_off_at(folder_of(tmp_path / "1", stage_ends=(6,)), 3)
    assert outcome_of(StageVerdicts("orders"), "rolled", folder, PASSED).reason == ""


def test_what_the_cluster_lost_is_no_consumers(tmp_path: Path) -> None:
    """Unknown for the consumer, and a no-go for the cluster."""
    lost = anomaly(1, "m0#1", weight="ground", name="lost-write")
    told = outcome_of(StageVerdicts("orders"), "before", folder_of(tmp_path / "1", lost, stage_ends=(3,)), UNDECIDED)
    assert (told.outcome, told.accused) == (NOT_KNOWN, "cluster")
    assert of_cluster("before", [Loss("setting", "min.insync.replicas fell")]).accused == "setting"


@pytest.mark.parametrize("reasons", [("the machine stood still",), ()])
def test_a_reason_is_of_the_stage_that_has_it_first(reasons: tuple[str, ...], tmp_path: Path) -> None:
    """Unknown in the first stage does not make the next one unknown; a new reason does."""
    verdicts = StageVerdicts("orders")
    unsure = replace(UNDECIDED, reasons=reasons) if reasons else PASSED
    first = outcome_of(verdicts, "before", folder_of(tmp_path / "1", stage_ends=(3,)), unsure)
    assert first.outcome == (NOT_KNOWN if reasons else GO)
    assert outcome_of(verdicts, "mixed-1", folder_of(tmp_path / "2", stage_ends=(3, 6)), unsure).outcome == GO
    more = replace(UNDECIDED, reasons=(*reasons, "a witness ended early"))
    last = outcome_of(verdicts, "rolled", folder_of(tmp_path / "3", stage_ends=(3, 6, 9)), more)
    assert (last.outcome, last.reason) == (NOT_KNOWN, "a witness ended early")


def test_nobody_is_convicted_where_the_ground_failed(tmp_path: Path) -> None:
    """A violation beside a harness that stood still is unknown."""
    unsure = replace(failed(1), verdict="unknown", exit=4, reasons=("the machine stood still",))
    folder = folder_of(tmp_path / "1", anomaly(1, "m0#1"), stage_ends=(3,))
    told = outcome_of(StageVerdicts("orders"), "before", folder, unsure)
    assert (told.outcome, told.reason) == (NOT_KNOWN, "the machine stood still")
