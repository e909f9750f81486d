"""Progress: what the drain waits for, by the lines of a history, and what is seen live of the group under trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.claim import Claim
from kafka_trial.consumers.spec import ConsumerSpec, Ready
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder, create_run_folder
from kafka_trial.model.liveness_bounds import FRESH_MIN, convergence_bound_s
from kafka_trial.trial.group_watch import GroupWatch
from kafka_trial.trial.progress import DrainWatch, FreshRecords, Progress

ENDS = {("t", 0): 4}
HERE = {"topic": "t", "partition": 0}


def written(tmp_path: Path, source: str, *lines: tuple[str, dict[str, Any]]) -> RunFolder:
    """Returns a run folder: the workload wrote r0 at 0, and took back what lies at 1 and 2; `source` says more."""
    folder = create_run_folder(tmp_path / "run", "test", "test")
    sent = ("send", HERE | {"id": "r0", "outcome": "ok", "offset": 0}), ("send", {"id": "r1", "outcome": "fail"})
    for name, told in (("workload", sent), (source, lines)):
        recorder = Recorder(folder.history, name)
        for kind, fields in told:
            recorder.record(kind, **fields)
        recorder.close()
    return folder


def test_where_records_are_taken_back_there_is_what_was_acknowledged(tmp_path: Path) -> None:
    """Behind the last of them lie aborted records and markers, which nobody has to commit past."""
    folder = written(tmp_path, "offsets", ("committed", HERE | {"committed_offset": 1}))
    progress = Progress(folder, ("t",), "g", by_sends=True).update()
    assert progress.ends(ENDS) == {("t", 0): 1}
    assert (progress.records(ENDS), progress.lag(progress.ends(ENDS))) == (1, 0)


def position(value: int, at: int, producer_id: int | None = None, *, topic: str = "t") -> tuple[str, dict[str, Any]]:
    about = HERE | {"topic": topic, "committed_offset": value, "log_offset": at, "producer_id": producer_id}
    return "committed", about


def marker(producer_id: int, state: str) -> tuple[str, dict[str, Any]]:
    return "transaction_marker", {"producer_id": producer_id, "state": state}


@pytest.mark.parametrize(
    ("lines", "committed"),
    [
        ((position(1, 1), position(3, 2)), 3),
        ((position(3, 1), position(1, 2)), 1),  # the last one stands
        ((position(1, 1, 8), marker(8, "commit")), 1),
        ((position(1, 1), position(3, 2, 8), marker(8, "abort")), 1),
        ((position(1, 1), position(3, 2, 8)), 1),
        ((position(1, 1), position(3, 2, 8), marker(9, "commit")), 1),
        ((position(1, 1, 8), position(3, 2), marker(8, "commit")), 3),
    ],
    ids=["two", "back", "committed", "aborted", "pending", "another's marker", "older in the log"],
)
@pytest.mark.parametrize("topic", ["t", "t-retry"])
def test_a_position_in_a_transaction_is_in_effect_when_that_is_committed(
    tmp_path: Path, lines: tuple[tuple[str, dict[str, Any]], ...], committed: int, topic: str
) -> None:
    """Coordinators answer no other, in the trial's topic and in one that records are handed on through."""
    told = [(kind, fields | ({"topic": topic} if "topic" in fields else {})) for kind, fields in lines]
    progress = Progress(written(tmp_path, "offsets", *told), ("t",), "g").update()
    through = {place: position for _, place, position in progress.commits_through}
    here = {(topic, 0): committed}
    assert (progress.committed, through) == ((here, {}) if topic == "t" else ({}, here))


