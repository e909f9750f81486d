"""Case 4 on real brokers: a backlog of large records, met with librdkafka's default prefetch and with a small one."""

from __future__ import annotations

import pytest

from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.preflight.answer import answer
from kafka_trial.preflight.plan import make_plans
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import make_trial_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.rotates(together="dear")]

SEED = 1
FOLDER = registry.CHECKOUT / "fixtures" / "large-records"
SCENARIO = FOLDER / "backlog.toml"
IDLE_BYTES = 30_000_000  # what a process of Python and librdkafka takes by itself (reports/large_records.jsonl)
PREFETCH: dict[str, dict[str, int]] = {"default-prefetch": {}, "small-prefetch": {"queued.max.messages.kbytes": 8192}}


@pytest.fixture(scope="module")
def tried(kafka_trial_session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Tries both consumers, side by side."""
    place, scenario = tmp_path_factory.mktemp("large-records"), registry.find_scenario(str(SCENARIO))
    asked = {
        TrialRequest(make_trial_spec(scenario, FOLDER / f"{name}.toml", seed=SEED), place / name): name
        for name in PREFETCH
    }
    tried = {asked[one]: outcome for one, outcome in kafka_trial_session.try_many(list(asked), side_by_side=2)}
    assert all(isinstance(outcome, TrialOutcome) for outcome in tried.values()), tried
    return {name: outcome for name, outcome in tried.items() if isinstance(outcome, TrialOutcome)}


def fits(name: str) -> bool:
    """Whether preflight says that a process fits into the memory that its team claims."""
    scenario, claim = registry.find_scenario(str(SCENARIO)), spec_from_toml(FOLDER / f"{name}.toml").claim
    words = {
        "record_max": scenario.load.size_bytes_max,
        "partitions_per_consumer": scenario.topic.partitions,
        "brokers": scenario.brokers,
        "consumer_library": "librdkafka",
        "consumer": PREFETCH[name],
        "memory_max": (claim.memory_max_bytes or 0) - IDLE_BYTES,
    }
    (plan,) = make_plans(words)
    return answer(plan).fits_memory


def test_the_default_prefetch_does_not_fit_and_is_found_over_its_limit(tried: dict[str, TrialOutcome]) -> None:
    """As preflight says before; the records are all handled, and the trial fails for the memory alone."""
    verdict = tried["default-prefetch"].verdict
    assert not fits("default-prefetch")
    assert verdict.verdict == "fail", verdict.reasons
    assert {one.anomaly for one in verdict.violations} == {"memory-over-limit"}


def test_a_small_prefetch_fits_and_passes(tried: dict[str, TrialOutcome]) -> None:
    """The same backlog under the same limit."""
    verdict = tried["small-prefetch"].verdict
    assert fits("small-prefetch")
    assert verdict.verdict == "pass", (verdict.violations, verdict.reasons)
