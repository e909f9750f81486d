"""Which client of a process a line speaks for: literal histories. m0's process, lane 0, may hold clients a and b."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import heartbeat, joined, synced
from histories import (
    EXAMPLE,
    Line,
    after,
    answered,
    assigned,
    batch_of,
    committed,
    delivered,
    exited,
    fault,
    fetched,
    finding,
    handled,
    history,
    judged,
    owner,
    processed,
    revoked,
    said,
    told,
    undecided,
)
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.ownership_epochs import deliveries, member_lines, ownership_epochs


def by(client: str, line: Line, **who: str) -> Line:
    """The same of a client in m0's process; `who`: all that the line names."""
    there = {"connection": f"to-{client}"} if line.source == "requests-b0" else {}
    return replace(line, fields=line.fields | (who or {"client_id": client, "member_id": f"id-{client}"}) | there)


def given(client: str, *partitions: int, generation: int = 1) -> list[Line]:
    """A client joins, and is given these partitions."""
    return [by(client, joined("m0", generation=generation)), by(client, synced("m0", *partitions))]


AT_ONCE = [*given("a", 0), *given("b", 1), *given("a", 0, generation=2)]
BOTH_HAD_IT = [*AT_ONCE, *given("b", 0, 1, generation=3)]
ONE_AFTER_THE_OTHER = [*given("a", 0), *given("b", 0)]
# A line of b stands between the revocation and the work, so that names come by turns.
WORKS_ON = [
    *(by("a", assigned("m0", 0)), by("b", assigned("m0", 1)), by("a", revoked("m0", 0)), by("b", assigned("m0", 0))),
    *(by("a", delivered("m0", 0)), by("b", processed("m0", 1))),
]


def test_names_of_one_member_at_a_time_are_one_clients() -> None:
    """It calls itself by turns a and b, is handed the partition, works, and works again: the log knows one of them."""
    lines = [by("a", assigned("m0")), by("b", delivered("m0", 0)), by("a", processed("m0", 0))]
    again = [by("b", assigned("m0", 1)), by("a", delivered("m0", 0))]
    assert [one["offset"] for one in judged("nonmonotonic-poll", [*lines, *again], partitions=2)] == [0]


@pytest.mark.parametrize(
    ("log", "apart"),
    [(BOTH_HAD_IT, True), (AT_ONCE, False), (ONE_AFTER_THE_OTHER, False), ([], False), (given("a", 0), False)],
    ids=["two at once", "the partition was one's alone", "one after the other", "another name", "one of them"],
)
def test_names_tell_clients_apart_where_the_log_shows_several_at_once(log: list[Line], apart: bool) -> None:
    """What the process prints of itself counts only where no witness could know better."""
    batch = batch_of([*log, *WORKS_ON], partitions=2)
    assert (len(set(member_lines(batch)["client"].tolist())) > 1) is apart


def test_where_the_log_may_lack_a_member_the_names_count() -> None:
    """It was not read to its end."""
    assert judged("work-after-revoke", WORKS_ON, partitions=2, whole=False) == [{"offset": 0, "what": "delivered"}]


def test_where_no_member_was_seen_at_all_the_names_count() -> None:
    """Two consumers in one process that assign themselves partitions, and join no group."""
    events = [event for event in history(WORKS_ON, partitions=2) if event.kind != "request"]
    found = judge_events(events, EXAMPLE).findings["work-after-revoke"].instances
    assert [one.attributes["offset"] for one in found] == [0]


def test_a_client_that_goes_by_another_member_id_is_the_same_one() -> None:
    """a rejoins beside b, and prints its new member id from then on: what it holds it holds on."""
    again = {"client_id": "a", "member_id": "id-a2"}
    log = [*BOTH_HAD_IT, by("a", joined("m0", generation=3), **again), by("a", synced("m0", 0), **again)]
    own = [by("a", assigned("m0", 0), member_id="id-a"), by("b", assigned("m0", 1), member_id="id-b")]
    work = [by("a", delivered("m0", 0), member_id="id-a"), by("a", delivered("m0", 1), member_id="id-a2")]
    found = deliveries(batch_of([*log, *own, *work], partitions=2))
    assert told(found, "offset", "ownership_epoch") == [(0, 0), (1, 0)]


