"""Ordinary spark-submit jobs that read and write topics.

Each job is a module: pure functions from DataFrame to DataFrame, which need no broker, and a thin `main` that parses
and validates options, connects the functions with files and topics, and prints the result. Owns the logic of the
jobs. Must not know how records are transferred: topics are read and written only by the data source `pybroker`.
"""
