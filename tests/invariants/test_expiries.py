"""Bounds from what the brokers were told: literal histories of at most eight lines; a session of 45 s unless said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from histories import (
    GROUP,
    Line,
    after,
    assigned,
    committed,
    delivered,
    fault,
    fetched,
    finding,
    handled,
    healed,
    judged,
    judgement,
    owner,
    phase,
    processed,
    started,
    with_settings,
)
from kafka_trial.model.group_timeouts import DeclaredTimeouts
from kafka_trial.verdict.collect import notes_of

ONE_LEFT_S = 2.0  # twice a backlog of one record, at 1/s


def joins(member: str, *, session_s: float = 45, rebalance_s: float = 300) -> Line:
    """A member joins with the defaults of its library."""
    about = {"session_timeout_ms": round(session_s * 1000), "rebalance_timeout_ms": round(rebalance_s * 1000)}
    return request(member, "JOIN_GROUP", epoch=1, **about)


def request(member: str, api: str, **fields: object) -> Line:
    """A request on a member's lane."""
    lane = {"lane": int(member[1:]), "member_id": f"id-{member}", "group": GROUP, "error": 0}
    return Line("requests-b0", "request", {"api": api} | lane | fields)


def beats(member: str, *, times: int = 3, every_s: float = 3) -> list[Line]:
    """Heartbeats on a member's lane."""
    return [line for _ in range(times) for line in (request(member, "HEARTBEAT", epoch=1), after(every_s - 0.01))]


def rounds(member: str, *, every_s: float, times: int) -> list[Line]:
    """A member is delivered the same record again and again: so it goes round."""
    return [line for _ in range(times) for line in (delivered(member, 0), after(every_s - 0.01))]


def killed(member: str, number: int = 0) -> list[Line]:
    """A member is killed, and its next incarnation starts two seconds later."""
    return [fault("kill", member, number=number), after(2), healed(number)]


def cut(member: str, acts_as: str, *, for_s: float, number: int = 0) -> list[Line]:
    """A member is cut at one of its requests."""
    return [fault("cut", member, number=number, acts_as=acts_as), after(for_s), healed(number)]


def bound_s(lines: list[Line | list[Line]], **changes: object) -> float:
    """Returns B of a history."""
    return judgement(lines, settings=with_settings(**changes)).bounds_s["converge"]


def told(lines: list[Line | list[Line]]) -> DeclaredTimeouts:
    """Returns what was seen of the group's times."""
    return judgement(lines).trial_context.declared_timeouts


STOPPED = [joins("m0"), assigned("m0"), handled("m0", 0), committed(1)]
END = [phase("drain"), after(1)]


def in_turn(name: str, does: str) -> list[Line]:
    """A fault is on each of five members for most of a session, one after the other; it `does` what it says, else what
    its name means."""
    said = [does] if does else []
    return [
        line
        for number in range(5)
        for line in (fault(name, f"m{number}", number=number, does=said), after(31), healed(number))
    ]


def test_the_session_is_the_one_that_the_broker_was_told() -> None:
    """45 s, though consumer.toml says 3; a rebalance of 5, a commit interval of 1, and one record that is left."""
    assert bound_s([*STOPPED, *END]) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S)


