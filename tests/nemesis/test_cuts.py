"""A cut is judged by what the toxics and the broker's log say, against what was asked; and bad options are named."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_trial.cluster.kafka_cut import API_KEYS, CutRequest, LaneSeen
from kafka_trial.nemesis.broker_log import when_answered
from kafka_trial.nemesis.cuts import CutSpec, judge, not_reached
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import find_fault, step_problems
from kafka_trial.nemesis.schedule import schedule_problems
from kafka_trial.scenario import Step

S = 1_000_000_000
ASKED = CutSpec("OffsetCommit", 3, "before", "hold", "nothing", 1000, 2.0)
HELD = CutRequest(1, "b1#4", API_KEYS["OffsetCommit"], 9, 77, 100 * S, 100 * S, 102 * S, "pass")
SEEN = Evidence(True, "cut, and still in force")


def told(asked: CutSpec, cut: CutRequest, answered_ns: Sequence[int] = ()) -> tuple[bool, str]:
    found = judge(asked, cut, answered_ns, SEEN)
    return found.took_effect, found.message


def test_a_request_held_before_its_broker_is_answered_when_it_is_let_go() -> None:
    """The log has it after the release."""
    bit, message = told(ASKED, HELD, [102 * S + 1])
    assert (bit, "before the broker had it, its connection held for 2.0 s" in message) == (True, True)


def test_a_request_held_before_its_broker_need_not_be_answered() -> None:
    """The member may have closed the connection meanwhile: what was held met nobody."""
    assert told(ASKED, HELD)[0]


def test_a_request_that_its_broker_had_meanwhile_was_not_held_before_it() -> None:
    """The log has it while it was held."""
    assert told(ASKED, HELD, [101 * S]) == (
        False,
        "request 3 of OffsetCommit (correlation id 77, broker 1) reached the broker all the same: its log has it",
    )


def test_a_line_of_a_request_that_looks_the_same_says_nothing() -> None:
    """A member with two clients: the other one's request of that correlation id went through meanwhile."""
    alike = replace(HELD, alike=1)
    assert told(ASKED, alike, [101 * S, 102 * S + 1])[0]
    assert not told(ASKED, alike, [101 * S, 101 * S + 1])[0]


def test_a_hold_that_ends_early_did_not_hold() -> None:
    """Held for a second of two."""
    bit, message = told(ASKED, replace(HELD, gone_ns=101 * S), [101 * S + 1])
    assert (bit, "was stopped for 1.000 s of 2" in message) == (False, True)


def test_a_delay_shorter_than_asked_is_none() -> None:
    """A millisecond too short."""
    asked = replace(ASKED, action="delay")
    assert told(asked, replace(HELD, gone_ns=101 * S), [101 * S + 1])[0]
    assert not told(asked, replace(HELD, gone_ns=101 * S - 1_000_000), [101 * S])[0]


def test_a_close_before_the_broker_leaves_no_line() -> None:
    """A line at any time says that the broker had it."""
    asked, closed = replace(ASKED, action="close"), replace(HELD, gone_ns=100 * S, ended="drop")
    assert told(asked, closed)[0]
    assert not told(asked, closed, [100 * S])[0]
    assert not told(asked, closed, [130 * S])[0]


def test_a_close_that_let_the_request_pass_is_none() -> None:
    """The toxic says how the cut ended."""
    bit, message = told(replace(ASKED, action="close"), HELD)
    assert (bit, "was to end by drop, its cut says pass" in message) == (False, True)


@pytest.mark.parametrize("where", ["answered", "after"])
def test_behind_the_answer_the_log_must_have_it_by_then(where: str) -> None:
    """No line, or one that is later than the cut: the broker had not answered."""
    asked = replace(ASKED, where=where)
    assert told(asked, HELD, [100 * S - 1_000_000])[0]
    assert not told(asked, HELD)[0]
    assert told(asked, HELD, [101 * S])[0]  # its line was written late
    assert not told(asked, HELD, [101 * S + 1])[0]


def test_another_request_is_not_the_one_that_was_asked_for() -> None:
    """By its API key."""
    assert told(ASKED, replace(HELD, api=API_KEYS["Fetch"])) == (False, "another request was cut: api 1")


