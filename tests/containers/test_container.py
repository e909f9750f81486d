"""What is asked of a container: to start, to say how it ended, to hold still, and to be killed whatever it does."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, SIGUSR1
from typing import Any

import pytest
from docker import DockerClient
from docker.errors import APIError

from engines import kill_engine, small_disk
from kafka_trial.containers import container as container_module
from kafka_trial.containers.container import NOT_FROZEN, Container, ContainerSpec
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.private_engine import private_engine
from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.nemesis import evidence, sampling
from kafka_trial.nemesis.samples import ProcessSnapshot
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import holds_for, wait_until
from shell_image import shell_image

ENDS_WITHIN_S = 20
SLEEPS = "exec sleep 600"


@dataclass
class Read:
    """What a container wrote, read by a thread each, and whether its end was seen."""

    out: bytes = b""
    err: bytes = b""
    ends: list[str] = field(default_factory=list)


@dataclass
class Containers:
    """Makes containers of a shell for one test."""

    client: DockerClient
    image: str
    threads: ThreadGroup
    made: list[Container] = field(default_factory=list)

    def make(self, shell: str, **options: Any) -> Container:
        """Returns one that runs a line of shell, not started yet."""
        name, labels = f"kafka-trial-test-{secrets.token_hex(4)}", {"kafka-trial-test": "1"}
        spec = ContainerSpec(name, self.image, "none", labels, ["sh", "-c", shell], **options)
        self.made.append(Container(self.client, spec, self.threads))
        return self.made[-1]

    def start(self, shell: str, **options: Any) -> Container:
        """Starts one; what it writes goes to the engine's log."""
        container = self.make(shell, **options)
        container.start()
        return container

    def read(self, container: Container) -> Read:
        """Starts one, and reads both of its streams to their ends."""
        read = Read()
        ends = []
        for name in ("out", "err"):
            reading, writing = os.pipe()
            ends.append(writing)
            self.threads.start(name, _read, read, name, reading)
        container.start(stdout=ends[0], stderr=ends[1])
        for writing in ends:
            os.close(writing)
        return read


def _read(read: Read, name: str, descriptor: int) -> None:
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        while part := stream.read(1 << 16):
            setattr(read, name, getattr(read, name) + part)
    read.ends.append(name)


@pytest.fixture
def containers(engine: DockerClient) -> Iterator[Containers]:
    """Makes containers, and takes them away; nothing of them is left."""
    with ThreadGroup("test") as threads:
        made = Containers(engine, shell_image(engine), threads)
        try:
            yield made
        finally:
            for container in made.made:
                container.remove()
    left = [name for one in engine.containers.list(all=True) if (name := one.name) in {c.spec.name for c in made.made}]
    assert left == []


@pytest.mark.parametrize(
    ("shell", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 128", 128),
        ("exit 255", 255),  # System.exit(-1) of a JVM: no signal has this number
        ("exit 200", 200),
        ("kill -9 $$; exec sleep 600", None),  # the first process is not killed from inside
    ],
)
def test_the_exit_code_is_that_of_a_process(containers: Containers, shell: str, code: int | None) -> None:
    """Also of one that ended before anybody looked at it: then nothing runs in it."""
    container = containers.start(shell)
    if code is None:
        assert holds_for(lambda: container.alive, for_s=0.5)
        container.kill()
    assert container.wait(within_s=ENDS_WITHIN_S) == (-SIGKILL if code is None else code)
    assert (container.alive, container.oom_killed, container.lost) == (False, False, None)
    assert _look(container).states == ()


@pytest.mark.parametrize(("trap", "code"), [("exit 7", 7), ("", -SIGKILL)])
def test_signals_reach_the_first_process(containers: Containers, trap: str, code: int) -> None:
    """One that handles it ends its own way; without a handler the kernel spares the first process of a container."""
    handles = f"trap '{trap}' TERM; " if trap else ""
    container = containers.make(f"{handles}echo up; while :; do sleep 0.1; done")
    read = containers.read(container)
    wait_until(lambda: read.out == b"up\n", within_s=ENDS_WITHIN_S, what="its word")
    container.signal(SIGTERM)
    if not trap:
        assert holds_for(lambda: container.alive, for_s=0.5)
        container.signal(SIGKILL)
    assert container.wait(within_s=ENDS_WITHIN_S) == code


