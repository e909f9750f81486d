"""Members as processes and as containers: real ones, without Kafka; what they print, how they end, and who is told.

Those of containers take turns with other dear tests."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from kafka_trial.cluster.cluster import Lane
from kafka_trial.consumers import process
from kafka_trial.consumers.consumer import Member, TargetCluster, spec_from_toml
from kafka_trial.consumers.output import LINE_BYTES_MAX, QUOTE_BYTES_MAX, BoundedLog
from kafka_trial.consumers.process import LaunchContext, ProcessGroup, process_group
from kafka_trial.containers.network import ContainerNetwork, container_network, own_labels
from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.nemesis import sampling
from kafka_trial.nemesis.evidence import STOPPED
from kafka_trial.process.children import ChildProcesses
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import pause, wait_until
from lab.images import image_of_team

STOPPED_WITHIN_S = 20.0  # who obeys does so at once, also on a machine that is busy
READY_WITHIN_S = 20
LANES = [Lane(index, "127.0.0.1", {}, {0: 20000 + index}) for index in range(4)]
ASSIGNED = '{"name": "partitions_assigned", "partitions": [{"topic": "t", "partition": 0}]}'
STAYS = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('{ASSIGNED}', flush=True)
time.sleep(600)
"""


COMMAND = 'command = ["{python}", "main.py"]'
IMAGE = '[image]\nname = "kafka-trial/python-orders:1"\nmounts = { "main.py" = "/app/main.py" }'
CONTAINERS = pytest.param("containers", marks=pytest.mark.rotates(together="dear"))

GroupOf = Callable[..., AbstractContextManager[ProcessGroup]]


@pytest.fixture(scope="module")
def network(request: pytest.FixtureRequest) -> Iterator[ContainerNetwork]:
    """Lends a network of containers, on which there is no cluster."""
    engine: DockerClient = request.getfixturevalue("engine")
    image_of_team(engine, "python-orders")
    with container_network(engine, f"kafka-trial-{secrets.token_hex(4)}", own_labels()) as network:
        yield network


@pytest.fixture(params=["processes", CONTAINERS])
def kind(request: pytest.FixtureRequest) -> str:
    """Returns what members are: processes, or containers of an image with a Python in it."""
    return str(request.param)


@pytest.fixture
def group_of(request: pytest.FixtureRequest, kind: str) -> GroupOf:
    """Makes groups whose members run a source in Python, not started yet, as processes or as containers."""
    network = request.getfixturevalue("network") if kind == "containers" else None
    return partial(group_on, network)


@contextmanager
def group_on(
    network: ContainerNetwork | None,
    folder: Path,
    source: str,
    *,
    members: int = 1,
    toml: str = "",
    events: str = "jsonl",
    stop_s: float = STOPPED_WITHIN_S,
    **options: Any,
) -> Iterator[ProcessGroup]:
    """A group of members that run `source`, not started yet."""
    (folder / "main.py").write_text(source)
    (folder / "consumer.toml").write_text(
        f'schema = 1\nname = "test"\n{"" if network else COMMAND}\n{toml}\n{IMAGE if network else ""}\n'
        f'[evidence]\nevents = "{events}"\n[stop]\nwithin_s = {stop_s}\n[claim]\ndelivery = "unclaimed"\n'
    )
    run = RunFolder(folder / "run")
    run.history.mkdir(parents=True)
    run.logs.mkdir()
    spec = spec_from_toml(folder / "consumer.toml")
    host = network.gateway if network else "127.0.0.1"
    launch_context = LaunchContext(
        "orders", "g1", 7, "4.3.1", members, lambda member: f"http://sink/{member}", host=host
    )
    with (
        ChildProcesses("test") as child_processes,
        process_group(
            spec,
            launch_context,
            child_processes=child_processes,
            lanes=LANES,
            folder=run,
            network=network,
            **options,
        ) as group,
    ):
        yield group