def test_commits_on_an_intermediate_topic_are_movements(tmp_path: Path) -> None:
    """The judge counts its partitions with the others; a topic that the group commits on and nobody reads is none."""
    folder = create_run_folder(tmp_path / "run", "test", "test")
    with Recorder(folder.history, "offsets") as offsets:
        for at_s, topic, committed_offset in ((1, "t", 1), (2, "t-retry", 1), (3, "t", 2), (9, "t-retry", 2)):
            about = {"topic": topic, "partition": 0, "committed_offset": committed_offset}
            offsets.record("committed", time_ns=at_s * 10**9, **about)
    progress = Progress(folder, ("t",), "g").update()
    assert progress.moves.movements.longest_gap_s == 2
    with Recorder(folder.history, "through") as through:
        through.record("through", topic="t-retry")
    assert progress.update().moves.movements.longest_gap_s == 7
    assert progress.moves.progressed_ns == 9 * 10**9


def test_who_handles_what_was_taken_back_has_not_handled_the_rest(tmp_path: Path) -> None:
    """By its lines, and by its effects."""
    done = [("processed", HERE | {"offset": offset}) for offset in (1, 2)]
    folder = written(tmp_path, "consumer-m0-0", *done)
    assert Progress(folder, ("t",), "g", by_sends=True).update().handled_total() == 0
    assert Progress(folder, ("t",), "g").update().handled_total() == 2
    folder = written(tmp_path / "2", "sink", ("effect", {"id": "r1"}), ("effect", {"id": "r0"}))
    assert Progress(folder, ("t",), "g", by_sends=True, by_effects=True).update().handled_total() == 1


def test_what_is_given_up_waits_for_no_effect(tmp_path: Path) -> None:
    """Where effects count, a record that had none and was discarded is done; one that had both is one record."""
    lines = [("processed", HERE | {"offset": 0, "outcome": outcome}) for outcome in ("discarded", "done")]
    by_effects = {"by_effects": True, "no_effect": ("discarded",)}
    folder = written(tmp_path, "consumer-m0-0", *lines)
    assert Progress(folder, ("t",), "g", **by_effects).update().handled_total() == 1
    assert Progress(folder, ("t",), "g", by_effects=True).update().handled_total() == 0
    with Recorder(folder.history, "sink") as sink:
        sink.record("effect", id="r0")
    assert Progress(folder, ("t",), "g", **by_effects).update().handled_total() == 1


def test_elsewhere_the_log_says_how_much_there_is(tmp_path: Path) -> None:
    """Nobody reads the workload's lines there."""
    progress = Progress(written(tmp_path, "sink"), ("t",), "g").update()
    assert (progress.ends(ENDS), progress.records(ENDS), progress.acknowledged_ids) == (ENDS, 4, set())


def test_what_expired_before_anybody_ran_is_not_waited_for(tmp_path: Path) -> None:
    """Of what was gone when the processes that run were started nothing is left to do; what expires later may be in
    their hands."""
    folder = written(tmp_path, "consumer-m0-1", ("started", {"member": "m0", "lane": 1, "time_ns": 20}))
    with Recorder(folder.history, "observer") as recorder:
        recorder.record("log_start", time_ns=10, **HERE, offset=2)
        recorder.record("log_start", time_ns=30, **HERE, offset=3)
    progress = Progress(folder, ("t",), "g").update()
    assert (progress.records(ENDS), progress.lag(ENDS), sum(progress.backlog(ENDS).values())) == (2, 2, 2)
    with Recorder(folder.history, "consumer-m0-2") as recorder:
        recorder.record("exited", time_ns=40, member="m0")
    progress.update()
    assert (progress.records(ENDS), progress.lag(ENDS), progress.is_left(ENDS)) == (1, 1, True)


SECOND_NS = 1_000_000_000
SPEC = ConsumerSpec(Path("consumer.toml"), "c", ("true",), Claim("at-least-once"))
Told = tuple[str, float, str, dict[str, Any]]


def watch_of(tmp_path: Path, *lines: Told) -> GroupWatch:
    """Returns the group of a history of (source, second, kind, fields)."""
    tmp_path.mkdir(exist_ok=True)
    for source in dict.fromkeys(line[0] for line in lines):
        with Recorder(tmp_path, source) as recorder:
            for _, at_s, kind, fields in (line for line in lines if line[0] == source):
                recorder.record(kind, time_ns=round(at_s * SECOND_NS), **fields)
    return GroupWatch(tmp_path, "g", SPEC).update()


