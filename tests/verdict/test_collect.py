"""What a verdict rests on: the judge's findings, and what the run itself says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.check import reach_verdict
from kafka_trial.claim import Claim
from kafka_trial.history.consequences import consequences_in
from kafka_trial.history.event import Event
from kafka_trial.history.recorder import Recorder
from kafka_trial.judge.judgement import (
    SERIES,
    Coverage,
    FaultCoverage,
    Finding,
    Judgement,
    MemberCoverage,
    SliceCoverage,
)
from kafka_trial.judge.not_judged import NotJudged, NotJudgedReason
from kafka_trial.model.trial_context import CpuWait, Incarnation, IntermediateTopic, Settings, TrialContext, Window
from kafka_trial.verdict.collect import collect, own_events
from kafka_trial.verdict.messages import plain
from kafka_trial.verdict.verdict_input import AnomalyResult, Fault, Scope, VerdictInput, claim_of, scope_of
from literal_run import make_folder

WELL = TrialContext(ended="ok", witnesses={"offsets": "complete"}, counts={"offsets": 9, "run": 5})


PLANNED = Scope(2, planned=({"no": 0, "fault": "kill", "target": "member"},))


def said(kind: str, source: str = "run", seq: int = 1, **details: Any) -> Event:
    """Returns an event of the harness's own."""
    member = details.pop("member", None)
    return Event(source, seq, seq, kind, member=member, details=details)


def part(partition: int, records: int = 100) -> SliceCoverage:
    """Returns the coverage of a partition of which every record was handled once."""
    return SliceCoverage(
        "t", partition, records, records, records, 0, records, 3, keyed=records, repeated_keys=records, done=records
    )


def judgement(trial_context: TrialContext = WELL, **changes: Any) -> Judgement:
    """Returns the judgement on a history in which all went well, but for the changes."""
    parts = {"findings": {}, "coverage": Coverage((part(0), part(1))), "series": SERIES.empty_table()} | changes
    return Judgement(trial_context=trial_context, **parts)


def case(events: list[Event] | None = None, scope: Scope = Scope(2), **changes: Any) -> VerdictInput:  # noqa: B008 - frozen
    """Returns what is gathered from a judgement and events."""
    return collect(judgement(**changes), events or [], scope)


def test_a_run_that_went_well_has_nothing_against_it() -> None:
    """Witnesses that read to the end, an end, enough records: nothing but counts."""
    assert case() == VerdictInput(
        (),
        counts=dict.fromkeys(("records", "handled", "deliveries", "completions"), 200)
        | {"effects": 0, "commits": 6, "commits refused": 0},
    )


def test_what_members_discarded_by_their_own_word_alone_proves_nothing() -> None:
    """Nothing was done, no sink heard of anything, and nothing was handed on; one record that was done is enough."""
    nothing_done = replace(part(0), done=0)
    told = "all 200 records that were handled were discarded or set aside, by the members' word alone"
    assert case(coverage=Coverage((nothing_done, replace(part(1), done=0)))).gaps == (told,)
    assert case(coverage=Coverage((nothing_done, replace(part(1), done=1)))).gaps == ()


def test_a_topic_without_a_key_is_told() -> None:
    """Nobody can tell order per key there; one record with a key is enough."""
    assert case(coverage=Coverage((replace(part(0), keyed=0),))).keyless
    assert not case(coverage=Coverage((replace(part(0), keyed=1),))).keyless
    assert not case(coverage=Coverage()).keyless


def test_a_topic_where_each_key_comes_once_is_told() -> None:
    """Nobody can tell order per key there; two records of one key are enough."""
    assert case(coverage=Coverage((replace(part(0), repeated_keys=0),))).keys_unique
    assert not case(coverage=Coverage((replace(part(0), repeated_keys=2),))).keys_unique
    assert not case(coverage=Coverage()).keys_unique


