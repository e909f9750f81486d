"""How often verdicts are right: consumers of known guilt, and sound ones, on their suites, time after time."""
