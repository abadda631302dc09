"""The audit: whether every record of load generators is in the log exactly once and in order, and its latency.

Owns the counts over a stream of stamped records, as exact, small and mergeable states, the report built from them,
and the job that audits topics. Only `job` depends on Spark.
"""
