"""Transactions of a producer: the machine that knows what is allowed, and the driver that asks the coordinators.

No record comes by here: what the native engine has to know of a transaction is `pybroker.client.native.Transactions`.
"""