def told(folder: Path, member: str = "m0", incarnation: int = 0) -> list[dict[str, Any]]:
    """Returns the events of one incarnation without their heads."""
    lines = (folder / "run" / "history" / f"consumer-{member}-{incarnation}.jsonl").read_bytes().splitlines()
    heads = {"schema", "source", "seq", "time_ns", "member", "incarnation", "asked_ns"}
    return [{name: value for name, value in json.loads(line).items() if name not in heads} for line in lines]


def ended(group: ProcessGroup) -> None:
    """Waits until every member has exited and its last line is written."""
    wait_until(lambda: all(member.ended for member in group._current.values()), within_s=READY_WITHIN_S, what="the end")


def test_members_are_started_made_ready_and_stopped(tmp_path: Path, group_of: GroupOf) -> None:
    """Each has its lane; ready when it says that it was assigned; it stops when asked; every line is its own."""
    with group_of(tmp_path, STAYS, members=2) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
        assert [(member.name, member.lane.index, member.alive) for member in group.members] == [
            ("m0", 0, True),
            ("m1", 1, True),
        ]
        pid = group.members[1].pid
        assert group.stop() == []
    assert told(tmp_path, "m1") == [
        {"kind": "started", "pid": pid, "lane": 1, "consumer": "test", "protocol": "classic", "started_with": [0]},
        {"kind": "assigned", "entries": [{"topic": "t", "partition": 0}]},
        {"kind": "exited", "code": 0, "asked": "stop", "within_s": STOPPED_WITHIN_S},
    ]


def test_placeholders_and_environment_reach_the_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_of: GroupOf
) -> None:
    """What it is told by placeholder arrives; of the caller's environment only what pass_env names."""
    monkeypatch.setenv("KT_PASSED", "secret")
    monkeypatch.setenv("KT_NOT_PASSED", "x")
    source = """
import json, os, sys
seen = {name: os.environ.get(name) for name in ("WHO", "KT_PASSED", "KT_NOT_PASSED")}
print(json.dumps({"name": "error", "message": json.dumps(seen)}), flush=True)
"""
    who = (
        "{bootstrap} {group} {topics} {member} {members} {client_id} {sink_url} {seed} {protocol} {session_timeout_ms} "
        "{incarnation} {bootstrap_json} {bootstrap_first}"
    )
    with group_of(tmp_path, source, toml=f'pass_env = ["KT_PASSED"]\n[env]\nWHO = "{who}"') as group:
        group.start()
        ended(group)
    assert json.loads(told(tmp_path)[1]["message"]) == {
        "WHO": "127.0.0.1:20000 g1 orders m0 1 kt-m0 http://sink/m0 7 classic 6000 0 "
        '["127.0.0.1:20000"] 127.0.0.1:20000',
        "KT_PASSED": "secret",
        "KT_NOT_PASSED": None,
    }


def test_a_member_that_exits_at_once_is_named(tmp_path: Path, group_of: GroupOf) -> None:
    """wait_ready does not wait on: it says who exited, how, and where its own words are."""
    source = "import sys; print('no such broker', file=sys.stderr); sys.exit(3)"
    with group_of(tmp_path, source) as group:
        group.start()
        (failure,) = group.wait_ready(READY_WITHIN_S)
    assert (failure.member, failure.what, failure.message) == (
        "m0",
        "exited",
        "with status 3; its last words in logs/m0-0.stderr: no such broker",
    )
    assert told(tmp_path)[-1] == {"kind": "exited", "code": 3, "asked": "no"}
    assert (tmp_path / "run" / "logs" / "m0-0.stderr").read_text() == "no such broker\n"


