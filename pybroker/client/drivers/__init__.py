"""Membership drivers: what keeps a member in its group, by tasks on the event loop of the consumer.

A driver drives one of the machines of `pybroker.client.membership`: it finds the coordinator, sends what the machine
wants sent, and says when the program has a rebalance step to do. Heartbeats need no `poll`, only a loop that runs.
"""
