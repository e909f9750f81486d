"""Clients told from connections, member ids, addresses and client ids, where no lane tells."""

from __future__ import annotations

from typing import Any

from kafka_trial.audit.clients import Clients


def _request(
    peer: str, client_id: str, member_id: str | None = None, *, api: str = "HEARTBEAT", group: str = "g"
) -> Any:
    event = {"api": api, "connection": f"10.0.0.1:9092-{peer}-2-7", "client_id": client_id}
    return event | ({"group": group, "member_id": member_id} if api != "FETCH" else {})


def _learned(*requests: Any) -> tuple[Clients, dict[int, str]]:
    clients = Clients("g")
    for request in requests:
        clients.learn("b0", request)
    return clients, clients.settle()


def test_a_client_keeps_its_number_over_a_rejoin_and_a_reconnect() -> None:
    """The connection outlives the member id, and the member id the connection."""
    clients, names = _learned(
        _request("10.0.0.5:1", "x", "m1"), _request("10.0.0.5:1", "x", "m2"), _request("10.0.0.5:2", "x", "m2")
    )
    lanes = [clients.lane_of("b0", _request(f"10.0.0.5:{port}", "x", None, api="OFFSET_COMMIT")) for port in (1, 2)]
    assert (names, lanes) == ({0: "10.0.0.5 x"}, [0, 0])


def test_a_commit_on_a_connection_without_any_member_is_nobodys() -> None:
    """An operator's tool, perhaps."""
    clients, _ = _learned(_request("10.0.0.5:1", "x", "m1"))
    assert clients.lane_of("b0", _request("10.0.0.9:1", "admin", None, api="OFFSET_COMMIT")) is None


def test_fetches_are_those_of_the_only_member_of_their_address_and_client_id() -> None:
    """Where two members share both, or one of another group does, nobody can tell."""
    fetch = [_request("10.0.0.5:9", name, api="FETCH") for name in ("x", "y", "z", "unheard-of")]
    clients, names = _learned(
        _request("10.0.0.5:1", "x", "m1"),
        _request("10.0.0.5:2", "y", "m2"),
        _request("10.0.0.5:3", "y", "m3"),
        _request("10.0.0.5:4", "z", "m4"),
        _request("10.0.0.5:5", "z", "m5", group="another"),
    )
    assert ([clients.lane_of("b0", one) for one in fetch], names[1], names[2]) == (
        [0, None, None, None],
        "10.0.0.5 y #1",
        "10.0.0.5 y #2",
    )


def test_members_of_other_groups_are_no_clients_of_ours() -> None:
    """They get no number."""
    _, names = _learned(_request("10.0.0.5:1", "x", "m1"), _request("10.0.0.5:2", "y", "m2", group="another"))
    assert names == {0: "10.0.0.5 x"}


def test_the_same_connection_name_at_another_broker_is_another_connection() -> None:
    """Names are a broker's own."""
    clients, _ = _learned(_request("10.0.0.5:1", "x", "m1"))
    assert clients.lane_of("b1", _request("10.0.0.5:1", "x", None, api="OFFSET_COMMIT")) is None
