"""Ordinary spark-submit jobs that read and write topics.

Each job is a module: pure functions from DataFrame to DataFrame, which need no broker, and a thin `main` that reads
options, checks what they name, connects the functions with files and topics, and says what came of it. Owns the rules
of the jobs. Must not know how records travel: topics are read and written by the data source `pybroker` alone.
"""
