"""Support code shared by several kinds of tests: processes, conditions, optional programs and records to send.

Uses `pybroker` only through its public interfaces (the console script, `pybroker.testing`, `pybroker.protocol`).
"""
