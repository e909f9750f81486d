"""Several group members in one process: literal histories. m0's process, lane 0, holds clients a and b."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import heartbeat, joined, synced
from histories import (
    EXAMPLE,
    Line,
    after,
    asked,
    assigned,
    batch_of,
    committed,
    delivered,
    fetched,
    finding,
    history,
    judged,
    on,
    owner,
    processed,
    revoked,
    said,
    told,
    undecided,
)
from kafka_trial.judge.judge import judge_events
from kafka_trial.model.clients import known_clients
from kafka_trial.model.handlers import completions, finished_handlers
from lab.naive.checker import judge


def by(client: str, line: Line, *, member_id: str | None = None, client_id: str | None = None) -> Line:
    """The same of a client in m0's process; `client_id`: another one than its name."""
    who = {"client_id": client_id or client, "member_id": member_id or f"id-{client}"}
    there = {"connection": f"to-{client}"} if line.source == "requests-b0" else {}
    return replace(line, fields=line.fields | who | there)


def both_join(**shared: str) -> list[Line]:
    """a and b join, and are each given their partition."""
    joins = [by(client, joined("m0"), **shared) for client in ("a", "b")]
    return [*joins, *(by(client, synced("m0", at), **shared) for at, client in enumerate(("a", "b")))]


def committed_by(client: str, value: int, **who: str) -> list[Line]:
    """A commit of a client that took effect."""
    line = by(client, asked("OFFSET_COMMIT", "m0", value, epoch=1), **who)
    return [committed(value)[0], line]


def zombies(*lines: Line | list[Line]) -> list[int]:
    """The committed offsets of zombie commits."""
    return [one["committed_offset"] for one in judged("zombie-commit", [*lines], partitions=2)]


A_OWNS, B_OWNS = owner("a"), owner("b")
# Whoever tells clients apart by what members print, needs lines of both.
SPOKEN = [by("a", said("m0", "ready")), by("b", said("m0", "ready")), by("a", said("m0", "ready"))]


@pytest.mark.parametrize(
    ("name", "lines", "found"),
    [
        ("zombie-commit", ["joins", "a owns", "b commits"], 1),
        ("zombie-commit", ["joins", "a owns", "a commits"], 0),
        ("zombie-commit", ["joins", "a owns", "b owns", "a commits"], 1),
        ("work-after-revoke", ["joins", "hand over"], 0),
        ("work-after-revoke", ["joins", "hand over", "a works"], 1),
        ("split-ownership", ["joins", "hold", "m1 owns", "b is told", "a fetches and works"], 0),
        ("split-ownership", ["joins", "hold", "m1 owns", "a is told", "a fetches and works"], 1),
        ("split-ownership", ["joins", "hold", "b owns", "a is told", "a fetches and works"], 1),
        ("zombie-work", ["joins", "hold", "b owns", "a fetches and works"], 1),
    ],
)
def test_two_judges_tell_clients_apart(name: str, lines: list[str], found: int) -> None:
    """The vectorised one and the naive one, which makes each client a member of its own."""
    story = [line for step in lines for line in STEPS[step]]
    events = history([*SPOKEN, *story], partitions=2)
    assert len(judge_events(events, EXAMPLE).findings[name].instances) == found
    assert len(judge(events, {"events": "jsonl"}).anomalies[name]) == found


def test_a_client_commits_what_another_one_of_its_process_owns() -> None:
    """The partition is a's, b commits there: by lane alone it would be their own."""
    found = finding("zombie-commit", [*both_join(), A_OWNS, *committed_by("b", 1)], partitions=2)
    assert [(one.attributes["member"], one.events[0]) for one in found.instances] == [("m0", "offsets#0")]


def test_a_client_commits_what_it_owns() -> None:
    """Beside another one of its process."""
    assert zombies(*both_join(), A_OWNS, *committed_by("a", 1)) == []
    assert zombies(*both_join(), A_OWNS, *committed_by("a", 1), B_OWNS, *committed_by("b", 2)) == []


def test_a_client_commits_what_it_has_lost_to_another_one_of_its_process() -> None:
    """After b has got the partition."""
    assert zombies(*both_join(), A_OWNS, *committed_by("a", 1), B_OWNS, *committed_by("a", 2)) == [2]


