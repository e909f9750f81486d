"""A container's processes by its control group, as the kernel's files have it: literal ones here."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial.errors import UnjudgeableError
from kafka_trial.process import control_groups
from kafka_trial.process.control_groups import NO_LONGER, ContainerView, control_group_of

ID = "4f1e" * 16
FIRST = "9:pids:/docker/{id}\n6:freezer:/docker/{id}\n0::/\n"
SECOND = "0::/system.slice/docker-{id}.scope\n"
V1 = "37 31 0:34 {root} {at}/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer\n"
V2 = "41 31 0:38 {root} {at} rw,relatime - cgroup2 cgroup2 rw\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a folder in the place of /proc, beside one for control groups."""
    monkeypatch.setattr(control_groups, "PROC", tmp_path / "proc")
    return tmp_path


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("joined", "mounts", "root", "folder"),
    [
        (FIRST, V1, "/", f"freezer/docker/{ID}"),
        (FIRST, V1 + V2, "/", f"freezer/docker/{ID}"),  # both versions at once: the engine freezes by the first
        (FIRST, V1, "/docker", f"freezer/{ID}"),  # where only a part of the hierarchy is mounted
        (SECOND, V2, "/", f"system.slice/docker-{ID}.scope"),
        (SECOND, V1 + V2, "/", f"system.slice/docker-{ID}.scope"),
    ],
)
def test_the_control_group_is_found_where_it_is_mounted(
    joined: str, mounts: str, root: str, folder: str, machine: Path
) -> None:
    """In either version of the kernel's interface, whatever part of the hierarchy is mounted."""
    _write(machine / "proc/7/cgroup", joined.format(id=ID))
    _write(machine / "proc/self/mountinfo", mounts.format(root=root, at=machine / "groups"))
    _write(machine / "groups" / folder / "cgroup.procs", "7\n")
    assert control_group_of(7, container=ID) == machine / "groups" / folder


@pytest.mark.parametrize(
    ("joined", "root"),
    [
        ("0::/user.slice/session-1.scope\n", "/"),  # the number is another process's here: the engine is elsewhere
        (SECOND, "/another.slice"),
        (None, "/"),  # it is gone, or hidden
    ],
)
def test_what_cannot_be_seen_is_an_error(joined: str | None, root: str, machine: Path) -> None:
    """Nobody else's processes are taken for the container's."""
    if joined is not None:
        _write(machine / "proc/7/cgroup", joined.format(id=ID))
    _write(machine / "proc/self/mountinfo", V2.format(root=root, at=machine / "groups"))
    with pytest.raises(UnjudgeableError, match="process 7"):
        control_group_of(7, container=ID)


def test_processes_in_groups_below_are_the_containers_too(tmp_path: Path) -> None:
    """A container may make control groups of its own; of one that is gone there are none."""
    _write(tmp_path / "own" / "cgroup.procs", "7\n9\n")
    _write(tmp_path / "own" / "init.scope" / "cgroup.procs", "8\n")
    places = [ContainerView(tmp_path / "own"), ContainerView(tmp_path / "gone"), NO_LONGER]
    assert [place.processes() for place in places] == [[7, 8, 9], [], []]


@pytest.mark.parametrize(
    ("file", "text", "frozen"),
    [
        ("freezer.state", "FROZEN\n", True),
        ("freezer.state", "FREEZING\n", False),
        ("freezer.state", "THAWED\n", False),
        ("cgroup.events", "populated 1\nfrozen 1\n", True),
        ("cgroup.events", "populated 1\nfrozen 0\n", False),
        ("cgroup.procs", "7\n", False),  # a kernel that tells nothing of it
    ],
)
def test_only_what_the_kernel_calls_frozen_is(file: str, text: str, frozen: bool, tmp_path: Path) -> None:
    """One that is being frozen may still run."""
    _write(tmp_path / file, text)
    assert ContainerView(tmp_path).is_frozen() is frozen