def test_what_the_machine_withheld_is_told_by_its_samples() -> None:
    """Of each member over all its incarnations, the one with the least first; of who waited, the sums."""
    samples = [
        said("resources", seq=second, member=member, incarnation=incarnation, cpu_s=cpu_s, rss_bytes=1)
        for second, member, incarnation, cpu_s in (
            *((1, "m0", 1, 0.5), (11, "m0", 1, 5.5), (1, "m3", 1, 0.2), (6, "m3", 1, 1.2)),
            *((8, "m3", 2, 0.1), (13, "m3", 2, 0.9), (9, "m4", 1, 3.0)),
        )
    ]
    samples = [replace(event, time_ns=event.seq * 1_000_000_000) for event in samples]
    waits = tuple(CpuWait(second * 10**9, 400_000_000, 150_000_000, 10**9) for second in range(10))
    late = ((1, 20_000_000), (2, 1_200_000_000))
    assert case(samples, trial_context=replace(WELL, cpu_waits=waits, delays=late)).withheld == (
        "in 10 s, members were ready to run and had no processor for up to 4.0 s, brokers for up to 1.5 s",
        "m3 had 1.8 s of processor in 10 s, m0 had 5.0 s of processor in 10 s",
        "the harness itself came up to 1.2 s late",
    )


def test_what_another_try_would_meet_again_is_marked() -> None:
    """A claim that cannot be read, and a judge that broke; not a witness that died."""
    broken = judgement(replace(WELL, witnesses={"offsets": "dead"}), crashed={"torn": "KeyError: 1"})
    collected = collect(broken, [], Scope(2), unknowns=("it is not known what was claimed",))
    assert collected.ground == (
        "it is not known what was claimed",
        "the witness offsets died",
        "the judge broke in torn: KeyError: 1",
    )
    assert collected.lasting == ("it is not known what was claimed", "the judge broke in torn: KeyError: 1")


def test_how_late_lines_were_read_is_counted() -> None:
    """The median of what was measured of all readers, and the worst, in milliseconds."""
    readings = tuple(("consumer-m0-0", second, ms * 1_000_000) for second, ms in enumerate((31, 28, 90, 33)))
    counts = case(trial_context=replace(WELL, readings=readings)).counts
    assert (counts["lines read within ms, median"], counts["lines read within ms, worst"]) == (33, 90)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ended": None}, "the history is truncated: it has no end"),
        ({"ended": "info", "environment": ("Ctrl-C",)}, "the environment failed: Ctrl-C"),
        ({"ended": "info"}, "the trial ended early"),
        ({"witnesses": {"offsets": "ready"}}, "the witness offsets never said that it had read to the end"),
        ({"witnesses": {"offsets": "behind"}}, "the witness offsets was behind at the snapshot"),
        ({"witnesses": {"offsets": "dead"}}, "the witness offsets died"),
        ({"witnesses": {"offsets": "undecodable"}}, "the witness offsets met a record it cannot decode"),
        ({"witnesses": {}}, "the witness offsets did not say that it saw all"),
        ({"settings": Settings(sink="topic")}, "the witness sink did not say that it saw all"),
        ({"settings": Settings(sink="postgres")}, "the witness sink did not say that it saw all"),
    ],
)
def test_what_failed_on_our_side_is_named(changes: dict[str, Any], told: str) -> None:
    """Truncated, ended early, environment, witnesses: each gives its sentence."""
    assert case(trial_context=replace(WELL, **changes)).ground == (told,)


def test_a_damaged_history_and_a_broken_judge_are_our_side() -> None:
    """Neither acquits or convicts anybody; an invariant that crashed is only not judged."""
    why = NotJudged(NotJudgedReason.CRASHED, {"error": "ZeroDivisionError"})
    findings = {"skipped": Finding("skipped", "delivery", not_judged=why)}
    crashed = {"coverage": "KeyError: 3", "skipped": "ZeroDivisionError"}
    found = case(findings=findings, defects=("offsets.jsonl: a torn last line",), crashed=crashed)
    assert found.ground == (
        "the history is damaged: offsets.jsonl: a torn last line",
        "the judge broke in coverage: KeyError: 3",
    )


