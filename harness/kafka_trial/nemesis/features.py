"""The fault of features: a level is finalised for the whole cluster, judged from what each broker answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kafka_trial.errors import WaitTimeout
from kafka_trial.kafka_protocol.cluster_changes import FeatureUpdate, Update
from kafka_trial.kafka_protocol.connection import NoAnswerError
from kafka_trial.nemesis import evidence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.fault import fault
from kafka_trial.nemesis.injection import Injection
from kafka_trial.process.waiting import wait_until

NEVER: Final = "kraft.version"
TAKEN_WITHIN_S = 15.0  # a node that has just been started registers some seconds later than it serves
KNOWN_WITHIN_S = 15.0


def _problems(options: Mapping[str, Any]) -> list[str]:
    if options.get("feature") == NEVER:
        return [f"{NEVER} is never finalised: static voters would become dynamic for good (KAFKA-21426)"]
    return []


@fault("finalise-feature", targets=("all",), scope="brokers", heals=True, consequences=(), check=_problems)
def finalise_feature(injection: Injection, *, feature: str = "group.version", level: int = 1) -> Iterator[Evidence]:
    """Finalises a level of one feature, by name, for all brokers: raises it, or lowers it; it stays so."""
    level = int(level)
    before = injection.features("before", feature)
    lowers = max(before.levels.values(), default=0) > level
    update = FeatureUpdate(feature, level, Update.SAFE_DOWNGRADE if lowers else Update.UPGRADE)
    if refusals := _refusals(injection, update):
        yield Evidence(False, "; ".join(refusals), {"feature": feature, "level": level})
        return
    injection.context.cluster.ruin(f"{feature} was set to {level}")
    brokers = sorted(injection.context.cluster.brokers)
    inside = injection.hold_until(
        lambda: injection.features("inside", feature),
        lambda looks: evidence.feature_finalised(before, looks, level, brokers=brokers).took_effect,
        within_s=KNOWN_WITHIN_S,
    )
    yield evidence.feature_finalised(before, inside, level, brokers=brokers)


def _refusals(injection: Injection, update: FeatureUpdate) -> list[str]:
    """Asks until the controller takes an update, for a while; returns why it did not."""
    refusals: list[str] = []

    def taken() -> bool:
        try:
            refusals[:] = injection.context.finalise(update)
        except NoAnswerError as error:
            refusals[:] = [str(error)]
        return not refusals or injection.stop.is_set()

    what = f"{update.feature} {update.level} to be taken"
    with suppress(WaitTimeout):  # what was refused is the evidence
        wait_until(taken, within_s=TAKEN_WITHIN_S, what=what, every_s=0.5)
    return refusals
