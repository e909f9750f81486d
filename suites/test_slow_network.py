"""One member's network is slow and shaky: 200 ms more each way, jittered, then a link of 32 KB/s."""

from kafka_trial.pytest_plugin import Trial
from kafka_trial.scenario import Scenario, Step

SCENARIO = Scenario(
    name="slow-network",
    summary="latency and a slow link on one member",
    schedule=(
        Step("latency", "member", at_s=1, for_s=5, options={"latency_ms": 200, "jitter_ms": 50}),
        Step("slow-link", "member", at_s=8, for_s=5, options={"rate_kb_per_s": 32}),
    ),
)


def test_slow_network(trial: Trial) -> None:
    """Given a group at work, when one member's network becomes slow, then the claim holds."""
    trial(SCENARIO).must_pass()