def test_findings_keep_their_counts_and_reasons() -> None:
    """Examples, how many more, what was undecided, and why something was not judged."""
    seen = Anomaly("redelivered", "t", 1, {"offset": 5}, ("m#1",))
    findings = {
        "redelivered": Finding("redelivered", "delivery", (seen,), 7, {"no floor": 2}),
        "commit-ahead": Finding(
            "commit-ahead", "commits", not_judged=NotJudged(NotJudgedReason.NO_SENDS, applies=False)
        ),
    }
    assert case(findings=findings).found == (
        AnomalyResult(
            "commit-ahead",
            not_judged="no send of the workload was recorded",
            not_judged_reason=NotJudgedReason.NO_SENDS,
            applies=False,
        ),
        AnomalyResult("redelivered", (seen,), 6, {"no floor": 2}),
    )


def test_too_little_to_judge_is_a_gap() -> None:
    """Fewer records than it takes, and partitions without any, each have their sentence."""
    assert case(coverage=Coverage((part(0, 20), part(1, 0))), scope=Scope(3)).gaps == (
        "20 records were judged, fewer than the 100 needed",
        "no record was judged on partitions 1, 2",
    )


def test_partitions_that_were_added_must_have_been_judged_too() -> None:
    """The scenario knows of two; the observer saw four, of the last of which nobody read anything."""
    more = replace(WELL, partitions=4, partitions_added=True)
    parts = Coverage((part(0), part(1), part(2)))
    assert case(coverage=parts, trial_context=more).gaps == ("no record was judged on partition 3",)
    assert case(coverage=parts).gaps == ()


def test_too_few_handled_records_are_a_gap() -> None:
    """Whoever lost all but one was not judged by the others; where none was handled, the partition is named."""
    lost = [replace(part(0), handled=1), replace(part(1), handled=0), part(2, 3)]
    assert case(coverage=Coverage(tuple(lost)), scope=Scope(3)).gaps == (
        "4 of 203 records were handled, fewer than the 100 needed",
        "no record was handled on partition 1",
    )


def test_that_nothing_was_handled_is_no_gap_where_it_is_the_finding() -> None:
    """Partition 1 stood still from its first record on; why partition 2 shows nothing, nobody knows."""
    parts = [part(0), replace(part(1), handled=0), replace(part(2), handled=0)]
    stuck = Anomaly("stuck-partition", "t", 1, {"offset": 0}, ())
    found = {"stuck-partition": Finding("stuck-partition", "liveness", (stuck,), 1)}
    gaps = case(coverage=Coverage(tuple(parts)), scope=Scope(3), findings=found).gaps
    assert gaps == ("no record was handled on partition 2",)


@pytest.mark.parametrize(
    ("told", "notes"),
    [
        (None, ()),
        ((20.4, 10.0), ("the drain took 25.0 s: words",)),
        (
            (17.0, 12.0),
            (
                "the drain took 25.0 s: words",
                "the run ended its drain by other bounds than the judge's: B = 17.0 s (the judge: 20.0 s), "
                "W = 12.0 s (the judge: 10.0 s)",
            ),
        ),
    ],
    ids=["by an earlier version", "nearly the same", "others"],
)
def test_the_bounds_of_the_drain_are_told_and_where_the_judge_reckons_others(
    told: tuple[float, float] | None, notes: tuple[str, ...]
) -> None:
    """Judged by 20 s and 10 s."""
    phases = {"drain": 0, "snapshot": 25_000_000_000}
    about = replace(WELL, drain_bound_s=told, phases=phases)
    bounds = {"bounds_s": {"converge": 20.0, "stuck": 10.0}, "bounds_in_words": "words"}
    assert case(trial_context=about, **bounds).notes == notes


WORDS = "m0: its last words in logs/m0-0.stderr: no such table"


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ("http", "no effect came to the sink: members are to post to `{sink_url}/effect`; "),
        (
            "topic",
            "no effect came to the sink: members are to write to the topic that [sink.topic] names, and to no other; ",
        ),
        (
            "postgres",
            "no effect came to the sink: members are to write to `{postgres_url}`, which has no TLS, and is not at "
            "localhost where they are containers; ",
        ),
        ("none", ""),
    ],
)
def test_where_nothing_was_handled_the_reason_says_where_to_look(sink: str, told: str) -> None:
    """What the sink of this consumer is, and what a member wrote last."""
    trial_context = replace(WELL, settings=Settings(sink=sink), witnesses=WELL.witnesses | {"sink": "complete"})
    none = Coverage((replace(part(0), handled=0), replace(part(1), handled=0)))
    found = case([said("few_handled", count=0, message=WORDS)], trial_context=trial_context, coverage=none)
    assert found.gaps == (f"0 of 200 records were handled, fewer than the 100 needed; {told}{WORDS}",)


