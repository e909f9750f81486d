"""Notes: what whoever reads a verdict should know, and what decides nothing.

Where consumer.toml says another time-out than the brokers were told, the brokers' word was taken; partitions that got
few records after they were last assigned have shown little of that assignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_trial.invariants.bounds import FRESH_MIN
from kafka_trial.invariants.rows import NOWHERE

if TYPE_CHECKING:
    from kafka_trial.invariants.trial_context import TrialContext
    from kafka_trial.judge.judge import Judgement


def notes_of(judgement: Judgement) -> list[str]:
    """Returns what is worth knowing about a judgement, as sentences."""
    return [*_contradictions(judgement.trial_context), *_fresh(judgement)]


def _contradictions(trial_context: TrialContext) -> Iterator[str]:
    """Yields where the brokers were told something else than consumer.toml declares."""
    settings, told = trial_context.settings, trial_context.told
    pairs = {
        "protocol": (settings.protocol, told.protocol),
        "session_timeout_s": (settings.session_timeout_s, told.session_timeout_s),
        "poll_interval_s": (settings.poll_interval_s, told.rebalance_timeout_s),
    }
    for name, (declared, heard) in pairs.items():
        if name in settings.declared and heard is not None and heard != declared:
            told_s = f"the brokers were told {_shown(heard)}, which counts"
            yield f"consumer.toml declares [kafka] {name} = {_shown(declared)}; {told_s}"


def _fresh(judgement: Judgement) -> Iterator[str]:
    """Yields how many partitions got fewer records than it takes since a member last got them."""
    trial_context, slices = judgement.trial_context, judgement.slices
    if slices is None or trial_context.drain_ns is None or not trial_context.windows:
        return
    pairs = zip(slices["slice"].tolist(), slices["fresh"].tolist(), strict=True)
    few = {trial_context.slices[slice_][1]: count for slice_, count in pairs if count < FRESH_MIN}
    few = {partition: count for partition, count in few.items() if partition != NOWHERE}
    if few:
        named = ", ".join(f"{partition} ({count})" for partition, count in sorted(few.items()))
        yield f"fewer than {FRESH_MIN} records came since a member last got partition{'s' * (len(few) > 1)} {named}"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"
