"""What an upgrade is asked for: from which version to which, with which consumers; everything checked before anything
starts, the path first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kafka_trial.cluster.images import require_named_apart
from kafka_trial.cluster.versions import find_version, parse_release
from kafka_trial.compatibility.avoid import OpenFlaw, open_flaws
from kafka_trial.compatibility.feature_levels import defaults_of
from kafka_trial.compatibility.paths import ClusterState, Move, require_path
from kafka_trial.compatibility.way_back import WayBack, reversible_until
from kafka_trial.errors import InputError
from kafka_trial.scenario import Load, Scenario
from kafka_trial.trial.spec import TrialSpec, make_trial_spec
from kafka_trial.upgrade.successors import Chain, along

LOAD = Load(opening_burst=600, rate_per_s=100.0, records_max=1_000_000)  # nearly three hours: no stage outlasts it
SCENARIO = Scenario("upgrade", "the brokers become another version of Kafka, stage by stage", load=LOAD)
IN_PLACE, REPLACED = "in place", "replaced"
SHAPES = {"in-place": IN_PLACE, "replace": REPLACED}  # as the option has them
NO_GROUP = "none"  # the protocol of a consumer that is no member of a group


@dataclass(frozen=True)
class UpgradeRequest:
    """A move of a cluster between two versions, the trial of each consumer on it, by name, and what is known of the
    path without playing it; `shape`: whether brokers stay, or new ones take their place; `added`: how many partitions
    each topic gets in the end."""

    before: str
    after: str
    specs: Mapping[str, TrialSpec]
    seed: int
    out: Path
    way_back: WayBack
    open_flaws: Sequence[OpenFlaw] = ()
    shape: str = IN_PLACE
    added: int = 0

    @property
    def links(self) -> int:
        """The most successors that a consumer has."""
        return max((len(one.successors) for one in self.specs.values()), default=0)

    @property
    def in_containers(self) -> bool:
        """Whether the consumers are images: then the brokers are containers too."""
        return any(one.in_containers for one in self.specs.values())

    @property
    def lanes(self) -> int:
        """How many lanes all trials take together."""
        return sum(one.lanes for one in self.specs.values())


def make_upgrade_request(
    before: str,
    after: str,
    chains: Sequence[Chain],
    *,
    seed: int,
    out: Path,
    shape: str = IN_PLACE,
    added: int = 0,
    image: str | None = None,
) -> UpgradeRequest:
    """Returns what was asked for; `chains`: the consumers, each with the successors that its clients are moved to.
    `image`: put this one on trial in the place of what the file of the only consumer names.

    Raises:
        PathError: the path is not allowed; with every rule that refuses it.
        InputError: a version is not known, or a consumer is wrong, cannot be played on the first version, has the name
            of another, or is an image beside a command.
    """
    where = f"--from {before} --to {after}"
    old, new = parse_release(before), parse_release(after)
    require_path(Move(old, new), where=where)  # also of versions that cannot be played
    for option, version in (("--from", before), ("--to", after)):
        find_version(version, where=option)
    specs = _specs(chains, before, after, seed=seed, image=image)
    if any(one.in_containers for one in specs.values()):
        require_named_apart([before, after])
    levels = defaults_of(old)
    protocols = _protocols([one.consumer.kafka.protocol for one in specs.values()])
    later = _protocols([next_one.kafka.protocol for one in specs.values() for next_one in one.successors])
    state = ClusterState(levels, voters="static", formatted_by=old)
    exchanged: Literal["nothing", "brokers"] = "nothing" if shape == IN_PLACE else "brokers"
    move = Move(old, new, state, protocols=protocols, protocols_after=later, replaced=exchanged)
    require_path(move, where=where)
    way_back = reversible_until(old, new, levels)
    return UpgradeRequest(before, after, specs, seed, out, way_back, open_flaws(old, new), shape, added)


def _specs(
    chains: Sequence[Chain], before: str, after: str, *, seed: int, image: str | None
) -> Mapping[str, TrialSpec]:
    if image is not None and (len(chains) > 1 or chains[0].successors):
        raise InputError("--consumer-image", "stands for the image of one consumer: name the others' in their files")
    specs = [
        along(make_trial_spec(SCENARIO, one.consumer, kafka_version=before, seed=seed, image=image), one, after=after)
        for one in chains
    ]
    by_name = {one.consumer.name: one for one in specs}
    if len(by_name) < len(specs):
        raise InputError("--consumer", "two consumers have one name, which tells their stages apart: rename one")
    kinds = {one.in_containers: name for name, one in by_name.items()}
    if len(kinds) > 1:
        words = f"{kinds[True]} is an image, {kinds[False]} a command: they need other clusters; rehearse them apart"
        raise InputError("--consumer", words)
    return by_name


def _protocols(spoken: Sequence[str]) -> frozenset[str]:
    return frozenset(spoken) - {NO_GROUP}