def test_where_little_was_handled_the_reason_has_the_last_words_alone() -> None:
    """Effects came: whoever looks for their place looks in vain."""
    few = Coverage((replace(part(0), handled=3), replace(part(1), handled=4)))
    found = case(
        [said("few_handled", count=7, message=WORDS)],
        trial_context=replace(WELL, settings=Settings(sink="http")),
        coverage=few,
    )
    assert found.gaps == (f"7 of 200 records were handled, fewer than the 100 needed; {WORDS}",)


def test_handled_records_are_enough_where_some_were_lost() -> None:
    """The scenario asks for so many: what else is missing the anomalies tell."""
    lost = Coverage((replace(part(0), handled=60), replace(part(1), handled=40)))
    assert case(coverage=lost).gaps == ()


def test_of_a_silent_consumer_the_records_count() -> None:
    """Nobody can say what it handled, and that is told elsewhere."""
    silent = replace(WELL, settings=Settings(events="none", sink="none"))
    parts = (replace(part(0), handled=0), replace(part(1), handled=0))
    assert case(trial_context=silent, coverage=Coverage(parts)).gaps == ()


IDLE, WHOLE = "m1 had no partition in hand when it was hit", "m1 did no work in the whole trial"
AFTERWARDS = "nothing was done any more on the partitions m1 had in hand"
MEANWHILE = "m1 did no work while it was in force"


@pytest.mark.parametrize(
    ("fault", "m1", "faults", "gap"),
    [
        ("pause", MemberCoverage(5, 5, 1), FaultCoverage(2, 9), None),
        ("pause", MemberCoverage(0, 0, 0), FaultCoverage(0, 0), WHOLE),
        ("pause", MemberCoverage(0, 0, 3, 9), FaultCoverage(2, 9, 9), WHOLE),
        ("pause", MemberCoverage(5, 5, 1), FaultCoverage(0, 0), IDLE),
        ("pause", MemberCoverage(5, 5, 1), FaultCoverage(2, 0, 9), AFTERWARDS),
        ("latency", MemberCoverage(5, 5, 1, 0, {0: (1, 0, 0, 0)}), FaultCoverage(0, 0), None),
        ("latency", MemberCoverage(5, 5, 1, 0, {0: (0, 0, 0, 0)}), FaultCoverage(2, 9), MEANWHILE),
        ("latency", MemberCoverage(5, 5, 9, 9, {0: (0, 0, 9, 9)}), FaultCoverage(2, 9), MEANWHILE),
    ],
)
def test_a_fault_on_an_idle_member_proves_nothing(
    fault: str, m1: MemberCoverage, faults: FaultCoverage, gap: str | None
) -> None:
    """What stops a member must hit one that had work in hand; under what lets traffic pass, some must have passed."""
    assert gaps_of(fault, m1, faults, m0=MemberCoverage(9, 9, 2)) == (
        (f"fault 0 ({fault}) proves nothing about the consumer: {gap}",) if gap else ()
    )


@pytest.mark.parametrize(
    ("fault", "m1", "faults", "gap"),
    [
        ("pause", MemberCoverage(0, 0, 5, 3), FaultCoverage(2, 0, 3), None),
        ("pause", MemberCoverage(0, 0, 5), FaultCoverage(2, 0, 3), WHOLE),
        ("pause", MemberCoverage(0, 0, 5, 3), FaultCoverage(2, 0, 0), AFTERWARDS),
        ("latency", MemberCoverage(0, 0, 5, 3, {0: (0, 0, 5, 1)}), FaultCoverage(0, 0), None),
        ("latency", MemberCoverage(0, 0, 5, 3, {0: (0, 0, 5, 0)}), FaultCoverage(2, 0, 9), MEANWHILE),
    ],
)
def test_of_members_that_say_nothing_what_moves_is_work(
    fault: str, m1: MemberCoverage, faults: FaultCoverage, gap: str | None
) -> None:
    """Commits that rise and bytes that are fetched; a position that is only committed again is nothing."""
    found = gaps_of(fault, m1, faults, m0=MemberCoverage(0, 0, 2, 2))
    assert found == ((f"fault 0 ({fault}) proves nothing about the consumer: {gap}",) if gap else ())


