"""An upgrade of a cluster: which moves are allowed, and until when; the stages, played on one cluster; their verdicts.

What it means for clients, before anything starts, is two generated tables, joined. `tables.py` reads which API versions
the brokers of a Kafka version answer, and what its settings are by default; `clients.py` joins the first with requests
that were seen, `settings.py` the second with what is set. `request_logs.py` finds the requests in brokers' logs,
`live.py` asks a cluster, and `outlook.py` sums up for `preflight --to`.
"""