def test_a_group_record_tells_the_session_as_a_request_does() -> None:
    """Where there is no request log: an audit."""
    member = {"member_id": "id-m0", "session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000}
    record = Line("offsets", "group", {"group": GROUP, "protocol": "classic", "epoch": 1, "members": [member]})
    assert (told([record]).session_timeout_s, told([record]).rebalance_timeout_s) == (30.0, 60.0)


def test_the_session_of_another_group_is_nothing_to_this_one() -> None:
    """Its members share the brokers only."""
    other = joins("m0")
    other.fields["group"] = "another"
    assert told([other]).session_timeout_s is None


def test_the_session_of_members_of_kip_848_is_the_clusters() -> None:
    """They cannot ask for one, and the harness says which its cluster gives them."""
    named = Line("run", "group_named", {"group": GROUP, "consumer_session_timeout_ms": 3000})
    beat = request("m0", "CONSUMER_GROUP_HEARTBEAT", epoch=1)
    assert [told(lines).session_timeout_s for lines in ([named], [named, beat])] == [None, 3.0]
    assert told([named, beat]).protocol == "consumer"


def test_a_stopped_partition_is_stuck_after_the_told_session_only() -> None:
    """Twelve seconds were enough with a session of 3 s; with one of 45 s nothing is stuck before 51 s."""
    assert judged("stuck-partition", [*STOPPED, phase("drain"), after(13)]) == []
    assert len(judged("stuck-partition", [*STOPPED, phase("drain"), after(54)])) == 1


def test_who_does_not_come_back_after_the_told_session_is_late() -> None:
    """A guilty one hides behind its session only as long as it lasts."""
    late = [handled("m0", 1), committed(2), after(1)]
    assert judged("late-convergence", [*STOPPED, phase("drain"), after(50), *late]) == []
    assert len(judged("late-convergence", [*STOPPED, phase("drain"), after(56), *late])) == 1


def test_a_rebalance_takes_no_longer_than_the_longest_round_before_the_faults() -> None:
    """Its library would let it take 300 s; it came round every second, and heard of a rebalance after three."""
    lines = [joins("m0"), assigned("m0"), *beats("m0"), *rounds("m0", every_s=1, times=5), phase("faults")]
    seen = told([*lines, *END])
    assert (seen.rebalance_timeout_s, seen.heartbeat_s, seen.poll_cycle_s) == (300.0, 3.0, 1.0)
    assert bound_s([*lines, *handled("m0", 0, 1), committed(2), *END]) == pytest.approx(45 + 1 + 3 + 1, abs=0.1)


def test_a_round_takes_no_longer_than_the_told_rebalance_timeout() -> None:
    """Who is slower than that is thrown out of its group: the group waits no longer."""
    slow = [joins("m0", rebalance_s=4), assigned("m0"), *rounds("m0", every_s=8, times=2), phase("faults")]
    assert bound_s([*slow, *handled("m0", 0, 1), committed(2), *END]) == pytest.approx(45 + 4 + 1, abs=0.1)


def test_rounds_in_the_faults_do_not_lengthen_the_bound() -> None:
    """A member that hung for twenty seconds, once the faults had begun."""
    calm = [joins("m0"), assigned("m0"), *rounds("m0", every_s=1, times=5), phase("faults")]
    hung = [delivered("m0", 0), after(20), delivered("m0", 0)]
    assert told([*calm, *hung, *END]).poll_cycle_s == 1.0


def test_who_was_hardly_seen_has_not_shown_how_it_goes_round() -> None:
    """Two deliveries within a second; the poll interval that its team declares stands."""
    assert told([joins("m0"), assigned("m0"), handled("m0", 0, 1), *END]).poll_cycle_s is None


def test_a_silent_member_goes_round_as_its_fetches_do() -> None:
    """It prints no delivery: every two seconds it asks for more."""
    lines = [line for _ in range(3) for line in (fetched("m0", 0, size_bytes=9), after(1.99))]
    assert told([*lines, phase("faults"), *END]).poll_cycle_s == 2.0


def test_a_killed_member_costs_a_session_from_the_kill_on() -> None:
    """Ten seconds of it are over when the drain begins: the session and the rebalance after it, in full, stand."""
    lines = [*STOPPED, killed("m0"), after(8), phase("drain"), after(1)]
    assert bound_s(lines) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S)


def test_two_kills_one_after_the_other_cost_two_sessions_in_series() -> None:
    """Eleven seconds apart: the second is counted from the end of the first, a rebalance after each."""
    lines = [*STOPPED, killed("m0"), after(9 - 0.03), killed("m1", 1), phase("drain"), after(1)]
    assert bound_s(lines) == pytest.approx(2 * (45 + 5) - 13 + 1 + 0.01 + ONE_LEFT_S, abs=0.05)


