"""The protocols of the consumer under test: what a trial may ask of it and do to it.

`ConsumerSpec` is its consumer.toml as a frozen value; `process.py` makes members of processes on this machine. A
`Group` here is the thing under trial, all members of it; Kafka's consumer group has its name in their settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kafka_trial.cluster.cluster import Lane
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.consumers.spec_toml import spec_from_toml
from kafka_trial.containers.network import ContainerNetwork
from kafka_trial.process.control_groups import ContainerView

__all__ = ["ConsumerSpec", "Group", "Member", "MemberFailure", "spec_from_toml"]


class Member(Protocol):
    """One incarnation of one member: a process with a lane of its own. `name` is m0, m1, … for all incarnations."""

    @property
    def name(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def lane(self) -> Lane: ...
    @property
    def spec(self) -> ConsumerSpec:
        """The consumer.toml that it was started by."""
        ...

    @property
    def incarnation(self) -> int: ...
    @property
    def started_with(self) -> frozenset[int]:
        """The brokers whose addresses it was given when it was started."""
        ...

    @property
    def pid(self) -> int: ...
    @property
    def process_group(self) -> int: ...
    @property
    def container_view(self) -> ContainerView | None:
        """What this machine sees of its container; None: it is a process among ours."""
        ...

    @property
    def address(self) -> str | None:
        """The network address that it alone has; None: it shares ours."""
        ...

    @property
    def alive(self) -> bool: ...
    @property
    def exit_code(self) -> int | None:
        """Exit status; negative for a signal's number; None while it runs."""
        ...

    def signal(self, number: int) -> None:
        """Sends a signal to its process group."""
        ...

    def kill(self) -> None:
        """Kills its process group with -9."""
        ...


NEVER_ASSIGNED = "never-assigned"


@dataclass(frozen=True)
class MemberFailure:
    """What a member did that no consumer may do on a healthy cluster; `what` is the name of it."""

    member: str
    incarnation: int
    what: str  # never-assigned | exited | never-stopped
    message: str


@dataclass(frozen=True)
class TargetCluster:
    """A cluster that a group may move to: `name` is what the history calls it, `topics` what theirs are called there;
    a lane for each that there was. `group_size` asks the coordinator there. `network`: that of its containers, for
    members of an image."""

    name: str
    lanes: Sequence[Lane]
    topics: Sequence[str]
    group_size: Callable[[], int | None]
    network: ContainerNetwork | None = None


class Group(Protocol):
    """The members under trial. A member handed in may be of an older incarnation: its name finds the current one."""

    @property
    def members(self) -> Sequence[Member]:
        """The current incarnation of every member, by index; one that ended stays listed, not alive."""
        ...

    @property
    def specs(self) -> Sequence[ConsumerSpec]:
        """What its members may be started by: the consumer under trial, and the successors it moves to, in turn."""
        ...

    @property
    def size(self) -> int:
        """How many members the group was given; one of a higher index is an extra member, who joined later."""
        ...

    @property
    def events(self) -> Sequence[Path]:
        """The history files of all incarnations so far."""
        ...

    @property
    def deserted(self) -> bool:
        """Whether all members have ended by themselves: nobody starts them again."""
        ...

    @property
    def last_words(self) -> str:
        """What a member wrote last, as a clause that names it: the first member that wrote anything."""
        ...

    def start(self) -> None:
        """Starts all members at once."""
        ...

    def wait_ready(self, within_s: float, *, alive: Callable[[], str | None] | None = None) -> list[MemberFailure]:
        """Waits until every member is ready as the spec says; returns who is not, empty when all are.

        `alive` ends the wait as it does that of `waiting.wait_until`.
        """
        ...

    def kill(self, member: Member) -> None:
        """kill -9 of its process group; waits until it is gone."""
        ...

    def pause(self, member: Member) -> None:
        """SIGSTOP to its process group."""
        ...

    def resume(self, member: Member) -> None:
        """SIGCONT to its process group."""
        ...

    def restart(self, member: Member) -> Member:
        """Starts its next incarnation (killing what still runs of the last) and returns it."""
        ...

    def move(self, member: Member, spec: ConsumerSpec) -> Member:
        """Starts its next incarnation as another consumer.toml says, one of `specs`, and returns it."""
        ...

    def join(self) -> Member:
        """Starts a further member on a lane of its own and returns it."""
        ...

    def leave_all(self) -> None:
        """Has all members stop as the spec says, at once, and kills those that do not."""
        ...

    def move_to_cluster(self, place: TargetCluster) -> None:
        """Starts the next incarnations of all members, which have ended, on another cluster."""
        ...

    def leave(self, member: Member) -> float:
        """Has it stop as the spec says, kills it when it does not, and returns the seconds it took."""
        ...

    def exits(self) -> list[MemberFailure]:
        """Returns who has exited by itself so far, of all incarnations."""
        ...

    def stop(self) -> list[MemberFailure]:
        """Has all members stop as the spec says; returns who had to be killed, and who had exited before."""
        ...
