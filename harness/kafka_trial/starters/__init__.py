"""Starters: the smallest honest consumers, for `init`."""
