"""The data source `pybroker`: topics as DataFrames, in batch and streams, with Spark's Kafka connector options.

Owns options, offsets and the plan of a read. Records pass from the native client to Spark as Arrow batches, without
Python objects. It uses only the public API of `pybroker.client`. Streaming writes belong to `pybroker_spark.sink`.
"""
