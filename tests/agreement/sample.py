"""Drawn histories: of each planted deviation, and clean ones; and the same as heard by a harness that stood still."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from history_strategies import SINS, History, histories
from kafka_trial.history.event import Event

# Enough for both judges to find every anomaly twenty times: some deviations show several, some seldom show, or not
# where it is compared.
EXAMPLES_PER_SIN = 12
MORE_EXAMPLES = {
    24: ("skip", "zombie-low", "split-by-log", "past-end", "phantom"),
    32: ("below-floor", "storm", "unassigned", "outside"),
    36: ("corrupt", "dirty-read", "lost-commit", "crash-loop", "oom", "stale-epoch", "deaf"),
    42: ("invents", "torn", "late", "rogue", "hanging"),
    48: ("starve", "retry"),
    60: ("false-lag",),
    150: ("expired",),
}
EXAMPLES_OF = {sin: examples for examples, sins in MORE_EXAMPLES.items() for sin in sins}

Sample = list[History]


def every_kind(*, clean: int, per_sin: int | None = None, seed: int | None = None) -> Sample:
    """Returns so many clean histories, and so many of each planted deviation; None: as many as show every anomaly."""
    sinning = [history for sin in SINS for history in drawn(sin, per_sin or examples_of(sin), seed=seed)]
    return drawn(None, clean, seed=seed) + sinning


def examples_of(sin: str | None) -> int:
    """Returns how many histories of a deviation the sample holds."""
    return EXAMPLES_OF.get(sin or "", EXAMPLES_PER_SIN)


def drawn(sin: str | None, examples: int, *, seed: int | None = None) -> Sample:
    """Returns so many histories with one planted deviation (None: clean): always the same, or those of the seed."""
    sample: Sample = []

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(sins=(sin,)))
    def gather(history: History) -> None:
        sample.append(history)

    (gather if seed is None else seeded(seed)(gather))()
    return sample


def slept(history: History) -> History:
    """The same history, as a harness tells it that stood still from its first quarter to its last."""
    times = sorted(event.time_ns for event in history.events)
    begin_ns, end_ns = times[len(times) // 4], times[3 * len(times) // 4]
    run = [event for event in history.events if event.source == "run"]
    told = Event("run", 0, end_ns, "scheduling_delay", details={"delay_ns": end_ns - begin_ns, "every_ns": 0})
    run = sorted([*run, told], key=lambda event: event.time_ns)
    others = [event for event in history.events if event.source != "run"]
    return replace(history, events=[*others, *(replace(event, seq=seq) for seq, event in enumerate(run))])