def test_the_last_words_of_a_member_that_exited_are_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine what it wrote is read well after it has gone."""
    write = BoundedLog.write

    def write_late(log: BoundedLog, chunk: bytes) -> None:
        pause(1.0)
        write(log, chunk)

    monkeypatch.setattr(BoundedLog, "write", write_late)
    source = "import sys; print('no such broker', file=sys.stderr); sys.exit(3)"
    with group_on(None, tmp_path, source) as group:
        group.start()
        (failure,) = group.wait_ready(READY_WITHIN_S)
    assert failure.message == "with status 3; its last words in logs/m0-0.stderr: no such broker"


def test_a_group_is_deserted_when_all_its_members_have_ended_by_themselves(tmp_path: Path, group_of: GroupOf) -> None:
    """One that was killed comes again; of those that ended the first that wrote something is quoted."""
    source = "import os, sys; os.environ['WHO'] == 'm1' and print('no such broker', file=sys.stderr); sys.exit(3)"
    with group_of(tmp_path, source, members=2, toml='[env]\nWHO = "{member}"') as group:
        assert not group.deserted
        group.start()
        ended(group)
        assert (group.deserted, group.last_words) == (True, "m1: its last words in logs/m1-0.stderr: no such broker")


def test_a_group_whose_member_was_killed_is_not_deserted(tmp_path: Path, group_of: GroupOf) -> None:
    """The fault that killed it starts it again."""
    with group_of(tmp_path, STAYS) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
        group.kill(group.members[0])
        assert not group.deserted
        assert group.last_words == "m0: it wrote nothing to logs/m0-0.stderr"


def test_a_member_that_is_never_assigned_is_named(tmp_path: Path, group_of: GroupOf) -> None:
    """It runs, it prints that it is up, and never gets a partition."""
    source = STAYS.replace(ASSIGNED, '{"name": "startup_complete"}')
    with group_of(tmp_path, source) as group:
        group.start()
        failures = group.wait_ready(0.5)
    assert [(failure.member, failure.what) for failure in failures] == [("m0", "never-assigned")]


def test_a_silent_consumer_is_ready_when_the_coordinator_knows_its_members(tmp_path: Path, group_of: GroupOf) -> None:
    """Without events the group's size decides; what it prints goes to a log."""
    with group_of(tmp_path, STAYS, events="none", group_size=lambda: 1) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
        log = tmp_path / "run" / "logs" / "m0-0.stdout"
        wait_until(lambda: log.exists() and log.read_text(), within_s=READY_WITHIN_S, what="its output")
    assert (log.read_text(), [event["kind"] for event in told(tmp_path)]) == (ASSIGNED + "\n", ["started", "exited"])


LOOKS = {  # what the coordinator answers by turns; and whether that makes a silent member ready
    "unanswered between two": ([1, None], True),
    "not stable between two": ([1, 0], False),
    "never answered": ([None], False),
}


@pytest.mark.parametrize(("answers", "ready"), LOOKS.values(), ids=LOOKS)
def test_a_look_that_was_not_answered_says_nothing_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[int | None], *, ready: bool
) -> None:
    """A busy coordinator may not answer in time: its group is no less stable for it, and no more."""
    monkeypatch.setattr(process, "KNOWN_S", 0.35)
    looks = cycle(answers)
    with group_on(None, tmp_path, STAYS, events="none", group_size=lambda: next(looks)) as group:
        group.start()
        assert (group.wait_ready(READY_WITHIN_S if ready else 1.5) == []) is ready


def test_a_group_is_not_known_for_longer_than_it_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer, and then none: nobody knows whether it stayed as it was."""
    monkeypatch.setattr(process, "KNOWN_S", 0.35)
    looks = chain([1], repeat(None))
    with group_on(None, tmp_path, STAYS, events="none", group_size=lambda: next(looks)) as group:
        group.start()
        assert [failure.what for failure in group.wait_ready(1.5)] == ["never-assigned"]


def test_on_another_cluster_a_silent_group_is_ready_when_that_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the coordinator of the first one had said."""
    monkeypatch.setattr(process, "KNOWN_S", 0.35)
    with group_on(None, tmp_path, STAYS, events="none", group_size=lambda: 1) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
        group.leave_all()
        group.move_to_cluster(TargetCluster("mirror", LANES, ["t"], lambda: 0))
        assert [failure.what for failure in group.wait_ready(1.0)] == ["never-assigned"]


