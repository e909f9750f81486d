"""What an audit's history proves, and what it leaves open: literal histories, each with one thing that matters.

Storms by the offsets log alone: the generation rises, and the same members are there, or others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from audited import committed, group, verdict_on
from kafka_trial.audit.rules import flapping, rises_of, storm_at_rest
from kafka_trial.check import reach_verdict, verdict_to_table
from kafka_trial.history.event import Event
from kafka_trial.history.store import open_run_folder
from kafka_trial.judge.judge import judge_events
from kafka_trial.report.report_data import headline
from kafka_trial.verdict.decide import Verdict

SOUND = [group(1, 1, "a", "b"), committed(10, 5), committed(20, 12)]
FELL = [group(1, 1, "a", "b"), committed(10, 12), committed(20, 11)]


def _said(verdict: Verdict) -> tuple[str, list[str]]:
    return verdict.verdict, [violation.anomaly for violation in verdict.violations]


def _reasons(verdict: Verdict) -> str:
    return "; ".join(verdict.reasons)


def _requests(*commits: tuple[float, int, int]) -> list[dict[str, Any]]:
    """Requests of both members, that tell whose id is whose, and commits as (time, lane, committed offset)."""
    ids: list[dict[str, Any]] = [
        {"at_s": 2, "api": "HEARTBEAT", "group": "g", "lane": lane, "member_id": name} for lane, name in enumerate("ab")
    ]
    return ids + [
        {
            "at_s": at_s,
            "api": "OFFSET_COMMIT",
            "group": "g",
            "lane": lane,
            "member_id": "ab"[lane],
            "epoch": 1,
            "entries": [{"topic": "t", "partition": 0, "committed_offset": value, "error": 0}],
        }
        for at_s, lane, value in commits
    ]


def test_a_sound_group_passes_by_what_could_be_judged(tmp_path: Path) -> None:
    """Forward commits up to the end: nothing found, nothing left open."""
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0))
    assert (_said(verdict), verdict.reasons) == (("pass", []), ())


def test_a_position_that_fell_and_stands_is_a_regression_and_a_false_lag(tmp_path: Path) -> None:
    """The record behind it had been committed past before: the lag is none."""
    verdict = verdict_on(tmp_path, FELL, ends=(12, 0), records=[11])
    assert _said(verdict) == ("fail", ["commit-regression", "false-lag"])


def test_a_fall_is_attributed_by_the_request_log(tmp_path: Path) -> None:
    """Member b committed where a owns the partition."""
    requests = _requests((10, 0, 12), (20, 1, 11))
    verdict = verdict_on(tmp_path, FELL, ends=(12, 0), records=[11], requests=requests)
    assert _said(verdict) == ("fail", ["zombie-commit", "commit-regression", "false-lag"])


def test_commits_that_no_members_request_explains_leave_zombies_open(tmp_path: Path) -> None:
    """The log of one broker is missing: whoever made the second commit may not have been the owner."""
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0), requests=_requests((10, 0, 5)))
    assert (verdict.verdict, "zombie-commit: 1 undecided" in _reasons(verdict)) == ("unknown", True)


def test_a_wobble_that_recovered_is_left_open_where_nobody_knows_whose_it_was(tmp_path: Path) -> None:
    """With the request log it is the owner's own, and settled."""
    wobble = [*FELL, committed(21, 12)]
    without = verdict_on(tmp_path / "without", wobble, ends=(12, 0))
    own = _requests((10, 0, 12), (20, 0, 11), (21, 0, 12))
    told = verdict_on(tmp_path / "with", wobble, ends=(12, 0), requests=own)
    assert (_said(without), _said(told)) == (("unknown", []), ("pass", []))


@pytest.mark.parametrize(
    ("offsets", "more", "because"),
    [
        ([*SOUND, group(30, 2), committed(40, 0)], {}, "the group had no members then"),
        ([committed(10, 12), committed(20, 11)], {}, "whether the group had members then is not known"),
        ([group(1, 1, "a", "b"), committed(10, 900), committed(20, 11)], {}, "the topic was created again, or cut"),
        ([group(0.1, 1, "a", "b"), committed(0.5, 12), committed(20, 11)], {}, "created again, or emptied"),
        (
            [group(1, 1, "a", "b"), committed(10, 12), committed(995, 11)],
            {"read_to_s": 1001.0},
            "may yet have recovered",
        ),
        ([group(1, 1, "a", "b"), committed(10, 12), committed(20, 3), committed(30, 7)], {}, "a replay, perhaps"),
    ],
    ids=[
        "reset while empty",
        "members not known",
        "topic made anew",
        "older than the topic",
        "too fresh",
        "on its way back",
    ],
)
def test_a_fall_that_something_else_explains_is_left_open(
    offsets: list[Any], more: dict[str, Any], because: str, tmp_path: Path
) -> None:
    """Nobody is blamed, and nothing passes."""
    verdict = verdict_on(tmp_path, offsets, ends=(12, 0), **more)
    assert (_said(verdict), because in _reasons(verdict)) == (("unknown", []), True)


