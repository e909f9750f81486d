"""The judgement as a whole: what crashed, what was seen, how much there was to judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from group_lines import synced
from histories import (
    MS,
    SECOND_NS,
    Line,
    after,
    answered,
    asked,
    assigned,
    committed,
    delivered,
    effect,
    exited,
    fault,
    fetched,
    generation,
    handled,
    healed,
    history,
    holds,
    judgement,
    log_end,
    log_start,
    oom_kills,
    owner,
    processed,
    revoked,
    sampled,
    sent,
    started,
    stood_still,
    with_settings,
)
from kafka_trial.anomalies import ordering
from kafka_trial.anomalies.invariant import EXAMPLES_MAX, Invariant, find_invariant, list_invariants
from kafka_trial.history.event import Event, from_line, to_line
from kafka_trial.judge import findings
from kafka_trial.judge import judge as judging
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings

pytestmark = pytest.mark.lengthy

FORTY_SEVEN = 47


def test_every_anomaly_has_an_invariant() -> None:
    """Forty-five, each with its family, its evidence, and a docstring that tells the smallest broken history."""
    invariants = list_invariants()
    assert len(invariants) == FORTY_SEVEN
    assert all("Smallest history:" in (one.judge.__doc__ or "") and one.needs for one in invariants)


def test_a_crashed_invariant_is_not_judged_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on; the one that broke says how."""

    def broken(_: object) -> None:
        raise ZeroDivisionError("by a test")

    one = find_invariant("reordered-key")
    rest = [other for other in list_invariants() if other.name != one.name]
    monkeypatch.setattr(findings, "list_invariants", lambda: [type(one)(**{**vars(one), "judge": broken}), *rest])
    judged = judgement([assigned("m0"), delivered("m0", 1), delivered("m0", 0)])
    missing = judged.findings["reordered-key"].not_judged
    assert (missing.because if missing else "", judged.findings["nonmonotonic-poll"].count, list(judged.crashed)) == (
        "the invariant crashed: ZeroDivisionError: by a test",
        1,
        ["reordered-key"],
    )
    assert ordering.reordered_key is one.judge


def test_examples_are_bounded_and_the_count_is_exact() -> None:
    """Very many anomalies of one sort: the first ones are kept, all are counted."""
    steps = EXAMPLES_MAX + 5
    lines = [assigned("m0"), delivered("m0", 5000), *(delivered("m0", steps - at) for at in range(steps))]
    found = judgement(lines, records=0).findings["nonmonotonic-poll"]
    assert (found.count, len(found.instances)) == (steps, EXAMPLES_MAX)


def test_examples_of_every_deciding_sort_are_kept() -> None:
    """A thousand of a harmless sort do not hide the one that breaks the claim."""
    others = EXAMPLES_MAX + 5
    keys = [*(f"k{number}" for number in range(others)), "a", "a", "z"]
    lines = [assigned("m0"), *(processed("m0", at) for at in (others + 2, *range(others), others + 1, others))]
    found = judgement(lines, records=keys).findings["reordered-key"]
    assert [one.attributes["offset"] for one in found.instances if one.attributes["same_key"]] == [others]


def test_coverage_counts_what_passed_through_whom() -> None:
    """Records, deliveries, completions and commits, by partition and by member."""
    judged = judgement([assigned("m0"), owner("m0"), handled("m0", 0), delivered("m0", 1), committed(1, by="m0")])
    part, through = judged.coverage.partitions[0], judged.coverage.members["m0"]
    assert (part.records, part.delivered, part.processed, part.handled, part.committed) == (2, 2, 1, 1, 1)
    assert (through.delivered, through.processed, through.committed) == (2, 1, 1)


def test_coverage_counts_records_that_share_their_key() -> None:
    """Those without a key share none; what compaction took nobody knows."""
    keys = ["a", "b", None, None, "a", "c"]
    part = judgement([assigned("m0")], records=keys).coverage.partitions[0]
    assert (part.keyed, part.repeated_keys) == (4, 2)
    cleaned = judgement([assigned("m0")], records=keys, policy="compact").coverage.partitions[0]
    assert (cleaned.keyed, cleaned.repeated_keys) == (4, 4)


def test_coverage_counts_refused_commits() -> None:
    """What a broker refused is in the request log only: it is counted, and no commit."""
    refused = [asked("OFFSET_COMMIT", "m0", 5, error=22), asked("OFFSET_COMMIT", "m1", 1, error=25)]
    part = judgement([assigned("m0"), *refused, committed(1, by="m0")]).coverage.partitions[0]
    assert (part.committed, part.refused) == (1, 2)


