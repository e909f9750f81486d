"""The HTTP sink: the outside world of the consumers under test, and a witness of what reached it.

`POST {sink_url}/effect` is recorded before it is answered; `POST {sink_url}/crash-point/<name>` lets a consumer be
killed exactly there. The nemesis changes its manners: slow, refusing, holding, closing after recording. One thread
serves all connections; the URL of each member carries a token, so that nobody else's effects come in. Of HTTP/1.1 it
speaks just enough: POST with a Content-Length, keep-alive, bounded sizes (RFC 9112).
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import orjson

from kafka_trial.history.record_ids import checksums
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

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


HOST = "127.0.0.1"
UP_WITHIN_S = 10.0
ID_CHARACTERS_MAX = 1024

DONE = Answer(204, "No Content")
NO_ID = Answer(400, "Bad Request", "an effect needs the header KT-Id, or JSON with the record's id")
FORBIDDEN = Answer(403, "Forbidden", "the path must begin as sink_url does")
NOT_FOUND = Answer(404, "Not Found", "POST .../effect or .../crash-point/<name>")
REFUSED = Answer(503, "Service Unavailable", "the sink refuses on purpose; nothing was done")


class Manner(Enum):
    """How the sink treats effects."""

    NORMAL = "normal"
    SLOW = "slow"  # waits `delay_s`, then records and answers
    REFUSING = "refusing"  # 503, declared not done
    HELD = "held"  # neither records nor answers until the manner changes
    CLOSING = "closing"  # records, then closes the connection without an answer: nobody knows


@dataclass(frozen=True, eq=False)
class CrashPoint:
    """A place members ask about; armed once, for one member, or for whoever comes first."""

    name: str
    member: str | None = None


class Sink:
    """The running sink; made by `start_sink`."""

    def __init__(self, recorder: Recorder, *, json_path: str | None, kill: Callable[[str], object] | None) -> None:
        self._recorder = recorder
        self._id_path = (json_path or "$.id").removeprefix("$.").split(".")
        self._kill = kill
        self._token = secrets.token_urlsafe(16)
        self._lock = threading.Lock()
        self._armed: list[CrashPoint] = []
        self._reached: list[CrashPoint] = []
        self._manner, self._delay_s = Manner.NORMAL, 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._end: asyncio.Future[None] | None = None
        self.port = 0

    def url(self, member: str) -> str:
        """Returns the sink's address for one member, its token in the path."""
        return f"http://{HOST}:{self.port}/{self._token}/{member}"

    def arm(self, name: str, *, member: str | None = None) -> CrashPoint:
        """Has the next member that asks at the crash point `name` (that one, if given) killed with -9; once."""
        point = CrashPoint(name, member)
        with self._lock:
            self._armed.append(point)
        self._recorder.record("crash_point", name=name, member=member, state="armed")
        return point

    def disarm(self, point: CrashPoint) -> None:
        """Lets whoever asks there from now on pass; nothing to do where somebody has been killed there."""
        with self._lock:
            if point in self._armed:
                self._armed.remove(point)

    def was_reached(self, point: CrashPoint) -> bool:
        """Tells whether a member asked at an armed crash point, and its kill was ordered."""
        return point in self._reached

    @contextmanager
    def mannered(self, manner: Manner, *, delay_s: float = 0.0) -> Iterator[None]:
        """Treats effects so for as long as the `with` lasts; held ones are done when it ends."""
        self._set(manner, delay_s)
        try:
            yield
        finally:
            self._set(Manner.NORMAL, 0.0)

    def serve(self) -> None:
        """Serves until `end`; the body of the sink's thread."""
        asyncio.run(self._serve())

    def end(self) -> None:
        """Closes every connection and ends `serve`."""
        if self._loop is not None and self._end is not None:
            with suppress(RuntimeError):  # the loop has ended already, by an error its thread group will tell
                self._loop.call_soon_threadsafe(_finish, self._end, None)

    def _set(self, manner: Manner, delay_s: float) -> None:
        self._manner, self._delay_s = manner, delay_s
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        server = await asyncio.start_server(self._connected, HOST, 0, limit=HEAD_BYTES_MAX, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        try:
            await self._end
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._end is not None
        try:
            await serve_connection(reader, writer, refuse=self._refuse, handle=self._handle)
        except OSError as error:  # the history cannot be written: nothing may be answered any more
            _finish(self._end, error)

    def _refuse(self, head: Head) -> Answer | None:
        if not secrets.compare_digest(head.path[1:].partition("/")[0].encode(), self._token.encode()):
            return FORBIDDEN
        return None if head.method == "POST" else NOT_FOUND

    async def _handle(self, head: Head, body: bytes) -> Answer:
        _, _, member, *place = head.path.split("/")
        if place == ["effect"]:
            return await self._effect(member, head, body)
        if len(place) == 2 and place[0] == "crash-point":
            return self._crash_point(member, place[1])
        return NOT_FOUND

    async def _effect(self, member: str, head: Head, body: bytes) -> Answer:
        record_id = head.headers.get("kt-id") or self._id_in(body)
        if not record_id or len(record_id) > ID_CHARACTERS_MAX:
            return NO_ID
        record = partial(
            self._recorder.record,
            "effect",
            id=record_id,
            member=member,
            partition=_number(head.headers.get("kt-partition")),
            offset=_number(head.headers.get("kt-offset")),
            **checksums(body),
        )
        manner = await self._waited()
        if manner is Manner.REFUSING:
            record(outcome="fail")
            return REFUSED
        record(outcome="info" if manner is Manner.CLOSING else "ok")
        return CLOSE if manner is Manner.CLOSING else DONE

    async def _waited(self) -> Manner:
        """Waits as the manner asks, and returns the one that then holds."""
        if self._manner is Manner.SLOW:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._delay_s)
        while self._manner is Manner.HELD:
            await self._changed.wait()
        return self._manner

    def _crash_point(self, member: str, name: str) -> Answer:
        with self._lock:
            armed = next(
                (point for point in self._armed if point.name == name and point.member in (None, member)), None
            )
            if armed is not None:
                self._armed.remove(armed)
        if armed is None or self._kill is None:
            self._recorder.record("crash_point", name=name, member=member, state="passed")
            return DONE
        self._recorder.record("crash_point", name=name, member=member, state="killed")
        self._kill(member)
        self._reached.append(armed)
        return HOLD

    def _id_in(self, body: bytes) -> str | None:
        try:
            value: Any = orjson.loads(body)
            for name in self._id_path:
                value = value[name]
        except (ValueError, KeyError, TypeError):
            return None
        return value if isinstance(value, str) else str(value) if isinstance(value, int) else None


@contextmanager
def start_sink(
    recorder: Recorder, *, json_path: str | None = None, kill: Callable[[str], object] | None = None
) -> Iterator[Sink]:
    """Yields a sink that serves, recording into `recorder`. `kill` kills a member by name, without waiting."""
    sink = Sink(recorder, json_path=json_path, kill=kill)
    with ThreadGroup("sink") as thread_group:
        thread_group.start("serve", sink.serve)
        wait_until(
            lambda: sink.port,
            within_s=UP_WITHIN_S,
            what="the sink to listen",
            every_s=0.005,
            alive=lambda: repr(thread_group.errors[0][1]) if thread_group.errors else None,
        )
        try:
            yield sink
        finally:
            sink.end()


def _finish(end: asyncio.Future[None], error: BaseException | None) -> None:
    if end.done():
        return
    if error is None:
        end.set_result(None)
    else:
        end.set_exception(error)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None