def test_names_of_several_at_once_need_not_come_by_turns() -> None:
    """All that b says comes after all that a says: its assignment takes nothing from a."""
    lines = [*BOTH_HAD_IT, by("a", assigned("m0")), by("a", delivered("m0", 0)), by("b", assigned("m0"))]
    assert told(ownership_epochs(batch_of(lines, partitions=2)), "open_seq", "close_seq") == [
        (1, "never"),
        (3, "never"),
    ]


STARVED = {"records": 12, "partitions": 3, "old": True}
ROUNDS = [
    line
    for offset in range(8)
    for line in (after(2), processed("m0", offset, partition=1), processed("m0", offset, partition=2))
]


@pytest.mark.parametrize("named", [True, False], ids=["named", "by the log"])
@pytest.mark.parametrize(("client", "found"), [("a", 1), ("b", 0)], ids=["its own client", "another one"])
def test_a_client_that_waits_is_not_starved_by_the_work_of_another(client: str, found: int, *, named: bool) -> None:
    """Partition 0 is a's; for sixteen seconds the process does records of two others."""
    theirs = {"a": [0], "b": []} | {client: [0, 1, 2] if client == "a" else [1, 2]}
    log = [*given("a", *theirs["a"]), *given("b", *theirs["b"]), *given("a", *theirs["a"], generation=2)]
    own = [by("a", assigned("m0", 0)), by("b", said("m0", "ready")), by(client, assigned("m0", 1, 2))]
    own += [by(client, line) if line.source else line for line in ROUNDS]
    own += [by("a", line) for line in handled("m0", 0)]
    lines = own if named else [assigned("m0", 0, 1, 2), *ROUNDS, *handled("m0", 0)]
    assert len(judged("starved-partition", [*log, *lines], **STARVED)) == found


def test_where_nobody_knows_who_waits_starvation_is_undecided() -> None:
    """Both clients had the partition, and the lines name neither."""
    lines = [*BOTH_HAD_IT, assigned("m0", 0, 1, 2), *ROUNDS, *handled("m0", 0)]
    assert undecided("starved-partition", lines, **STARVED) == 1


def test_where_nobody_is_starved_it_is_no_matter_who_waits() -> None:
    """Both clients had the partition, the lines name neither, and the process works on one other only."""
    lines = [*BOTH_HAD_IT, assigned("m0", 0, 1), *ROUNDS[1::3], after(16), *handled("m0", 0)]
    assert judged("starved-partition", lines, **STARVED) == []


@pytest.mark.parametrize(("begins", "found"), [(5, [5]), (6, [])], ids=["below its answer", "at it"])
def test_a_client_is_held_to_what_it_was_answered_itself(begins: int, found: list[int]) -> None:
    """a began at 3, its neighbour b takes over at 6, in the same process and soon after."""
    a_works = [assigned("m0", 0), answered("m0", 3), fetched("m0", 3, size_bytes=9), *handled("m0", 3, 4, 5)]
    b_works = [synced("m0", 0, 1), assigned("m0", 0), answered("m0", 6), fetched("m0", begins, size_bytes=9)]
    lines: list[Line | list[Line]] = [*AT_ONCE, committed(3), *(by("a", line) for line in a_works), committed(6)]
    lines += [by("a", revoked("m0", 0)), *(by("b", line) for line in [*b_works, delivered("m0", begins)])]
    again = judged("illegal-redelivery", [*lines, by("a", said("m0", "ready"))], records=8, partitions=2)
    assert [one["offset"] for one in again] == found


BREACHES = {
    "work-after-revoke": [assigned("m0"), revoked("m0"), delivered("m0", 0)],
    "nonmonotonic-poll": [assigned("m0"), *handled("m0", 0), delivered("m0", 0)],
    "poll-skip": [assigned("m0"), delivered("m0", 0), delivered("m0", 2)],
    "reordered-key": [*(assigned("m0"), delivered("m0", 0)), *handled("m0", 1), *handled("m0", 0)],
    "overlapping-handlers": [
        *(assigned("m0"), delivered("m0", 0), delivered("m0", 1)),
        *(processed("m0", 0), processed("m0", 1)),
    ],
}