def test_series_show_the_lag() -> None:
    """Two records, one committed and handled by the end; the lag of each partition over time."""
    series = judgement([assigned("m0"), handled("m0", 0), committed(1)]).series.to_pylist()
    assert (series[-1]["committed_lag"], series[-1]["handled_lag"], len(series)) == (1, 1, 300)


def test_series_show_the_age_of_the_oldest_record() -> None:
    """Of two records the second is neither committed past nor handled: it ages, until it is both."""
    begun = [assigned("m0"), handled("m0", 0), committed(1), after(4)]
    late = judgement(begun, old=True).series.to_pylist()
    ages = [tuple(row[name] for name in ("time_ns", "committed_age_ms", "handled_age_ms")) for row in late]
    assert {(time_ns - 100 * SECOND_NS) // MS for time_ns, _, _ in ages} == {age for _, *both in ages for age in both}
    done = judgement([*begun, handled("m0", 1), committed(2)], old=True).series.to_pylist()
    assert (done[-1]["committed_age_ms"], done[-1]["handled_age_ms"]) == (0, 0)
    assert max(row["handled_age_ms"] for row in done) > 4000


def test_nothing_at_all() -> None:
    """No event: nothing is judged, and nothing breaks."""
    judged = judge_events([])
    assert (judged.crashed, [name for name, one in judged.findings.items() if one.not_judged is None]) == ({}, [])


def test_events_may_come_in_any_order_of_files() -> None:
    """Only the order inside a file counts."""
    events = history([assigned("m0"), delivered("m0", 1), delivered("m0", 0), owner("m0"), committed(2, by="m1")])
    by_source = sorted(events, key=lambda event: event.source)
    assert judge_events(events).findings == judge_events(by_source).findings


@pytest.mark.rotates(every=4)
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62, -1, "text", None, [], {"a": 1}])
@pytest.mark.parametrize(
    "name",
    [
        *("offset", "partition", "committed_offset", "lane", "log_offset", "wall_ns", "group", "key"),
        *("epoch", "rss_bytes", "count", "incarnation", "asked", "asked_ns", "within_s", "signal"),
        *("size_bytes", "complete", "connection", "source_wall_ns", "delay_ns", "partitions"),
    ],
)
def test_garbage_in_a_field_breaks_nothing(name: str, value: object) -> None:
    """Whatever stands in a field of every event that has it: an answer, never a crash."""
    lines = [owner("m0"), holds("m1", 0), assigned("m0"), handled("m0", 0), committed(1, by="m0"), committed(0)]
    lines += [fetched("m0", 0, size_bytes=9, complete=True), generation(7), generation(8), sampled("m0", 9)]
    lines += [
        oom_kills(1),
        stood_still(2),
        exited("m1", signal=9, asked="overdue", asked_ns=5, within_s=2),
        oom_kills(2),
    ]
    spoilt = [
        spoil(event, name, value) for event in history([*lines, answered("m0", 0), log_end(2)], records=["a", "b"])
    ]
    settings = Settings(memory_max_bytes=5)
    assert judge_events(map(from_line, spoilt), settings, gated=False).crashed == {}


def test_a_crashed_invariant_of_the_group_is_not_judged_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that breaks over the summaries does not keep the others from being judged."""

    def broken(_: object) -> None:
        raise ZeroDivisionError("by a test")

    monkeypatch.setattr(judging, "list_invariants", lambda: [_but(one, broken) for one in list_invariants()])
    judged = judgement([assigned("m0"), delivered("m0", 1), delivered("m0", 0)])
    missing = judged.findings["crash-loop"].not_judged
    assert (missing.because if missing else "", judged.findings["nonmonotonic-poll"].count) == (
        "the invariant crashed: ZeroDivisionError: by a test",
        1,
    )


def _but(one: Invariant, judge: Any) -> Invariant:
    return replace(one, judge=judge) if one.name == "crash-loop" else one


def spoil(event: Event, name: str, value: object) -> bytes:
    """Returns the event's line with another value in every place of that name."""

    def changed(body: Any) -> Any:
        if isinstance(body, dict):
            return {key: value if key == name else changed(one) for key, one in body.items()}
        return [changed(one) for one in body] if isinstance(body, list) else body

    return orjson.dumps(changed(orjson.loads(to_line(event))))


def injecting(name: str, member: str) -> Line:
    """The injection of a fault begins."""
    return replace(fault(name, member), kind="injecting")