def gaps_of(fault: str, m1: MemberCoverage, faults: FaultCoverage, *, m0: MemberCoverage) -> tuple[str, ...]:
    """Returns what is said of a trial of two members in which the fault was on m1."""
    window = Window(0, fault, "member: m1", "m1", 1, 2, consequences=consequences_in({"fault": fault}))
    coverage = Coverage((part(0), part(1)), {"m0": m0, "m1": m1}, {0: faults})
    return case(trial_context=TrialContext(ended="ok", windows=(window,)), coverage=coverage).gaps


def test_a_plan_that_cannot_be_read_is_a_gap() -> None:
    """It keeps a pass from being given, and no violation from being told."""
    assert case(scope=Scope(2, unknowns=("nobody knows",))).gaps == ("nobody knows",)


def test_a_fault_is_what_its_evidence_says() -> None:
    """Bit and healed come from the evidence event; the role is kept beside the name it had."""
    shown = said("evidence", "nemesis", fault_no=0, fault="stall", target="member: m1", bit=True, message="held")
    assert case([shown]).faults == (Fault("stall", "m1", "member", bit=True, evidence="held"),)


def test_traffic_that_does_not_come_back_is_not_healed() -> None:
    """Only where the fault is to heal."""
    base = {"fault": "stall", "target": "all: all", "bit": True, "message": "held", "healed_traffic": False}
    events = [said("evidence", "nemesis", number, fault_no=number, heals=number == 0, **base) for number in (0, 1)]
    assert [fault.healed for fault in case(events).faults] == [False, True]


def test_whoever_works_after_its_fault_was_healed_came_back() -> None:
    """However long that took: the run itself waits for some seconds, and a session may be longer."""
    base = {"fault": "kill", "target": "member: m0", "bit": True, "message": "killed", "heals": True}
    events = [said("evidence", "nemesis", number, fault_no=number, healed_traffic=False, **base) for number in (0, 1)]
    coverage = Coverage(
        (part(0), part(1)), faults={0: FaultCoverage(1, 9, traffic_after_heal=9), 1: FaultCoverage(1, 9)}
    )
    assert [fault.healed for fault in case(events, coverage=coverage).faults] == [True, False]


WENT, CAME = Incarnation(0, 0, 0, 1, exited_ns=20, asked="stop"), Incarnation(1, 0, 1, 50)


@pytest.mark.parametrize(
    ("fault", "at_ns", "reasons"),
    [("records-deleted", 30, 0), ("records-deleted", 10, 2), ("records-deleted", 60, 2), ("kill", 30, 2)],
)
def test_of_a_fault_of_the_topic_while_nobody_ran_no_traffic_is_asked(fault: str, at_ns: int, reasons: int) -> None:
    """The trial had stopped the only member from 20 to 50 ns; there may be nothing left to read when it is back."""
    base = {"fault": fault, "target": "all: all", "bit": True, "message": "the log start moved", "heals": True}
    event = said("evidence", "nemesis", fault_no=0, healed_traffic=False, **base)
    away = replace(
        WELL,
        members=("m0",),
        incarnations=(WENT, CAME),
        windows=(Window(0, fault, "all: all", None, at_ns + 5, at_ns + 9, at_ns, consequences_in({"fault": fault})),),
    )
    coverage = Coverage((part(0), part(1)), {"m0": MemberCoverage(5, 5, 1)}, {0: FaultCoverage(0, 0)})
    found = case([event], trial_context=away, coverage=coverage)
    assert sum(not one.healed for one in found.faults) + len(found.gaps) == reasons


