"""What the brokers and the kernel saw: witnesses decode and record, and judge nothing.

`offsets_log.py`, `request_log.py`, `observe.py` and `transactions.py` are processes of their own, started by
`witness.py`; `socket_table.py` samples the kernel's socket table for the nemesis.
"""
