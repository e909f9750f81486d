"""What was in flight: the excuse that at-most-once gives for a record that was committed past and never handled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from histories import (
    Line,
    after,
    asked,
    assigned,
    commit,
    committed,
    delivered,
    exited,
    fault,
    fetched,
    finding,
    handled,
    healed,
    judged,
    on,
    processed,
    read_late,
    revoked,
    started,
    with_settings,
)

Lines = list[Line | list[Line]]
SETTINGS = with_settings(delivery="at-most-once")  # a poll interval of 5 s
BEGUN: Lines = [assigned("m0"), handled("m0", 0)]
CRASHED = exited("m0", code=1)
TWO = committed(2, by="m0")


def over(line: Line) -> Line:
    """A request over the connection c1."""
    return replace(line, fields=line.fields | {"connection": "c1"})


OVER_C1 = [TWO[0], over(TWO[1])]


def excused(lines: Lines, *, records: int = 2) -> list[bool]:
    """Returns of each record of partition 0 that was skipped whether it was in flight."""
    found = finding("skipped", [*BEGUN, *lines], records=records, partitions=2, settings=SETTINGS)
    return [one.attributes["in_flight_at_crash"] for one in found.instances if one.partition == 0]


def test_in_flight_at_a_crash() -> None:
    """Committed, and the member crashed before it could begin."""
    assert excused([TWO, CRASHED]) == [True]


@pytest.mark.parametrize(
    ("end", "crashed"),
    [
        ({"code": 143, "asked": "stop"}, False),
        ({"code": 1, "asked": "stop"}, False),
        ({"signal": 15, "asked": "stop"}, False),
        ({"signal": 9, "asked": "overdue"}, True),
        ({"signal": 9, "asked": "kill"}, True),
        ({"code": 143, "asked": "no"}, True),
        ({"signal": 11, "asked": "no"}, True),
    ],
    ids=["Java's usual", "any status", "by the signal", "overdue", "killed", "unasked", "by a fault of its own"],
)
def test_an_end_that_was_asked_for_is_no_crash(end: dict[str, object], *, crashed: bool) -> None:
    """Whoever is asked to stop finishes what it has committed, whatever its exit status says."""
    settings = with_settings(delivery="at-most-once", sink="http")
    found = judged("skipped", [assigned("m0"), TWO, exited("m0", **end)], settings=settings)
    assert [one["in_flight_at_crash"] for one in found] == [crashed, crashed]


@pytest.mark.parametrize(("seconds", "soon"), [(4.9, True), (6.0, False)])
def test_a_crash_long_after_excuses_nothing(seconds: float, *, soon: bool) -> None:
    """No batch is in hand for longer than the poll interval, 5 s: the record was left out before."""
    assert excused([TWO, after(seconds), CRASHED]) == [soon]


FAILED = [delivered("m0", 1), processed("m0", 1, outcome="failed")]


@pytest.mark.parametrize(
    ("attempts", "waits"),
    [
        (FAILED, True),
        ([*FAILED, *FAILED], True),
        ([*FAILED, delivered("m0", 1)], True),
        ([*FAILED, *handled("m1", 0), *FAILED[:1]], True),
        ([delivered("m0", 1), processed("m0", 1, outcome="discarded")], False),
        ([on(1, line) for line in FAILED], False),
        ([*FAILED, *handled("m0", 2)], False),
        ([*FAILED, revoked("m0")], False),
    ],
    ids=[
        *("once", "twice", "begun again", "another one works", "given up", "of another partition"),
        *("it went on behind it", "it gave the partition back"),
    ],
)
def test_a_record_whose_attempt_failed_is_in_hand_for_however_long(attempts: Lines, *, waits: bool) -> None:
    """It waits for its next attempt, by a pause of the client's or of the team's own."""
    settings = with_settings(delivery="at-most-once", sink="http", no_effect=("done",))
    lines = [*BEGUN, TWO, *attempts, after(60), CRASHED]
    found = finding("skipped", lines, records=3, partitions=2, settings=settings)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances if one.partition == 0] == [waits]


AT_ONCE = [delivered("m0", 2), delivered("m0", 3), processed("m0", 2), processed("m0", 3)]


@pytest.mark.parametrize(
    ("attempt", "others", "rest", "excuse"),
    [
        ([delivered("m0", 1)], AT_ONCE, [after(60)], True),
        (FAILED, AT_ONCE, [after(1)], True),
        (FAILED, AT_ONCE, [after(6)], False),
        ([delivered("m0", 1)], AT_ONCE, [revoked("m0"), assigned("m0")], False),
        ([delivered("m0", 1)], handled("m0", 2, 3), [after(1)], False),
        (FAILED, handled("m0", 2, 3), [after(1)], False),
    ],
    ids=["begun", "failed", "failed long ago", "given back", "left by the only worker", "failed with the only worker"],
)
def test_a_record_in_a_pool_is_in_hand_while_others_go_on(
    attempt: Lines, others: Lines, rest: Lines, *, excuse: bool
) -> None:
    """Each is committed as it begins; that one crashed over its own. Its lines show that it handles several at once."""
    lines = [*BEGUN, TWO, *attempt, committed(4, by="m0"), *others, *rest, CRASHED]
    found = finding("skipped", lines, records=4, partitions=2, settings=SETTINGS)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances if one.partition == 0] == [excuse]


@pytest.mark.parametrize(("in_hand", "excuse"), [([delivered("m0", 1)], True), ([], False)])
def test_a_position_that_is_committed_again_and_again_counts_once(in_hand: Lines, *, excuse: bool) -> None:
    """By a timer, while a record is in hand; that it does so is no sign of work."""
    again = [line for _ in range(12) for line in (after(1), TWO)]
    assert excused([TWO, *in_hand, *again, CRASHED]) == [excuse]


def test_a_position_that_is_committed_again_by_the_next_owner_counts_anew() -> None:
    """What it had in hand it had given back meanwhile, or left out."""
    again = [revoked("m0"), after(1), assigned("m0"), after(1), TWO, delivered("m0", 2)]
    assert excused([TWO, *again, CRASHED]) == [False]


@pytest.mark.parametrize(
    ("heard", "excuse"), [([], True), ([commit("m0", 2), TWO, commit("m0", 2, "ok")], False)], ids=["never", "at last"]
)
def test_who_heard_of_its_position_at_last_had_time_for_it(heard: Lines, *, excuse: bool) -> None:
    """The answer to the first commit was held. What it commits a minute later is its next try only where it never heard
    that the position stood."""
    held = [fault("answers-held", "m0"), commit("m0", 2), TWO, commit("m0", 2, "fail"), healed()]
    later = [after(60), commit("m0", 3), committed(3, by="m0"), commit("m0", 3, "ok"), CRASHED]
    found = finding("skipped", [*BEGUN, *held, *heard, *later], records=3, partitions=2, settings=SETTINGS)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances if one.partition == 0][:1] == [excuse]


def test_what_lies_behind_a_failed_attempt_waits_too() -> None:
    """The rest of a batch that was committed with it."""
    lines = [*BEGUN, committed(3, by="m0"), *FAILED, after(60), CRASHED]
    found = finding("skipped", lines, records=3, partitions=2, settings=SETTINGS)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances if one.partition == 0] == [True, True]


@pytest.mark.parametrize(
    ("fetches", "flight"),
    [
        ([fetched("m0", 0, size_bytes=9), fetched("m0", 1)], False),
        ([fetched("m0", 0, size_bytes=9), fetched("m0", 2)], True),
        ([fetched("m0", 0, size_bytes=9)], True),
        ([fetched("m0", 0, size_bytes=9), fault("broker-kill", None), healed(), fetched("m0", 1)], True),
        ([fetched("m1", 0, size_bytes=9), fetched("m1", 1)], True),
        ([fetched("m0", 0, size_bytes=9), fetched("m0", 1), fetched("m0", 1, size_bytes=9)], True),
    ],
    ids=[
        "it had got nothing from there on",
        "it had gone beyond it",
        "it may have got anything",
        "a broker was stopped",
        "nobody saw what it fetched",
        "it had asked for it, and was answered",
    ],
)
def test_what_no_fetch_can_have_brought_was_not_in_flight(fetches: Lines, *, flight: bool) -> None:
    """Record 1 is committed over, and the member crashes: the request log knows what it had."""
    assert excused([*fetches, after(1), TWO, CRASHED]) == [flight]


@pytest.mark.parametrize(("late_s", "flight"), [(0.4, True), (1.0, True), (5.4, True), (6.0, False)])
def test_a_fetch_that_its_broker_stamped_after_the_crash_brought_what_was_in_flight(
    late_s: float, *, flight: bool
) -> None:
    """A busy broker stamps its line late; whoever has crashed asks for nothing more."""
    stamped = read_late(fetched("m0", 0, size_bytes=9), -late_s)
    found = finding("skipped", [assigned("m0"), stamped, TWO, CRASHED], settings=SETTINGS)
    assert [one.attributes["in_flight_at_crash"] for one in found.instances] == [flight, flight]


def test_a_record_that_was_passed_over_was_not_in_flight() -> None:
    """The member had begun record 2, which lies behind it, when it crashed."""
    assert excused([committed(4, by="m0"), handled("m0", 2), CRASHED], records=4) == [False, True]


def test_a_record_that_was_begun_was_in_flight_whatever_was_begun_behind_it() -> None:
    """The member had both in hand, finished the later one, and crashed over the first."""
    lines = [assigned("m0"), delivered("m0", 0), handled("m0", 1), TWO, CRASHED]
    assert [one["in_flight_at_crash"] for one in judged("skipped", lines, settings=SETTINGS)] == [True]


def test_a_commit_of_another_partition_says_nothing() -> None:
    """A worker a partition: that another one commits does not mean that this one is done."""
    other = [on(1, line) for line in committed(2, by="m0")]
    assert excused([TWO, other, CRASHED]) == [True]


def test_a_crash_of_another_member_excuses_nothing() -> None:
    """The one that had committed lives."""
    assert excused([TWO, exited("m1", code=1)]) == [False]


def test_a_crash_of_its_next_incarnation_excuses_nothing() -> None:
    """The one that had committed had gone in peace."""
    gone = exited("m0", code=0, asked="stop")
    assert excused([TWO, gone, started("m0-1"), exited("m0-1", code=1)]) == [False]


def test_a_failed_commit_is_in_flight() -> None:
    """The answer was held: durable, and the member was told that it had failed."""
    held = [fault("answers-held", "m0"), commit("m0", 2), TWO, commit("m0", 2, "fail"), healed()]
    assert excused(held) == [True]


@pytest.mark.parametrize(("acts_as", "excuse"), [("answers-held", True), ("kill", True), ("restart", False)])
def test_a_commit_whose_answer_a_cut_held_is_in_flight(acts_as: str, excuse: bool) -> None:
    """As under the fault that it acts as; one that leaves answers alone excuses nothing."""
    cut = fault("cut", "m0", acts_as=acts_as)
    assert excused([cut, after(1), commit("m0", 2), TWO, after(1), commit("m0", 2, "fail"), after(1), healed()]) == [
        excuse
    ]


def test_another_members_failure_excuses_nothing() -> None:
    """m1 failed to commit the same position; m0, which had committed it, knew."""
    assert excused([commit("m0", 2), TWO, commit("m0", 2, "ok"), commit("m1", 2), commit("m1", 2, "fail")]) == [False]


def test_an_attempt_that_was_made_afterwards_excuses_nothing() -> None:
    """The commit stood, and a further attempt at the same position failed."""
    later: Lines = [after(2), commit("m0", 2), commit("m0", 2, "fail")]
    assert excused([commit("m0", 2), TWO, commit("m0", 2, "ok"), *later]) == [False]


def test_a_failure_whose_answer_was_heard_excuses_nothing() -> None:
    """No fault was near: the broker accepted it, and the member says that it failed."""
    assert excused([commit("m0", 2), TWO, after(1), commit("m0", 2, "fail")]) == [False]


HELD_FIRST: Lines = [fault("answers-held", "m0"), commit("m0", 2), TWO, commit("m0", 2, "fail")]


def test_a_retry_that_was_accepted_and_heard_ends_the_excuse() -> None:
    """After the healing the same position was accepted, by the request log: now it must work."""
    retried = [healed(), after(1), commit("m0", 2), asked("OFFSET_COMMIT", "m0", 2)]
    assert excused([*HELD_FIRST, *retried]) == [False]


def test_a_retry_that_succeeded_by_its_own_word_ends_the_excuse() -> None:
    """Whatever the request log holds: what it prints convicts it."""
    assert excused([*HELD_FIRST, commit("m0", 2), commit("m0", 2, "ok"), healed()]) == [False]


def test_a_retry_whose_answer_was_held_too_ends_nothing() -> None:
    """The member was told nothing: a sound one must not act on it."""
    retried = [commit("m0", 2), asked("OFFSET_COMMIT", "m0", 2), commit("m0", 2, "fail"), healed()]
    assert excused([*HELD_FIRST, *retried]) == [True]


def test_a_retry_that_was_refused_ends_nothing() -> None:
    """The group had moved on: nobody will ever know of the first attempt."""
    retried = [healed(), after(1), commit("m0", 2), asked("OFFSET_COMMIT", "m0", 2, error=22)]
    assert excused([*HELD_FIRST, *retried]) == [True]


def test_an_answer_that_was_cut_off_is_in_flight_though_nothing_was_printed() -> None:
    """It lost its connection with the answer in it, and never says what became of the commit."""
    assert excused([fault("half-open", "m0"), after(0.2), commit("m0", 2), OVER_C1, after(0.2), healed()]) == [True]


def test_an_answer_in_another_members_fault_was_heard() -> None:
    """m1 was cut off; m0 was not."""
    assert excused([fault("half-open", "m1"), after(0.2), commit("m0", 2), OVER_C1, after(0.2), healed()]) == [False]


def test_an_answer_that_came_with_the_heal_was_heard() -> None:
    """Its connection went on: the member knew, and had time to work."""
    held = [fault("answers-held", "m0"), after(0.2), commit("m0", 2), OVER_C1, after(0.2), healed(), after(0.2)]
    assert excused([*held, over(asked("OFFSET_COMMIT", "m0", 2, error=22))]) == [False]


def test_a_committer_that_no_log_tells_is_whoever_failed() -> None:
    """The broker died before it wrote the line of the request: the member's own word is all there is."""
    assert excused([commit("m0", 2), committed(2), commit("m0", 2, "fail")]) == [True]


