"""`preflight`: does this configuration carry these records at all? Arithmetic alone; nothing is started.

`plan.py` reads what is planned, `knobs.py` knows the limits of Kafka and its clients, `hops.py` leads a record past
them, `fetches.py`, `memory.py` and `drain.py` count what a consumer fetches, holds and works off, and `answer.py` sums
up. `live.py` reads a plan from a cluster.
"""
