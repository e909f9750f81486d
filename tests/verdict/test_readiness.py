"""Members that the harness did not see ready: what the brokers saw of them decides whether they have failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from group_lines import beat, heartbeat, joined, left, synced
from histories import Line, after, assigned, exited, fetched, history, read_late, revoked, started, with_settings
from kafka_trial.claim import Claim
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.trial_context import Settings
from kafka_trial.verdict.collect import collect
from kafka_trial.verdict.decide import Verdict, decide
from kafka_trial.verdict.verdict_input import Scope

SILENT, SPEAKING = with_settings(events="none"), with_settings()
UNSEEN = "was not ready within 60 s: its coordinator was not seen to have 2 members in a stable group for 4 s"
Lines = Sequence[Line | list[Line]]


def unready(*members: str) -> list[Line]:
    """The harness has waited for these in vain, and a control member of its own has joined."""
    failed = [
        Line("run", "consumer_failure", {"member": member, "name": "never-assigned", "message": UNSEEN})
        for member in members
    ]
    return [Line("run", "control_member", {"state": "joined"}), *failed]


def works(member: str, *partitions: int) -> list[Line]:
    """A classic member joins, is given partitions, and fetches; its heartbeat is answered."""
    return [joined(member), synced(member, *partitions), fetched(member, 0), heartbeat(member)]


def verdict_of(lines: Iterable[Line | list[Line]], settings: Settings = SILENT, *, partitions: int = 2) -> Verdict:
    """Returns the verdict on a trial of two members (or of those that are named) that ended with this."""
    listed = list(lines)
    flat = [line for one in listed for line in (one if isinstance(one, list) else [one])]
    members = 1 + max(int(line.fields["lane"]) for line in flat if line.source == "requests-b0")
    events = history(listed, members=max(2, members), partitions=partitions, records=0)
    own = [event for event in events if event.source == "run"]
    return decide(collect(judge_events(events, settings), own, Scope(partitions)), Claim("at-least-once"))


def failed(verdict: Verdict) -> list[str]:
    """Returns who has failed, in the sentences of the verdict."""
    return [one.sentence.split(" never got")[0] for one in verdict.violations if one.anomaly == "never-assigned"]


def test_members_that_the_brokers_saw_at_work_have_not_failed() -> None:
    """The verdict is unknown, worth another try, and says what was waited for, how long, and what the brokers saw."""
    verdict = verdict_of([works("m0", 0), works("m1", 1), unready("m0", "m1")])
    assert (verdict.verdict, verdict.retriable, verdict.violations) == ("unknown", True, ())
    assert verdict.reasons[0] == (
        "m0, m1 were not seen to be ready, though by the brokers' request log m0 had partition 0 and fetched; m1 had "
        f"partition 1 and fetched. What was waited for: m0 {UNSEEN}"
    )


def again(*lines: Line) -> list[Line]:
    """The same of another member id: the client has joined anew."""
    return [replace(line, fields=line.fields | {"member_id": "id-again"}) for line in lines]


ANEW = (exited("m0", signal=9), started("m0-1"))
AT_WORK: dict[str, Lines] = {
    "KIP-848": [beat("m0", [0, 1]), fetched("m0", 0), beat("m0")],
    "given more and more": [joined("m0"), synced("m0"), *works("m0", 0, 1)],
    "in the middle of a rebalance": [*works("m0", 0), heartbeat("m0", error=27)],
    "a protocol of its own": [
        replace(synced("m0"), fields=synced("m0").fields | {"entries": None}),
        fetched("m0", 0),
        heartbeat("m0"),
    ],
    "expelled, and back": [*works("m0", 0), heartbeat("m0", error=25), *again(*works("m0", 1))],
    "expelled a moment ago": [*works("m0", 0), heartbeat("m0", error=25)],
    "fenced a moment ago": [beat("m0", [0]), fetched("m0", 0), beat("m0", error=110)],
    "left a moment ago, having polled too late": [*works("m0", 0), left("m0")],
    "silent for less than it may be away": [*works("m0", 0), after(7.8)],
    "KIP-848, left a moment ago": [beat("m0", [0]), fetched("m0", 0), beat("m0", epoch=-1)],
    "killed, started again and given it again": [*works("m0", 0), *ANEW, *again(*works("m0", 0))],
}


@pytest.mark.parametrize("lines", AT_WORK.values(), ids=AT_WORK)
def test_whoever_had_partitions_at_the_end_is_not_convicted(lines: Lines) -> None:
    """Whatever the protocol, and however it came to them: sessions expire on a busy machine, and members come back."""
    verdict = verdict_of([*lines, *unready("m0")])
    assert (verdict.verdict, failed(verdict), "m0 had partition" in verdict.reasons[0]) == ("unknown", [], True)


LONG = after(8.1)  # a session and a poll interval
NOTHING = (joined("m0"), synced("m0"), heartbeat("m0"))
WITHOUT: dict[str, Lines] = {
    "never joined": [],
    "joined, given nothing": NOTHING,
    "never fetched what it was given": [joined("m0"), synced("m0", 0), heartbeat("m0")],
    "KIP-848, never fetched": [beat("m0", [0]), beat("m0")],
    "expelled, and not back": [*works("m0", 0), heartbeat("m0", error=25), LONG],
    "expelled, then given nothing": [*works("m0", 0), heartbeat("m0", error=25), LONG, *again(*NOTHING)],
    "fenced, then given nothing": [beat("m0", [0]), fetched("m0", 0), beat("m0", error=110), LONG, *again(*NOTHING)],
    "left, then given nothing": [*works("m0", 0), left("m0"), LONG, *again(*NOTHING)],
    "KIP-848, left, then given nothing": [
        *(beat("m0", [0]), fetched("m0", 0), beat("m0", epoch=-1), LONG),
        *again(beat("m0", []), beat("m0")),
    ],
    "killed, started again and given nothing": [*works("m0", 0), *ANEW, *again(*NOTHING)],
    "killed, started again and not heard of": [*works("m0", 0), *ANEW],
    "fell silent": [*works("m0", 0), LONG],
    "lost what it had": [*works("m0", 0), joined("m0", generation=2), synced("m0", generation=2), heartbeat("m0")],
    "KIP-848, lost what it had": [beat("m0", [0]), fetched("m0", 0), beat("m0", []), beat("m0")],
    "refused what it asked for": [joined("m0"), synced("m0", 0, error=27), fetched("m0", 0), heartbeat("m0")],
    "fetches outside its group": [fetched("m0", 0)],
}


@pytest.mark.parametrize("lines", WITHOUT.values(), ids=WITHOUT)
def test_whoever_had_nothing_at_the_end_has_failed(lines: Lines) -> None:
    """Though the other one worked: two members and two partitions, each should have had one."""
    verdict = verdict_of([works("m1", 0, 1), *lines, heartbeat("m1"), *unready("m0", "m1")])
    assert (verdict.verdict, failed(verdict)) == ("fail", ["m0"])
    assert verdict.reasons[0].startswith("m1 was not seen to be ready, though")


def test_an_assignment_after_the_wait_refutes_nothing() -> None:
    """What counts is what was so when the wait was over."""
    late = verdict_of([joined("m0"), heartbeat("m0"), *unready("m0"), *works("m0", 0)])
    assert (late.verdict, failed(late)) == ("fail", ["m0"])
    back = verdict_of([works("m0", 0), LONG, *unready("m0"), heartbeat("m0")])
    assert (back.verdict, failed(back)) == ("fail", ["m0"])


def test_what_brokers_did_before_the_wait_was_over_counts_however_late_it_was_read() -> None:
    """They stamp their answers; the machine was too busy to read them."""
    late = [read_late(line, 2) for line in works("m0", 0, 1)]
    verdict = verdict_of([unready("m0"), after(1), *late])
    assert (verdict.verdict, failed(verdict)) == ("unknown", [])


def test_a_member_for_which_no_partition_is_left_is_idle() -> None:
    """Three members, two partitions: the one without any is as healthy as the others."""
    idle = [joined("m2"), synced("m2"), heartbeat("m2")]
    verdict = verdict_of([works("m0", 0), works("m1", 1), *idle, *unready("m0", "m1", "m2")])
    assert (verdict.verdict, verdict.violations) == ("unknown", ())
    assert "; m2 was left without one, 3 members having partitions 0, 1. What was" in verdict.reasons[0]


IDLE = {
    "a partition that nobody had": [*works("m0", 0), joined("m1"), synced("m1"), heartbeat("m1")],
    "the others have gone": [*works("m0", 0), *works("m1", 1), left("m0"), left("m1"), LONG],
    "the others were killed": [*works("m0", 0), *works("m1", 1), exited("m0", signal=9), exited("m1", signal=9), LONG],
}


@pytest.mark.parametrize("others", IDLE.values(), ids=IDLE)
def test_a_member_that_should_have_had_a_partition_is_not_idle(others: Lines) -> None:
    """There was one for it, or there are not more members than partitions."""
    verdict = verdict_of([joined("m2"), synced("m2"), *others, heartbeat("m2"), *unready("m2")])
    assert (verdict.verdict, failed(verdict)) == ("fail", ["m2"])


def test_a_member_that_was_never_given_an_assignment_is_not_idle() -> None:
    """An assignment of nothing is one: this member joined, and its group's answer to SyncGroup never came to it."""
    idle = [joined("m3"), synced("m3"), heartbeat("m3")]
    verdict = verdict_of([works("m0", 0), works("m1", 1), *idle, joined("m2"), heartbeat("m2"), *unready("m2")])
    assert (verdict.verdict, failed(verdict)) == ("fail", ["m2"])


