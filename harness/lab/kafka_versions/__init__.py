"""`python -m lab.kafka_versions VERSION…`: brings in Kafka versions: pins their jars, and asks them for their features.

`jars.py` writes down the checksums of what Maven Central serves, `feature_levels.py` has a small Java program print
which levels of each feature the classes in the jars know.
"""
