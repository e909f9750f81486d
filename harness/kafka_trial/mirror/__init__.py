"""Clusters that mirror another: which offsets are of one record, and one history of the work on both."""