AWAITED = {
    ("none", ""): "its coordinator was not seen to have 1 members in a stable group for 4 s",
    ("jsonl", ""): (
        "it did not say that it has an assignment, and its coordinator was not seen to have 1 members in a stable "
        "group for 4 s"
    ),
    ("none", "[ready]\nlog = 'listening'"): "no line matched 'listening'",
    ("none", "[ready]\nhttp = 'http://127.0.0.1:9/'"): "its [ready] http did not answer with success",
}


@pytest.mark.parametrize(("declared", "awaited"), AWAITED.items(), ids=["silent", "speaking", "log", "http"])
def test_a_member_that_is_not_ready_is_told_with_what_was_awaited(
    tmp_path: Path, declared: tuple[str, str], awaited: str
) -> None:
    """For how long, what, and its last words."""
    events, toml = declared
    with group_on(None, tmp_path, STAYS.replace(ASSIGNED, ""), events=events, toml=toml, group_size=lambda: 0) as group:
        group.start()
        (failure,) = group.wait_ready(0.3)
    assert failure.message == f"was not ready within 0.3 s: {awaited}; it wrote nothing to logs/m0-0.stderr"


def test_a_member_between_two_assignments_is_not_ready(tmp_path: Path, group_of: GroupOf) -> None:
    """What it was given is revoked again: only the next assignment makes it ready, though it be empty."""
    revoked = ASSIGNED.replace("assigned", "revoked")
    again = '{"name": "partitions_assigned", "partitions": []}'
    source = STAYS.replace("time.sleep(600)", f"print('{revoked}', flush=True)\ntime.sleep(600)")
    with group_of(tmp_path, source, group_size=lambda: 1) as group:
        group.start()
        assert [failure.what for failure in group.wait_ready(1.5)] == ["never-assigned"]
    (tmp_path / "again").mkdir()
    source = source.replace("time.sleep(600)", f"print('{again}', flush=True)\ntime.sleep(600)")
    with group_of(tmp_path / "again", source) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []


def test_ready_by_a_line_of_the_log(tmp_path: Path, group_of: GroupOf) -> None:
    """`[ready] log` looks at both streams, and an assignment alone does not count then."""
    source = "import sys\nprint('listening on 42', file=sys.stderr, flush=True)" + STAYS
    with group_of(tmp_path, source, toml="[ready]\nlog = 'listening on \\d+$'") as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
    (tmp_path / "again").mkdir()
    with group_of(tmp_path / "again", STAYS, toml="[ready]\nlog = 'listening'") as group:
        group.start()
        assert [failure.what for failure in group.wait_ready(0.5)] == ["never-assigned"]


def test_who_exited_by_itself_is_told_before_the_group_stops(tmp_path: Path, group_of: GroupOf) -> None:
    """Of two members one was killed by the harness, the other one by somebody else."""
    with group_of(tmp_path, STAYS, members=2) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        assert group.exits() == []
        ours, theirs = group.members
        group.kill(ours)
        os.kill(int(told(tmp_path, theirs.name)[0]["pid"]), signal.SIGKILL)
        ended(group)
        (failure,) = group.exits()
        assert (failure.member, failure.what) == (theirs.name, "exited")
        assert group.stop() == [failure]


def test_a_member_that_never_stops_is_killed_and_named(tmp_path: Path, group_of: GroupOf) -> None:
    """SIGTERM ignored: killed after the time the spec gives, and the last line says why."""
    source = STAYS.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
    with group_of(tmp_path, source, stop_s=1.0) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        (failure,) = group.stop()
    assert failure.what == "never-stopped"
    message = "did not stop within 1 s of SIGTERM: killed"
    end = {"kind": "exited", "signal": signal.SIGKILL, "message": message, "asked": "overdue", "within_s": 1.0}
    assert told(tmp_path)[-1] == end


