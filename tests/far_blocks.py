"""Blocks of ports that tests keep to themselves: clusters take the lowest that is free, these are the highest.

Tests without a cluster run beside those with one, so that each of these tests names blocks that no other one takes.
"""

from kafka_trial.cluster.wiring import BLOCK_PORTS, FIRST_PORT, LAST_PORT

EVERY = range(FIRST_PORT, LAST_PORT, BLOCK_PORTS)
HELD_AND_SEARCHED, BOOTED_TWICE, A_STRANGERS, BEHIND_IT = EVERY[-5:-3], EVERY[-3], EVERY[-2], EVERY[-1]
