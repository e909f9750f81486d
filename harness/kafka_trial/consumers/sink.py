"""The HTTP sink: the outside world of the consumers under test, and a witness of what reached it.

`POST {sink_url}/effect` is recorded before it is answered; `POST {sink_url}/crash-point/<name>` lets a consumer be
killed exactly there. The nemesis changes how effects are treated (`effect_treatment.py`): slow, refused, held, closed
after they were recorded. One thread serves all connections (`http_connection.py`); the URL of each member carries a
token, so that nobody else's effects come in.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Final

from kafka_trial.consumers.effect_treatment import EffectWatch, SinkBehaviour, Treatment
from kafka_trial.consumers.http_connection import (
    CLOSE,
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    HOLD,
    Answer,
    Body,
    Connections,
    Head,
)
from kafka_trial.errors import StartError, reason
from kafka_trial.history.json_paths import path_steps
from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER, checksums, id_in_json
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

HOST: Final = "127.0.0.1"
UP_WITHIN_S: Final = 10.0
ID_CHARACTERS_MAX: Final = 1024
WAITING_MAX: Final = 1024  # connections that the kernel keeps until they are accepted
ACCEPTED_AT_ONCE_MAX: Final = 64  # so many more descriptors than the bound on connections there may be

DONE = Answer(204)
NO_ID = Answer(
    400, "an effect needs its id: in the header KT-Id or that of [identity], or in JSON that is not compressed"
)
FORBIDDEN = Answer(403, "the path must begin as sink_url does")
NOT_FOUND = Answer(404, "POST or PUT .../effect, or POST .../crash-point/<name>")
REFUSED = Answer(503, "the sink refuses on purpose; nothing was done")


@dataclass(eq=False)
class CrashPoint:
    """A place members ask about; armed once, for one member, or for whoever comes first.

    `passes`: how many more of those that ask there go on.
    """

    name: str
    member: str | None = None
    passes: int = 0


class Sink:
    """The running sink; made by `start_sink`."""

    def __init__(
        self,
        recorder: Recorder,
        listener: socket.socket,
        *,
        header: str,
        json_path: str,
        kill: Callable[[str], object] | None,
        takes_effects: bool = True,
    ) -> None:
        self._recorder = recorder
        self._takes_effects = takes_effects
        self._listener = listener
        self._id_headers = tuple(dict.fromkeys((header.lower(), ID_HEADER)))
        self._json_path = json_path
        self._kill = kill
        self._token = secrets.token_urlsafe(16)
        self._lock = threading.Lock()
        self._armed: list[CrashPoint] = []
        self._reached: list[CrashPoint] = []
        self._treatments: tuple[Treatment, ...] = ()
        self._watches: tuple[EffectWatch, ...] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._end: asyncio.Future[None] | None = None
        self._connections = Connections()
        self.host, self.port = listener.getsockname()[:2]

    def url(self, member: str) -> str:
        """Returns the sink's address for one member, its token in the path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/{self._token}/{member}"

    @property
    def refusals_in_words(self) -> str:
        """What it had to turn away for want of room, as a sentence; nothing where it never had to."""
        if not (count := self._connections.refused_total):
            return ""
        above = f"{count} connections above the {CONNECTIONS_MAX} it has"
        return f"the sink answered 503 to {above}: post over a few, kept open"

    @property
    def serves(self) -> bool:
        return self._end is not None

    def arm(self, name: str, *, member: str | None = None, nth: int = 1) -> CrashPoint:
        """Has the nth that asks at the crash point `name` from now on (that member, if given) killed with -9; once."""
        point = CrashPoint(name, member, passes=nth - 1)
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
    def treated(self, treatment: Treatment) -> Iterator[None]:
        """Treats effects so for as long as the `with` lasts; held and delayed ones are done when it ends."""
        with self._lock:
            self._treatments = (treatment, *self._treatments)
        self._look_again()
        try:
            yield
        finally:
            treatment.over = True
            with self._lock:
                self._treatments = tuple(one for one in self._treatments if one is not treatment)
            self._look_again()

    @contextmanager
    def watched(self) -> Iterator[EffectWatch]:
        """Yields what comes of the effects that arrive while the `with` lasts."""
        watch = EffectWatch()
        with self._lock:
            self._watches = (*self._watches, watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._watches = tuple(one for one in self._watches if one is not watch)

    def serve(self) -> None:
        """Serves until `end`; the body of the sink's thread."""
        asyncio.run(self._serve())

    def end(self) -> None:
        """Closes every connection and ends `serve`."""
        if self._loop is not None and self._end is not None:
            with suppress(RuntimeError):  # the loop has ended already, by an error its thread group will tell
                self._loop.call_soon_threadsafe(_finish, self._end, None)

    def _look_again(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(
            self._connected, sock=self._listener, limit=HEAD_BYTES_MAX, backlog=ACCEPTED_AT_ONCE_MAX
        )
        self._listener.listen(WAITING_MAX)  # asyncio accepts `backlog` connections before it looks at any of them
        self._end = self._loop.create_future()
        try:
            await self._end
        finally:
            server.close()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # the sink ends; before 3.12 asyncio logs a cancelled one as an error
            await self._connections.serve(reader, writer, refuse=self._refuse, handle=self._handle)

    def _refuse(self, head: Head) -> Answer | None:
        if not head.path and head.method in ("GET", "HEAD"):
            return NOT_FOUND
        token = head.path[0] if head.path else ""
        return None if secrets.compare_digest(token.encode(), self._token.encode()) else FORBIDDEN

    async def _handle(self, head: Head, body: Body) -> Answer:
        try:
            return await self._handled(head, body)
        except Exception as error:  # noqa: BLE001 - it ends the sink: what was not recorded may not be answered
            assert self._end is not None
            _finish(self._end, error)
            return CLOSE

    async def _handled(self, head: Head, body: Body) -> Answer:
        if head.method not in ("POST", "PUT"):
            return NOT_FOUND
        match head.path:
            case (_, member, "effect") if self._takes_effects:
                return await self._effect(member, head, body)
            case (_, member, "crash-point", name):
                return self._crash_point(member, name)
        return NOT_FOUND

    async def _effect(self, member: str, head: Head, body: Body) -> Answer:
        encoded = (head.header("content-encoding") or "identity").lower() != "identity"
        record_id = self._id_of(head) or (None if encoded else id_in_json(body, self._json_path))
        if not record_id or len(record_id) > ID_CHARACTERS_MAX:
            return NO_ID
        record = partial(
            self._recorder.record,
            "effect",
            id=record_id,
            member=member,
            partition=_number(head.header("kt-partition")),
            offset=_number(head.header("kt-offset")),
            **checksums(None if encoded else body),  # the sum of a compressed body says nothing about the value
        )
        arrived = [watch.arrived(member, record_id) for watch in self._watches]
        behaviour = await self._waited(member, record_id)
        for arrival in arrived:
            arrival.answered(done=behaviour is not SinkBehaviour.REFUSING)
        if behaviour is SinkBehaviour.REFUSING:
            record(outcome="fail")
            return REFUSED
        record(outcome="info" if behaviour is SinkBehaviour.CLOSING else "ok")
        return CLOSE if behaviour is SinkBehaviour.CLOSING else DONE

    async def _waited(self, member: str, record_id: str) -> SinkBehaviour:
        """Waits as its treatment asks, and returns the behaviour of the effect; that of one which ended is normal."""
        treatment = next((one for one in self._treatments if one.takes(member, record_id)), None)
        if treatment is None:
            return SinkBehaviour.NORMAL
        deadline_s = time.monotonic() + treatment.delay_s
        while not treatment.over and treatment.waits(deadline_s):
            left_s = deadline_s - time.monotonic() if treatment.behaviour is SinkBehaviour.SLOW else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)
        return SinkBehaviour.NORMAL if treatment.over else treatment.behaviour

    def _crash_point(self, member: str, name: str) -> Answer:
        with self._lock:
            armed = next(
                (point for point in self._armed if point.name == name and point.member in (None, member)), None
            )
            if armed is not None and armed.passes:
                armed.passes -= 1
                armed = None
            if armed is not None:
                self._armed.remove(armed)
        if armed is None or self._kill is None:
            self._recorder.record("crash_point", name=name, member=member, state="passed")
            return DONE
        self._recorder.record("crash_point", name=name, member=member, state="killed")
        self._kill(member)
        self._reached.append(armed)
        return HOLD

    def _id_of(self, head: Head) -> str | None:
        return next(filter(None, map(head.header, self._id_headers)), None)


@contextmanager
def start_sink(
    recorder: Recorder,
    *,
    host: str = HOST,
    header: str | None = None,
    json_path: str | None = None,
    kill: Callable[[str], object] | None = None,
    takes_effects: bool = True,
) -> Iterator[Sink]:
    """Yields a sink that serves at the address `host`, recording into `recorder`.

    Without `takes_effects` it has crash points only: the effects are seen elsewhere.

    An effect's id stands in the HTTP header `header` or KT-Id, else at `json_path` of its body. `kill` kills a member
    by name, without waiting.

    Raises:
        StartError: it cannot listen at that address.
        ValueError: the path cannot be read; see `history/json_paths.py`.
    """
    path_steps(json_path or ID_FIELD)
    with _listening(host) as listener, ThreadGroup("sink", real_time=True) as thread_group:
        names = {"header": header or ID_HEADER, "json_path": json_path or ID_FIELD}
        sink = Sink(recorder, listener, **names, kill=kill, takes_effects=takes_effects)
        thread_group.start("serve", sink.serve)
        wait_until(
            lambda: sink.serves,
            within_s=UP_WITHIN_S,
            what="the sink to listen",
            every_s=0.005,
            alive=lambda: repr(thread_group.errors[0][1]) if thread_group.errors else None,
        )
        try:
            yield sink
        finally:
            sink.end()


def _listening(host: str) -> socket.socket:
    """Returns a listening socket at a free port.

    Raises:
        StartError: this machine has no such address.
    """
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        return socket.create_server((host, 0), family=family, backlog=WAITING_MAX)
    except (ValueError, OSError) as error:
        raise StartError(
            f"the HTTP sink cannot listen at {host}: {reason(error)}; give an address of this machine (see `ip addr`)"
        ) from error


def _finish(end: asyncio.Future[None], error: BaseException | None) -> None:
    if end.done():
        return
    if error is None:
        end.set_result(None)
    else:
        end.set_exception(error)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None
