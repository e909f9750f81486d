"""The command `kafka-trial`, which stops itself (SIGSTOP) as soon as a phase has begun: `held_harness.py PHASE WORDS`.

Some phases take a third of a second: a test that looks for one in the history may be late, and kill after the end.
"""

from __future__ import annotations

import os
import signal
import sys
from unittest import mock

from kafka_trial.cli import main
from kafka_trial.trial.environment import TrialEnvironment

begin_phase = TrialEnvironment.phase


def begin_phase_and_stop(environment: TrialEnvironment, name: str, what: str) -> None:
    """Begins a phase, and stops this process in the one that it was told."""
    begin_phase(environment, name, what)
    if name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    with mock.patch.object(TrialEnvironment, "phase", begin_phase_and_stop):
        sys.exit(main(sys.argv[2:]))
