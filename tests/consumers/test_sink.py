"""The HTTP sink, spoken to over a real socket: what is recorded, what is refused, and its bad manners."""

from __future__ import annotations

import http.client
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kafka_trial.consumers.effect_treatment import SinkBehaviour, Treatment
from kafka_trial.consumers.http_connection import BODY_BYTES_MAX
from kafka_trial.consumers.sink import start_sink
from kafka_trial.history.record_ids import checksums
from kafka_trial.history.recorder import Recorder
from kafka_trial.process.waiting import wait_until
from sink_world import ANSWER_WITHIN_S, World, ask, effect, running_sink


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A running sink."""
    with running_sink(tmp_path) as world:
        yield world


def test_an_effect_is_in_the_history_when_it_is_answered(world: World) -> None:
    """By header or by the id in the body: 204 comes after the event has been written."""
    headers = {"KT-Id": "r1", "KT-Partition": "3", "KT-Offset": "7"}
    assert world.post("/effect", b"anything", **headers) == 204
    assert world.events() == [effect("r1", partition=3, offset=7, checksum=zlib.crc32(b"anything"))]
    assert world.post("/effect", b'{"id": "r2", "pad": "x"}') == 204
    assert world.events()[1:] == [effect("r2", **checksums(b'{"id": "r2", "pad": "x"}'))]


def test_every_body_has_its_checksums(world: World) -> None:
    """Whether it is the record's value is declared, and weighed by the judge."""
    bodies = (b'{"id": "r1", "total": 3}', b"", b'{"id": "r1", "pad": "cut of', b"\0\1")
    for body in bodies:
        world.post("/effect", body, **{"KT-Id": "r1"})
    kept = [(event["checksum"], event.get("json_checksum")) for event in world.events()]
    assert kept == [(said["checksum"], said["json_checksum"]) for said in map(checksums, bodies)]