def test_with_an_init_process_in_front_signals_end_a_program_without_handlers(containers: Containers) -> None:
    """`init = true` is the remedy for an image that ignores SIGTERM."""
    container = containers.start(SLEEPS, init=True)
    container.signal(SIGTERM)
    assert container.wait(within_s=ENDS_WITHIN_S) == -SIGTERM


def test_all_output_is_there_when_it_has_ended(containers: Containers) -> None:
    """Half a megabyte on each stream, bytes that are no text, no newline at the end; each stream gets its own."""
    line = "0123456789abcdef" * 16
    shell = f"i=0; while [ $i -lt 2000 ]; do echo {line}; echo {line} >&2; i=$((i+1)); done; printf '\\377\\000last'"
    container = containers.make(shell, logged=False)
    read = containers.read(container)
    assert container.wait(within_s=60) == 0
    wait_until(lambda: len(read.ends) == 2, within_s=1, what="the ends of both streams")
    assert read.err == f"{line}\n".encode() * 2000
    assert read.out == read.err + b"\xff\0last"


def test_one_that_ends_behind_a_reader_who_is_slow_is_not_said_to_have_ended_before(containers: Containers) -> None:
    """A full pipe holds its last lines: whoever saw it end too early would leave them out of the history."""
    reading, writing = os.pipe()
    container = containers.make("head -c 300000 /dev/zero; echo last", logged=False)
    container.start(stdout=writing)
    os.close(writing)
    wait_until(lambda: _engine_says(container)["Running"] is False, within_s=ENDS_WITHIN_S, what="the engine to know")
    assert container.alive
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    assert (len(said), said[-5:]) == (300005, b"last\n")
    assert container.wait(within_s=ENDS_WITHIN_S) == 0


def test_a_reader_that_has_gone_blocks_nobody(containers: Containers) -> None:
    """Nobody reads what it writes without end: it can still be killed, and no thread or descriptor is left."""
    containers.start("exit").wait(within_s=ENDS_WITHIN_S)  # opens what all share
    before = _settled()
    for _ in range(3):
        reading, writing = os.pipe()
        container = containers.make("exec yes", logged=False)
        container.start(stdout=writing)
        os.close(writing)
        os.close(reading)
        container.kill()
        assert container.wait(within_s=ENDS_WITHIN_S) == -SIGKILL
        container.remove()
    wait_until(lambda: _settled() <= before, within_s=10, what=f"{before} again", detail=lambda: str(_settled()))


def test_streams_closed_by_a_program_that_lives_on_are_no_end(containers: Containers) -> None:
    """What it said is there, and it runs until it is killed; the engine holds its streams open until then."""
    container = containers.make(f"echo bye; exec >&- 2>&-; {SLEEPS}", logged=False)
    read = containers.read(container)
    wait_until(lambda: read.out == b"bye\n", within_s=ENDS_WITHIN_S, what="its word")
    assert container.alive
    container.kill()
    assert container.wait(within_s=ENDS_WITHIN_S) == -SIGKILL
    wait_until(lambda: len(read.ends) == 2, within_s=5, what="the ends of both streams")


def test_a_frozen_one_is_seen_to_stand_still_and_a_thawed_one_to_go_on(containers: Containers) -> None:
    """By the kernel's word, all of its processes; the evidence of a pause follows from that."""
    container = containers.start("while :; do :; done & while :; do :; done")
    wait_until(lambda: len(_look(container).states) == 2, within_s=ENDS_WITHIN_S, what="two processes")
    before = _look(container)
    container.signal(SIGSTOP)
    container.signal(SIGSTOP)  # twice is once
    inside = [_look(container), _look(container)]
    seen = evidence.paused(before, inside)
    assert (_is_frozen(container), seen.took_effect) == (True, True)
    assert seen.message == f"process {container.pid} was frozen with its container, used no CPU"
    container.signal(SIGCONT)
    container.signal(SIGCONT)
    assert not _is_frozen(container)
    wait_until(lambda: _look(container).cpu_s > inside[-1].cpu_s, within_s=10, what="it to compute again")
    assert not evidence.paused(before, [_look(container), _look(container)]).took_effect


