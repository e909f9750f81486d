"""Several group members in one process: literal histories. m0's process, lane 0, holds clients a and b."""

from __future__ import annotations

from dataclasses import replace

import pytest

from group_lines import heartbeat, joined, synced
from histories import (
    Line,
    asked,
    batch_of,
    committed,
    finding,
    judged,
    owner,
    undecided,
)


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
    assert batch_of(lines).clients.lanes == frozenset()


def test_members_of_different_lanes_are_no_clients_of_one() -> None:
    """Nor is a refused stranger."""
    lines = [joined("m0"), joined("m1"), synced("m0", 0), synced("m1", 1), by("b", heartbeat("m0", error=25))]
    assert batch_of(lines).clients.lanes == frozenset()