def test_two_kills_in_force_together_cost_one_session() -> None:
    """Both expire side by side, from the later of them on."""
    both = [fault("kill", "m0"), after(1), fault("kill", "m1", number=1), after(1), healed(), healed(1)]
    assert bound_s([*STOPPED, both, *END]) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S, abs=0.05)


def test_a_kill_that_follows_another_inside_a_third_is_in_force_together_with_it() -> None:
    """m0 is down all the while, m1 is killed twice meanwhile: one session is waited for, from the last kill on."""
    twice = [line for number in (1, 2) for line in (fault("kill", "m1", number=number), after(1), healed(number))]
    lines = [*STOPPED, fault("kill", "m0"), after(1), *twice, healed(), *END]
    assert bound_s(lines) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S, abs=0.05)


def test_a_kill_whose_session_was_over_before_the_next_is_not_counted_again() -> None:
    """A minute lies between them."""
    lines = [*STOPPED, killed("m0"), after(60), killed("m1", 1), *END]
    assert bound_s(lines) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S, abs=0.05)


def test_sessions_of_kip_848_expire_side_by_side() -> None:
    """No rebalance of it waits for a dead member."""
    members = [request(f"m{number}", "CONSUMER_GROUP_HEARTBEAT", epoch=1) for number in (0, 1)]
    named = Line("run", "group_named", {"group": GROUP, "consumer_session_timeout_ms": 45_000})
    lines = [named, *members, assigned("m0"), handled("m0", 0), committed(1)]
    kills = [killed("m0"), after(9), killed("m1", 1)]
    assert bound_s([*lines, *kills, *END]) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S, abs=0.05)


@pytest.mark.parametrize(("leaves", "more_s"), [(False, 50 - 13), (True, 0)], ids=["without a word", "with a goodbye"])
def test_a_stopped_member_costs_a_session_unless_it_left(leaves: bool, more_s: float) -> None:
    """Java's default on SIGTERM is to go without leaving its group; two of them, one after the other."""
    goodbyes = [request(name, "LEAVE_GROUP") if leaves else after(0) for name in ("m0", "m1")]
    stops = [
        [fault("terminate", name, number=number), goodbyes[number], after(2), healed(number), after(9 * (1 - number))]
        for number, name in enumerate(("m0", "m1"))
    ]
    bound = bound_s([*STOPPED, *stops, phase("drain"), after(1)])
    assert bound == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S + more_s, abs=0.1)


TAKEN_OVER = {"api": "JOIN_GROUP", "instance_id": "one"}


@pytest.mark.parametrize("fault_name", ["terminate", "restart", "kill"])
@pytest.mark.parametrize(
    ("join", "more_s"),
    [
        (TAKEN_OVER, 0),
        (TAKEN_OVER | {"api": "CONSUMER_GROUP_HEARTBEAT", "epoch": 0}, 0),
        (TAKEN_OVER | {"api": "CONSUMER_GROUP_HEARTBEAT", "epoch": 7}, 50 - 13),
        (TAKEN_OVER | {"error": 82}, 50 - 13),
        ({"api": "JOIN_GROUP"}, 50 - 13),
    ],
    ids=["classic", "KIP-848", "a heartbeat", "refused", "no instance id"],
)
def test_a_member_whose_place_is_taken_over_costs_no_session(
    join: dict[str, Any], more_s: float, fault_name: str
) -> None:
    """Its next process joins under its instance id while its session lasts; two of them, one after the other."""
    stops = [
        [fault(fault_name, name, number=number), after(1.9), request(name, **join), after(0.09), healed(number)]
        for number, name in enumerate(("m0", "m1"))
    ]
    lines = [*STOPPED, stops[0], after(9), stops[1], phase("drain"), after(1)]
    assert bound_s(lines) == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S + more_s, abs=0.1)


def test_a_place_that_is_taken_over_after_its_session_costs_it() -> None:
    """The session was over by then; that of the other, which is lost meanwhile, follows it."""
    late = [fault("kill", "m0"), after(1), *killed("m1", 1), after(44), request("m0", **TAKEN_OVER), healed()]
    assert bound_s([*STOPPED, late, *END]) == bound_s([*STOPPED, late[:-2], late[-1], *END])


