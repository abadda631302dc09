"""Support code shared by several kinds of tests: processes, conditions, optional programs and records to send.

Knows `pybroker` only by its public faces (the console script, `pybroker.testing`, `pybroker.protocol`).
"""
