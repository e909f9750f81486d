"""Threads, child processes and waiting: the only place that starts the first two, and lets time pass."""