def test_a_member_that_the_harness_killed_did_not_exit_by_itself(tmp_path: Path, group_of: GroupOf) -> None:
    """Whether by the group, by name, or through the member: no failure of the consumer's."""
    with group_of(tmp_path, STAYS, members=3) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        by_group, by_name, by_itself = group.members
        group.kill(by_group)
        group.kill_now(by_name.name)
        by_itself.kill()
        ended(group)
        assert group.stop() == []


def test_kill_restart_join_and_leave(tmp_path: Path, group_of: GroupOf) -> None:
    """A new incarnation keeps name and lane; a further member gets the next lane; who left can come again."""
    with group_of(tmp_path, STAYS, members=2) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        first = group.members[0]
        group.kill(first)
        assert (first.alive, first.exit_code, group.members[0].alive) == (False, -signal.SIGKILL, False)
        second = group.restart(first)
        assert (second.name, second.incarnation, second.lane) == ("m0", 1, first.lane)
        extra_members = [group.join(), group.join()]
        assert [(guest.name, guest.lane.index) for guest in extra_members] == [("m2", 2), ("m3", 3)]
        with pytest.raises(UnjudgeableError, match="all 4 lanes have members"):
            group.join()
        group.wait_ready(READY_WITHIN_S)
        group.leave(extra_members[0])
        again = group.join()
        assert (again.name, again.incarnation) == ("m2", 1)
        group.wait_ready(READY_WITHIN_S)
        assert group.stop() == []
    assert told(tmp_path, "m0", 0)[-1] == {"kind": "exited", "signal": signal.SIGKILL, "asked": "kill"}
    assert told(tmp_path, "m2", 0)[-1] == {"kind": "exited", "code": 0, "asked": "stop", "within_s": STOPPED_WITHIN_S}


def test_a_paused_member_stands_still_and_can_be_stopped(tmp_path: Path, group_of: GroupOf) -> None:
    """Stopped or frozen, as the kernel has it; stopping continues it first, so that it can obey."""
    with group_of(tmp_path, STAYS) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        member = group.members[0]
        group.pause(member)
        wait_until(lambda: _states(member) and _states(member) <= STOPPED, within_s=5, what="it to stand still")
        assert group.stop() == []


def test_whoever_reads_a_members_lines_is_real_time_where_that_is_allowed(tmp_path: Path, group_of: GroupOf) -> None:
    """As any thread of a group that asks for it, with or without the right to."""
    asked: list[int] = []
    with ThreadGroup("asks", real_time=True) as thread_group:
        thread_group.start("one", lambda: asked.append(os.sched_getscheduler(0)))
    with group_of(tmp_path, STAYS) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        readers = [one.native_id for one in threading.enumerate() if one.name.startswith("consumers/")]
        assert [os.sched_getscheduler(number) for number in readers if number] == asked * len(readers)
        assert readers


def test_two_groups_side_by_side_do_not_meet(tmp_path: Path, group_of: GroupOf) -> None:
    """Two trials on one cluster have members of the same names."""
    (tmp_path / "other").mkdir()
    with group_of(tmp_path, STAYS) as one, group_of(tmp_path / "other", STAYS) as other:
        for group in (one, other):
            group.start()
        assert one.wait_ready(READY_WITHIN_S) + other.wait_ready(READY_WITHIN_S) == []
        assert one.stop() == []
        assert [member.alive for member in (*one.members, *other.members)] == [False, True]


def test_what_became_of_a_member_that_is_lost_is_nobodys_exit(tmp_path: Path, group_of: GroupOf) -> None:
    """A failure of what runs it is told as such: no failure of the member, and no word of who ended it."""
    with group_of(tmp_path, STAYS) as group:
        group.start()
        group.wait_ready(READY_WITHIN_S)
        group.members[0].child.lost = "the engine is gone"  # type: ignore[attr-defined]
        group.kill(group.members[0])
        with pytest.raises(UnjudgeableError, match="the engine is gone"):
            group.stop()
    assert told(tmp_path)[-1] == {"kind": "exited", "message": "the engine is gone"}