def test_one_connection_serves_many_effects(world: World) -> None:
    """Keep-alive: a second request on the same connection is answered too."""
    connection = world.connect()
    path = urlsplit(world.sink.url("m1")).path + "/effect"
    for number in range(3):
        connection.request("POST", path, b"{}", {"KT-Id": f"r{number}"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (204, b"")
    assert [event["id"] for event in world.events()] == ["r0", "r1", "r2"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/effect", {}, 400),
        ("/nowhere", {"KT-Id": "r1"}, 404),
        ("/effect", {"KT-Id": "r1", "Content-Length": str(BODY_BYTES_MAX + 1)}, 413),
        ("/effect", {"KT-Id": "r1", "Content-Length": "many"}, 400),
        ("/effect", {"KT-Id": "r1", "Transfer-Encoding": "chunked"}, 400),  # and a length
        ("/effect", {"KT-Id": "r" * 1025}, 400),
    ],
)
def test_what_is_refused_is_not_recorded(world: World, path: str, headers: dict[str, str], status: int) -> None:
    """No id, no such place, too large, a length that is none: an error status and an empty history."""
    connection = world.connect()
    connection.putrequest("POST", urlsplit(world.sink.url("m1")).path + path)
    for name, value in ({"Content-Length": "0"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == status
    assert world.events() == []


def test_a_body_above_the_bound_is_answered_although_it_is_sent(world: World) -> None:
    """A client that sends all of its 17 MB gets the refusal, not a reset."""
    assert world.post("/effect", b"x" * (BODY_BYTES_MAX + 1), **{"KT-Id": "r1"}) == 413


def test_without_the_token_nothing_gets_in(world: World) -> None:
    """A path with another token is forbidden, whatever it asks for."""
    connection = world.connect()
    connection.request("POST", "/guessed/m1/effect", b"{}", {"KT-Id": "r1"})
    assert connection.getresponse().status == 403
    assert world.events() == []


def test_refusing_says_and_records_that_nothing_was_done(world: World) -> None:
    """503 while the nemesis asks for it, and as before afterwards."""
    with world.sink.treated(Treatment(SinkBehaviour.REFUSING)):
        assert world.post("/effect", **{"KT-Id": "r1"}) == 503
    assert world.post("/effect", **{"KT-Id": "r1"}) == 204
    assert world.events() == [effect("r1", "fail"), effect("r1")]


def test_closing_after_recording_leaves_the_client_in_doubt(world: World) -> None:
    """The effect is recorded with outcome info, and the connection ends without an answer."""
    with world.sink.treated(Treatment(SinkBehaviour.CLOSING)), pytest.raises(http.client.RemoteDisconnected):
        world.post("/effect", **{"KT-Id": "r1"})
    assert world.events() == [effect("r1", "info")]


@pytest.mark.parametrize(("behaviour", "delay_s"), [(SinkBehaviour.HELD, 0.0), (SinkBehaviour.SLOW, 3600.0)])
def test_what_the_sink_sits_on_is_done_when_it_lets_go(world: World, behaviour: SinkBehaviour, delay_s: float) -> None:
    """Held, or slow for longer than the behaviour lasts: nothing is recorded or answered before, everything after."""
    with ask(world, "/effect") as link:
        with world.sink.treated(Treatment(behaviour, delay_s=delay_s)):
            link.sendall(b"KT-Id: r1\r\n\r\n")
            with pytest.raises(TimeoutError):
                link.recv(1)
            assert world.events() == []
        link.settimeout(ANSWER_WITHIN_S)
        assert link.recv(100).startswith(b"HTTP/1.1 204 ")
    assert world.events() == [effect("r1")]


def test_a_crash_point_passes_unless_it_is_armed_for_the_member(world: World) -> None:
    """Armed for another member, or under another name: 204, and nobody is killed."""
    world.sink.arm("after-effect", member="m0")
    assert world.post("/crash-point/after-effect") == 204
    assert world.post("/crash-point/elsewhere") == 204
    assert world.killed == []
    assert [event["state"] for event in world.events()] == ["armed", "passed", "passed"]


def test_an_armed_crash_point_kills_and_never_answers(world: World) -> None:
    """The request is in the history, the member is killed, its connection stays open until it has gone; once only."""
    world.sink.arm("after-effect", member="m1")
    with ask(world, "/crash-point/after-effect") as link:
        link.sendall(b"\r\n")
        wait_until(lambda: world.killed, within_s=ANSWER_WITHIN_S, what="the kill")
        with pytest.raises(TimeoutError):
            link.recv(1)
    assert world.killed == ["m1"]
    assert world.events()[-1] == {"kind": "crash_point", "name": "after-effect", "member": "m1", "state": "killed"}
    assert world.post("/crash-point/after-effect") == 204


def test_a_crash_point_waits_for_the_nth_that_asks(world: World) -> None:
    """Those before it pass, those of other members do not count, and the third is killed."""
    point = world.sink.arm("after-effect", member="m1", nth=3)
    assert [world.post("/crash-point/after-effect") for _ in range(2)] == [204, 204]
    others = world.connect()
    others.request("POST", urlsplit(world.sink.url("m0")).path + "/crash-point/after-effect")
    assert others.getresponse().status == 204
    assert not world.sink.was_reached(point)
    with ask(world, "/crash-point/after-effect") as link:
        link.sendall(b"\r\n")
        wait_until(lambda: world.killed, within_s=ANSWER_WITHIN_S, what="the kill")
    assert (world.killed, world.sink.was_reached(point)) == (["m1"], True)


def test_where_effects_go_elsewhere_there_are_crash_points_only(tmp_path: Path) -> None:
    """An effect is answered 404 and not recorded; who asks at a crash point is."""
    with running_sink(tmp_path, takes_effects=False) as world:
        assert (world.post("/effect", **{"KT-Id": "r1"}), world.post("/crash-point/here")) == (404, 204)
        assert [event["kind"] for event in world.events()] == ["crash_point"]


def test_a_crash_point_is_reached_once_or_disarmed(world: World) -> None:
    """Whoever armed it learns whether somebody was killed there; disarmed, it lets everybody pass."""
    disarmed, reached = world.sink.arm("after-effect"), world.sink.arm("after-effect")
    world.sink.disarm(disarmed)
    with ask(world, "/crash-point/after-effect") as link:
        link.sendall(b"\r\n")
        wait_until(lambda: world.sink.was_reached(reached), within_s=ANSWER_WITHIN_S, what="the kill")
    assert (world.killed, world.sink.was_reached(disarmed)) == (["m1"], False)
    world.sink.disarm(reached)
    assert world.post("/crash-point/after-effect") == 204


def test_a_history_that_cannot_be_written_ends_the_sink(tmp_path: Path) -> None:
    """An effect that could not be recorded is never answered, and the failure reaches the run."""
    recorder = Recorder(tmp_path, "sink")
    world = World(tmp_path)
    with pytest.raises(Exception, match="sink/serve failed"), start_sink(recorder) as sink:  # noqa: PT012
        world.sink = sink
        recorder._file.close()
        recorder._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
        with pytest.raises((http.client.HTTPException, OSError)):
            world.post("/effect", **{"KT-Id": "r1"})
