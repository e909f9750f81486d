"""The verdict: anomalies weighed under a claim, and when nothing can be said.

What follows from a violation stands beneath it, and only where every instance is explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafka_trial.anomalies.claim_rule import Anomaly
from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.check import verdict_to_table, write_verdict
from kafka_trial.claim import Claim
from kafka_trial.history.store import RunFolder
from kafka_trial.model.undecided import Undecided
from kafka_trial.report.report_data import worst
from kafka_trial.verdict.decide import Verdict, by_root_cause, decide
from kafka_trial.verdict.messages import message
from kafka_trial.verdict.verdict_input import AnomalyResult, Fault, VerdictInput, Violation

AT_LEAST_ONCE = Claim("at-least-once")
AT_MOST_ONCE = Claim("at-most-once")
UNCLAIMED = Claim("unclaimed", order="none")
NAMES = tuple(one.name for one in sorted(list_invariants(), key=lambda one: one.severity))
SETTLED = {"recovered": True, "own": True, "restart_inside": False}
NOT_BITTEN = Fault("member-pause", "m0", "member", bit=False, evidence="it ran on")
BITTEN = Fault("member-pause", "m0", "member", bit=True, evidence="stopped")
NOT_REACHED = Fault("cut", "m1", "member:1", bit=False, evidence="not reached: 0 of 1 EndTxn came in 20 s")
BUSY = Undecided.BUSY_MACHINE.format(waited=4.1, what="B = 17.6 s")


def found(anomaly: str, **attributes: Any) -> AnomalyResult:
    """Returns one instance of an anomaly on partition 1."""
    return AnomalyResult(anomaly, (Anomaly(anomaly, "t", 1, attributes, (f"{anomaly}#0",)),))


def case(*seen: AnomalyResult, **more: Any) -> VerdictInput:
    """Returns a case in which every invariant looked, and found what was `seen`."""
    names = {one.anomaly for one in seen}
    return VerdictInput(
        (*seen, *(AnomalyResult(name) for name in NAMES if name not in names)), counts={"records": 200}, **more
    )


def verdict_of(claim: Claim, *seen: AnomalyResult, **more: Any) -> Verdict:
    """Returns the verdict on what was seen."""
    return decide(case(*seen, **more), claim)


# A claim, one anomaly with what is known of it, and the verdict.
TABLE: list[tuple[Claim, str, dict[str, Any], str]] = [
    *(
        (UNCLAIMED, name, {}, "fail")
        for name in ("commit-past-end", "stuck-partition", "false-lag", "late-convergence")
    ),
    *((UNCLAIMED, name, {}, "fail") for name in ("split-ownership", "work-after-revoke", "phantom", "commit-lost")),
    *((AT_LEAST_ONCE, name, {}, "fail") for name in ("skipped", "unseen", "commit-ahead", "illegal-redelivery")),
    *((UNCLAIMED, name, {}, "pass") for name in ("skipped", "unseen", "commit-ahead", "illegal-redelivery")),
    (AT_LEAST_ONCE, "redelivered", {}, "pass"),
    (AT_LEAST_ONCE, "skipped", {"in_flight_at_crash": True}, "fail"),
    (AT_LEAST_ONCE, "skipped", {"by_operator": True}, "pass"),
    (AT_MOST_ONCE, "skipped", {"in_flight_at_crash": True}, "pass"),
    (AT_MOST_ONCE, "skipped", {"in_flight_at_crash": False}, "fail"),
    *((AT_MOST_ONCE, name, {}, "fail") for name in ("redelivered", "illegal-redelivery", "duplicate-effect")),
    *((AT_MOST_ONCE, name, {}, "pass") for name in ("unseen", "commit-ahead")),
    *((Claim("exactly-once"), name, {}, "fail") for name in ("skipped", "unseen", "duplicate-effect", "aborted-read")),
    (Claim("exactly-once"), "commit-ahead", {}, "fail"),
    (Claim("exactly-once"), "commit-ahead", {"by_operator": True}, "pass"),
    *((Claim("exactly-once"), name, {}, "fail") for name in ("torn-transaction", "offset-outside-transaction")),
    (Claim("exactly-once"), "offset-outside-transaction", {"repeats": True}, "pass"),
    (Claim("exactly-once"), "offset-outside-transaction", {"by_operator": True}, "pass"),
    *((AT_LEAST_ONCE, name, {}, "pass") for name in ("aborted-read", "torn-transaction", "offset-outside-transaction")),
    *((claim, "hanging-transaction", {}, "unknown") for claim in (UNCLAIMED, AT_LEAST_ONCE, Claim("exactly-once"))),
    *((Claim("exactly-once"), name, {}, "pass") for name in ("redelivered", "illegal-redelivery")),
    (AT_LEAST_ONCE, "nonmonotonic-poll", {}, "fail"),
    (replace(AT_LEAST_ONCE, order="key"), "nonmonotonic-poll", {}, "pass"),
    (AT_LEAST_ONCE, "reordered-key", {"same_key": False}, "fail"),
    (replace(AT_LEAST_ONCE, order="key"), "reordered-key", {"same_key": False}, "pass"),
    (replace(AT_LEAST_ONCE, order="key"), "reordered-key", {"same_key": True}, "fail"),
    (replace(AT_LEAST_ONCE, order="none"), "reordered-key", {"same_key": True}, "pass"),
    (replace(AT_LEAST_ONCE, order="key-across-partitions"), "reordered-key", {"same_key": False}, "pass"),
    (replace(AT_LEAST_ONCE, order="key-across-partitions"), "reordered-key", {"same_key": True}, "fail"),
    *(
        (replace(AT_LEAST_ONCE, order=order), "reordered-across-partitions", {"later_partition": 1}, word)
        for order, word in (("key-across-partitions", "fail"), ("key", "pass"), ("partition", "pass"), ("none", "pass"))
    ),
    (AT_LEAST_ONCE, "overlapping-handlers", {"same_key": False}, "fail"),
    (replace(AT_LEAST_ONCE, order="key"), "overlapping-handlers", {"same_key": False}, "pass"),
    (replace(AT_LEAST_ONCE, order="none"), "overlapping-handlers", {"same_key": True}, "pass"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED, "pass"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED | {"recovered": False}, "fail"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED | {"own": False}, "fail"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED | {"own": None}, "unknown"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED | {"own": None, "restart_inside": True}, "fail"),
    (AT_LEAST_ONCE, "commit-regression", SETTLED | {"recovered": False, "by_operator": True}, "pass"),
    (replace(AT_LEAST_ONCE, commits="monotonic"), "commit-regression", SETTLED, "fail"),
    (AT_LEAST_ONCE, "zombie-commit", {"fell": False, "skipped_record": False}, "pass"),
    (AT_LEAST_ONCE, "zombie-commit", {"fell": True, "skipped_record": False}, "fail"),
    (AT_LEAST_ONCE, "zombie-commit", {"fell": False, "skipped_record": True}, "fail"),
    (AT_LEAST_ONCE, "zombie-work", {}, "pass"),
    (replace(AT_LEAST_ONCE, fenced=True), "zombie-work", {}, "fail"),
    (AT_LEAST_ONCE, "rogue-reader", {}, "pass"),
    (replace(AT_LEAST_ONCE, no_rogue_reader=True), "rogue-reader", {}, "fail"),
    *((UNCLAIMED, name, {}, "fail") for name in ("corrupt", "misplaced")),
    (UNCLAIMED, "corrupt", {"found_in": "effect"}, "fail"),
    *((claim, "lost-write", {}, "unknown") for claim in (UNCLAIMED, AT_LEAST_ONCE, Claim("exactly-once"))),
    (UNCLAIMED, "corrupt", {"found_in": "control read"}, "unknown"),
    *((claim, "overtaken", {}, "fail") for claim in (AT_LEAST_ONCE, Claim("exactly-once"))),
    (AT_LEAST_ONCE, "overtaken", {"by_operator": True}, "pass"),
    *((claim, "overtaken", {"while_away": True}, "pass") for claim in (AT_LEAST_ONCE, Claim("exactly-once"))),
    (AT_MOST_ONCE, "overtaken", {}, "pass"),
    (AT_LEAST_ONCE, "duplicate-effect", {}, "pass"),
    *((UNCLAIMED, name, {}, "fail") for name in ("crash-loop", "unbounded-close")),
    *(
        (AT_LEAST_ONCE, name, {}, "pass")
        for name in ("starved-partition", "rebalance-storm", "uncommitted-progress", "retried")
    ),
    (AT_LEAST_ONCE, "head-of-line-blocking", {"lasted_ms": 16000}, "pass"),
    (replace(AT_LEAST_ONCE, converge_within_s=16.0), "head-of-line-blocking", {"lasted_ms": 16000}, "pass"),
    (replace(AT_LEAST_ONCE, converge_within_s=15.9), "head-of-line-blocking", {"lasted_ms": 16000}, "fail"),
    (UNCLAIMED, "memory-over-limit", {}, "pass"),
    (replace(UNCLAIMED, memory_max_bytes=9), "memory-over-limit", {}, "fail"),
    (UNCLAIMED, "oom-killed", {"over_limit": False}, "pass"),
    (replace(UNCLAIMED, memory_max_bytes=9), "oom-killed", {"over_limit": True}, "fail"),
    (replace(UNCLAIMED, memory_max_bytes=9), "oom-killed", {"over_limit": False}, "unknown"),
    (UNCLAIMED, "cold-read", {}, "pass"),
    (replace(UNCLAIMED, reads_cold_bytes_max=9), "cold-read", {}, "fail"),
    (replace(UNCLAIMED, reads_cold_bytes_max=9), "cold-read", {"excused_by": "fault 0 (kill on m0)"}, "pass"),
    (AT_LEAST_ONCE, "something-new", {}, "pass"),
]


@pytest.mark.parametrize(("claim", "anomaly", "attributes", "word"), TABLE)
def test_the_claim_sorts_the_anomalies(claim: Claim, anomaly: str, attributes: dict[str, Any], word: str) -> None:
    """The table of violations, row by row: the same anomaly under another claim is another verdict."""
    assert verdict_of(claim, found(anomaly, **attributes)).verdict == word


def test_nothing_seen_and_all_judged_is_a_pass() -> None:
    """No anomaly, every fault bit, every property judged: status 0 and no reasons."""
    verdict = verdict_of(AT_LEAST_ONCE, faults=(BITTEN,))
    assert (verdict.verdict, verdict.exit, verdict.reasons, verdict.violations) == ("pass", 0, (), ())


@pytest.mark.parametrize(
    "lacking",
    [
        {"faults": (replace(BITTEN, bit=False),)},
        {"faults": (replace(BITTEN, healed=False),)},
        {"gaps": ("20 records judged, fewer than 100",)},
        {"ground": ("the offsets witness died",)},
    ],
)
def test_what_is_missing_keeps_a_clean_run_from_passing(lacking: dict[str, Any]) -> None:
    """A fault without effect or healing, too little to judge, a broken environment: unknown, 4, with its reason."""
    verdict = verdict_of(AT_LEAST_ONCE, **lacking)
    assert (verdict.verdict, verdict.exit, len(verdict.reasons)) == ("unknown", 4, 1)


def test_a_violation_stands_where_a_fault_did_not_bite() -> None:
    """A violation with its own evidence is a fail; what could not be shown is named beside it."""
    verdict = verdict_of(AT_LEAST_ONCE, found("skipped", offset=7), faults=(replace(BITTEN, bit=False),))
    assert (verdict.verdict, verdict.exit) == ("fail", 1)
    assert verdict.reasons == ("fault 0 (member-pause on m0) had no measurable effect: stopped",)


def test_a_broken_ground_acquits_and_convicts_nobody() -> None:
    """Where the environment failed, a violation is told, and the verdict is unknown."""
    verdict = verdict_of(AT_LEAST_ONCE, found("skipped", offset=7), ground=("the history is truncated",))
    assert (verdict.verdict, [row.anomaly for row in verdict.violations]) == ("unknown", ["skipped"])


def test_what_the_cluster_lost_is_nobody_elses_fault() -> None:
    """A violation beside it is told, and convicts nobody: the first reason is what the cluster did."""
    lost = [Anomaly("lost-write", "t", 1, {"offset": at}, (f"workload#{at}",)) for at in (4, 7)]
    verdict = verdict_of(AT_LEAST_ONCE, AnomalyResult("lost-write", tuple(lost), more=3), found("skipped", offset=7))
    assert (verdict.verdict, [row.anomaly for row in verdict.violations], verdict.tolerated) == (
        "unknown",
        ["skipped"],
        (),
    )
    assert verdict.reasons == (
        "the cluster lost record 4 of partition 1, which it had acknowledged (and 4 more like it)",
    )


@pytest.mark.parametrize(
    ("anomaly", "attributes", "told"),
    [
        (
            "overtaken",
            {"offset": 3, "last_offset": 9, "records": 5},
            "records 3 to 9 of partition 1 expired before they were read (5 of them)",
        ),
        (
            "corrupt",
            {"offset": 3, "found_in": "effect"},
            "record 3 of partition 1 had another content in its effect than was sent",
        ),
        (
            "corrupt",
            {"offset": 3, "found_in": "control read"},
            "record 3 of partition 1 had another content in the cluster's log than was sent",
        ),
        (
            "phantom",
            {"id": "r7\n", "what": "effected"},
            "a record with the id r7·, which nobody sent, was effected (partition 1)",
        ),
        (
            "misplaced",
            {"offset": 3, "what": "delivered"},
            "the record that was delivered as record 3 of partition 1 is not the one that the log holds there",
        ),
        (
            "duplicate-effect",
            {"offset": 3, "number": 2},
            "record 3 of partition 1 had its effect again (effect number 2)",
        ),
    ],
)
def test_records_and_effects_are_told_in_a_sentence(anomaly: str, attributes: dict[str, Any], told: str) -> None:
    """What, where, and how much of it."""
    assert message(anomaly, Anomaly(anomaly, "t", 1, attributes, ())) == told


def test_a_claimed_property_that_was_not_judged_is_unknown() -> None:
    """Without evidence of delivery nothing is said about loss; where nothing is claimed, nothing is missing."""
    blind = AnomalyResult("skipped", not_judged="the consumer tells nothing and has no sink")
    assert verdict_of(AT_LEAST_ONCE, blind).reasons == (
        "claimed but not judged: skipped: the consumer tells nothing and has no sink",
    )
    assert verdict_of(UNCLAIMED, blind).verdict == "pass"


def test_a_rule_that_is_not_about_this_consumer_is_not_missed() -> None:
    """Progress that lives elsewhere has no commits to judge: not judged, because…, and still a pass."""
    verdict = verdict_of(
        AT_LEAST_ONCE, AnomalyResult("commit-regression", not_judged="progress is a table", applies=False)
    )
    assert (verdict.verdict, [row.anomaly for row in verdict.not_judged]) == ("pass", ["commit-regression"])


def test_the_undecided_is_unknown_only_where_it_matters() -> None:
    """One case that could not be decided keeps a claim open that forbids it."""
    undecided = AnomalyResult("unseen", undecided={"the snapshot was not reached": 3})
    assert verdict_of(AT_LEAST_ONCE, undecided).reasons == ("unseen: 3 undecided: the snapshot was not reached",)
    assert verdict_of(AT_MOST_ONCE, undecided).verdict == "pass"


def test_what_a_killed_member_had_in_hand_is_moot_for_at_most_once() -> None:
    """Handled or in flight at its crash: at-most-once allows both, at-least-once does not know."""
    unheard = AnomalyResult("skipped", undecided={Undecided.UNCERTAIN_AFTER_KILL: 2})
    verdicts = [verdict_of(claim, unheard).verdict for claim in (AT_MOST_ONCE, AT_LEAST_ONCE)]
    assert verdicts == ["pass", "unknown"]


def test_a_claim_nobody_looks_at_cannot_pass() -> None:
    """A judge without the invariant that a claim rests on leaves it open."""
    unsought = ("duplicate-effect", "memory-over-limit", "rogue-reader")
    seen = VerdictInput(tuple(AnomalyResult(name) for name in NAMES if name not in unsought))
    reasons = decide(seen, Claim("exactly-once", memory_max_bytes=1, no_rogue_reader=True)).reasons
    assert reasons == (f"claimed but not judged: {', '.join(unsought)}: no invariant looks for it",)


def test_the_ratio_of_redelivered_records_is_a_limit() -> None:
    """3 of 200 are within 2 %, and beyond 1 %."""
    again = AnomalyResult(
        "redelivered", tuple(Anomaly("redelivered", "t", 1, {"offset": n}, (f"m#{n}",)) for n in range(3))
    )
    verdicts = [verdict_of(replace(AT_LEAST_ONCE, redelivered_max_ratio=limit), again) for limit in (0.02, 0.01)]
    assert [verdict.verdict for verdict in verdicts] == ["pass", "fail"]
    assert verdicts[1].violations[0].sentence == "3 of 200 records were delivered again; the claim allows 0.01 of them"


@pytest.mark.parametrize("claim", [AT_LEAST_ONCE, UNCLAIMED, Claim("exactly-once")])
def test_a_ratio_of_redelivered_records_is_not_kept_where_nobody_could_look(claim: Claim) -> None:
    """Nothing tells what was done again: no other claim misses it."""
    unseen = AnomalyResult("redelivered", not_judged="nothing tells")
    limited = verdict_of(replace(claim, redelivered_max_ratio=0.5), unseen)
    assert (limited.verdict, limited.reasons) == ("unknown", ("claimed but not judged: redelivered: nothing tells",))
    assert verdict_of(claim, unseen).verdict == "pass"


@pytest.mark.parametrize(("undecided", "verdict"), [(1, "pass"), (2, "unknown")])
def test_undecided_redeliveries_count_where_they_may_exceed_the_ratio(undecided: int, verdict: str) -> None:
    """One was redelivered for certain; the claim allows 2 of 200."""
    again = replace(found("redelivered", offset=1), undecided={"a doubt": undecided})
    limited = verdict_of(replace(AT_LEAST_ONCE, redelivered_max_ratio=0.01), again)
    assert limited.verdict == verdict
    assert limited.reasons == ((f"redelivered: {undecided} undecided: a doubt",) if verdict == "unknown" else ())
    assert verdict_of(AT_LEAST_ONCE, again).verdict == "pass"


def test_a_consumer_that_never_joins_is_a_fail() -> None:
    """A plain failure on a sound cluster convicts, although nothing could be judged."""
    never = Violation("never-assigned", 1, "no member was assigned, a control member was", ("run#3",))
    verdict = verdict_of(AT_LEAST_ONCE, AnomalyResult("skipped", not_judged="no delivery"), failures=(never,))
    assert (verdict.verdict, verdict.violations[0]) == ("fail", never)


def test_the_worst_violation_comes_first_and_is_told_with_its_count() -> None:
    """Loss before liveness; of several, the one that stands."""
    falls = AnomalyResult(
        "commit-regression",
        (
            Anomaly("commit-regression", "t", 1, SETTLED | {"own": False, "from": 9, "to": 8}, ("offsets#1",)),
            Anomaly("commit-regression", "t", 2, SETTLED | {"recovered": False, "from": 12, "to": 11}, ("offsets#2",)),
        ),
    )
    verdict = verdict_of(AT_LEAST_ONCE, found("false-lag", records=1), falls, found("skipped", offset=7))
    assert [row.anomaly for row in verdict.violations] == ["skipped", "commit-regression", "false-lag"]
    assert verdict.violations[1].sentence == (
        "the committed offset of partition 2 fell from 12 to 11 and stood there at the end (and 1 more like it)"
    )


@pytest.mark.parametrize(
    ("name", "attributes", "told"),
    [
        (
            "crash-loop",
            {"member": "m0", "exits": 2, "ending": "with status 3"},
            "member m0 exited by itself 2 times, at last with status 3",
        ),
        (
            "unbounded-close",
            {"member": "m0", "within_s": 15.0},
            "member m0 was asked to stop, did not end within 15.0 s, and was killed",
        ),
        (
            "starved-partition",
            {"offset": 7, "lasted_ms": 16000, "member": "m0"},
            "record 7 of partition 1 waited 16000 ms while m0 handled records of its other partitions",
        ),
        (
            "reordered-across-partitions",
            {"offset": 7, "later_offset": 3, "later_partition": 12},
            "record 3 of partition 12 was begun before record 7 of partition 1 was done, "
            "an earlier record of the same key",
        ),
        (
            "head-of-line-blocking",
            {"offset": 7, "lasted_ms": 16000, "idle_ms": 12000, "member": "m0"},
            "partition 1 lagged for 16000 ms, from record 7 on; for 12000 ms of that m0 held no record of it, and its "
            "other partitions had nothing to do",
        ),
        (
            "rebalance-storm",
            {"bumps": 5, "from": 2, "to": 7},
            "the group rebalanced 5 times, from 2 to 7, though nothing had happened",
        ),
        (
            "retried",
            {"offset": 7},
            "record 7 of partition 1 was tried again, and nothing from there on had been completed",
        ),
        (
            "uncommitted-progress",
            {"offset": 7, "lasted_ms": 12000},
            "record 7 of partition 1 was processed 12000 ms before a commit covered it",
        ),
        (
            "memory-over-limit",
            {"member": "m0", "rss_bytes": 101, "limit_bytes": 100},
            "member m0 took 101 bytes of memory, over the 100 claimed",
        ),
        (
            "torn-transaction",
            {"producer_id": 7, "committed_in": "out-0", "aborted_in": "__consumer_offsets-2"},
            "a transaction of producer 7 was committed in out-0 and aborted in __consumer_offsets-2",
        ),
        (
            "hanging-transaction",
            {"producer_id": 7, "log": "out-0", "open_ms": 12000, "timeout_ms": 1000},
            "a transaction of producer 7 was open in out-0 for 12000 ms, with a timeout of 1000 ms",
        ),
        (
            "offset-outside-transaction",
            {"committed_offset": 7, "stood": 4},
            "7 was committed on partition 1 outside of a transaction, from 4",
        ),
        (
            "aborted-read",
            {"offset": 7, "what": "effected"},
            "record 7 of partition 1 was effected although its transaction was aborted",
        ),
        (
            "commit-lost",
            {"committed_offset": 7, "by": "own word", "refused_with": 16},
            "the commit of 7 on partition 1 was acknowledged (by a line that its member printed), but the broker had "
            "refused it, with NOT_COORDINATOR (16)",
        ),
        (
            "commit-lost",
            {"committed_offset": 7, "by": "request log"},
            "the commit of 7 on partition 1 was acknowledged (by the request log), but it is not in the offsets log",
        ),
        ("oom-killed", {"member": "m0"}, "member m0 was killed by the kernel for want of memory"),
    ],
)
def test_what_is_not_about_a_record_has_its_sentence(name: str, attributes: dict[str, Any], told: str) -> None:
    """Members, memory and the group: who, how often, how long."""
    assert message(name, found(name, **attributes).instances[0]) == told


@pytest.mark.parametrize("claim", [AT_LEAST_ONCE, AT_MOST_ONCE])
def test_what_was_only_counted_counts(claim: Claim) -> None:
    """Beyond the examples the judge keeps a number: it is in the total, whichever side the examples are on."""
    seen = AnomalyResult("redelivered", found("redelivered", offset=1).instances, more=4)
    verdict = verdict_of(claim, seen)
    assert [row.count for row in (*verdict.violations, *verdict.tolerated)] == [5]


def test_what_was_only_counted_is_excused_with_its_like() -> None:
    """Of settled commits some thousand more are settled too."""
    verdict = verdict_of(AT_LEAST_ONCE, replace(found("commit-regression", **SETTLED), more=1000))
    assert [row.count for row in verdict.tolerated] == [1001]


def test_what_is_tolerated_is_told_with_its_reason() -> None:
    """Nothing that was seen is dropped: it is counted, and says why it is legal."""
    verdict = verdict_of(AT_LEAST_ONCE, found("commit-regression", **SETTLED), found("redelivered", offset=1))
    assert [(row.anomaly, row.count, row.because) for row in verdict.tolerated] == [
        (
            "commit-regression",
            1,
            "the owner made it itself, and later commits passed it before anything started from it",
        ),
        ("redelivered", 1, "this claim does not exclude it"),
    ]


def test_a_key_with_terminal_escapes_stays_on_its_line() -> None:
    """What a stranger wrote is bounded and printable in a sentence."""
    verdict = verdict_of(AT_LEAST_ONCE, found("reordered-key", offset=1, key="k\n\x1b[2J" + "x" * 500))
    assert "of key k··[2Jxxx" in verdict.violations[0].sentence
    assert len(verdict.violations[0].sentence) < 200


def test_the_files_are_the_contract(tmp_path: Path) -> None:
    """verdict.json has its keys and no other, sorted; anomalies.jsonl weighs every instance; both twice the same."""
    folder, written = RunFolder(tmp_path), []
    seen = case(found("skipped", offset=7), found("redelivered", offset=9), faults=(BITTEN,))
    for _ in range(2):
        write_verdict(folder, decide(seen, AT_LEAST_ONCE), seen)
        written.append([(tmp_path / name).read_bytes() for name in ("verdict.json", "anomalies.jsonl")])
    assert written[0] == written[1]
    table = orjson.loads(written[0][0])
    keys = "claim counts exit faults judged not_judged reasons schema tolerated verdict violations"
    assert (" ".join(table), sorted(table["faults"][0])) == (keys, ["bit", "evidence", "kind", "role", "target"])
    rows = [orjson.loads(line) for line in written[0][1].splitlines()]
    assert [(row["anomaly"], row["weight"]) for row in rows] == [("skipped", "violation"), ("redelivered", "tolerated")]


@pytest.mark.parametrize("anomaly", ["commit-ahead", "commit-past-end"])
@pytest.mark.parametrize("by_operator", [True, False])
def test_an_operators_commit_is_not_the_consumers(anomaly: str, by_operator: bool) -> None:
    """A commit from outside the members is told, and convicts nobody; the same commit by a member does."""
    instance = Anomaly(anomaly, "orders", 0, {"by_operator": by_operator}, ("offsets#1",))
    found = decide(VerdictInput(found=(AnomalyResult(anomaly, (instance,)),)), Claim("at-least-once")).violations
    assert len(found) == (0 if by_operator else 1)


@pytest.mark.parametrize(
    ("more", "seen", "retriable"),
    [
        ({}, (), False),
        ({"ground": ("the harness stood still",)}, (), True),
        ({"ground": ("the witness offsets died",)}, (AnomalyResult("skipped", not_judged="no offsets log"),), True),
        ({"faults": (NOT_BITTEN,)}, (), True),
        ({"faults": (NOT_BITTEN,)}, (found("skipped"),), False),
        ({"faults": (NOT_BITTEN,)}, (AnomalyResult("skipped", not_judged="it has no sink"),), False),
        ({}, (AnomalyResult("skipped", not_judged="it has no sink"),), False),
        ({"gaps": ("7 records were judged",)}, (), False),
        ({}, (AnomalyResult("skipped", undecided={"a line came late": 1}),), False),
        ({}, (AnomalyResult("skipped", undecided={Undecided.DELAYED: 1}),), True),
        ({}, (AnomalyResult("stuck-partition", undecided={BUSY: 1}),), True),
        ({}, (AnomalyResult("skipped", undecided={Undecided.DELAYED: 1, "a line came late": 1}),), False),
        ({"gaps": ("7 records were judged",)}, (AnomalyResult("skipped", undecided={Undecided.DELAYED: 1}),), False),
        ({"faults": (NOT_REACHED,)}, (), False),
        ({"faults": (NOT_BITTEN,)}, (AnomalyResult("skipped", undecided={Undecided.DELAYED: 1}),), True),
        ({"ground": ("the judge broke",), "lasting": ("the judge broke",)}, (), False),
        ({"ground": ("the judge broke", "it stood still"), "lasting": ("the judge broke",)}, (), True),
        ({"unready": ("m0 was at work",)}, (AnomalyResult("skipped", not_judged="no records"),), True),
        ({"unready": ("m0 was at work",)}, (found("skipped"),), False),
    ],
    ids=[
        "pass",
        "ground",
        "of ground",
        "no effect",
        "fail",
        "no effect, no sink",
        "no sink",
        "too little",
        "undecided",
        "stalled machine",
        "busy machine",
        "not the machine alone",
        "stalled machine, too little",
        "a cut that was not reached",
        "no effect, stalled machine",
        "no claim",
        "no claim, and of ground",
        "unready",
        "unready, and a fail",
    ],
)
def test_only_an_unknown_of_its_ground_is_worth_another_try(
    more: dict[str, Any], seen: tuple[AnomalyResult, ...], retriable: bool
) -> None:
    """Neither a pass nor a fail is tried again, nor what lacks evidence: that would be lacking again."""
    assert verdict_of(AT_LEAST_ONCE, *seen, **more).retriable is retriable


@pytest.mark.parametrize(
    ("more", "notes"),
    [
        (
            {"ground": ("it stood still",), "withheld": ("m3 had 1.8 s of processor in 27 s",)},
            ["--retry-unknown 1", "m3"],
        ),
        ({"ground": ("it stood still",)}, ["--retry-unknown 1"]),
        ({"gaps": ("7 records were judged",), "withheld": ("m3 had 1.8 s",)}, ["does not repeat it"]),
        ({"ground": ("it stood still",), "of_trial": False}, []),
        ({}, []),
    ],
    ids=["machine", "nothing sampled", "consumer", "audit", "pass"],
)
def test_an_unknown_says_what_to_do(more: dict[str, Any], notes: list[str]) -> None:
    """Try it again where only the machine is why, with what it gave; else not; an audit cannot be tried."""
    told = verdict_of(AT_LEAST_ONCE, **more).notes
    assert (len(told), [word in note for word, note in zip(notes, told, strict=False)]) == (
        len(notes),
        [True] * len(notes),
    )


def test_only_a_pass_of_a_trial_says_what_it_did_not_try() -> None:
    """A violation was found without it, and an audit tries nothing."""
    untried = ("no rebalance met a record in hand",)
    seen = [
        verdict_of(AT_LEAST_ONCE, untried=untried),
        verdict_of(AT_LEAST_ONCE, untried=untried, of_trial=False),
        verdict_of(AT_LEAST_ONCE, found("skipped"), untried=untried),
    ]
    assert [(one.verdict, one.notes) for one in seen] == [("pass", untried), ("pass", ()), ("fail", ())]


def test_verdict_json_says_so_only_where_it_is_so() -> None:
    """Stored verdicts of other trials stay as they are, byte for byte."""
    tables = [verdict_to_table(verdict_of(AT_LEAST_ONCE, ground=ground)) for ground in ((), ("it stood still",))]
    assert [table.get("retriable") for table in tables] == [None, True]


Told = list[tuple[str, str | None]]


def one(name: str, *events: str, partition: int = 0, **attributes: int) -> Anomaly:
    return Anomaly(name, "t", partition, attributes, events)


def told(*instances: Anomaly) -> Told:
    """Returns the names of the violations with what each follows from, worst first as given."""
    guilty: dict[str, list[Anomaly]] = {}
    for instance in instances:
        guilty.setdefault(instance.name, []).append(instance)
    violations = [Violation(name, len(ones), name, ()) for name, ones in guilty.items()]
    return [(violation.anomaly, violation.follows) for violation in by_root_cause(violations, guilty)]


def test_a_chain_is_told_from_its_cause_on() -> None:
    """A zombie's commit let the position fall, and what had been done looks undone: one root, in this order."""
    assert told(
        one("false-lag", "offsets#9"),
        one("split-ownership", "offsets#1"),
        one("commit-regression", "offsets#4", "offsets#9"),
        one("zombie-commit", "offsets#4", "requests-b0#7"),
    ) == [
        ("split-ownership", None),
        ("zombie-commit", None),
        ("commit-regression", "zombie-commit"),
        ("false-lag", "commit-regression"),
    ]


