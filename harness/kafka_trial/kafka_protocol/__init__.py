"""Kafka's wire protocol, once: connections, requests, record batches, SASL, and the records of `__consumer_offsets`.

No client library: what brokers say is taken as bytes, in fixed versions that every broker from 3.9 to 4.3 speaks.
"""
