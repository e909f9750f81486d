"""Request logs: whether, and until when, they tell of every request that the members sent."""

from __future__ import annotations

from kafka_trial.invariants.kernels import NEVER, NONE
from kafka_trial.invariants.trial_context import TrialContext

LAST_LINES_NS = 1_000_000_000  # of a broker that ends: what it did just before may not be in its log
STOPS_A_BROKER = ("broker-kill", "broker-restart", "broker-pause", "rolling-restart")  # its last lines may be missing


def read_to_end(trial_context: TrialContext) -> bool:
    """Tells whether every broker's request log was read to its end."""
    logs = [name for name in trial_context.counts if name.startswith("requests-")]
    return bool(logs) and all(trial_context.witnesses.get(name) == "complete" for name in logs)


def complete_until_ns(trial_context: TrialContext) -> int:
    """Returns until when no request can be missing: all logs were read to the end (else NONE), and a broker that is
    stopped may not have written its last lines; NEVER where none was."""
    if not read_to_end(trial_context):
        return NONE
    stops = [window.injected_ns for window in trial_context.windows if window.fault in STOPS_A_BROKER]
    return min(stops) - LAST_LINES_NS if stops else NEVER