def test_what_is_not_wholly_explained_stands_by_itself() -> None:
    """Two positions fell, and the zombie made only one of them fall."""
    assert told(
        one("zombie-commit", "offsets#4"),
        one("commit-regression", "offsets#4"),
        one("commit-regression", "offsets#8"),
    ) == [("zombie-commit", None), ("commit-regression", None)]


def test_a_record_that_both_name_is_no_link() -> None:
    """The control read's event says that there is a record; two anomalies of it may have nothing in common but that."""
    assert told(one("commit-regression", "observer#1"), one("zombie-commit", "observer#1")) == [
        ("commit-regression", None),
        ("zombie-commit", None),
    ]


def test_lost_records_follow_from_the_commits_that_were_ahead_of_them() -> None:
    """From the first record left out up to what was committed; ranges that overlap count as one."""
    ahead = [
        one("commit-ahead", offset=3, committed_offset=9),
        one("commit-ahead", offset=4, committed_offset=6),
        one("commit-ahead", partition=1, offset=0, committed_offset=2),
    ]
    inside = [one("skipped", offset=3), one("skipped", offset=8), one("skipped", partition=1, offset=1)]
    assert told(*inside, *ahead) == [("commit-ahead", None), ("skipped", "commit-ahead")]
    for outside in (one("skipped", offset=2), one("skipped", offset=9), one("skipped", partition=2, offset=1)):
        assert told(*inside, outside, *ahead) == [("skipped", None), ("commit-ahead", None)]


