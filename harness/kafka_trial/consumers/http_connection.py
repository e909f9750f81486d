"""The connections of the HTTP sink: any client's requests come in by h11 (RFC 9112), and nobody can exhaust it.

What a client sends is untrusted. Heads, bodies, what is thrown away after a refusal, and the number of connections are
bounded. What is no HTTP is answered 400, and its connection closed. A body is read only after its head was let in.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import h11

HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
DISCARDED_BYTES_MAX: Final = 2 * BODY_BYTES_MAX
END_OF_HEAD: Final = b"\r\n\r\n"
READ_BYTES: Final = 16 * 1024
HEAD_WITHIN_S: Final = 30.0  # from the first byte of a connection to the end of its first head
DISCARD_WITHIN_S: Final = 5.0
CONNECTIONS_MAX: Final = 400
REFUSALS_MAX: Final = 64  # connections above the bound that are still being told so


@dataclass(frozen=True, slots=True)
class Head:
    """What comes before a body. `path`: its decoded segments, without empty ones; names of headers in lower case."""

    method: str
    path: tuple[str, ...]
    version: bytes
    headers: Mapping[bytes, bytes]

    def header(self, name: str) -> str | None:
        """Returns a header's value by its name in lower case; what is no UTF-8 is escaped."""
        value = self.headers.get(name.encode())
        return value.decode(errors="backslashreplace") if value else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `silent` ones are never sent: the connection is closed (`held`: only when the client has gone)."""

    status: int
    text: str = ""
    silent: bool = False
    held: bool = False


CLOSE = Answer(0, silent=True)
HOLD = Answer(0, silent=True, held=True)
LENGTH_REQUIRED = Answer(411, "an HTTP/1.0 request with a body needs a Content-Length")
BAD_VERSION = Answer(400, "only HTTP/1.1 and HTTP/1.0 are spoken here")
BOTH_LENGTHS = Answer(400, "send a Content-Length or a Transfer-Encoding, not both (RFC 9112 section 6.3)")
TOO_LARGE = Answer(413, f"the body may have {BODY_BYTES_MAX} bytes at most")
TOO_SLOW = Answer(400, f"the request's head was not complete after {HEAD_WITHIN_S:g} s")
TOO_MANY = Answer(
    503, f"the sink has {CONNECTIONS_MAX} connections at most, and nothing was done: use one again, or close some"
)

Body = bytes | bytearray
Refuse = Callable[[Head], Answer | None]
Handle = Callable[[Head, Body], Awaitable[Answer]]


class RefusedError(Exception):
    """A request that is answered without being handled; the connection ends with it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


@dataclass(eq=False)
class Connections:
    """All open connections. Those that no request was let in from yet make room for new ones, the oldest first."""

    known: set[StreamWriter] = field(default_factory=set)
    unknown: dict[StreamWriter, None] = field(default_factory=dict)  # in the order they came
    refused: int = 0  # and still being told so
    refused_total: int = 0

    async def serve(self, reader: StreamReader, writer: StreamWriter, *, refuse: Refuse, handle: Handle) -> None:
        """Answers a new connection's requests until it ends. `refuse` looks at each head before its body is read."""
        link = Connection(reader, writer)
        with suppress(OSError), self._admitted(writer) as admitted:  # an OSError: the client has gone
            if admitted:
                await link.serve(refuse=refuse, handle=handle, let_in=lambda: self._know(writer))
            elif self.refused <= REFUSALS_MAX:
                await link.end_with(TOO_MANY)

    @contextmanager
    def _admitted(self, writer: StreamWriter) -> Iterator[bool]:
        """Yields whether there is room for it, and closes it at the end."""
        admitted = len(self.known) + len(self.unknown) < CONNECTIONS_MAX or self._make_room()
        if admitted:
            self.unknown[writer] = None
        self.refused += not admitted
        self.refused_total += not admitted
        try:
            yield admitted
        finally:
            writer.close()
            self.unknown.pop(writer, None)
            self.known.discard(writer)
            self.refused -= not admitted

    def _make_room(self) -> bool:
        oldest = next(iter(self.unknown), None)
        if oldest is None:
            return False
        del self.unknown[oldest]
        with suppress(RuntimeError):  # it has been answered already, and its sending side closed
            oldest.write(_encoded(TOO_MANY, last=True))
        oldest.close()
        return True

    def _know(self, writer: StreamWriter) -> None:
        if writer in self.unknown:
            del self.unknown[writer]
            self.known.add(writer)