def test_a_fall_seen_in_a_compacted_log_stands_and_its_absence_is_open(tmp_path: Path) -> None:
    """What compaction took may have been a fall: undecided, not absent; what is there is proof."""
    holes = ("compacted", {"count": 3, "log_offset": 15, "at_s": 1.5})
    absent = verdict_on(tmp_path / "absent", [*SOUND, holes], ends=(12, 0))
    seen = verdict_on(tmp_path / "seen", [*FELL, holes], ends=(12, 0), records=[11])
    assert (absent.verdict, "whole only from" in _reasons(absent), seen.verdict) == ("unknown", True, "fail")


def test_a_lag_that_nobody_can_explain_is_stuck_or_false(tmp_path: Path) -> None:
    """Records that had never been committed past: both anomalies stay open."""
    verdict = verdict_on(tmp_path, SOUND, ends=(14, 0), records=[12, 13])
    told = _reasons(verdict)
    assert (verdict.verdict, "false-lag: 1 undecided" in told, "stuck-partition: 1 undecided" in told) == (
        "unknown",
        True,
        True,
    )


def test_a_fall_does_not_explain_the_lag_of_records_beyond_it(tmp_path: Path) -> None:
    """Records 12 and 13 had never been committed past: whether these were handled nobody tells."""
    verdict = verdict_on(tmp_path, FELL, ends=(14, 0), records=[11, 12, 13])
    assert (_said(verdict), "false-lag: 1 undecided" in _reasons(verdict)) == (("fail", ["commit-regression"]), True)


def test_a_partition_with_records_and_without_any_commit_is_open(tmp_path: Path) -> None:
    """Its member may begin at the end, or do nothing at all."""
    verdict = verdict_on(tmp_path, [SOUND[0], committed(10, 5, partition=1)], ends=(2, 5), records=[0, 1])
    assert (verdict.verdict, "nothing was ever committed" in _reasons(verdict)) == ("unknown", True)


def test_a_lag_behind_a_position_that_moves_is_no_anomaly(tmp_path: Path) -> None:
    """The last commit came shortly before the end."""
    verdict = verdict_on(tmp_path, [*SOUND[:2], committed(995, 10)], ends=(12, 0), records=[10, 11])
    assert _said(verdict) == ("pass", [])


def test_a_lag_that_stands_while_nobody_is_there_is_open(tmp_path: Path) -> None:
    """A stopped group is not stuck; whether it should have been stopped is not ours to say."""
    verdict = verdict_on(tmp_path, [*SOUND, group(30, 2)], ends=(14, 0), records=[12, 13])
    assert (verdict.verdict, "the group had no members" in _reasons(verdict)) == ("unknown", True)


@pytest.mark.parametrize(
    ("more", "because"),
    [
        ({"unread": [("records", "t-0 from 3 to 9")]}, "not read: t-0 from 3 to 9"),
        ({"unread": [("offsets log", "the end of it")]}, "not read: the end of it"),
        ({"drain_s": 0.0}, "the window is shorter than the 20 s"),
    ],
    ids=["topic", "offsets log", "window too short"],
)
def test_what_was_not_read_keeps_an_audit_from_passing(more: dict[str, Any], because: str, tmp_path: Path) -> None:
    """It is said in the reasons."""
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0), **more)
    assert (verdict.verdict, because in _reasons(verdict)) == ("unknown", True)


@pytest.mark.parametrize("field", ["from_ns", "until_ns", "drain_ns", "settle_ns", "read_to_ns", "commits"])
def test_an_audit_that_does_not_say_what_it_asked_is_damaged(field: str, tmp_path: Path) -> None:
    """Whichever of its own fields its event lost: named, and unknown."""
    verdict_on(tmp_path, SOUND, ends=(12, 0))
    run = open_run_folder(tmp_path / "run")
    told = run.history / "run.jsonl"
    lines = [orjson.loads(line) for line in told.read_bytes().splitlines()]
    for line in lines:
        if line["kind"] == "audit":
            del line[field]
    told.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    verdict = reach_verdict(run, judge_events(run.events()))
    assert (verdict.verdict, f"audit lacks {field}" in _reasons(verdict)) == ("unknown", True), _reasons(verdict)


def test_an_audit_of_nothing_is_unknown(tmp_path: Path) -> None:
    """A group that committed nothing in the window proves nothing."""
    verdict = verdict_on(tmp_path, [group(1, 1, "a", "b")], ends=(0, 0))
    assert (verdict.verdict, "there was nothing to judge" in _reasons(verdict)) == ("unknown", True)


