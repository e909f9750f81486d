"""A running HTTP sink with its history, and the ways in which tests speak to it over real sockets."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafka_trial.consumers.sink import Sink, start_sink
from kafka_trial.history.recorder import Recorder

ANSWER_WITHIN_S = 10


class World:
    """A sink with its history, and whom it killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed: list[str] = []
        self.sink: Sink

    def events(self) -> list[dict[str, Any]]:
        """Returns the history's events without their heads."""
        lines = (self.folder / "sink.jsonl").read_bytes().splitlines()
        heads = {"schema", "source", "seq", "time_ns"}
        return [{name: value for name, value in json.loads(line).items() if name not in heads} for line in lines]

    @property
    def path(self) -> str:
        """The path of m1's URL."""
        return urlsplit(self.sink.url("m1")).path

    def raw(self, *parts: bytes, to_the_end: bool = True) -> bytes:
        """Sends bytes by hand and returns what comes back, until the sink closes (or until the first answer is in)."""
        with socket.create_connection((self.sink.host, self.sink.port), timeout=ANSWER_WITHIN_S) as link:
            for part in parts:
                link.sendall(part)
            answer = b""
            while (to_the_end or not answer) and (data := link.recv(65536)):
                answer += data
            return answer

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.sink.host, self.sink.port, timeout=ANSWER_WITHIN_S)

    def post(self, path: str, body: bytes = b"", **headers: str) -> int:
        """POSTs below m1's URL and returns the status."""
        connection = self.connect()
        connection.request("POST", self.path + path, body, headers)
        status = connection.getresponse().status
        connection.close()
        return status


@contextmanager
def running_sink(folder: Path, **options: Any) -> Iterator[World]:
    """Yields a sink that serves, whose members are killed in name only."""
    world = World(folder)
    with Recorder(folder, "sink") as recorder, start_sink(recorder, kill=world.killed.append, **options) as sink:
        world.sink = sink
        yield world


@contextmanager
def ask(world: World, path: str) -> Iterator[socket.socket]:
    """Opens a request by hand, its last lines still to be sent; waits briefly for answers."""
    with socket.create_connection(("127.0.0.1", world.sink.port), timeout=0.3) as link:
        link.sendall(f"POST {world.path}{path} HTTP/1.1\r\nHost: sink\r\nContent-Length: 0\r\n".encode())
        yield link


def effect(record_id: str, outcome: str = "ok", **more: Any) -> dict[str, Any]:
    """Returns the event of an effect; that of an empty body, unless its checksum is given."""
    return {"kind": "effect", "id": record_id, "member": "m1", "outcome": outcome, "checksum": 0, **more}
