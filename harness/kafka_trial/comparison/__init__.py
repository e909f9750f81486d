"""What differs between two sides of a certificate: two Kafka versions, or two clients on the same trials.

`figures.py` reads the figures of a trial, `pairs.py` pairs trials by suite and seed, `interval.py` says what a figure's
pairs show, `differences.py` compares two sides, `explain.py` knows what changed between Kafka versions, `client.py`
judges whether a new client is worse than the old one, `summary.py` says all of it in words.
"""
