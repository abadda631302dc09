"""Streaming writes that are exactly once for each (query, batch), also for read_uncommitted consumers.

Owns the ledger of a query, the steps of a task attempt, and the read-back after a failure
(`docs/adr/0019-exactly-once-by-sequence-and-read-back.md`). Options and the form of rows belong to
`pybroker_spark.source`. Only `stream_writer` knows Spark.
"""