def group(at_s: float, *members: str, session_ms: int = 45_000) -> Told:
    """A classic group record."""
    about = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": 300_000}
    return "offsets", at_s, "group", {"group": "g", "epoch": 1, "members": [{"member_id": m} | about for m in members]}


def phase(at_s: float, name: str) -> Told:
    return "run", at_s, "phase", {"phase": name}


def kill(number: int, at_s: float, member: str) -> list[Told]:
    about = {"fault_no": number, "fault": "kill", "target": f"member: {member}", "member": member}
    return [("nemesis", at_s, "injected", about), ("nemesis", at_s + 2, "healed", about)]


TWICE = [group(5, "a", "b", "c"), phase(10, "faults"), *kill(0, 11, "m0"), *kill(1, 22, "m1"), phase(30, "drain")]


def test_the_drain_lasts_for_two_sessions_in_series(tmp_path: Path) -> None:
    """From the first kill on, a rebalance of the declared 10 s and of a heartbeat after each."""
    timing = watch_of(tmp_path, *TWICE).timing()
    assert (timing.session_timeout_s, timing.expiries) == (45.0, 2)
    assert timing.detection_s == pytest.approx(2 * (45 + 25) - (30 - 11))


def test_the_drain_waits_for_members_to_notice_partitions_that_were_added(tmp_path: Path) -> None:
    """As long as they say that they need for it, on top of all else."""
    about = {"fault_no": 0, "fault": "partitions-added", "target": "all: all"}
    told = [phase(10, "faults"), ("nemesis", 11, "injected", about), ("nemesis", 12, "healed", about)]
    before, after = (watch_of(tmp_path / name, *lines) for name, lines in (("b", told[:1]), ("a", told)))
    bounds_s = [convergence_bound_s(one.timing()) for one in (before, after)]
    assert bounds_s[1] - bounds_s[0] == SPEC.kafka.metadata_age_s


def waited(at_s: float, member_s: float, broker_s: float) -> Told:
    times_s = {"member_ns": member_s, "broker_ns": broker_s, "over_ns": 1.0}
    return "run", at_s, "cpu_wait", {name: round(value * SECOND_NS) for name, value in times_s.items()}


@pytest.mark.parametrize(
    ("samples", "busier_s"),
    [
        ([waited(2, 0.1, 0.1), waited(12, 0.6, 0.0), waited(13, 0.9, 0.9)], 1.2),
        ([waited(2, 0.5, 0.0), waited(12, 0.3, 0.0)], 0.0),
        ([waited(12, 0.9, 0.0)], 0.0),
        ([waited(2, 0.1, 0.0), waited(6, 0.9, 0.0), waited(31, 0.9, 0.0)], 0.0),
    ],
    ids=["busier", "less busy", "not told before", "at other times"],
)
def test_the_drain_lasts_longer_where_the_machine_is_busier(
    samples: list[Told], busier_s: float, tmp_path: Path
) -> None:
    """A fifth of the time was waited for a processor before, in two seconds of the drain six tenths and all of it."""
    calibrated: Told = "run", 3, "calibrated", {"rate": 100.0}
    before, drain = [one for one in samples if one[1] < 10], [one for one in samples if one[1] > 10]
    told = [phase(1, "steady"), *before[:1], calibrated, *before[1:], phase(10, "drain"), *drain]
    assert watch_of(tmp_path, *told).busier_s(now_ns=20 * SECOND_NS) == pytest.approx(busier_s)


@pytest.mark.parametrize(
    ("records", "now_s", "rests"),
    [
        ([], 25, False),
        ([group(56, "a", "d", "b", "e")], 57, False),
        ([group(56, "a", "d", "b", "e"), group(101, "a", "d", "e")], 102, True),
        ([group(24, "a", "b")], 25, False),
        ([], 200, True),
    ],
    ids=["nobody missed yet", "one dead is a member", "all dead are gone", "one too few", "long over"],
)
def test_a_group_rests_when_it_has_noticed_whom_it_lost(
    records: list[Told], now_s: int, rests: bool, tmp_path: Path
) -> None:
    """As many members as before the faults, and a change since the last of them was lost."""
    assert watch_of(tmp_path, *TWICE, *records).rests(now_ns=now_s * SECOND_NS) is rests