def test_clients_of_one_id_are_told_apart_by_their_member_ids() -> None:
    """As the request names them."""
    one_id = {"client_id": "same"}
    assert zombies(*both_join(**one_id), A_OWNS, *committed_by("b", 1, **one_id)) == [1]
    assert zombies(*both_join(**one_id), A_OWNS, *committed_by("a", 1, **one_id)) == []


@pytest.mark.parametrize("client_id", ["a", "same"])
def test_a_client_that_rejoins_under_another_member_id_is_still_the_same(client_id: str) -> None:
    """By its client id, or by its connection: it was given the partition under the old one."""
    lines = both_join() if client_id == "a" else both_join(client_id="same")
    again = {"member_id": "id-a2", "client_id": client_id}
    rejoined = [by("a", joined("m0", generation=2), **again), by("a", synced("m0", 0, generation=2), **again)]
    assert zombies(*lines, A_OWNS, *rejoined, *committed_by("a", 1, **again)) == []


def test_where_nothing_tells_which_of_them_committed_it_is_undecided() -> None:
    """One client id, no member id in the request, and a connection that nobody joined over."""
    lines = [*both_join(client_id="same"), A_OWNS, committed(1)[0]]
    unnamed = asked("OFFSET_COMMIT", "m0", 1)
    fields = {name: value for name, value in unnamed.fields.items() if name != "member_id"}
    bare = replace(unnamed, fields=fields | {"client_id": "same", "connection": "new"})
    assert undecided("zombie-commit", [*lines, bare], partitions=2) == 1


def test_one_client_after_the_other_is_one_member() -> None:
    """It came back under another client id: its partition is its own, though the log still has the old member id."""
    first = [by("a", joined("m0")), by("a", synced("m0", 0)), A_OWNS]
    second = [by("b", joined("m0", generation=2)), by("b", synced("m0", 0, generation=2))]
    assert zombies(*first, *second, *committed_by("b", 1)) == []


def test_a_join_that_is_answered_late_is_no_second_client() -> None:
    """The process had gone, and come back, when the broker answered."""
    parked = by("a", joined("m0", generation=2))
    late = replace(parked, fields=parked.fields | {"duration_ms": 100.0})
    lines = [by("a", joined("m0")), by("a", synced("m0", 0)), A_OWNS, by("b", joined("m0")), late]
    assert known_clients(batch_of(lines)).lanes == frozenset()


def test_members_of_different_lanes_are_no_clients_of_one() -> None:
    """Nor is a refused stranger."""
    lines = [joined("m0"), joined("m1"), synced("m0", 0), synced("m1", 1), by("b", heartbeat("m0", error=25))]
    assert known_clients(batch_of(lines)).lanes == frozenset()


BEGUN = [by("a", assigned("m0", 0)), by("b", assigned("m0", 1))]  # each line names the client that it speaks for
GIVEN_TO_B = [by("b", synced("m0", 0, 1, generation=2)), by("b", assigned("m0", 0, 1))]


def test_the_revocation_of_one_client_convicts_no_other() -> None:
    """a gives up the partition, b of the same process takes it over; then a works on it all the same."""
    handed_over = [*both_join(), *BEGUN, by("a", revoked("m0", 0)), *GIVEN_TO_B, by("b", delivered("m0", 0))]
    assert judged("work-after-revoke", handed_over, partitions=2) == []
    late = [*handed_over, by("a", delivered("m0", 1)), by("b", processed("m0", 0))]
    found = judged("work-after-revoke", late, partitions=2)
    assert found == [{"offset": 1, "what": "delivered"}]


def test_the_assignment_of_one_client_acquits_no_other() -> None:
    """b is assigned the partition when a has given it up: what a does then is still late."""
    handed_over = [*both_join(), *BEGUN, by("a", revoked("m0", 0)), *GIVEN_TO_B]
    lines = [*handed_over, by("a", delivered("m0", 0)), by("b", delivered("m0", 1))]
    assert [one["offset"] for one in judged("work-after-revoke", lines, partitions=2)] == [0]


def test_a_delivery_of_one_client_is_not_finished_by_another() -> None:
    """a finishes what it was delivered, after b finished the same record."""
    own = [*both_join(), *BEGUN, by("a", delivered("m0", 0)), by("a", revoked("m0", 0)), *GIVEN_TO_B]
    lines = [*own, by("b", delivered("m0", 0)), by("b", processed("m0", 0)), by("a", processed("m0", 0))]
    batch = batch_of(lines, partitions=2)
    assert told(finished_handlers(batch), "start_seq", "end_seq") == [(3, 8), (6, 7)]