@pytest.mark.parametrize(("lasting_s", "in_series"), [(20, False), (50, True)])
def test_a_pause_costs_a_session_only_where_it_lasts_for_one(lasting_s: float, in_series: bool) -> None:
    """Who wakes before its session expires goes on; then a kill follows at once."""
    paused = [fault("pause", "m0"), after(lasting_s), healed()]
    bound = bound_s([*STOPPED, paused, killed("m1", 1), *END])
    once = 45 + 5 + 1 + 0.01 + ONE_LEFT_S
    assert bound == pytest.approx(once, abs=0.1)  # the pause's own session is over when it ends
    early = [fault("pause", "m0"), after(5), *killed("m1", 1), after(lasting_s - 7), healed()]
    assert (bound_s([*STOPPED, early, *END]) > once + 1) is False
    assert in_series == (lasting_s > 45)


@pytest.mark.parametrize(("name", "more_s"), [("stall", 28.0), ("kill", 0.0)])
def test_a_request_that_may_never_be_answered_costs_its_time_out(name: str, more_s: float) -> None:
    """30 s declared, and two of them gone when the drain begins."""
    lines = [*STOPPED, fault(name, "m0"), after(1), healed(), after(2 - 0.01), phase("drain"), after(1)]
    bound = bound_s(lines, request_timeout_s=30.0)
    assert bound == pytest.approx(45 + 5 + 1 + 0.01 + ONE_LEFT_S + more_s, abs=0.05)


def test_a_hang_in_the_faults_does_not_lengthen_the_bound() -> None:
    """A member that hung for a minute in the faults is as late as another."""
    hang = [fault("pause", "m1"), delivered("m0", 1), after(60), processed("m0", 1), healed()]
    quiet = [fault("pause", "m1"), after(60.02), healed()]
    lines = [joins("m0", session_s=6), assigned("m0"), handled("m0", 0)]
    assert bound_s([*lines, hang, *END]) == pytest.approx(bound_s([*lines, quiet, *END]) - ONE_LEFT_S + 2.0)


def test_a_hang_begun_before_the_faults_and_ended_in_them_does_not_count() -> None:
    """Its end is what the faults made of it."""
    lines = [assigned("m0"), delivered("m0", 1), after(1), fault("pause", "m1"), after(30), processed("m0", 1)]
    assert bound_s([*lines, healed(), phase("drain"), after(1)]) < 20


def test_a_handler_that_the_team_declares_stands_for_the_longest_seen() -> None:
    """Twenty seconds, though none was seen to take as long."""
    assert bound_s([*STOPPED, *END], handler_max_s=20.0) == pytest.approx(45 + 5 + 1 + 20 + ONE_LEFT_S)


def test_the_message_says_which_bound_was_applied_and_its_parts() -> None:
    """Two kills in series: what was left of both sessions when the drain began."""
    kills = [killed("m0"), after(9), killed("m1", 1)]
    found = judged("late-convergence", [*STOPPED, *kills, phase("drain"), after(90), delivered("m0", 1), after(5)])
    assert found[0]["within"].startswith(
        "B = 90.0 s (2 session expiries of 45 s in series, each with a rebalance, as far as they were left: 87.0 s, "
    )


def test_nothing_is_an_orphan_before_the_told_session_has_passed() -> None:
    """Thirty seconds without an owner are none with a session of 45 s."""
    alone = [joins("m0"), owner(idle=["m0"]), after(30)]
    assert judged("orphan-partition", alone) == []
    assert len(judged("orphan-partition", [*alone, after(30)])) == 1


def test_a_rebalance_long_after_the_second_of_two_kills_is_explained() -> None:
    """The second session ends 90 s after the first kill, long after both were healed."""
    lines = [*STOPPED, owner("m0"), killed("m0"), after(9), killed("m1", 1), after(60)]
    bumps = [line for number in range(2, 9) for line in (owner("m0", epoch=number), after(1))]
    assert judged("rebalance-storm", [*lines, *bumps]) == []
    assert len(judged("rebalance-storm", [*lines, after(120), *bumps])) == 1


