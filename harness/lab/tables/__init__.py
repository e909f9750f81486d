"""`python -m lab.tables VERSION…`: writes the two tables of `kafka_trial/upgrade/` again for these Kafka versions.

`api_messages.py` reads the message definitions in Kafka's jars, `config_classes.py` has a small Java program print what
its configuration classes define, and `lines.py` writes both as lines that change only where Kafka did.
"""