def test_one_that_the_kernel_does_not_freeze_at_once_is_frozen_later(
    containers: Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads wait for a disk, or for their turn: runc gives up after a while, and is asked again."""
    container = containers.start(SLEEPS)
    freeze, refusals = container._container.pause, [APIError("500", explanation=f"OCI runtime pause: {NOT_FROZEN}")] * 2

    def refused() -> None:
        if refusals:
            raise refusals.pop()
        freeze()

    monkeypatch.setattr(container._container, "pause", refused)
    container.signal(SIGSTOP)
    assert (refusals, _is_frozen(container)) == ([], True)


def test_one_that_the_kernel_never_freezes_is_told(containers: Containers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not paused, and whoever asked for it must know; another refusal is told at once."""
    container, said = containers.start(SLEEPS), [NOT_FROZEN]

    def refused() -> None:
        raise APIError("500", explanation=said[0])

    monkeypatch.setattr(container._container, "pause", refused)
    monkeypatch.setattr(container_module, "FROZEN_WITHIN_S", 0.2)
    with pytest.raises(WaitTimeout, match=f"waited 0.2 s for container .* to be frozen, in vain.*{NOT_FROZEN}"):
        container.signal(SIGSTOP)
    said[0] = "no such runtime"
    with pytest.raises(UnjudgeableError, match="cannot be signalled: no such runtime"):
        container.signal(SIGSTOP)


def test_a_frozen_one_can_be_killed_each_time(containers: Containers) -> None:
    """The engine thaws what it kills, sooner or later than we ask it to."""
    for _ in range(8):
        container = containers.start(SLEEPS)
        before = _look(container)
        container.signal(SIGSTOP)
        container.kill()
        code = container.wait(within_s=ENDS_WITHIN_S)
        assert evidence.killed(before, _look(container, code)).took_effect
    container.kill()  # once more is no error


def test_one_that_is_frozen_while_it_is_killed_dies(containers: Containers) -> None:
    """Two threads: a fault freezes a member just when a crash point kills it."""
    for _ in range(5):
        container = containers.start(SLEEPS)
        with ThreadGroup("two") as threads:
            threads.start("freezes", container.signal, SIGSTOP)
            threads.start("kills", container.kill)
        assert container.wait(within_s=ENDS_WITHIN_S) == -SIGKILL


@pytest.mark.parametrize("number", [SIGSTOP, SIGUSR1, SIGKILL])
def test_a_signal_at_the_end_is_no_error(containers: Containers, number: int) -> None:
    """The engine knows that it has ended before we do."""
    for _ in range(4):
        container = containers.start("trap : USR1; sleep 0.05")
        while container.alive:
            container.signal(number)
            container.signal(SIGCONT)
        assert container.wait(within_s=ENDS_WITHIN_S) in (0, -SIGKILL)


def test_the_processes_of_one_that_has_ended_are_not_taken_from_the_next(containers: Containers) -> None:
    """The kernel gives the number of a pid namespace to the next one at once, unless somebody holds it."""
    first = containers.start(SLEEPS)
    before = _look(first)
    first.kill()
    code = first.wait(within_s=ENDS_WITHIN_S)
    others = [containers.start(SLEEPS) for _ in range(3)]
    assert first.container_view is not None
    assert first.container_view.processes() == []
    assert evidence.killed(before, _look(first, code)).took_effect
    assert [len(_look(other).states) for other in others] == [1, 1, 1]


def test_one_that_had_ended_before_anybody_looked_has_no_processes(containers: Containers) -> None:
    """Its pid is 0 then, which as a process group is that of the kernel's threads: nothing was started in its place."""
    looks = []
    while not any(look.pid == 0 for look in looks):
        container = containers.start("exit 1")
        looks.append(_look(container, container.wait(within_s=ENDS_WITHIN_S)))
        assert len(looks) < 50
    before = ProcessSnapshot(0, 4711, ("S",))
    assert [evidence.replaced(before, look).took_effect for look in looks] == [False] * len(looks)


@pytest.mark.parametrize("told", [True, False])
def test_what_wants_more_memory_than_its_limit_is_said_to_have(
    containers: Containers, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    """Killed by the kernel; nobody else: also where the engine has missed it, which happens on a busy machine."""
    if not told:
        _says_nothing_of_memory(containers.client, monkeypatch)
    container = containers.start("x=a; while :; do x=$x$x; done", memory_bytes=16 * 1024 * 1024)
    assert container.wait(within_s=60) == -SIGKILL
    assert container.oom_killed
    modest = containers.start("exit 0", memory_bytes=16 * 1024 * 1024)
    assert (modest.wait(within_s=ENDS_WITHIN_S), modest.oom_killed) == (0, False)


def test_the_engine_is_believed_where_its_first_process_ended_otherwise(
    containers: Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel killed another process of the container: the engine alone knows."""
    inspect = containers.client.api.inspect_container
    state = {"State": {"OOMKilled": True, "Pid": 0}, "NetworkSettings": {"Networks": None}}
    monkeypatch.setattr(containers.client.api, "inspect_container", lambda name: inspect(name) | state)
    container = containers.start("exit 3", memory_bytes=16 * 1024 * 1024)
    assert (container.wait(within_s=ENDS_WITHIN_S), container.oom_killed) == (3, True)


def test_a_limit_alone_makes_no_want_of_memory(containers: Containers) -> None:
    """Killed by somebody's hand; the kernel has killed nothing."""
    container = containers.start(SLEEPS, memory_bytes=16 * 1024 * 1024)
    containers.client.api.kill(container.id, SIGKILL)
    assert (container.wait(within_s=ENDS_WITHIN_S), container.oom_killed) == (-SIGKILL, False)


def test_the_kernel_has_been_told_its_limits(containers: Containers) -> None:
    """Half a processor and 64 MiB, as its control group has them: of the one hierarchy, or of several."""
    places = {"cpu.max": "cpu/cpu.cfs_quota_us", "memory.max": "memory/memory.limit_in_bytes"}
    shell = "; ".join(f"cat /sys/fs/cgroup/{new} || cat /sys/fs/cgroup/{old}" for new, old in places.items())
    container = containers.make(shell, cpus=0.5, memory_bytes=1 << 26)
    read = containers.read(container)
    assert container.wait(within_s=ENDS_WITHIN_S) == 0
    wait_until(lambda: len(read.ends) == 2, within_s=1, what="the ends of both streams")
    assert [line.split()[0] for line in read.out.decode().splitlines()] == ["50000", str(1 << 26)]


def test_started_again_it_has_its_own_data(containers: Containers, tmp_path: Path) -> None:
    """Another process in the same file system, with the same mounts; the flags of its last end are gone."""
    tmp_path.chmod(0o777)
    shell = "echo x >> /tmp/own; echo x >> /mounted/own; cat /tmp/own /mounted/own; exec sleep 600"
    container = containers.make(shell, mounts={str(tmp_path): "/mounted"})
    pids = []
    for count in (1, 2):
        container.start()
        pids.append(container.pid)
        words = "\n".join("x" * 2 * sum(range(count + 1))) if count == 2 else "x\nx"
        wait_until(
            lambda: container.last_words(lines=20) == words,  # noqa: B023
            within_s=10,
            what="its words",
            detail=lambda: container.last_words(lines=20),
        )
        assert (container.alive, container.exit_code) == (True, None)
        container.kill()
        assert container.wait(within_s=ENDS_WITHIN_S) == -SIGKILL
    assert pids[0] != pids[1]
    assert (tmp_path / "own").read_text() == "x\nx\n"


def test_of_one_that_writes_without_end_the_engine_keeps_the_last_only(containers: Containers) -> None:
    """Ten megabytes, where it keeps any: its disk is everybody's."""
    container = containers.start("head -c 25000000 /dev/zero | tr '\\000' x | fold -w 1000; echo; echo last")
    assert container.wait(within_s=60) == 0
    assert container.last_words(lines=1) == "last"
    place = _inspect(container)["LogPath"]
    size = sum(one.stat().st_size for one in Path(place).parent.glob("*-json.log*"))
    assert size < 11_000_000
    unlogged = containers.make("echo x", logged=False)
    unlogged.start()
    assert unlogged.wait(within_s=ENDS_WITHIN_S) == 0
    assert _inspect(unlogged)["LogPath"] == ""


def test_removed_twice_is_removed(containers: Containers) -> None:
    """One that runs is ended; what is asked of it afterwards has an answer."""
    container = containers.start(SLEEPS)
    container.remove()
    container.remove()
    assert container.wait(within_s=ENDS_WITHIN_S) == -SIGKILL
    container.kill()
    with pytest.raises(UnjudgeableError, match=r"the log of container .* cannot be read: No such container"):
        container.last_words()


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"image": "kafka-trial/nowhere:1"}, r"image kafka-trial/nowhere:1 .*the engine has no such image; pull"),
        ({"network": "nowhere"}, r"cannot be started: network nowhere not found"),
        ({"command": ["/no/such/program"]}, r"cannot be started: .*/no/such/program.*no such file"),
        ({"memory_bytes": 1000}, r"cannot be made: Minimum memory limit"),
        ({"working_dir": "relative"}, r"cannot be made: .*relative"),
    ],
)
def test_what_cannot_be_started_is_one_clear_error(
    containers: Containers, options: dict[str, Any], because: str
) -> None:
    """It names the container and its image, and the engine's reason."""
    with pytest.raises(StartError, match=because) as caught:
        _started(containers, options)
    assert "\n" not in str(caught.value)


