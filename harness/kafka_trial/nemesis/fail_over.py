"""The fail-over: the group leaves its cluster for the mirror, and goes on there from positions that one of three ways
gives it. Judged from the members that ended, and from those that the coordinator of the mirror knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.nemesis.targets import resolve

TRANSLATED, RAW, BY_TIMESTAMP = "translated", "raw", "by-timestamp"
WAYS: Final = (TRANSLATED, RAW, BY_TIMESTAMP)


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
    """Ends all members and starts them on the mirror; the load goes on to their cluster, and MirrorMaker copies it.

    All at once: their connections are cut and they are killed, as when a cluster is lost; `planned`: they end as their
    consumer.toml says.

    `translated`: from the positions that MirrorMaker has written for the group. `raw`: from those of the source, as
    they are. `by-timestamp`: from the first records since `margin_s` before the members were asked to end.

    Raises:
        UnjudgeableError: the trial has no mirror.
    """
    mirror = injection.context.mirror
    if mirror is None:
        raise UnjudgeableError("there is no mirror to go to")
    injection.injected()
    done = mirror.fail_over(way, planned=planned, margin_s=margin_s)
    there = mirror.context_after(injection.context)
    injection.continue_on(there, resolve(there, None, role="all", rng=injection.rng, stop=injection.stop))
    injection.hold(lambda: None)
    words = "all members are in their group on the mirror" if done.joined else "not all members came to the mirror"
    yield Evidence(done.joined, words, {"way": way, **asdict(done)})
