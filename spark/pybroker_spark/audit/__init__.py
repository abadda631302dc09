"""The audit: whether every record that load generators sent is in the log once and in order, and how long it took.

Owns what is counted of a stream of stamped records, in states that are exact, small and can be merged, and the report
that is made of them; and the job that counts topics. Only `job` knows Spark.
"""