def test_a_topic_of_which_nobody_has_anything_is_perhaps_not_subscribed(tmp_path: Path) -> None:
    """Members without any partition of the topic read another one."""
    elsewhere = ("group", dict(group(30, 2, "a")[1]) | {"entries": [{"topic": "u", "partition": 0, "member_id": "a"}]})
    verdict = verdict_on(tmp_path, [*SOUND, elsewhere], ends=(12, 12))
    assert (_said(verdict), verdict.counts["orphan-partition"]) == (("unknown", []), 0)


def test_a_partition_that_nobody_has_while_its_siblings_are_had_is_an_orphan(tmp_path: Path) -> None:
    """The group was at rest with two members, and partition 1 belonged to neither of them."""
    entries = [{"topic": "t", "partition": 0, "member_id": "a"}]
    half = ("group", dict(group(30, 2, "a", "b")[1]) | {"entries": entries})
    verdict = verdict_on(tmp_path, [*SOUND, half], ends=(12, 12))
    assert _said(verdict) == ("fail", ["orphan-partition"])


def test_a_member_that_fetches_and_never_commits_is_counted_as_a_rogue_reader(tmp_path: Path) -> None:
    """The other member's commits explain only its own reading; no claim excludes it, but the first line says it."""
    fetches = [
        {
            "at_s": at_s,
            "api": "FETCH",
            "lane": 1,
            "connection": "c",
            "entries": [{"topic": "t", "partition": 0, "offset": position, "size_bytes": 100, "error": 0}],
        }
        for at_s, position in ((30, 0), (60, 5))
    ]
    requests = [*_requests((10, 0, 5), (20, 0, 12)), *fetches]
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0), requests=requests)
    first = headline(verdict_to_table(verdict), audit=True)
    assert (verdict.verdict, "but seen: rogue-reader × 1" in first) == ("pass", True)


def test_under_a_claim_all_of_it_must_be_judged(tmp_path: Path) -> None:
    """An audit hears no handler: at-least-once cannot be found kept."""
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0), claim={"delivery": "at-least-once"})
    assert (verdict.verdict, "claimed but not judged" in _reasons(verdict)) == ("unknown", True)


def test_every_anomaly_is_judged_or_says_why_not(tmp_path: Path) -> None:
    """None is left out, and none speaks of a trial's ways."""
    verdict = verdict_on(tmp_path, SOUND, ends=(12, 0))
    whys = {one.because for one in verdict.not_judged}
    assert (len(verdict.judged) + len(verdict.not_judged), {why for why in whys if "consumer prints" in why}) == (
        47,
        set(),
    )


S = 1_000_000_000


def _records(*told: tuple[int, int, str]) -> list[Event]:
    """Group records as (time in s, generation, members); a member m' is client m come back."""
    return [
        Event(
            "offsets",
            number,
            at_s * S,
            "group",
            source_wall_ns=at_s * S,
            details={
                "group": "g",
                "epoch": epoch,
                "members": [{"member_id": name, "client_id": name.strip("'"), "host": "h"} for name in names.split()],
            },
        )
        for number, (at_s, epoch, names) in enumerate(told)
    ]


def _found(*told: tuple[int, int, str]) -> tuple[int, int]:
    """Returns how many rises the storm has, and how many clients came back again and again; W is 10 s."""
    rises = rises_of(_records(*told), group="g", from_ns=0, until_ns=1000 * S)
    storm = storm_at_rest(rises, window_ns=10 * S)
    return (int(storm[0].attributes["bumps"]) if storm else 0), flapping(rises)


def test_a_generation_that_rises_among_the_very_same_members_is_a_storm() -> None:
    """Nobody was started, nobody stopped."""
    assert _found((1, 1, "a b"), *((20 + n, 2 + n, "a b") for n in range(6))) == (6, 0)


def test_four_rises_are_no_storm() -> None:
    """One mishap costs so many."""
    assert _found((1, 1, "a b"), *((20 + n, 2 + n, "a b") for n in range(4))) == (0, 0)


def test_rises_shortly_after_somebody_came_are_explained_by_that() -> None:
    """Cooperative rebalances follow one another."""
    assert _found((1, 1, "a"), (20, 2, "a b"), *((21 + n, 3 + n, "a b") for n in range(6))) == (0, 0)


def test_a_deployment_is_no_storm() -> None:
    """Each client goes and comes back once."""
    assert _found((1, 1, "a b"), (20, 2, "b"), (21, 3, "b a'"), (22, 4, "a'"), (23, 5, "a' b'")) == (0, 0)


def test_a_client_that_comes_back_again_and_again_is_counted() -> None:
    """Restarted, or thrown out: nobody tells, so it is left open."""
    back = [(20 + 2 * n, 2 + 2 * n, "b") for n in range(4)] + [
        (21 + 2 * n, 3 + 2 * n, "b a" + "'" * (n + 1)) for n in range(4)
    ]
    assert _found((1, 1, "a b"), *sorted(back)) == (0, 1)
