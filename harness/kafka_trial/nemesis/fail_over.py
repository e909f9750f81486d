"""The fail-over: the group leaves its cluster for the mirror, and goes on there from positions that one of three ways
gives it; and the way back. Judged from the members that ended, and from those that the coordinator there knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis.context import FaultContext, MirrorTarget
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.samples import FailOverOutcome
from kafka_trial.nemesis.targets import resolve

TRANSLATED, RAW, BY_TIMESTAMP, LEFT = "translated", "raw", "by-timestamp", "left"
WAYS: Final = (TRANSLATED, RAW, BY_TIMESTAMP)
WAYS_BACK: Final = (LEFT, BY_TIMESTAMP)  # MirrorMaker translates nothing to where a record comes from


def _consequences(options: Mapping[str, Any]) -> Collection[Consequence]:
    return [Consequence.STOPS] if options["planned"] else [Consequence.KILLS, Consequence.LOSES_ANSWERS]


@fault(
    "fail-over",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=_consequences,
    choices={"way": WAYS},
)
def fail_over(
    injection: Injection, *, way: str = TRANSLATED, planned: bool = False, margin_s: float = 0.0
) -> Iterator[Evidence]:
    """Ends all members and starts them on the mirror; the load stays at the source, and MirrorMaker copies it.

    All at once: their connections are cut and they are killed, as when a cluster is lost; `planned`: they end as their
    consumer.toml says.

    `translated`: from the positions that MirrorMaker has written for the group. `raw`: from those of the source, as
    they are. `by-timestamp`: from the first records since `margin_s` before the members were asked to end.

    Raises:
        UnjudgeableError: the trial has no mirror.
    """
    mirror = _mirror_of(injection)
    injection.injected()
    done = mirror.fail_over(way, planned=planned, margin_s=margin_s)
    yield _gone_on(injection, mirror.context_after(injection.context), done, way, "on the mirror")


@fault(
    "fail-back",
    targets=("all",),
    scope="members",
    heals=True,
    consequences=(Consequence.STOPS,),
    choices={"way": WAYS_BACK},
)
def fail_back(injection: Injection, *, way: str = LEFT, margin_s: float = 0.0) -> Iterator[Evidence]:
    """Ends all members as their consumer.toml says, and starts them on their first cluster again.

    `left`: from the positions that they had left there. `by-timestamp`: from the first records since `margin_s` before
    the members were asked to end.

    Raises:
        UnjudgeableError: the trial has no mirror, or the group is not there.
        WaitTimeout: the group was not empty on its first cluster in time.
    """
    mirror = _mirror_of(injection)
    injection.injected()
    done = mirror.fail_back(way, margin_s=margin_s)
    yield _gone_on(
        injection, mirror.context_after(injection.context, back=True), done, way, "back on their first cluster"
    )


def _mirror_of(injection: Injection) -> MirrorTarget:
    if injection.context.mirror is None:
        raise UnjudgeableError("there is no mirror to go to")
    return injection.context.mirror


def _gone_on(injection: Injection, there: FaultContext, done: FailOverOutcome, way: str, where: str) -> Evidence:
    """Holds the step where the group has gone on."""
    injection.continue_on(there, resolve(there, None, role="all", rng=injection.rng, stop=injection.stop))
    injection.hold(lambda: None)
    words = f"all members are in their group {where}" if done.joined else f"not all members came to be {where}"
    return Evidence(done.joined, words, {"way": way, **asdict(done)})