def test_garbage_and_a_line_of_100_mb_neither_block_nor_stay(tmp_path: Path, group_of: GroupOf) -> None:
    """The member gets rid of everything it prints; the history quotes a little of it and counts the rest."""
    size = 100 * 1024 * 1024
    source = f"""
import sys
print("garbage")
for _ in range(100):
    sys.stdout.write("x" * {size // 100})
print()
print('{ASSIGNED}')
"""
    with group_of(tmp_path, source) as group:
        group.start()
        ended(group)
    events = told(tmp_path)
    assert size > LINE_BYTES_MAX
    assert events[1:] == [
        {"kind": "bad_line", "message": "garbage", "size_bytes": 7},
        {"kind": "bad_line", "message": "x" * QUOTE_BYTES_MAX, "size_bytes": size},
        {"kind": "assigned", "entries": [{"topic": "t", "partition": 0}]},
        {"kind": "exited", "code": 0, "asked": "no"},
    ]


def test_a_flood_on_stderr_is_bounded(tmp_path: Path, group_of: GroupOf) -> None:
    """30 MB of log lines: the file stops at its bound, the member runs to its end."""
    source = "import sys\nfor _ in range(30): sys.stderr.write('y' * 1024 * 1024)"
    with group_of(tmp_path, source) as group:
        group.start()
        ended(group)
    size = (tmp_path / "run" / "logs" / "m0-0.stderr").stat().st_size
    assert 10 * 1024 * 1024 < size < 10 * 1024 * 1024 + 200
    assert told(tmp_path)[-1] == {"kind": "exited", "code": 0, "asked": "no"}


def test_closing_the_group_kills_what_still_runs(tmp_path: Path, group_of: GroupOf) -> None:
    """Leaving the `with` in the middle of a run leaves no process, and every history has its last line."""
    with pytest.raises(RuntimeError), group_of(tmp_path, STAYS, members=2) as group:  # noqa: PT012
        group.start()
        group.wait_ready(READY_WITHIN_S)
        pids = [member.pid for member in group.members]
        raise RuntimeError
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert [told(tmp_path, name)[-1]["kind"] for name in ("m0", "m1")] == ["exited", "exited"]


def test_a_process_that_closes_its_streams_is_followed_to_its_exit(tmp_path: Path, group_of: GroupOf) -> None:
    """`exited` is written when the process has gone, not when it fell silent."""
    source = "import os, time\nos.close(1); os.close(2)\ntime.sleep(0.5)\nos._exit(4)"
    with group_of(tmp_path, source) as group:
        group.start()
        ended(group)
    assert told(tmp_path)[-1] == {"kind": "exited", "code": 4, "asked": "no"}


def test_the_history_starts_before_the_member_says_a_word(tmp_path: Path, group_of: GroupOf) -> None:
    """`started` is the first line of every incarnation, however quick the process prints."""
    with group_of(tmp_path, f"print('{ASSIGNED}')", members=4) as group:
        group.start()
        ended(group)
    assert {told(tmp_path, f"m{index}")[0]["kind"] for index in range(4)} == {"started"}


def test_ready_by_a_url(tmp_path: Path, group_of: GroupOf) -> None:
    """`[ready] http` is asked until it answers 2xx; placeholders in it are filled for each member."""
    source = """
import http.server, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/m0" else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Health)
server.serve_forever()
"""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    source = source.replace('("127.0.0.1", 0)', f'("", {port})')
    with group_of(tmp_path, source, toml=f'[ready]\nhttp = "http://{{address}}:{port}/{{member}}"') as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
    (tmp_path / "again").mkdir()
    with group_of(tmp_path / "again", source, toml=f'[ready]\nhttp = "http://{{address}}:{port}/x"') as group:
        group.start()
        assert [failure.what for failure in group.wait_ready(0.5)] == ["never-assigned"]


