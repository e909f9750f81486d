"""Which levels are finalised after an upgrade, by name and in which order.

Never by a release version (`kafka-features upgrade --release-version`): from 4.1 on that raises kraft.version too, and
static voters become dynamic for good (KAFKA-21426). metadata.version comes first: the levels of other features may need
one (KIP-1022; in the tables eligible.leader.replicas.version 1 does). transaction.version is its own step, so that a
transaction can be open across it; eligible.leader.replicas.version comes after it, because from then on
min.insync.replicas is the cluster's and no single broker's, which what follows has to live with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kafka_trial.cluster.versions import Release
from kafka_trial.compatibility.feature_levels import METADATA, defaults_of, feature_levels, level_name
from kafka_trial.errors import UnjudgeableError

TRANSACTIONS: Final = "transaction.version"
ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
ORDER: Final = (METADATA, "group.version", TRANSACTIONS, ELIGIBLE_LEADERS, "share.version", "streams.version")
Levels = Mapping[str, tuple[int, int]]  # by feature the lowest and the highest that a broker supports


@dataclass(frozen=True)
class Raise:
    """A feature whose level is raised, from which level to which."""

    feature: str
    before: int
    level: int

    def __str__(self) -> str:
        was = level_name(self.feature, self.before).removeprefix(f"{self.feature} ")
        return f"{self.feature} {was} → {level_name(self.feature, self.level).removeprefix(f'{self.feature} ')}"


def levels_to_raise(after: Release, finalised: Mapping[str, int], supported: Mapping[int, Levels]) -> tuple[Raise, ...]:
    """Returns what is raised after all brokers are of a release, one after the other.

    Up to what a new cluster of it has, but for kraft.version. `finalised`: the levels in force, a feature that is not
    among them is at 0; `supported`: what each broker answers, by its id.

    Raises:
        UnjudgeableError: a broker does not support such a level: it is still of the version before.
        InputError: nothing is known of the features of the release.
    """
    wanted = {name: level for name, level in defaults_of(after).items() if level > finalised.get(name, 0)}
    lacking = [
        f"broker {broker} supports {level_name(name, levels.get(name, (0, 0))[1])} at most, not "
        f"{level_name(name, level)}"
        for broker, levels in sorted(supported.items())
        for name, level in wanted.items()
        if levels.get(name, (0, 0))[1] < level
    ]
    if lacking:
        raise UnjudgeableError(f"not all brokers are of {after} yet: {'; '.join(lacking)}")
    return tuple(Raise(name, finalised.get(name, 0), wanted[name]) for name in _in_order(wanted, finalised))


def _in_order(wanted: Mapping[str, int], finalised: Mapping[str, int]) -> Iterator[str]:
    """Yields features in their order, those that the order does not know last; each after what its level needs."""
    now, left = dict(finalised), sorted(wanted, key=lambda name: (_place(name), name))
    while left:
        ready = next((name for name in left if _has_what_it_needs(name, wanted[name], now)), None)
        if ready is None:
            raise UnjudgeableError(f"a level that another one needs is not finalised: {', '.join(left)}")
        now[ready] = wanted[ready]
        left.remove(ready)
        yield ready


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _has_what_it_needs(name: str, level: int, now: Mapping[str, int]) -> bool:
    known = feature_levels().get(name, {}).get(level)
    return known is None or all(now.get(needed, 0) >= least for needed, least in known.needs.items())
