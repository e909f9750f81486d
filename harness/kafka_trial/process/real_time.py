"""Real-time threads: those that hear what others say go before all that merely computes.

A share of the processor (`trial/stall_prevention.py`) is handed out for each processor apart, by what of the session
runs there: a thread that mostly sleeps, alone on a processor beside thirty busy sessions, gets a small part of it, and
was seen to wait for over a half second while the other threads of its process ran. A real-time thread (sched(7)) waits
for nobody but its like.
"""

from __future__ import annotations

import os
from contextlib import suppress

PRIORITY = os.sched_param(1)  # the least: above every thread that is not real-time


def make_thread_real_time() -> None:
    """Makes the calling thread real-time (SCHED_RR), and no process or thread that it starts.

    Without the right to (CAP_SYS_NICE, RLIMIT_RTPRIO, a control group without a budget for it) all stays as it is.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, PRIORITY)