@pytest.mark.parametrize("name", sorted(BREACHES.keys() - {"reordered-key"}))
def test_what_only_one_client_can_have_done_is_undecided_where_nobody_knows_who_spoke(name: str) -> None:
    """Two members at once in the process; each of them was given the partition, and no line names one."""
    lines = [*BOTH_HAD_IT, *BREACHES[name]]
    found = finding(name, lines, records=3, partitions=2)
    assert (len(found.instances), list(found.undecided.values())) == (0, [1])


def test_a_skip_in_the_last_act_of_nobody_knows_whom_is_undecided_once() -> None:
    """Its process was killed: one reason is enough."""
    lines = [*BOTH_HAD_IT, *BREACHES["poll-skip"], exited("m0", signal=9)]
    assert undecided("poll-skip", lines, records=3, partitions=2) == 1


def test_a_redone_record_of_nobody_knows_whom_is_undecided() -> None:
    """Its first completion is in its order; the one behind a later record may be another client's."""
    work = [assigned("m0"), *handled("m0", 0), *handled("m0", 1), *handled("m0", 0)]
    keys = {"records": ["k", "k"], "partitions": 2}
    assert undecided("reordered-key", [*BOTH_HAD_IT, *work], **keys) == 1
    assert len(judged("reordered-key", work, **keys)) == 1


def test_the_order_of_first_completions_needs_no_speaker() -> None:
    """Whoever of them did it: record 1 was done before record 0."""
    lines = [*BOTH_HAD_IT, *BREACHES["reordered-key"]]
    assert len(judged("reordered-key", lines, records=["k", "k"], partitions=2)) == 1


@pytest.mark.parametrize("name", sorted(BREACHES))
@pytest.mark.parametrize("log", [[], AT_ONCE], ids=["one client", "the other was never given the partition"])
def test_where_one_client_alone_can_have_spoken_it_is_found(name: str, log: list[Line]) -> None:
    """Of the clients in the process only one was ever given the partition."""
    assert len(judged(name, [*log, *BREACHES[name]], records=["k", "k", "k"], partitions=2)) == 1


def test_names_decide_again() -> None:
    """Both had the partition, and the lines say that it was one and the same that revoked and worked."""
    lines = [by("a", line) for line in BREACHES["work-after-revoke"]]
    assert len(judged("work-after-revoke", [*BOTH_HAD_IT, *lines], partitions=2)) == 1


def test_a_name_that_the_log_does_not_know_decides_nothing() -> None:
    """Revoked by one that it calls x, worked by one that it calls y: of two clients neither is called so."""
    lines = [by(name, line) for name, line in zip("xxy", BREACHES["work-after-revoke"], strict=True)]
    assert undecided("work-after-revoke", [*BOTH_HAD_IT, *lines, by("x", assigned("m0", 1))], partitions=2) == 1


def test_a_name_of_another_one_does_not_acquit() -> None:
    """a alone was given the partition, and gave it up: what the process does with it then b did not do, as it says."""
    begins = [by("a", assigned("m0", 0)), by("b", assigned("m0", 1)), by("a", revoked("m0", 0))]
    lines = [*AT_ONCE, *begins, by("b", delivered("m0", 0)), by("a", assigned("m0", 1))]
    assert len(judged("work-after-revoke", lines, partitions=2)) == 1


@pytest.mark.parametrize(("who", "found"), [("a", [1]), ("b", [])], ids=["it was told", "another one was"])
def test_what_a_client_was_told_counts_though_lines_name_nobody(who: str, found: list[int]) -> None:
    """a alone was given the partition; m1 gets it, a broker fences one of the two, and a fetches on and works."""
    lost = [*AT_ONCE, assigned("m0", 0, 1), delivered("m0", 0), owner("m1"), after(1)]
    lost += [by(who, heartbeat("m0", error=25))]
    goes_on = [after(1), by("a", fetched("m0", 1, size_bytes=9)), after(1), delivered("m0", 1)]
    split = judged("split-ownership", [*lost, *goes_on], partitions=2)
    assert [one["offset"] for one in split] == found


def test_once_a_broker_was_stopped_an_assignment_may_be_missing() -> None:
    """That of the other client: its last lines are not in the log."""
    lines = [fault("broker-kill", None), *AT_ONCE, *BREACHES["work-after-revoke"]]
    assert undecided("work-after-revoke", lines, partitions=2) == 1
