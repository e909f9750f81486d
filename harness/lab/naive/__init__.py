"""The naive checker: a second judge, written from the same definitions, that shares no code with the invariants."""
