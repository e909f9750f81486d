"""The anomalies: what each is, and the question by which it is found (`model/partition.py` answers)."""
