"""Quiet consumers: what must be seen at which level, and that a sound one passes where a sink shows its work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_trial import registry
from kafka_trial.anomalies.invariant import list_invariants
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.judge.evidence import Seen, missing_evidence
from kafka_trial.judge.not_judged import NotJudgedReason
from kafka_trial.model.trial_context import Incarnation, Peak, TrialContext
from kafka_trial.verdict.decide import Verdict, decide
from kafka_trial.verdict.verdict_input import AnomalyResult, VerdictInput
from lab.calibration.attempts import header_of
from lab.calibration.fixture_header import FixtureHeader
from lab.calibration.silent_variants import for_silence_alone, levels_of, shown_at
from zoo import declared

SIN = FixtureHeader("any", "control", ("commit-ahead", "commit-regression", "exited", "poll-skip"))
WITNESSES = ("observer", "offsets", "requests-b0", "sink", "transactions")  # the last two of outputs to a topic
WHOLE = TrialContext(
    incarnations=(Incarnation(source=0, member=0, number=0, started_ns=0),),
    phases={"drain": 0, "snapshot": 30_000_000_000},
    witnesses=dict.fromkeys(WITNESSES, "complete"),
    counts=dict.fromkeys(WITNESSES, 1),
    peaks=(Peak(member="m0", incarnation=0, rss_bytes=50_000_000, source=0, seq=1),),
    control_read="complete",
    outputs_ended=1,
    sends=200,
)
QUIET_SOUND = [
    name
    for name in registry.consumers()
    if name.endswith("/quiet") and ((header := header_of(name)) is None or header.sound)
]


@pytest.mark.parametrize(
    ("levels", "header", "shown"),
    [
        (("none", "sink", "events"), SIN, SIN.anomalies),
        (("none", "sink"), SIN, ("commit-ahead", "commit-regression", "exited")),
        (("none",), SIN, ("commit-regression", "exited")),
        (("none", "sink", "events"), replace(SIN, quiet=("duplicate-effect",)), SIN.anomalies),
        (("none", "sink"), replace(SIN, quiet=("duplicate-effect",)), ("duplicate-effect",)),
        (("none",), replace(SIN, quiet=("duplicate-effect",)), ()),
        (("none", "sink"), replace(SIN, quiet=()), ()),
    ],
)
def test_what_a_sin_must_show_follows_from_the_levels(
    levels: tuple[str, ...], header: FixtureHeader, shown: tuple[str, ...]
) -> None:
    """What lies above them is left out, a plain failure never; a header's own line for the quiet one is preferred."""
    assert shown_at(levels, header) == shown


@pytest.mark.parametrize("name", QUIET_SOUND)
def test_a_sound_quiet_consumer_passes_where_a_sink_shows_its_work(name: str) -> None:
    """Where all witnesses saw all and nothing was found; without a sink it is unknown for its silence alone."""
    verdict = unblemished(name)
    if "sink" in levels_of(spec_from_toml(registry.find_consumer(name)).evidence):
        assert (verdict.verdict, verdict.violations, verdict.reasons) == ("pass", (), ())
    else:
        assert (verdict.verdict, verdict.violations, for_silence_alone(verdict.reasons)) == ("unknown", (), True)


def test_without_a_sink_a_claim_of_what_brokers_show_passes() -> None:
    """Nothing of its delivery is claimed, and no order; the same with at-least-once is told which sink is wanting."""
    assert unblemished("python-async-commit/quiet", delivery="unclaimed").verdict == "pass"
    (reason,) = unblemished("python-async-commit/quiet").reasons
    assert reason.endswith(NotJudgedReason.NO_SINK)


@pytest.mark.parametrize(
    "reasons",
    [
        [],
        ["fault 0 (kill on m0) had no measurable effect: its process lives"],
        ["claimed but not judged: skipped: there are no records"],
        ["12 records were judged, fewer than the 100 it takes: the consumer prints no events"],
    ],
)
def test_any_other_reason_is_not_silence(reasons: list[str]) -> None:
    """Nor is a gap beside it, or none at all."""
    silent = "claimed but not judged: work-after-revoke: the consumer prints no events"
    assert for_silence_alone([silent])
    assert not for_silence_alone(reasons)
    assert not reasons or not for_silence_alone([silent, *reasons])


def unblemished(name: str, *, delivery: str | None = None) -> Verdict:
    """Returns the verdict on a consumer of which all was seen that its evidence offers, and nothing was found."""
    toml = registry.find_consumer(name)
    spec = spec_from_toml(toml)
    by_sink = "sink" in levels_of(spec.evidence)
    trial_context = replace(WHOLE, settings=declared(toml), sink_seen=by_sink)
    seen = Seen(records=200, committed=20, effects=200 if by_sink else 0)
    found = []
    for one in list_invariants():
        missing = missing_evidence(one, trial_context, seen)
        gap = {} if missing is None else {"not_judged": missing.because, "applies": missing.applies}
        found.append(AnomalyResult(one.name, **gap))
    return decide(VerdictInput(tuple(found)), replace(spec.claim, delivery=delivery or spec.claim.delivery))