def test_a_request_that_arrived_when_its_client_had_given_up_is_in_flight() -> None:
    """It was held on its way; whoever has given up waiting throws the answer away."""
    assert excused([fault("requests-held", "m0"), commit("m0", 2), commit("m0", 2, "fail"), after(1), TWO]) == [True]


def on_connection(line: Line, name: str) -> Line:
    return replace(line, fields=line.fields | {"connection": name})


def accepted_on(name: str) -> Lines:
    """A commit of 2 that stands, and its request on a connection."""
    stored, request = committed(2, by="m0")
    return [stored, on_connection(request, name)]


REFUSED_2 = asked("OFFSET_COMMIT", "m0", 2, error=25)


@pytest.mark.parametrize(
    ("answers", "flight"),
    [
        ([*accepted_on("c1"), on_connection(REFUSED_2, "c2")], True),
        ([*accepted_on("c1"), *accepted_on("c2"), on_connection(REFUSED_2, "c3")], True),
        ([*accepted_on("c1"), on_connection(REFUSED_2, "c1")], False),
        ([on_connection(REFUSED_2, "c2"), *accepted_on("c1")], False),
        ([*accepted_on("c1"), on_connection(asked("OFFSET_COMMIT", "m1", 2, error=25), "c2")], False),
        ([*accepted_on("c1"), on_connection(asked("OFFSET_COMMIT", "m0", 1, error=25), "c2")], False),
        (accepted_on("c1"), False),
        ([*accepted_on("c1"), after(58), on_connection(REFUSED_2, "c2")], True),
        ([*accepted_on("c1"), after(62), on_connection(REFUSED_2, "c2")], False),
    ],
    ids=[
        "asked again on another connection",
        "asked again twice",
        "on the same one it heard the first",
        "refused before",
        "another member was refused",
        "another place was refused",
        "its word alone",
        "asked again while clients may wait for an answer",
        "asked again when no client waits any more",
    ],
)
def test_who_asks_again_elsewhere_and_is_refused_has_not_heard(answers: Lines, *, flight: bool) -> None:
    """A client that closes a connection begins its commit anew: what it hears is the refusal. It leaves the record, and
    nobody could have told it that the commit stood."""
    lines = [commit("m0", 2), after(1), *answers, after(1), commit("m0", 2, "fail")]
    assert excused(lines) == ([True] if flight else [False])