def test_clients_that_come_one_after_the_other_are_one() -> None:
    """It rejoined, and prints its new member id from then on: what it holds it holds on."""
    first, second = (by("a", delivered("m0", at), member_id=f"id-a{at}") for at in (0, 1))
    lines = [assigned("m0"), first, second, processed("m0", 1)]
    unnamed = [replace(one, fields={k: v for k, v in one.fields.items() if k != "client_id"}) for one in lines]
    assert told(completions(batch_of(unnamed)), "offset", "ownership_epoch") == [(1, 0)]


def test_what_one_client_was_told_is_not_told_to_another() -> None:
    """b was fenced; a lost its partition to m1 untold, and fetches on."""
    lost = [*both_join(), *BEGUN, by("a", delivered("m0", 0)), by("b", on(1, delivered("m0", 0))), owner("m1")]
    later = [after(1), by("a", fetched("m0", 1, size_bytes=9)), after(1), by("a", delivered("m0", 1))]
    told_b, told_a = (by(client, heartbeat("m0", error=25)) for client in ("b", "a"))
    assert judged("split-ownership", [*lost, after(1), told_b, *later], partitions=2) == []
    assert len(judged("split-ownership", [*lost, after(1), told_a, *later], partitions=2)) == 1


def test_what_one_client_fetched_is_not_fetched_by_another() -> None:
    """a was told; it is b that fetches on, from a connection of its own, and b that has the partition."""
    lost = [*both_join(), *BEGUN, by("a", delivered("m0", 0)), by("b", on(1, delivered("m0", 0))), B_OWNS]
    told_a = [after(1), by("a", heartbeat("m0", error=25)), by("a", fetched("m0", 0, size_bytes=9)), after(1)]
    theirs = [by("b", fetched("m0", 1, size_bytes=9)), after(1), by("a", delivered("m0", 1))]
    assert judged("split-ownership", [*lost, *told_a, *theirs], partitions=2) == []


def test_a_partition_lost_to_another_client_of_the_process_is_lost() -> None:
    """It was told, and fetches on beside its neighbour."""
    lost = [*both_join(), *BEGUN, by("a", delivered("m0", 0)), by("b", on(1, delivered("m0", 0))), B_OWNS]
    told_a = [after(1), by("a", heartbeat("m0", error=25)), after(1), by("a", fetched("m0", 1, size_bytes=9))]
    found = judged("split-ownership", [*lost, *told_a, after(1), by("a", delivered("m0", 1))], partitions=2)
    assert found == [{"offset": 1, "by": "told"}]


@pytest.mark.parametrize(("rest", "skipped"), [([processed("m0", 0)], []), ([], [0])])
def test_a_partition_may_come_to_a_client_from_one_that_spoke_later(rest: list[Line], skipped: list[int]) -> None:
    """a speaks first, and has the partition after b: ownership epochs of a process may begin in another order than its
    clients do; the log shows a commit that none of them tells of."""
    given_b = [synced("m0", 0), assigned("m0"), delivered("m0", 0), *rest, revoked("m0")]
    b_first = [*(by("a", line) for line in (revoked("m0"), synced("m0"))), *(by("b", line) for line in given_b)]
    then_a = [by("a", line) for line in (synced("m0", 0, generation=2), assigned("m0"))]
    found = judged("skipped", [*b_first, *committed(1), *then_a], records=1)
    assert [one["offset"] for one in found] == skipped


STEPS: dict[str, list[Line]] = {
    "joins": both_join(),
    "hold": [*BEGUN, by("a", delivered("m0", 0)), by("b", on(1, delivered("m0", 0)))],
    "hand over": [*BEGUN, by("a", revoked("m0", 0)), *GIVEN_TO_B, by("b", delivered("m0", 0))],
    "a owns": [A_OWNS],
    "b owns": [B_OWNS],
    "m1 owns": [owner("m1")],
    "a commits": committed_by("a", 1),
    "b commits": committed_by("b", 1),
    "a works": [by("a", delivered("m0", 1))],
    "a is told": [after(1), by("a", heartbeat("m0", error=25))],
    "b is told": [after(1), by("b", heartbeat("m0", error=25))],
    "a fetches and works": [
        *(after(1), by("a", fetched("m0", 1, size_bytes=9)), after(1)),
        by("a", delivered("m0", 1)),
    ],
}
