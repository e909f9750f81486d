"""A private engine leaves the machine as it was: its firewall, its links, its folders, its processes."""

from __future__ import annotations

import grp
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

import leaves_no_trace
from kafka_trial.cluster.images import image_for_toxiproxy
from kafka_trial.containers import private_engine
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.engine_folder import engine_folder, holder_of, host_of, key_of, log_of
from kafka_trial.containers.holder import OF_THE_MACHINE
from kafka_trial.errors import StartError
from kafka_trial.process.waiting import wait_until


@pytest.fixture
def namespace(can_start_engines: None, tmp_path: Path) -> Iterator[list[str]]:
    """Returns the command that enters a network namespace, where nobody else changes anything meanwhile."""
    place = tmp_path / "namespace"
    place.touch()
    subprocess.run(["unshare", f"--net={place}", "true"], check=True)
    try:
        yield ["nsenter", f"--net={place}", sys.executable, leaves_no_trace.__file__]
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.rotates
@pytest.mark.parametrize("then", ["end", "kill"])
def test_what_it_changes_is_as_before_when_its_starter_has_gone(namespace: list[str], then: str) -> None:
    """Another engine's chains, docker0 and the policy of FORWARD stay all the time; also after a kill -9."""
    starter = subprocess.Popen([*namespace, then], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert starter.stdin is not None
    assert starter.stdout is not None
    with starter:
        said = json.loads(starter.stdout.readline())
        before, up = said["before"], said["up"]
        folder = Path(said["host"].removeprefix("unix://")).parent
        assert len(_processes_of(folder)) >= 4  # its holder, dockerd, containerd, the shim of a container
        control_groups = len(_control_groups_of(folder))
        starter.stdin.close()
    assert {name for name in before if up[name] != before[name]} >= {"addresses", "routes"}
    assert control_groups > 0
    assert (up["forwarding"], up["mounts"]) == (before["forwarding"], before["mounts"])
    assert set(before["rules"].splitlines()) <= set(up["rules"].splitlines())
    wait_until(
        lambda: not _processes_of(folder) and _seen(namespace) == before and not folder.exists(),
        within_s=20,
        what="nothing of the engine to be left",
        detail=lambda: f"{_processes_of(folder)}, {_seen(namespace)} instead of {before}",
    )
    assert _control_groups_of(folder) == []
    assert not log_of(folder).exists()


@pytest.mark.usefixtures("can_start_engines")
def test_the_engine_of_make_dockerd_stays_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started twice it is the same one, which also `connect` finds; stopped twice is no error."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as cache:  # a test's own folder is too deep for a socket
        monkeypatch.setenv("KAFKA_TRIAL_CACHE", cache)
        host = host_of(engine_folder())
        try:
            assert [private_engine.main(["start"]), private_engine.main(["start"])] == [0, 0]
            assert private_engine.main(["status"]) == 0
            assert capsys.readouterr().out.count(f"export DOCKER_HOST={host}\n") == 3
        finally:
            assert private_engine.main(["stop"]) == 0
        assert [private_engine.main(["stop"]), private_engine.main(["status"])] == [0, 3]
        assert holder_of(engine_folder()) is None
        assert _processes_of(engine_folder()) == []


def test_the_group_of_docker_passes_to_the_socket_where_no_folder_above_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker's own rule: who is in the group uses the engine. A closed folder above is named."""
    monkeypatch.setattr(private_engine, "GROUP", grp.getgrgid(os.getegid()).gr_name)
    folder = tmp_path / "engine"
    folder.mkdir(mode=0o700)
    private_engine.let_group_in(folder)
    assert (folder.stat().st_gid, stat.S_IMODE(folder.stat().st_mode)) == (os.getegid(), 0o710)
    tmp_path.chmod(0o600)
    closed = f"{tmp_path} lets nobody pass"
    told = private_engine.reached_by(folder)
    tmp_path.chmod(0o711)
    assert (closed in told or "lets nobody pass" in told, closed in private_engine.reached_by(folder)) == (True, False)
    monkeypatch.setattr(private_engine, "GROUP", "no-such-group")
    assert private_engine.reached_by(folder) == "only its owner reaches it: there is no group no-such-group"


@pytest.mark.usefixtures("can_start_engines")
@pytest.mark.rotates
def test_what_a_killed_holder_left_goes_with_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dockerd dies with it, and the bridge of a network stays until dockerd starts in that folder again."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as cache:
        monkeypatch.setenv("KAFKA_TRIAL_CACHE", cache)
        try:
            network = client_of(private_engine.start()).networks.create("kafka-trial-test", driver="bridge")
            holder = holder_of(engine_folder())
            assert holder is not None
            holder.kill()
            gone = "the processes of a killed holder to be gone"
            wait_until(lambda: not _processes_of(engine_folder()), within_s=20, what=gone)
            assert _has_link(f"br-{network.id[:12]}")
            assert client_of(private_engine.start()).networks.list(names=["kafka-trial-test"]) == []
            assert not _has_link(f"br-{network.id[:12]}")
        finally:
            private_engine.stop()


@pytest.mark.usefixtures("can_start_engines")
@pytest.mark.rotates
def test_a_folder_has_one_engine_and_keeps_its_images() -> None:
    """A second one is refused while the first is there; the next one finds what the first has made."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as folder:
        kept = Path(folder) / "engine"
        with private_engine.private_engine(kept=kept) as host:
            client_of(host).api.import_image_from_data(bytes(1024), repository="empty", tag="1")
            with pytest.raises(StartError, match="is in use"), private_engine.private_engine(kept=kept):
                pass
        with private_engine.private_engine(kept=kept) as host:
            assert [image.tags for image in client_of(host).images.list()] == [["empty:1"]]


@pytest.mark.usefixtures("can_start_engines")
@pytest.mark.rotates
def test_one_that_starts_while_another_clears_up_in_its_folder_keeps_its_bridge() -> None:
    """The session of a test that ends meets the next one that begins."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as folder:
        kept = Path(folder) / "engine"
        with private_engine.private_engine(kept=kept):
            ending = holder_of(kept)
            assert ending is not None
            ending.terminate()
            wait_until(
                lambda: holder_of(kept) is None, within_s=20, what="the first to begin to clear up", every_s=0.01
            )
            with private_engine.private_engine(kept=kept):
                ending.wait(30)
                assert _has_link(key_of(kept))


@pytest.mark.usefixtures("can_start_engines")
@pytest.mark.rotates
def test_two_engines_stand_side_by_side_and_the_first_may_go() -> None:
    """The folders of the machine that both cover with their own stay until the last one has gone."""
    with ExitStack() as second, ExitStack() as first:
        first.enter_context(private_engine.private_engine())
        host = second.enter_context(private_engine.private_engine())
        dockerd = int((Path(host.removeprefix("unix://")).parent / "dockerd.pid").read_text())
        first.close()
        mounted = {line.split()[1] for line in Path(f"/proc/{dockerd}/mounts").read_text().splitlines()}
        assert {str(place) for place in OF_THE_MACHINE} <= mounted
        client = client_of(host)
        assert client.containers.run(image_for_toxiproxy(client), detach=True).status == "created"


def test_who_is_not_root_and_has_no_dockerd_is_told_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the packages to install, and the engine that needs neither."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartError, match="only root can start one") as caught, private_engine.private_engine():
        pass
    assert "`apt-get install docker.io iptables iproute2 util-linux`" in str(caught.value)


@pytest.mark.usefixtures("can_start_engines")
def test_a_dockerd_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its last words are in the error, and nothing of it is left."""
    broken = tmp_path / "dockerd"
    broken.write_text("#!/bin/sh\necho no room on this device >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = set(Path(tempfile.gettempdir()).glob("kafka-trial-engine-*"))
    with pytest.raises(StartError, match=r"no room on this device.*exited with 3"), private_engine.private_engine():
        pass
    assert set(Path(tempfile.gettempdir()).glob("kafka-trial-engine-*")) <= before


def _has_link(name: str) -> bool:
    return subprocess.run(["ip", "link", "show", name], capture_output=True).returncode == 0


def _seen(namespace: list[str]) -> Any:
    return json.loads(subprocess.check_output([*namespace, "look"], text=True))


def _control_groups_of(folder: Path) -> list[Path]:
    top = Path("/sys/fs/cgroup")
    return [*top.glob(key_of(folder)), *top.glob(f"*/{key_of(folder)}")]


def _processes_of(folder: Path) -> list[str]:
    commands = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [command for command in commands if str(folder) in command]