def test_a_planned_fault_without_evidence_did_not_bite() -> None:
    """The plan knows of two, the history of one: the other is not shown, in its place."""
    shown = said("evidence", "nemesis", fault_no=1, fault="close", target="member: m1", bit=True, message="closed")
    planned = [{"no": 0, "fault": "stall", "target": "leader"}, {"no": 1, "fault": "close", "target": "member"}]
    assert [
        (fault.kind, fault.target, fault.bit) for fault in case([shown], Scope(2, planned=tuple(planned))).faults
    ] == [
        ("stall", "leader", False),
        ("close", "m1", True),
    ]


def test_a_member_that_assigns_itself_and_fetches_was_never_without_partitions() -> None:
    """It prints no `assigned`; another one that fetched nothing has failed, and so has one that subscribes."""
    events = [said("consumer_failure", seq=seq, member=f"m{seq}", name="never-assigned") for seq in (0, 1)]
    by_hand = replace(WELL, settings=Settings(protocol="none"), members=("m0", "m1"), lanes={0: 0, 1: 1}, fetching=(0,))
    (failure,) = case(events, trial_context=by_hand).failures
    assert (failure.anomaly, failure.events) == ("never-assigned", ("run#1",))
    (both,) = case(events, trial_context=replace(by_hand, settings=Settings())).failures
    assert both.count == 2


def test_a_consumer_that_never_joins_has_failed_where_a_control_member_joined() -> None:
    """Two members without partitions are one failure, with both events."""
    failures = [
        said("consumer_failure", seq=seq, member=f"m{seq}", name="never-assigned", message="see /a/b/m1.stderr")
        for seq in (2, 3)
    ]
    (failure,) = case([said("control_member", seq=1, state="joined"), *failures]).failures
    assert (failure.anomaly, failure.count, failure.events) == ("never-assigned", 2, ("run#2", "run#3"))
    assert failure.sentence == (
        "m2, m3 never got a partition, where a control member of the harness got its own: see m1.stderr"
    )


def test_a_consumer_that_never_joins_is_told_whether_it_ever_connected() -> None:
    """By the log of the proxies before the brokers; of m3 there is none."""
    failures = [
        said("consumer_failure", seq=seq, member=f"m{seq}", name="never-assigned", message="waited", **told)
        for seq, told in enumerate(({"connections": 0}, {"connections": 1}, {"connections": 7}, {}))
    ]
    (failure,) = case(failures).failures
    opened = "m0 opened no connections, m1 opened 1 connection, m2 opened 7 connections to the brokers of {bootstrap}"
    assert failure.sentence == f"m0, m1, m2, m3 never got a partition ({opened}): waited"


S = 1_000_000_000
KILL, PAUSE = (
    Window(0, "kill", "member: m1", "m1", 20 * S, 30 * S),
    Window(1, "pause", "all: all", None, 28 * S, 40 * S),
)


@pytest.mark.parametrize(
    ("exited_s", "windows", "when"),
    [
        (14.5, (KILL, PAUSE), "4.5 s after its start, before the first fault"),
        (22, (KILL, PAUSE), "12.0 s after its start, during fault 0 (kill)"),
        (29, (KILL, PAUSE), "19.0 s after its start, during fault 0 (kill) and fault 1 (pause)"),
        (31, (KILL,), "21.0 s after its start, after fault 0 (kill) was healed"),
        (99, (replace(KILL, healed_ns=None),), "89.0 s after its start, during fault 0 (kill)"),
        (14.5, (), "4.5 s after its start, before the first fault"),
    ],
)
def test_an_exit_says_when_it_was(exited_s: float, windows: tuple[Window, ...], when: str) -> None:
    """How long after the member's own start, and where among the faults; one that none was played before is before."""
    assert exits({"m0": exited_s}, windows) == f"m0 exited by itself {when}: with status 3"


def test_an_exit_in_a_trial_without_faults_says_so() -> None:
    """There is no fault that it could have come of."""
    assert exits({"m0": 12}, (), Scope(2)) == (
        "m0 exited by itself 2.0 s after its start, in a trial without faults: with status 3"
    )


