"""Successors: what the clients of a group are moved to in an upgrade, and the stages in which they are moved.

    --consumer orders.toml=orders-cooperative.toml
    --consumer orders.toml=orders-both.toml=orders-cooperative.toml

The members of the first consumer are moved to the second one by one, and so on along the chain: an eager group becomes
a cooperative one in two steps, the first to clients that can do both (KIP-429). A classic group goes over to the
consumer protocol (KIP-848) and back as far as the brokers' group.consumer.migration.policy lets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_trial.errors import InputError
from kafka_trial.nemesis.fault import EACH_MEMBER, PREDECESSOR, SUCCESSOR
from kafka_trial.scenario import STABLE, Step
from kafka_trial.trial.spec import TrialSpec, with_successors
from kafka_trial.upgrade.stages import BETWEEN_S, KILLED_LATER, Stage

MOVE: Final = "move-client"
BETWEEN = "="
MOVED_FOR_S = 1.0  # looked at for so long before the group is waited for


@dataclass(frozen=True)
class Chain:
    """A consumer, and the successors that its members are moved to one after the other."""

    consumer: Path
    successors: tuple[Path, ...] = ()


# Groups of our own, by what they show: names of consumers, each with its successors.
OWN: Final = {
    "eager to cooperative, in two steps": (
        "kafka-verifiable-consumer",
        "kafka-verifiable-consumer/both-assignors",
        "kafka-verifiable-consumer/cooperative",
    ),
    "classic to consumer": ("python-at-least-once", "python-at-least-once/consumer-protocol"),
    "classic to consumer, static members": ("python-static-members", "python-static-members/consumer-protocol"),
}
# What no group survives: brokers refuse a member that shares no assignor with those that are there.
OWN_WRONG: Final = {"eager to cooperative, in one step": ("python-at-least-once", "python-at-least-once/cooperative")}


def parse_chain(text: str, find: Callable[[str], Path]) -> Chain:
    """Returns the consumer that an option names, with its successors; `find` returns the file of each name or path.

    Raises:
        InputError: a name is missing beside a "=", or names no consumer.
    """
    names = [text] if Path(text).exists() else text.split(BETWEEN)  # a path may hold the sign
    if not all(names):
        raise InputError("--consumer", f"{text!r} names nothing beside a {BETWEEN!r}; write CONSUMER=SUCCESSOR")
    first, *others = map(find, names)
    return Chain(first, tuple(others))


def along(trial_spec: TrialSpec, chain: Chain, *, after: str) -> TrialSpec:
    """Returns a trial's spec with the successors of its consumer; they are moved to on brokers of `after`.

    Raises:
        InputError: a successor is wrong, or claims or shows something else than the consumer; all problems at once.
    """
    return with_successors(trial_spec, chain.successors, kafka_version=after) if chain.successors else trial_spec


def moved_stages(version: str, links: int) -> Iterator[Stage]:
    """Yields the stages in which clients are moved along their chains, on brokers of a version, and back.

    `links`: the most successors that a consumer has. At first one member alone is moved, another is killed meanwhile,
    and it is moved back; then all go, link by link, one after the other.
    """
    if links:
        one = (_move("member:0", SUCCESSOR, 1), KILLED_LATER, _move("member:0", PREDECESSOR, 1))
        yield Stage("clients-mixed", "one member is its successor for a while, a member is killed", version, steps=one)
    for link in range(1, links + 1):
        steps = (_move(EACH_MEMBER, SUCCESSOR, link),)
        yield Stage(f"clients-moved-{link}", f"all members become successor {link}", version, steps=steps)
    for link in range(links, 0, -1):
        steps = (_move(EACH_MEMBER, PREDECESSOR, link),)
        yield Stage(f"clients-back-{link}", f"all members are taken back from successor {link}", version, steps=steps)


def own_steps(steps: Sequence[Step], trial_spec: TrialSpec) -> tuple[Step, ...]:
    """Returns those steps of a stage that a trial plays: not those that move its clients to successors it has not."""
    links = len(trial_spec.successors)
    return tuple(one for one in steps if one.fault != MOVE or one.options["link"] <= links)


def _move(target: str, to: str, link: int) -> Step:
    return Step(MOVE, target, at_s=BETWEEN_S, for_s=MOVED_FOR_S, options={"to": to, "link": link}, after=STABLE)
