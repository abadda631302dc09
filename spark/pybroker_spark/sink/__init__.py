"""Streaming writes that are exactly once for each (query, batch): also for readers of uncommitted records.

Owns the ledger of a query, what an attempt of a task has to do by it, and the reading back after a failure
(`docs/adr/0019-exactly-once-by-sequence-and-read-back.md`). Options and the form of rows are `pybroker_spark.source`'s.
Only `stream_writer` knows Spark.
"""
