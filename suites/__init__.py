"""The suites: one `test_<topic>.py` for each way in which Kafka breaks under a consumer."""
