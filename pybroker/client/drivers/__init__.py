"""Membership drivers: tasks on the consumer's event loop that keep a member in its group.

A driver runs a state machine of `pybroker.client.membership`. It finds the coordinator, sends the requests of the
machine, and notifies the consumer of a rebalance step for the program. Heartbeats need no `poll`, only a running
event loop.
"""
