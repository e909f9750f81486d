"""Connections to brokers: one request, one answer, each within its own bound.

In a trial over the OBSERVER listener, which is a plain one; an audit's are secured as its cluster asks (`security.py`).
The witnesses ask with Kafka's own requests instead of through a client library, which hides what they must see
(control records, producers, leader epochs) and waits for what they must not wait for (a dead or frozen broker).
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from kafka_trial.errors import InputError, UnjudgeableError, reason
from kafka_trial.kafka_protocol.primitives import DecodeError, Reader
from kafka_trial.kafka_protocol.security import UNSECURED, Security, authenticate, refuse_tls, secured, speaks_tls

T = TypeVar("T")
CLIENT_ID: Final = "kafka-trial-witness"
_ANSWER_BYTES_MAX: Final = 1 << 28
_LIFETIME_USED: Final = 0.85  # of the time an authentication holds, as Java's clients have it (0.85 to 0.95)
Address = tuple[str, int]


class NoAnswerError(UnjudgeableError):
    """A broker did not answer, or refused; `code` is Kafka's error code where it gave one. Ask again, or another."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class Connection:
    """One connection to one broker.

    Raises:
        NoAnswerError: nobody answers there.
        InputError: it does not let us in as `security` says.
    """

    def __init__(
        self,
        address: Address,
        *,
        answer_within_s: float = 2.0,
        client_id: str = CLIENT_ID,
        security: Security = UNSECURED,
    ) -> None:
        self._client_id = client_id.encode()
        self.name = f"{address[0]}:{address[1]}"
        self._answer_within_s = answer_within_s
        self._correlation = 0
        self._security = security
        self._until_s = math.inf
        try:
            bare = socket.create_connection(address, timeout=answer_within_s)
            self._socket = secured(bare, address[0], self.name, security)
        except OSError as error:
            raise NoAnswerError(f"{self.name}: {reason(error)}") from error
        try:
            lifetime_s = authenticate(self.ask, self.name, security)
        except (NoAnswerError, InputError):
            self.close()
            raise
        if lifetime_s is not None:
            self._until_s = time.monotonic() + _LIFETIME_USED * lifetime_s

    @property
    def over(self) -> bool:
        """Whether its authentication has run out: the broker would close it at the next request (KIP-368)."""
        return time.monotonic() > self._until_s

    def ask(
        self,
        api: tuple[int, int],
        body: bytes,
        read: Callable[[Reader], T],
        *,
        flexible: bool = False,
        plain_header: bool = False,
        broker_waits_s: float = 0.0,
    ) -> T:
        """Sends a request of `api` (key, version) and returns what `read` makes of its answer.

        `plain_header`: that of the answer has no tags although its body is flexible (ApiVersions, so that every client
        can read it). `broker_waits_s` is how long the broker itself may hold the answer back (a fetch at the log end).

        Raises:
            NoAnswerError: no answer, or one that is not what this request's should be.
            InputError: the broker ends TLS because of our certificate, or for want of it.
        """
        self._correlation += 1
        try:
            self._send(_request(api, self._correlation, self._client_id, body, flexible=flexible))
            deadline_s = time.monotonic() + broker_waits_s + self._answer_within_s
            reader = Reader(self._answer(deadline_s), flexible=flexible)
            if reader.int32() != self._correlation:
                raise DecodeError("the answer to another request")
            if not plain_header:
                reader.tags()
            value = read(reader)
            reader.tags()
            reader.end()
        except NoAnswerError as refusal:
            raise NoAnswerError(f"{self.name}: {refusal}", code=refusal.code) from refusal
        except (OSError, DecodeError) as error:
            refuse_tls(error, self.name, self._security)
            raise NoAnswerError(f"{self.name}: {reason(error)}") from error
        return value

    def close(self) -> None:
        self._socket.close()

    def _send(self, request: bytes) -> None:
        try:
            self._socket.sendall(request)
        except OSError:
            if self._security.tls is not None:  # who refuses our certificate says so, and then hangs up
                self._received(1, time.monotonic() + self._answer_within_s)
            raise

    def _answer(self, deadline_s: float) -> bytes:
        first = self._received(4, deadline_s)
        if speaks_tls(first):
            raise DecodeError("it answers in TLS: security.protocol of this listener is SSL or SASL_SSL")
        size = struct.unpack(">i", first)[0]
        if not 0 < size <= _ANSWER_BYTES_MAX:
            raise DecodeError(f"an answer of {size} bytes")
        return self._received(size, deadline_s)

    def _received(self, size: int, deadline_s: float) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            part = self._socket.recv(min(1 << 20, size - len(taken)))
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            taken += part
        return bytes(taken)


class Brokers:
    """Connections to the brokers of one cluster, made when they are needed and dropped when they fail."""

    def __init__(
        self,
        bootstrap: str,
        *,
        answer_within_s: float = 2.0,
        client_id: str = CLIENT_ID,
        security: Security = UNSECURED,
    ) -> None:
        self._client_id = client_id
        self._security = security
        self._bootstrap: Sequence[Address] = [_address(text) for text in bootstrap.split(",")]
        self._answer_within_s = answer_within_s
        self._open: dict[Address, Connection] = {}
        self.by_id: dict[int, Address] = {}

    @property
    def order(self) -> list[str]:
        """The addresses in the order in which they will be asked next."""
        return [f"{host}:{port}" for host, port in self._bootstrap]

    def anyone(self, question: Callable[[Connection], T]) -> T:
        """Asks one broker after the other until one answers; who did not is asked last from then on.

        Raises:
            NoAnswerError: none of them did.
        """
        failures: list[str] = []
        for address in list(self._bootstrap):
            try:
                return self._ask(address, question)
            except NoAnswerError as error:
                failures.append(str(error))
                self._last(address)
        raise NoAnswerError("no broker answered: " + "; ".join(failures))

    def broker(self, node: int, question: Callable[[Connection], T]) -> T:
        """Asks one broker by its id, known from metadata.

        Raises:
            NoAnswerError: it did not answer, or it is not known.
        """
        address = self.by_id.get(node)
        if address is None:
            raise NoAnswerError(f"broker {node} is not in the metadata")
        return self._ask(address, question)

    def ask_another(self) -> None:
        """Puts the broker asked first at the end: it may be cut off from the controllers and serve stale metadata."""
        self._last(self._bootstrap[0])

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _ask(self, address: Address, question: Callable[[Connection], T]) -> T:
        if address in self._open and self._open[address].over:
            self._open.pop(address).close()
        if address not in self._open:
            self._open[address] = Connection(
                address,
                answer_within_s=self._answer_within_s,
                client_id=self._client_id,
                security=self._security,
            )
        try:
            return question(self._open[address])
        except NoAnswerError as error:
            if error.code is None:  # with a code, it answered: the connection is good
                self._open.pop(address).close()
            raise

    def _last(self, address: Address) -> None:
        self._bootstrap = [other for other in self._bootstrap if other != address] + [address]

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request(api: tuple[int, int], correlation: int, client_id: bytes, body: bytes, *, flexible: bool) -> bytes:
    header = struct.pack(f">hhih{len(client_id)}s", *api, correlation, len(client_id), client_id)
    request = header + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(request)) + request


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)