def _started(containers: Containers, options: dict[str, Any]) -> None:
    name = f"kafka-trial-test-{secrets.token_hex(4)}"
    known = {"name": name, "image": containers.image, "network": "none", "labels": {}, "command": ["true"]}
    containers.made.append(Container(containers.client, ContainerSpec(**known | options), containers.threads))
    with open(os.devnull, "wb") as nowhere:
        containers.made[-1].start(stdout=nowhere.fileno())


@pytest.mark.usefixtures("can_start_engines")
def test_when_the_engine_is_gone_nobody_says_how_its_containers_ended() -> None:
    """A failure of the harness's surroundings is never taken for the program's own end."""
    with ThreadGroup("test") as threads, private_engine() as host:
        client = client_of(host)
        containers = Containers(client, shell_image(client), threads)
        container = containers.make(SLEEPS)
        read = containers.read(container)
        kill_engine(host)
        wait_until(lambda: not container.alive, within_s=30, what="the container to be lost")
        assert container.exit_code is None
        assert "is not known: the container engine does not answer" in str(container.lost)
        with pytest.raises(UnjudgeableError, match="is not known"):
            container.wait(within_s=1)
        container.kill()
        container.remove()
        wait_until(lambda: len(read.ends) == 2, within_s=10, what="the ends of both streams")


