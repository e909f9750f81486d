"""Request logs: until when they tell of every request."""

from __future__ import annotations

from kafka_trial.invariants.circumstances import Circumstances
from kafka_trial.invariants.kernels import NEVER, NONE
from kafka_trial.invariants.process_fetches import LAST_LINES_NS, STOPS_A_BROKER


def whole_until_ns(circumstances: Circumstances) -> int:
    """Returns until when no request can be missing: all logs were read to the end (else NONE), and a broker that is
    stopped may not have written its last lines."""
    logs = [name for name in circumstances.counts if name.startswith("requests-")]
    if not logs or any(circumstances.witnesses.get(name) != "complete" for name in logs):
        return NONE
    stops = [window.injected_ns for window in circumstances.windows if window.fault in STOPS_A_BROKER]
    return min(stops) - LAST_LINES_NS if stops else NEVER
