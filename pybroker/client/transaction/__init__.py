"""Transactions of a producer: the state machine, and the driver that sends requests to the coordinators.

Records do not pass through here: `pybroker.client.native.Transactions` is the native engine's view of a transaction.
"""