KILLED = [exited("m0", signal=9), fault("kill", "m0")]
FETCHED = fetched("m0", 0, size_bytes=9)
RESTARTED = [started("m0-1"), assigned("m0-1"), fault("restart", "m0")]


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([*handled("m0", 0), *KILLED, *handled("m1", 1)], (1, 2)),
        ([*handled("m0", 0), after(60), *KILLED, *handled("m1", 1)], (1, 2)),
        ([*handled("m0", 0), revoked("m0"), after(1), *KILLED, *handled("m1", 1)], (0, 0)),
        ([*handled("m0", 0), *KILLED, committed(1, by="m1"), committed(1, by="m1")], (1, 0)),
        ([injecting("restart", "m0"), after(5), exited("m0"), after(3), *RESTARTED], (1, 0)),
        ([exited("m0"), after(1), injecting("restart", "m0"), *RESTARTED], (0, 0)),
        ([*handled("m1", 0), fault("broker-kill", None), *handled("m0", 1)], (1, 2)),
    ],
    ids=["taken over", "idle since long", "revoked", "committed again", "slow to stop", "gone before", "a broker's"],
)
def test_coverage_tells_what_a_fault_could_harm(lines: list[Line | list[Line]], faults: tuple[int, int]) -> None:
    """How many partitions its target had in hand when it was hit, and what anybody did there from then on."""
    seen = judgement([assigned("m0"), *lines]).coverage.faults[0]
    assert (seen.held, seen.after) == faults


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        ([fault("pause", "m0"), FETCHED, healed(), after(90), FETCHED], 1),
        ([fault("pause", "m0"), healed(), fetched("m1", 0, size_bytes=9)], 0),
        ([fault("pause", "m0"), FETCHED], 0),
        ([fault("pause", "m0"), healed(), committed(1, by="m0")], 1),
        ([fault("pause", "m0"), healed(), fetched("m0", 0), handled("m0", 0)], 0),
        ([fault("broker-kill", None), healed(), fetched("m1", 0, size_bytes=9)], 1),
    ],
    ids=["late", "another", "never healed", "a rising commit", "only printed", "a broker's"],
)
def test_coverage_tells_the_traffic_of_a_target_once_it_was_healed(lines: list[Line | list[Line]], done: int) -> None:
    """Whenever that was, as brokers saw it: lines may come out of a buffer. Of no member: anybody's."""
    assert judgement([assigned("m0"), *lines]).coverage.faults[0].traffic_after_heal == done


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        ([owner("m0"), fault("pause", "m0")], 1),
        ([owner("m0"), owner("m1"), after(1), fault("pause", "m0")], 0),
        ([*handled("m0", 0), fault("pause", "m0")], 1),
        ([*handled("m0", 0), after(11), fault("pause", "m0")], 0),
    ],
    ids=["by the log", "another's by the log", "nobody says, and worked just before", "nobody says, and long ago"],
)
def test_whoever_prints_no_possession_has_in_hand_what_the_log_gives_it(
    lines: list[Line | list[Line]], held: int
) -> None:
    """And where neither says anything, as with manual assignment, what it worked on just before."""
    assert judgement(lines).coverage.faults[0].held == held


def test_what_moves_is_a_rising_commit_or_bytes_fetched() -> None:
    """A position committed again moves nothing, nor does an answer without records."""
    commits = [committed(1, by="m0"), committed(1, by="m0"), committed(2, by="m0")]
    fetches = [fetched("m0", 0, size_bytes=9), fetched("m0", 1)]
    through = judgement([owner("m0"), *commits, *fetches]).coverage.members["m0"]
    assert (through.committed, through.moved) == (3, 3)


def test_a_refuted_line_is_no_work() -> None:
    """Nothing went through a member that only says so."""
    fetches = [fetched("m0", None, size_bytes=100), after(1)]
    through = judgement([assigned("m0"), *fetches, handled("m0", 0, 1)]).coverage.members["m0"]
    assert (through.delivered, through.processed) == (0, 0)


def test_an_effect_of_a_record_that_was_deleted_since_is_work() -> None:
    """Record 0 went when its member had handled it: the sink knows of which member that was."""
    lines = [sent(0), sent(1), log_start(0), effect(0, member="m1"), effect(1, member="m0"), log_start(1)]
    through = judgement(lines, settings=with_settings(sink="http"), control={0: None}).coverage.members
    assert {name: one.processed for name, one in through.items()} == {"m0": 1, "m1": 1}


def test_an_effect_is_work_of_the_member_that_posted_it() -> None:
    """m1 has got the partition, and m0 goes on with what it holds."""
    lines = [owner("m0"), synced("m0", 0), synced("m1", 0), owner("m1"), after(1), effect(0, member="m0"), effect(1)]
    through = judgement(lines, settings=with_settings(sink="http")).coverage.members
    assert {name: one.processed for name, one in through.items()} == {"m0": 1, "m1": 1}
