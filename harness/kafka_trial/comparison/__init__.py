"""What differs between two sides of a certificate: two Kafka versions, or two clients on the same trials.

`figures.py` reads the figures of a trial, `pairs.py` pairs trials by suite and seed, `interval.py` says what a figure's
pairs show, `differences.py` compares two sides and judges whether a new client is worse than the old one, `explain.py`
knows what changed between Kafka versions, `summary.py` says all of it in words.
"""