def test_what_a_stuck_partition_leaves_undone_follows_from_it() -> None:
    """On the same partition only; nobody's partition is why it is stuck."""
    stuck = [one("unseen", offset=7), one("stuck-partition", offset=7)]
    assert told(*stuck) == [("stuck-partition", None), ("unseen", "stuck-partition")]
    assert told(*stuck, one("unseen", partition=1, offset=0)) == [("unseen", None), ("stuck-partition", None)]
    assert told(*stuck, one("orphan-partition")) == [
        ("orphan-partition", None),
        ("stuck-partition", "orphan-partition"),
        ("unseen", "stuck-partition"),
    ]


def test_the_worst_is_told_even_where_its_cause_stands_first() -> None:
    """A loss is worse than the early commit that led to it."""
    violations = [
        {"anomaly": "commit-ahead", "sentence": "early"},
        {"anomaly": "skipped", "sentence": "lost", "follows": "commit-ahead"},
    ]
    assert worst({"verdict": "fail", "violations": violations, "counts": {}}) == "skipped: lost"


def test_a_verdict_folds_only_what_it_holds_against_the_consumer() -> None:
    """A cause that the claim tolerates is no violation: what follows from it stands first."""
    found: Mapping[str, Sequence[Anomaly]] = {
        "commit-regression": [one("commit-regression", "offsets#4", recovered=0)],
        "zombie-commit": [one("zombie-commit", "offsets#4", fell=1)],
    }
    case = VerdictInput(tuple(AnomalyResult(name, tuple(ones)) for name, ones in found.items()))
    table = verdict_to_table(decide(case, Claim("unclaimed")))
    assert [(row["anomaly"], row.get("follows")) for row in table["violations"]] == [
        ("zombie-commit", None),
        ("commit-regression", "zombie-commit"),
    ]
    harmless = AnomalyResult("zombie-commit", (one("zombie-commit", "offsets#4"),))
    table = verdict_to_table(decide(VerdictInput((case.found[0], harmless)), Claim("unclaimed")))
    assert [(row["anomaly"], "follows" in row) for row in table["violations"]] == [("commit-regression", False)]


@pytest.mark.parametrize(
    ("order", "word"), [("key", "unknown"), ("key-across-partitions", "unknown"), ("partition", "pass")]
)
def test_order_per_key_is_not_judged_where_no_record_has_a_key(order: str, word: str) -> None:
    """Order in the partition is."""
    verdict = verdict_of(Claim("at-least-once", order=order), keyless=True, keys_unique=True)
    assert verdict.verdict == word
    assert ("claimed but not judged: reordered-key: no record has a key" in verdict.reasons) == (word == "unknown")


@pytest.mark.parametrize(
    ("order", "word"), [("key", "unknown"), ("key-across-partitions", "pass"), ("partition", "pass")]
)
def test_order_per_key_is_not_judged_where_each_key_comes_once(order: str, word: str) -> None:
    """Across partitions another one may have the same."""
    verdict = verdict_of(Claim("at-least-once", order=order), keys_unique=True)
    told = "claimed but not judged: reordered-key: no two records of a partition have the same key"
    assert (verdict.verdict, told in verdict.reasons) == (word, word == "unknown")