@pytest.mark.usefixtures("can_start_engines")
def test_one_that_fills_the_disk_of_its_engine_is_removed_with_what_it_wrote() -> None:
    """It hears of it like any program; what cannot be made meanwhile is one clear error; afterwards there is room."""
    with ThreadGroup("test") as threads, small_disk("100m") as disk, private_engine(kept=disk / "engine") as host:
        containers = Containers(client_of(host), shell_image(client_of(host)), threads)
        greedy = containers.make(f"cat /dev/zero > /tmp/full || echo full; {SLEEPS}")
        read = containers.read(greedy)
        wait_until(lambda: b"full\n" in read.out, within_s=60, what="the disk to be full")
        wait_until(lambda: b"No space left on device" in read.err, within_s=10, what="the other stream to say so")
        with pytest.raises(StartError, match=r"^container kafka-trial-test-\w+ of image .* cannot be .*no space left"):
            containers.start("exit 0")
        greedy.remove()
        assert greedy.wait(within_s=ENDS_WITHIN_S) == -SIGKILL
        again = containers.start("exit 0")
        assert again.wait(within_s=ENDS_WITHIN_S) == 0
        for container in containers.made:
            container.remove()


def _look(container: Container, code: int | None = None) -> ProcessSnapshot:
    return sampling.process(container.pid, code, set(), container=container.container_view)


def _inspect(container: Container) -> Any:
    return container._client.api.inspect_container(container.id)


def _engine_says(container: Container) -> Any:
    return _inspect(container)["State"]


def _settled() -> tuple[int, int]:
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def _is_frozen(container: Container) -> bool:
    assert container.container_view is not None
    return container.container_view.is_frozen()


def _says_nothing_of_memory(client: DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the engine's answers such as they are when it has missed that the kernel killed."""
    inspect = client.api.inspect_container

    def without(name: str) -> dict[str, Any]:
        answer: dict[str, Any] = inspect(name)
        answer["State"]["OOMKilled"] = False
        return answer

    monkeypatch.setattr(client.api, "inspect_container", without)
