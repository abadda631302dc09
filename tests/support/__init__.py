"""What tests of several kinds share: processes, conditions, programs that may be missing, and records to send.

Knows `pybroker` only by its public faces (the console script, `pybroker.testing`, `pybroker.protocol`).
"""