def test_what_it_needs_on_this_machine_is_reached(tmp_path: Path, group_of: GroupOf) -> None:
    """A server that listens on all addresses, at `{host}`; whoever is in a container cannot know where that is."""
    source = f"""
import os, socket, time
with socket.create_connection((os.environ["WAREHOUSE_HOST"], int(os.environ["WAREHOUSE_PORT"])), 5) as link:
    assert link.recv(2) == b"up"
print('{ASSIGNED}', flush=True)
time.sleep(600)
"""
    with socket.create_server(("", 0)) as server:
        told = f'[env]\nWAREHOUSE_HOST = "{{host}}"\nWAREHOUSE_PORT = "{server.getsockname()[1]}"'
        with group_of(tmp_path, source, toml=told) as group:
            group.start()
            server.settimeout(READY_WITHIN_S)
            link, _ = server.accept()
            with link:
                link.sendall(b"up")
            assert group.wait_ready(READY_WITHIN_S) == []


def _states(member: Member) -> set[str]:
    """Returns the letters of a member's processes."""
    return set(sampling.process(member.pid, None, set(), container=member.container_view).states)


SAYS = f"""
import os, signal, sys, time
signal.signal(getattr(signal, os.environ["STOPS"]), lambda *_: sys.exit(0))
signal.signal(signal.SIGINT if os.environ["STOPS"] == "SIGTERM" else signal.SIGTERM, signal.SIG_IGN)
print(os.environ["STOPS"], *sys.argv[1:], file=sys.stderr, flush=True)
print('{ASSIGNED}', flush=True)
time.sleep(600)
"""
OTHER = """
schema = 1
name = "other"
command = ["{python}", "main.py", "{protocol}", "{member}", "{incarnation}"]
env = { STOPS = "SIGINT" }
kafka = { protocol = "consumer" }
evidence = { events = "jsonl" }
stop = { signal = "INT", within_s = 5 }
ready = { log = "SIGINT consumer" }
claim = { delivery = "unclaimed" }
"""


def test_a_member_is_moved_to_another_consumer(tmp_path: Path) -> None:
    """Its command, environment, protocol, signal and readiness are those of the other then, also when it is started
    again; its lane and name stay, and its history says which it is. Who is not moved stays as it was."""
    (tmp_path / "other.toml").write_text(OTHER)
    other = spec_from_toml(tmp_path / "other.toml")
    toml = 'env = { STOPS = "SIGTERM" }'
    with group_on(None, tmp_path, SAYS, members=2, toml=toml, successors=[other]) as group:
        group.start()
        assert group.wait_ready(READY_WITHIN_S) == []
        before = group.members[0]
        assert group.leave(before) < 5
        moved = group.move(before, other)
        assert (moved.name, moved.lane, moved.incarnation, moved.spec) == ("m0", before.lane, 1, other)
        assert group.wait_ready(READY_WITHIN_S) == []
        again = group.restart(moved)
        joining = group.join()
        assert group.wait_ready(READY_WITHIN_S) == []
        assert [one.spec.name for one in group.members] == ["other", "test", "other"]
        assert group.stop() == []
    said = {file.name: file.read_text().split() for file in (tmp_path / "run" / "logs").glob("*.stderr")}
    assert said["m0-0.stderr"] == said["m1-0.stderr"] == ["SIGTERM"]
    assert said["m0-2.stderr"] == ["SIGINT", "consumer", "m0", "2"]
    assert said[f"{joining.name}-0.stderr"] == ["SIGINT", "consumer", joining.name, "0"]
    names = [told(tmp_path, "m0", number)[0] for number in range(3)]
    assert [(one["consumer"], one["protocol"]) for one in names] == [
        ("test", "classic"),
        *([("other", "consumer")] * 2),
    ]
    assert again.incarnation == 2
