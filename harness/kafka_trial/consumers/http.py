"""Just enough of an HTTP/1.1 server for the sink: POST with a Content-Length, keep-alive, bounded sizes (RFC 9112)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """Request line and headers (names in lower case) of one request."""

    method: str
    path: str
    version: str
    headers: Mapping[str, str]

    @property
    def keeps_connection(self) -> bool:
        return self.version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `silent` ones are never sent: the connection is closed (`held`: only when the client has gone)."""

    status: int
    reason: str
    text: str = ""
    silent: bool = False
    held: bool = False


CLOSE = Answer(0, "", silent=True)
HOLD = Answer(0, "", silent=True, held=True)
BAD_REQUEST = Answer(400, "Bad Request", "not an HTTP/1.1 request with a Content-Length")
LENGTH_REQUIRED = Answer(411, "Length Required", "send a Content-Length; chunked bodies are not read")
TOO_LARGE = Answer(413, "Content Too Large", f"the body may have {BODY_BYTES_MAX} bytes at most")

Refuse = Callable[[Head], Answer | None]
Handle = Callable[[Head, bytes], Awaitable[Answer]]


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, refuse: Refuse, handle: Handle
) -> None:
    """Answers requests until the connection ends. `refuse` looks at each head before its body is read."""
    try:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await _serve_one(reader, writer, refuse, handle):
                pass
    finally:
        writer.close()


async def _serve_one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refuse: Refuse, handle: Handle
) -> bool:
    """Answers one request; tells whether another may follow."""
    try:
        head = _head(await reader.readuntil(b"\r\n\r\n"))
    except (asyncio.LimitOverrunError, ValueError):
        await _send(writer, BAD_REQUEST)
        return False
    length = _length(head)
    refusal = refuse(head) or (length if isinstance(length, Answer) else None)
    if refusal is not None or isinstance(length, Answer):
        await _send(writer, refusal or BAD_REQUEST)
        await _discard(reader)
        return False
    if head.headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    answer = await handle(head, await reader.readexactly(length))
    if answer.held:
        await _discard(reader)
    if answer.silent:
        return False
    await _send(writer, answer, keep=head.keeps_connection)
    return head.keeps_connection


def _head(text: bytes) -> Head:
    request, *lines = text.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, path, version = request.split(" ")
    headers = dict(line.split(":", 1) for line in lines)
    return Head(method, path, version, {name.strip().lower(): value.strip() for name, value in headers.items()})


def _length(head: Head) -> int | Answer:
    if "transfer-encoding" in head.headers:
        return LENGTH_REQUIRED
    given = head.headers.get("content-length", "0" if head.method != "POST" else "")
    if not given:
        return LENGTH_REQUIRED
    if not given.isascii() or not given.isdigit():
        return BAD_REQUEST
    return TOO_LARGE if len(given) > 12 or int(given) > BODY_BYTES_MAX else int(given)


async def _discard(reader: asyncio.StreamReader) -> None:
    """Reads until the client closes: a refusal sent into an unread body would reach it as a reset."""
    while await reader.read(HEAD_BYTES_MAX):
        pass


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, keep: bool = False) -> None:
    text = answer.text.encode()
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    if answer.status != 204:
        lines += [f"Content-Length: {len(text)}", "Content-Type: text/plain; charset=utf-8"]
    if not keep:
        lines.append("Connection: close")
    writer.write("\r\n".join([*lines, "", ""]).encode() + text)
    await writer.drain()
