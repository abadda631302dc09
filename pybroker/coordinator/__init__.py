"""Coordinators: groups and transactions, and later share groups, as pure machines over internal topics.

One coordinator is a partition of an internal topic, its machine, and the runner that drives it. Must not know the
network, handlers or replicas: `pybroker.node` provides the logs.
"""
