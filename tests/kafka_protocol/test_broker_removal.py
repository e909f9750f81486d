"""The order that takes a broker out of a cluster: its bytes, and what each answer means."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from socket import create_server, socket

import pytest

from kafka_trial.kafka_protocol.cluster_changes import unregister_broker
from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError

# UnregisterBroker v0 of broker 7: header v2 (api 64, version 0, correlation 1, the client's id, no tags), id, no tags.
ORDER = bytes.fromhex("0040 0000 00000001 0013") + b"kafka-trial-witness" + bytes.fromhex("00 00000007 00")


def answer(code: int, message: str | None = None) -> bytes:
    """An answer of v0: header v1, throttle time, error, message, no tags."""
    text = b"\0" if message is None else bytes([len(message) + 1]) + message.encode()
    return bytes.fromhex("00000001 00 00000000") + struct.pack(">h", code) + text + b"\0"


@contextmanager
def broker(said: bytes) -> Iterator[tuple[Connection, list[bytes]]]:
    """A connection to somebody who takes one request and answers it so."""
    asked: list[bytes] = []

    def serve(listener: socket) -> None:
        with listener.accept()[0] as client:
            (size,) = struct.unpack(">i", client.recv(4))
            asked.append(client.recv(size))
            client.sendall(struct.pack(">i", len(said)) + said)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with closing(Connection(listener.getsockname())) as connection:
            yield connection, asked
        thread.join(5)


def test_the_order_has_these_bytes() -> None:
    """As the message definitions of Kafka have them; a broker that was there is out of the cluster then."""
    with broker(answer(0)) as (connection, asked):
        assert (unregister_broker(connection, 7), asked) == (True, [ORDER])


def test_a_broker_that_is_not_there_is_no_error() -> None:
    """BROKER_ID_NOT_REGISTERED: an earlier order was carried out, or it never registered."""
    with broker(answer(102, "Broker ID 7 is not currently registered")) as (connection, _):
        assert unregister_broker(connection, 7) is False


def test_a_refusal_is_one() -> None:
    """Whoever may not give the order is told so, with Kafka's words."""
    with broker(answer(31, "no")) as (connection, _), pytest.raises(NoAnswerError, match=r"CLUSTER_AUTH.* no"):
        unregister_broker(connection, 7)