def test_a_consumer_without_a_group_rests(tmp_path: Path) -> None:
    """It assigns its partitions itself."""
    assert watch_of(tmp_path, phase(10, "faults"), *kill(0, 11, "m0")).rests(now_ns=12 * SECOND_NS)


def test_a_member_that_left_is_not_waited_for(tmp_path: Path) -> None:
    """By the request log, on its lane."""
    about = {"fault_no": 0, "fault": "terminate", "target": "member: m0", "member": "m0"}
    left = {"api": "LEAVE_GROUP", "group": "g", "lane": 0, "error": 0}
    word = ("consumer-m0-0", 1.0, "started", {"pid": 1, "lane": 0, "member": "m0", "incarnation": 0})
    stop = [("nemesis", 11.0, "injected", about), ("nemesis", 13.0, "healed", about)]
    lines = [word, group(5, "a"), phase(10, "faults"), *stop]
    assert watch_of(tmp_path / "1", *lines).lost_until_ns() > 50 * SECOND_NS
    assert watch_of(tmp_path / "2", *lines, ("requests-b0", 12.0, "request", left)).lost_until_ns() == 0


def test_the_longest_handler_and_round_are_those_before_the_faults(tmp_path: Path) -> None:
    """One of two seconds; the hang of a minute comes later."""
    here = {"member": "m0", "incarnation": 0, "topic": "t", "partition": 0}
    times = [(1.0, 3.0, 0), (5.0, 5.1, 1), (9.0, 9.1, 2), (12.0, 72.0, 3)]
    lines: list[Told] = [
        ("consumer-m0-0", at_s, kind, here | {"offset": offset})
        for begin_s, end_s, offset in times
        for at_s, kind in ((begin_s, "delivered"), (end_s, "processed"))
    ]
    timing = watch_of(tmp_path, phase(10, "faults"), group(0, "a", session_ms=6000), *lines).timing()
    assert (timing.longest_handler_s, timing.poll_interval_s) == (2.0, 4.0 + 2.0)


def test_partitions_are_fed_when_each_got_enough_since_the_group_last_changed() -> None:
    """A change begins anew; so does unrest."""
    fed, one, other = FreshRecords(), ("t", 0), ("t-small", 0)
    enough = {one: FRESH_MIN, other: FRESH_MIN}
    looks = [({one: 0, other: 0}, 1), (enough | {other: FRESH_MIN - 1}, 1), (enough, 2), (enough, None), (enough, 2)]
    assert [fed.look(ends, changes) for ends, changes in looks] == [False] * 5
    assert fed.look({one: 2 * FRESH_MIN, other: 2 * FRESH_MIN}, 2)


@pytest.mark.parametrize(
    ("seen", "over_s"),
    [
        ([(3, 3), (0, 0)], 2),  # at 1 s all is done; 1 s later it has stayed so
        ([(0, 0), (2, 0), (0, 0)], 3),  # a step back in between
        ([(0, 5), (0, 4)], 11),  # what was committed past may still come for 10 s
        ([(5, 5)], None),
    ],
)
def test_a_drain_is_over_when_nothing_more_can_come(seen: list[tuple[int, int]], over_s: int | None) -> None:
    """All done for the time to settle; or all committed, and nothing handled for as long as a partition may stand."""
    drain_watch = DrainWatch(settle_s=1.0, stalled_s=10.0)
    looks = [*seen, *seen[-1:] * 30]
    ends_s = [now_s for now_s, behind in enumerate(looks) if drain_watch.over(*behind, now_s=float(now_s))]
    assert next(iter(ends_s), None) == over_s