def test_a_member_that_does_not_say_what_it_has_is_seen_by_the_brokers() -> None:
    """It speaks, and prints no partitions_assigned: the brokers win, and nobody knows why it does not say so."""
    verdict = verdict_of([works("m0", 0, 1), *unready("m0")], SPEAKING)
    assert (verdict.verdict, failed(verdict)) == ("unknown", [])
    assert verdict.reasons[0].startswith("m0 was not seen to be ready, though by the brokers' request log m0 had")


def test_a_member_whose_word_and_witness_agree_has_failed() -> None:
    """It had partitions, by its own word it lost them, and the brokers heard no more of it."""
    lines = [assigned("m0", 0), *works("m0", 0), revoked("m0", 0), LONG]
    verdict = verdict_of([*lines, *unready("m0")], SPEAKING)
    assert (verdict.verdict, failed(verdict)) == ("fail", ["m0"])


def test_a_member_that_assigns_itself_and_fetches_has_not_failed() -> None:
    """It is in no group: that it fetches is all that brokers see."""
    by_hand = with_settings(events="none", protocol="none")
    verdict = verdict_of([fetched("m0", 0), *unready("m0", "m1")], by_hand)
    assert (verdict.verdict, failed(verdict)) == ("fail", ["m1"])
    assert "request log m0 fetched. What was" in verdict.reasons[0]
