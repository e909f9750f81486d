"""The hearing: what the run itself says."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_trial.hearing import Hearing, hear, plain
from kafka_trial.history.event import Event
from kafka_trial.verdict import Fault

END = Event("run", 9, 9, "end", outcome="ok")


def said(kind: str, source: str = "run", seq: int = 1, **details: Any) -> Event:
    """Returns an event of the harness's own."""
    member = details.pop("member", None)
    return Event(source, seq, seq, kind, member=member, details=details)


def test_a_run_that_went_well_says_nothing() -> None:
    """Witnesses that read to the end, an end: nothing to report."""
    ready, complete = said("witness", "offsets", 0, state="ready"), said("witness", "offsets", 5, state="complete")
    assert hear([ready, complete, END]) == Hearing()


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], "the history is truncated: it has no end"),
        ([Event("run", 9, 9, "end", outcome="info", details={"message": "Ctrl-C"})], "the trial ended early: Ctrl-C"),
        ([END, said("environment", message="broker 2 died")], "the environment failed: broker 2 died"),
        (
            [END, said("witness", "offsets", state="ready")],
            "the witness offsets never said that it had read to the end",
        ),
        ([END, said("witness", "offsets", state="behind")], "the witness offsets was behind at the snapshot"),
        ([END, said("witness", "requests-b1", state="dead")], "the witness requests-b1 died"),
        ([END, said("undecodable", "offsets", message="?")], "the witness offsets met a record it cannot decode"),
    ],
)
def test_what_failed_on_our_side_is_named(events: list[Event], told: str) -> None:
    """Truncated, ended early, environment, witnesses: each gives its sentence."""
    assert hear(events).ground == (told,)


def test_a_fault_is_what_its_evidence_says() -> None:
    """Bit and healed come from the evidence event; the role is kept beside the name it had."""
    shown = said("evidence", "nemesis", fault_no=0, fault="stall", target="member: m1", bit=True, message="held")
    assert hear([END, shown]).faults == (Fault("stall", "m1", "member", bit=True, evidence="held"),)


def test_traffic_that_does_not_come_back_is_not_healed() -> None:
    """Only where the fault is to heal."""
    base = {"fault": "stall", "target": "all: all", "bit": True, "message": "held", "healed_traffic": False}
    events = [said("evidence", "nemesis", number, fault_no=number, heals=number == 0, **base) for number in (0, 1)]
    assert [fault.healed for fault in hear([END, *events]).faults] == [False, True]


def test_a_planned_fault_without_evidence_did_not_bite() -> None:
    """The plan knows of two, the history of one: the other is not shown, in its place."""
    shown = said("evidence", "nemesis", fault_no=1, fault="close", target="member: m1", bit=True, message="closed")
    planned = [{"no": 0, "fault": "stall", "target": "leader"}, {"no": 1, "fault": "close", "target": "member"}]
    assert [(fault.kind, fault.target, fault.bit) for fault in hear([END, shown], planned).faults] == [
        ("stall", "leader", False),
        ("close", "m1", True),
    ]


def test_a_consumer_that_never_joins_has_failed_where_a_control_member_joined() -> None:
    """Two members without partitions are one failure, with both events."""
    failures = [
        said("consumer_failure", seq=seq, member=f"m{seq}", name="never-assigned", message="see /a/b/m1.stderr")
        for seq in (2, 3)
    ]
    (failure,) = hear([END, said("control_member", seq=1, state="joined"), *failures]).failures
    assert (failure.anomaly, failure.count, failure.events) == ("never-assigned", 2, ("run#2", "run#3"))
    assert failure.sentence == (
        "m2, m3 never got a partition, where a control member of the harness got its own: see m1.stderr"
    )


def test_where_no_control_member_joins_the_ground_is_at_fault() -> None:
    """Then nobody can blame the consumer."""
    events = [END, said("control_member", state="failed"), said("consumer_failure", name="never-assigned")]
    assert hear(events) == Hearing(ground=("the cluster let not even a control member of the harness join",))


def test_messages_hold_no_paths_and_one_line() -> None:
    """verdict.json must be the same in another folder."""
    assert plain("cannot open /tmp/x/y.jsonl:\n '/home/a/b' and a/b stay") == "cannot open y.jsonl:  'b' and a/b stay"