class Connection:
    """One connection, one request after the other (RFC 9112 section 9.3), pipelined ones too."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = _reading()
        self._method = ""
        self._last = False
        self._reads = 0  # of the request at hand

    async def serve(self, *, refuse: Refuse, handle: Handle, let_in: Callable[[], None]) -> None:
        """Answers requests until the connection ends; `let_in` is called when the first was not refused.

        Raises:
            OSError: the client has gone.
        """
        try:
            head = await self._first_head()
            while head is not None:
                if refusal := _unreadable(head) or refuse(head) or _length_refusal(head):
                    raise RefusedError(refusal)
                let_in()
                if not await self._answered(await handle(head, await self._body())):
                    return
                head = await self._next_head()
        except h11.RemoteProtocolError as error:
            await self.end_with(Answer(400, f"not an HTTP/1.1 request: {str(error)[:200]}"))
        except RefusedError as error:
            await self.end_with(error.answer)

    async def end_with(self, answer: Answer) -> None:
        """Sends a last answer, and throws away what still comes: unread bytes would reach the client as a reset."""
        await self._send(answer, last=True)
        await self._discard()

    async def _answered(self, answer: Answer) -> bool:
        """Sends an answer and tells whether another request may follow."""
        if answer.held:
            await self._until_gone()
        if answer.silent:
            return False
        if self._last or self._http.their_state is h11.MUST_CLOSE:
            await self.end_with(answer)
            return False
        await self._send(answer, last=False)
        return True

    async def _first_head(self) -> Head | None:
        """Returns the first head; nobody needs to send one soon, but whoever begins must go on."""
        self._http.receive_data(await self._reader.read(READ_BYTES))
        try:
            async with asyncio.timeout(HEAD_WITHIN_S):
                return await self._head()
        except TimeoutError:
            raise RefusedError(TOO_SLOW) from None

    async def _next_head(self) -> Head | None:
        """Returns the head of the next request, which may have come with the last one."""
        waiting, closed = self._http.trailing_data
        self._http = _reading()
        if waiting:  # it pipelines: others get their turn first
            await asyncio.sleep(0)
            self._http.receive_data(waiting)
        if closed:
            self._http.receive_data(b"")
        self._reads = 0
        return await self._head()

    async def _head(self) -> Head | None:
        event = await self._next()
        if not isinstance(event, h11.Request):
            return None  # the client has closed
        headers = {name.lower(): value for name, value in event.headers.raw_items()}
        self._method = event.method.decode()
        self._last = b"close" in headers.get(b"connection", b"").lower()  # h11 forgets it where an upgrade is offered
        return Head(self._method, _segments(event.target), event.http_version, headers)

    async def _body(self) -> Body:
        """Reads a body to its end; what comes in chunks may turn out too large only there."""
        body = bytearray()
        while isinstance(event := await self._next(), h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                body.clear()
                raise RefusedError(TOO_LARGE)
        return body

    async def _next(self) -> object:
        """Returns the next event of h11. Before each further read of one request other connections get their turn."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
            if self._reads:
                await asyncio.sleep(0)
            self._http.receive_data(await self._reader.read(READ_BYTES))
            self._reads += 1
        return event

    async def _send(self, answer: Answer, *, last: bool) -> None:
        sent = _encoded(answer, last=last)
        self._writer.write(sent if self._method != "HEAD" else sent.partition(END_OF_HEAD)[0] + END_OF_HEAD)
        await self._writer.drain()

    async def _discard(self) -> None:
        """Reads on within bounds until the client closes, after telling it that nothing more will be sent."""
        self._writer.write_eof()
        left = DISCARDED_BYTES_MAX
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_WITHIN_S):
                while left > 0 and (data := await self._reader.read(HEAD_BYTES_MAX)):
                    left -= len(data)

    async def _until_gone(self) -> None:
        while await self._reader.read(HEAD_BYTES_MAX):
            pass


def _reading() -> h11.Connection:
    """Returns the reader of one request. Answers are few, and written once for all (`_encoded`)."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)


def _unreadable(head: Head) -> Answer | None:
    """Refuses what h11 leaves open: the version, and whose word counts on where the body ends."""
    if not head.version.startswith(b"1."):
        return BAD_VERSION
    return BOTH_LENGTHS if {b"content-length", b"transfer-encoding"} <= head.headers.keys() else None


def _length_refusal(head: Head) -> Answer | None:
    length = head.headers.get(b"content-length")
    if length is None:
        return LENGTH_REQUIRED if head.version == b"1.0" and head.method in ("POST", "PUT") else None
    return TOO_LARGE if int(length) > BODY_BYTES_MAX else None


@lru_cache(maxsize=64)
def _segments(target: bytes) -> tuple[str, ...]:
    """Returns the decoded path of a request target, be it `/a/b?c` or `http://host/a/b?c`."""
    place = target.decode()
    if not place.startswith("/"):
        place = place.partition("://")[2].partition("/")[2]
    path = place.partition("?")[0].partition("#")[0]
    return tuple(unquote(segment) for segment in path.split("/") if segment)


@lru_cache(maxsize=64)
def _encoded(answer: Answer, *, last: bool) -> bytes:
    """Returns an answer's bytes; `last`: the connection is closed after it."""
    text = answer.text.encode()
    headers = [("Connection", "close")] if last else []
    if answer.status != HTTPStatus.NO_CONTENT:
        headers += [("Content-Length", str(len(text))), ("Content-Type", "text/plain; charset=utf-8")]
    response = h11.Response(status_code=answer.status, headers=headers, reason=HTTPStatus(answer.status).phrase)
    http = h11.Connection(h11.SERVER)
    head = http.send(response)
    return head + (http.send(h11.Data(text)) if text else b"") + http.send(h11.EndOfMessage())
