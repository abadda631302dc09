"""The data source `pybroker`: topics as DataFrames, in batch and in streams, by the options of Spark's Kafka connector.

Owns options, offsets and the plan of a read; records go from the native client to Spark as Arrow batches and are never
looked at one by one. Knows nothing of the broker but `pybroker.client`'s public face. Streaming writes are
`pybroker_spark.sink`'s.
"""