def test_where_positions_cannot_be_seen_what_is_missing_is_waited_for() -> None:
    """Nobody knows whether it was passed over."""
    drain_watch = DrainWatch(settle_s=1.0, stalled_s=None)
    assert not any(drain_watch.over(0, 5, now_s=float(now_s)) for now_s in range(100))
    assert not drain_watch.over(0, 0, now_s=100.0)
    assert drain_watch.over(0, 0, now_s=101.0)


THERE = {"topic": "g-way", "partition": 1}


def test_the_drain_waits_for_what_was_handed_on(tmp_path: Path) -> None:
    """All is committed in the trial's topic; one of two records is not, in the topic that they went through."""
    committed = [("committed", HERE | {"committed_offset": 4}), ("committed", THERE | {"committed_offset": 1})]
    folder = written(tmp_path, "offsets", *committed)
    with Recorder(folder.history, "through") as through:
        through.record("through", topic="g-way", partitions=2)
        for offset in (0, 1):
            through.record("handed_on", topic="g-assigned-only", partition=0, offset=offset)
            through.record("handed_on", **THERE, offset=offset, id=f"r{offset}")
    progress = Progress(folder, ("t",), "g").update()
    assert (progress.lag(ENDS), progress.is_left(ENDS), sum(progress.backlog(ENDS, by_handled=False).values())) == (
        1,
        True,
        1,
    )
    with Recorder(tmp_path, "offsets") as more:
        more.record("committed", **THERE, committed_offset=2)
        more.flush()
        with (folder.history / "offsets.jsonl").open("ab") as log:
            log.write(more.path.read_bytes())
    assert (progress.update().lag(ENDS), progress.is_left(ENDS)) == (0, False)


GONE_OVER = [
    ("offsets", 6.0, "group_tombstone", {"group": "g", "record_type": 2}),
    ("offsets", 6.0, "member", {"group": "g", "member_id": "a", "rebalance_timeout_ms": 300_000}),
]
BACK = [("offsets", 9.0, "group_tombstone", {"group": "g", "record_type": 5, "member_id": "a"}), group(9, "a")]


@pytest.mark.parametrize(
    ("lines", "classic"),
    [
        ([("requests-b0", 1.0, "request", {"api": "JOIN_GROUP", "group": "g"})], True),
        ([group(5, "a")], True),
        ([group(5, "a"), *GONE_OVER], False),
        ([group(5, "a"), *GONE_OVER, ("requests-b0", 7.0, "request", {"api": "JOIN_GROUP", "group": "g"})], False),
        ([group(5, "a"), *GONE_OVER, *BACK], True),
    ],
    ids=["joins", "classic", "goes over", "one joins as before", "goes back"],
)
def test_a_group_is_of_the_type_of_its_last_record(lines: list[Told], classic: bool, tmp_path: Path) -> None:
    """Its coordinator describes it so, whatever protocol each member speaks."""
    watch = watch_of(tmp_path, *lines)
    assert watch.classic is classic
    assert not watch.changes or watch.member_ids == frozenset("a")


def test_who_left_a_classic_group_before_it_went_over_is_no_member(tmp_path: Path) -> None:
    """It went over in a rebalance: no record lists the members that were left, and each is named anew."""
    lines = [group(5, "a", "b"), phase(5.5, "faults"), *GONE_OVER]
    joined = ("offsets", 6.0, "member", {"group": "g", "member_id": "new", "rebalance_timeout_ms": 300_000})
    watch = watch_of(tmp_path, *lines, joined)
    assert (watch.member_ids, watch.members_before) == ({"a", "new"}, 2)
    assert watch.rests(now_ns=7 * SECOND_NS)


def test_of_a_consumer_and_its_successors_the_longest_times_count(tmp_path: Path) -> None:
    """As for the judge, which reads the files of both."""
    longer = replace(SPEC, kafka=replace(SPEC.kafka, session_timeout_s=60.0), ready=Ready(within_s=90.0))
    found = GroupWatch(tmp_path, "g", SPEC, (longer,))._settings()
    assert (found.session_timeout_s, found.poll_interval_s, found.ready_within_s) == (60.0, 10.0, 90.0)
