"""`preflight`: does this configuration carry these records at all? Arithmetic alone; nothing is started.

`plan.py` reads what is planned, `size_settings.py` knows the limits of Kafka and its clients, `hops.py` leads a record
past them, `fetches.py` counts what a consumer fetches and holds, and `answer.py` says how long a backlog takes, and
sums up. `live.py` reads a plan from a cluster.
"""