def test_a_declaration_that_the_brokers_contradict_is_named() -> None:
    """The brokers' word counts; what stands there by default contradicts nobody."""
    declared = with_settings(declared=("session_timeout_s",))
    found = [notes_of(judgement(STOPPED, settings=settings)) for settings in (declared, with_settings())]
    assert found == [
        ["consumer.toml declares [kafka] session_timeout_s = 3; the brokers were told 45, which counts"],
        [],
    ]


@pytest.mark.parametrize(("protocol", "contradicts"), [("consumer", True), ("classic", False)])
def test_a_successor_of_another_protocol_contradicts_no_declaration(protocol: str, contradicts: bool) -> None:
    """Its own consumer.toml declares what the brokers were told."""
    moved = replace(started("m0-1"), fields=started("m0-1").fields | {"consumer": "new", "protocol": protocol})
    declared = with_settings(declared=("protocol",), protocol="consumer")
    found = notes_of(judgement([*STOPPED, moved], settings=declared))
    assert any("[kafka] protocol" in note for note in found) is contradicts


def test_a_partition_that_got_few_records_since_its_last_assignment_is_named() -> None:
    """Two, and it takes twenty; in a trial without faults nobody was to lose it."""
    lines = [assigned("m0"), killed("m0"), *END]
    assert notes_of(judgement(lines)) == ["fewer than 20 records came after the last assignment of partition 0 (2)"]
    assert [notes_of(judgement(lines, records=20)), notes_of(judgement([assigned("m0"), *END]))] == [[], []]


def test_an_unsettled_finding_names_the_bound() -> None:
    """Nobody can say yet whether the record is lost, and why is told."""
    reasons = finding("unseen", [*STOPPED, phase("drain"), after(5)]).undecided
    assert [reason.partition(" (")[0] for reason in reasons] == [
        "not converged, but the drain was shorter than B = 53.0 s"
    ]


@pytest.mark.parametrize(("timeout_s", "found"), [(None, 1), (5.0, 1), (30.0, 0)])
def test_a_close_may_wait_for_an_answer_that_never_comes(timeout_s: float | None, found: int) -> None:
    """A stall healed ten seconds before it was asked to stop; its client waits for thirty."""
    lines = [fault("stall", "m0"), after(2), healed(), after(10)]
    asked_ns = 102_080_000_000 + 12_050_000_000
    end = Line("consumer-m0-0", "exited", {"member": "m0", "incarnation": 0, "signal": 9, "asked": "overdue"})
    end.fields.update(asked_ns=asked_ns, within_s=5.0)
    judged_ = finding("unbounded-close", [*lines, after(5), end], settings=with_settings(request_timeout_s=timeout_s))
    assert (judged_.count, sum(judged_.undecided.values())) == (found, 1 - found)


def test_a_fault_of_a_plug_in_costs_what_it_says_it_does() -> None:
    """Five that freeze a member for a session cost five, as five pauses do; such as delay answers cost none."""
    none, by_pause, by_freeze, by_delay = (
        bound_s([*STOPPED, *(in_turn(name, does) if name else []), *END])
        for name, does in (("", ""), ("pause", ""), ("nap", "freezes"), ("nap", "delays-answers"))
    )
    assert by_freeze == by_pause > by_delay + 30
    assert by_delay == pytest.approx(none, abs=0.1)


def test_a_cut_costs_what_the_fault_costs_that_it_acts_as() -> None:
    """Two that kill cost two sessions, one after the other, as two kills do; two closed connections cost none."""
    kills = [*killed("m0"), *killed("m1", 1)]
    killing = [*cut("m0", "kill", for_s=2), *cut("m1", "kill", for_s=2, number=1)]
    closing = [*cut("m0", "close", for_s=2), *cut("m1", "close", for_s=2, number=1)]
    none, by_kill, by_cut, by_close = (bound_s([*STOPPED, *middle, *END]) for middle in ([], kills, killing, closing))
    assert by_cut == by_kill > by_close + 30
    assert by_close == pytest.approx(none, abs=0.1)