def test_one_that_is_killed_is_held_until_it_is_dropped() -> None:
    """What the dead had sent must not arrive afterwards."""
    asked = replace(ASKED, then="kill")
    assert told(asked, replace(HELD, ended="drop"))[0]
    assert not told(asked, HELD, [102 * S + 1])[0]


def test_a_request_that_never_came_is_not_reached() -> None:
    """It says how many came."""
    found = not_reached(ASKED, LaneSeen(2, 5, 0, None), within_s=20.0)
    assert (found.took_effect, found.message) == (False, "not reached: 2 of 3 OffsetCommit came in 20 s")


def test_a_request_without_an_answer_is_not_reached() -> None:
    """The cut behind an answer needs one."""
    found = not_reached(ASKED, LaneSeen(3, 5, 0, replace(HELD, hit_ns=0, gone_ns=0, ended="")), within_s=20.0)
    assert (found.took_effect, found.message) == (
        False,
        "not reached: request 3 of OffsetCommit came, and its answer did not arrive in 20 s",
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"api": "OffsetComit"}, "OffsetCommit"),
        ({"where": "between"}, "before"),
        ({"action": "swallow"}, "hold"),
        ({"then": "explode"}, "kill-broker"),
        ({"nth": 0}, "nth must be 1 or more"),
        ({"api": "Fetch", "answer_bytes_min": 100}, "answered or after"),
        ({"action": "delay", "delay_ms": 0}, "delay_ms must be 1 or more"),
        ({"action": "delay", "then": "kill"}, "take the action hold"),
        ({"where": "answered", "then": "kill-broker"}, "before or after"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_name(options: dict[str, object], said: str) -> None:
    """Each with what would do."""
    (problem,) = step_problems("cut", "member", options)
    assert said in problem


@pytest.mark.parametrize(
    ("targets", "after", "refused"),
    [
        (("member:0", "member:0"), "", True),
        (("member", "member:0"), "", True),
        (("member:0", "member"), "", True),
        (("member:0", "member:0"), "healed", False),
        (("member", "member"), "stable", False),
        (("member:0", "member:1"), "", False),
    ],
)
def test_two_cuts_of_one_member_come_one_after_the_other(targets: tuple[str, str], after: str, refused: bool) -> None:
    """Else the second could not be armed, in the middle of the trial; told before anything starts."""
    first, second = Step("cut", targets[0]), Step("cut", targets[1], at_s=1.0, after=after)
    assert [problem[:12] for problem in schedule_problems([first, second])] == ["schedule[1]:"] * refused


def test_a_cut_that_kills_a_broker_breaks_brokers() -> None:
    """So it has a cluster to itself, as every fault of brokers."""
    spec = find_fault("cut")
    assert (spec.scope_of({}), spec.scope_of({"then": "kill-broker"})) == ("members", "brokers")


LINE = (
    '{{"ts":{at},"r":{{"requestHeader":{{"requestApiKey":8,"requestApiVersion":9,"correlationId":{id},'
    '"clientId":"c","requestApiKeyName":"OFFSET_COMMIT"}},"request":{{}},"response":{{}},'
    '"connection":"{connection}","totalTimeMs":1.0,"listener":"LANE{lane}"}}}}\n'
)


def test_a_client_that_comes_back_may_count_anew(tmp_path: Path) -> None:
    """The same correlation id on a connection that is newer than the cut is another request."""
    now_s = time.time()
    log = tmp_path / "requests.log"
    rows = [
        {"at": now_s - 10, "id": 6, "connection": "old", "lane": 1},
        {"at": now_s - 1, "id": 7, "connection": "old", "lane": 1},
        {"at": now_s - 1, "id": 7, "connection": "elsewhere", "lane": 2},
        {"at": now_s - 1, "id": 7, "connection": "new", "lane": 1},
        {"at": now_s - 1, "id": 77, "connection": "old", "lane": 1},
    ]
    log.write_text("".join(LINE.format(**row) for row in rows) + '{"ts":1')
    hit_ns = time.monotonic_ns() - 5 * S
    about = {"lane": 1, "correlation_id": 7, "hit_ns": hit_ns}
    (found,) = when_answered(log, api=8, seen_ns=hit_ns, **about)
    assert abs(found - (time.monotonic_ns() - S)) < S // 2
    assert when_answered(log, api=1, seen_ns=hit_ns, **about) == []
    assert when_answered(log, api=8, seen_ns=time.monotonic_ns(), **about) == []