def test_of_several_that_exited_each_has_its_time() -> None:
    """One whose file does not say when it went has none."""
    assert exits({"m0": 12, "m1": None}, (KILL,)) == (
        "m0, m1 exited by itself (m0 2.0 s after its start, before the first fault): with status 3"
    )
    assert exits({"m0": None}, (KILL,)) == "m0 exited by itself: with status 3"


def exits(exited_s: dict[str, float | None], windows: tuple[Window, ...], scope: Scope = PLANNED) -> str:
    """Returns what is said of members that were started at 10 s and exited by themselves, each at its instant."""
    incarnations = [
        Incarnation(number, number, 0, 10 * S, exited_ns=round(at_s * S) if at_s else None, code=3, asked="no")
        for number, at_s in enumerate(exited_s.values())
    ]
    incarnations.append(
        Incarnation(8, 0, 1, 30 * S, exited_ns=90 * S, signal=15, asked="stop")
    )  # its next one was stopped
    events = [
        said("consumer_failure", seq=seq, member=member, name="exited", message="with status 3")
        for seq, member in enumerate(exited_s)
    ]
    context = replace(WELL, windows=windows, members=tuple(exited_s), incarnations=tuple(incarnations))
    (failure,) = collect(judgement(context), events, scope).failures
    return failure.sentence


@pytest.mark.parametrize(("name", "anomaly"), [("exited", "crash-loop"), ("never-stopped", "unbounded-close")])
def test_what_the_judge_tells_is_not_told_twice(name: str, anomaly: str) -> None:
    """The plain failure of the member that an anomaly is about is left to it; another member's stays."""
    seen = Anomaly(anomaly, None, None, {"member": "m0"}, ("consumer-m0-0#9",))
    failures = [said("consumer_failure", seq=seq, member=f"m{seq}", name=name, message="gone") for seq in (0, 1)]
    judged = {anomaly: Finding(anomaly, "liveness", (seen,), 1)}
    assert [one.events for one in case(failures, findings=judged).failures] == [("run#1",)]
    blind = {anomaly: Finding(anomaly, "liveness", not_judged=NotJudged(NotJudgedReason.EXITS_UNKNOWN, applies=False))}
    assert [one.events for one in case(failures, findings=blind).failures] == [("run#0", "run#1")]


def test_where_no_control_member_joins_the_ground_is_at_fault() -> None:
    """Then nobody can blame the consumer."""
    events = [said("control_member", state="failed"), said("consumer_failure", name="never-assigned")]
    assert (case(events).ground, case(events).failures) == (
        ("not even a control member of the harness could join a group on the cluster",),
        (),
    )


def test_messages_hold_no_paths_and_one_line() -> None:
    """verdict.json must be the same in another folder."""
    assert plain("cannot open /tmp/x/y.jsonl:\n '/home/a/b' and a/b stay") == "cannot open y.jsonl:  'b' and a/b stay"


def test_the_claim_is_that_of_the_run_folder(tmp_path: Path) -> None:
    """What is in its consumer.toml; where that is cut off, nobody knows, and says so."""
    folder = make_folder(tmp_path)
    toml = folder.path / "consumer.toml"
    toml.write_text('[claim]\ndelivery = "at-most-once"\norder = "key"\n')
    assert claim_of(folder) == (Claim("at-most-once", order="key"), [])
    toml.write_text("[claim]\n")
    assert claim_of(folder)[1][0].startswith("it is not known what was claimed: [claim] delivery is missing")
    toml.write_text("[cla")
    assert claim_of(folder)[1] == ["it is not known what was claimed: consumer.toml cannot be read (TOMLDecodeError)"]


def test_the_scope_is_that_of_scenario_and_schedule(tmp_path: Path) -> None:
    """Partitions, the least number of records and the planned faults; defaults where the files are cut off."""
    folder = make_folder(tmp_path)
    folder.write_json("scenario.json", {"topic": {"partitions": 2}, "limits": {"records_judged_min": 7}})
    folder.write_json("schedule.json", {"faults": [{"no": 0}]})
    assert scope_of(folder) == Scope(2, 7, ({"no": 0},))
    (folder.path / "scenario.json").unlink()
    (folder.path / "schedule.json").write_text("{")
    assert scope_of(folder) == Scope(
        unknowns=(
            "it is not known how much was to be judged: scenario.json is missing or damaged",
            "it is not known how many faults were planned: schedule.json is missing or damaged",
        )
    )


