"""Upgrades: one cluster moved from one version of Kafka to another, stage by stage, with groups at work on it."""
