"""What differs between versions of Kafka, and which moves of a cluster from one to another are allowed.

`paths.py` has the rules of moves, `avoid.py` the versions that are not to be moved to, `way_back.py` until when a move
can be undone, by the features in force (`feature_levels.py`). `tables.py` reads which API versions the brokers of a
version answer, and what its settings are by default; `clients.py` joins the first with requests that were seen,
`settings.py` the second with what is set. `request_logs.py` finds the requests in brokers' logs, `live.py` asks a
cluster, and `outlook.py` sums up for `preflight --to`.
"""