def test_a_smaller_load_is_told(tmp_path: Path) -> None:
    """In the verdict's notes, with what was sent in its place; a scenario with all of its load says nothing."""
    folder = make_folder(tmp_path)
    folder.write_json("scenario.json", {"load": {"factor": 0.1, "opening_burst": 200, "rate_per_s": 30.0}})
    (note,) = case(scope=scope_of(folder)).notes
    assert note.startswith("the load was 0.1 of the scenario's own: 200 records at once, then 30.0 a second;")
    folder.write_json("scenario.json", {"load": {"opening_burst": 200}})
    assert scope_of(folder).load == ""


def test_what_expired_while_nobody_ran_is_named() -> None:
    """Though no claim forbids it: with the ranges."""
    gone = [
        Anomaly("overtaken", "t", 2, {"offset": 60, "last_offset": 115, "while_away": away}, ())
        for away in (True, False)
    ]
    found = {"overtaken": Finding("overtaken", "delivery", count=2, instances=tuple(gone))}
    assert case(findings=found).notes == (
        "expired while the trial had stopped all members: offsets 60 to 115 of partition 2",
    )


@pytest.mark.parametrize("damage", ['{"seed": 7}', '{"faults": [{"no": 0}, 3]}', '{"faults": null}', "[]"])
def test_a_schedule_that_is_not_whole_is_doubted(tmp_path: Path, damage: str) -> None:
    """How many faults it held nobody knows: a pass would not tell through what."""
    folder = make_folder(tmp_path)
    (folder.path / "schedule.json").write_text(damage)
    assert scope_of(folder).unknowns == (
        "it is not known how many faults were planned: schedule.json is missing or damaged",
    )


def test_the_conclusion_is_written_beside_the_history(tmp_path: Path) -> None:
    """verdict.json, anomalies.jsonl and the series, all from one judgement; the same bytes for another name."""
    folder = make_folder(tmp_path)
    written = []
    for name in ("orders", "payments"):
        (folder.path / "consumer.toml").write_text(
            f'name = "{name}"\n[claim]\ndelivery = "unclaimed"\norder = "none"\n'
        )
        reach_verdict(folder, judgement())
        written.append((folder.path / "verdict.json").read_bytes())
    assert (written[0] == written[1], b"unknown" in written[0]) == (True, True)
    assert pq.read_table(folder.path / "series.parquet").num_rows == 0
    assert [event.source for event in own_events(folder)] == ["run"] * 3


def test_what_brokers_refused_is_noted_and_decides_nothing(tmp_path: Path) -> None:
    """Of a member that never got in it may be all that there is."""
    folder = make_folder(tmp_path)
    without = reach_verdict(folder, judgement())
    with Recorder(folder.history, "consumer-m0-0") as member, Recorder(folder.history, "requests-b0") as requests:
        member.record("started", member="m0", incarnation=0, lane=0, pid=7)
        told = {"api": "OffsetCommit", "version": 1, "reason": "unsupported", "count": 3, "message": "see /a/b/c"}
        requests.record("request_refused", lane=0, **told)
    noted = reach_verdict(folder, judgement())
    note = "m0: b0 refused OffsetCommit v1 3 times, and closed the connection without an answer (see c)"
    assert noted == replace(without, notes=(note, *without.notes))


def test_how_much_was_handed_on_is_told_by_topic() -> None:
    """And how much there bears no id; where nothing was handed on, nothing is told of it."""
    through = (IntermediateTopic("g-way", 2014), IntermediateTopic("g-later", 3, 1500))
    assert case(trial_context=replace(WELL, through=through)).notes[:2] == (
        "the group handed on 2,014 records through its topic g-way",
        "the group handed on 3 records through its topic g-later; 1,500 there have no id of the trial's records",
    )
    assert not any("handed on" in note for note in case().notes)
